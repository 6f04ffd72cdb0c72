package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// subQuestion is the search state of one sub-question.
type subQuestion struct {
	question           string
	displayed          string       // question as put when a name in it is uncertain; empty: same as question
	filter             assay.Filter // the sub-question's own
	hits               []assay.Hit  // of all searches, distinct, by relevance
	terms              []assay.Term // of the question, from its first search
	grade              role.Grade
	searched           []assay.Searched
	missingCollections []string // gaps for named collections without a relevant hit
	below              bool     // all accepted hits are below the relevance floor
	gradeSkipped       bool     // the last search was not graded, because all hits are below the floor
	graded             int      // number of searches at the last grading
	notes              noteList
	searchKeys         []searchKey
	alternatives       []substitution // the question with alternative names filled in, the likeliest first
	hopHits            []assay.Hit    // of a hop: hits handed on if the number of passages is set
	bestRank           map[string]int // best rank of each hit in any search, by chunk, from 0
	iterations         int
	lastHits           int // number of hits of the last search
	noProgress         noProgressCount
	stop               assay.Stop
	took               time.Duration // time of its retrieval, by inTime
	late               bool          // that time is over, and the run's is not
	shortfall          string        // the budget error's numbers, if the budget ended the search
	lastDraft          checkedDraft  // last draft from all sub-questions; set on the first sub-question only
	splitCollections   []string      // collections that were searched separately; empty if none
	neededBy           []int         // indexes of the sub-questions that use this one's result
	ladder             ladderState   // of a sub-question that Corrective looks up
}

// searchKey identifies a search, to detect repeated ones.
type searchKey struct{ query, filter string }

func searchKeyOf(query string, filter assay.Filter) searchKey {
	return searchKey{strings.Join(strings.Fields(strings.ToLower(query)), " "), filter.String()}
}

// sameWords reports whether two queries are the same up to case and white space.
func sameWords(query, other string) bool {
	return searchKeyOf(query, assay.Filter{}) == searchKeyOf(other, assay.Filter{})
}

// gradedQueries returns the queries that were searched before the last grading.
func (sq *subQuestion) gradedQueries() []string {
	queries := make([]string, sq.graded)
	for i, s := range sq.searched[:sq.graded] {
		queries[i] = s.Query
	}
	return queries
}

// endSearch records that err ended the search.
func (sq *subQuestion) endSearch(stop assay.Stop, err error) {
	sq.stop = stop
	if budget, ok := errors.AsType[*run.BudgetError](err); ok {
		sq.shortfall = fmt.Sprintf("a step may need %d, and %d are left", budget.Need, budget.Left)
	}
	if step, ok := errors.AsType[*run.StepError](err); ok && stop == assay.StopQuota {
		sq.shortfall = remarkLine(step.Message)
	}
}

// sufficient reports whether the hits are sufficient to answer.
func (sq subQuestion) sufficient() bool { return sq.grade.Verdict == assay.Sufficient }

// cutShort reports whether the run had to stop searching because it ran out of time, calls, tokens
// or money.
func (sq *subQuestion) cutShort() bool {
	return spentBy(sq.stop)
}

// searchAndGrade makes one search and grades all hits found so far, unless all are below the
// relevance floor; then the querier names the next search. It returns the number of new hits.
func (sq *subQuestion) searchAndGrade(ctx context.Context, s run.Scope, env Env, q assay.Query) (fresh int, err error) {
	fresh, err = sq.search(ctx, s, env, q)
	if err != nil {
		return fresh, err
	}
	if sq.reachesFloor(env) {
		return fresh, sq.gradeAll(ctx, s, env)
	}
	sq.skipGrade(env)
	return fresh, sq.askQuerier(ctx, s, env)
}

// search makes one search without grading its hits; until gradeAll does, the search counts as
// Insufficient. It returns the number of new hits.
func (sq *subQuestion) search(ctx context.Context, s run.Scope, env Env, q assay.Query) (fresh int, err error) {
	found, err := env.search(ctx, s, q)
	if err != nil {
		return 0, err
	}
	sq.iterations++
	sq.searchKeys = append(sq.searchKeys, searchKeyOf(q.Text, q.Filter))
	return sq.addResults(env, q, found), nil
}

// addResults adds the results of a search for q. It returns the number of new hits.
func (sq *subQuestion) addResults(env Env, q assay.Query, found assay.Results) (fresh int) {
	sq.notes.add(found)
	fresh = sq.addHits(found.Hits)
	sq.lastHits = len(found.Hits)
	sq.noProgress.add(fresh, sq.lastHits)
	if sq.terms == nil {
		sq.terms = found.Terms
	}
	searched := assay.Searched{
		Query: q.Text, Collections: q.Collections, Filter: assay.And(env.Filter, q.Filter), Hits: len(found.Hits), Grade: assay.Insufficient,
	}
	if env.oneCollection {
		searched.Collections = env.within(q.Collections)
	}
	for _, h := range found.Hits {
		searched.TopRelevance = max(searched.TopRelevance, h.Scores.Relevance)
	}
	if each := env.splitsFor(q); len(each) > 1 {
		sq.splitCollections = each
		sq.searched = append(sq.searched, searchedEach(searched, found.Hits, each)...)
		return fresh
	}
	sq.searched = append(sq.searched, searched)
	return fresh
}

// regrade grades all hits and records the verdict on the last search. If the run ends first, the grade
// before stands.
func (sq *subQuestion) gradeAll(ctx context.Context, s run.Scope, env Env) error {
	grade, err := env.grade(ctx, s, *sq)
	if err != nil {
		return err
	}
	sq.grade, sq.gradeSkipped, sq.graded = grade, false, len(sq.searched)
	sq.notes.outcome(role.GraderRole, sq.grade.Outcome)
	sq.grade.Missing = questionSources(env.Question).lines(sq.grade.Missing)
	sq.grade.Query = sq.notes.bounded(role.GraderRole, sq.grade.Query)
	if sq.displayed != "" && len(sq.grade.Missing) > 0 { // the name in the missing part is uncertain
		sq.grade.Missing = questionSources(env.Question).lines([]string{sq.displayed})
	}
	sq.addMissingCollections(env)
	sq.enforceFloor(env)
	for i := range min(max(1, len(sq.splitCollections)), len(sq.searched)) { // the entries of the last search
		sq.searched[len(sq.searched)-1-i].Grade = sq.grade.Verdict
	}
	return nil
}

// addHits adds new hits and keeps the best relevance of known ones. Hits of equal relevance keep
// the order in which searches ranked them. It returns the number of new hits.
func (sq *subQuestion) addHits(hits []assay.Hit) (fresh int) {
	at := make(map[string]int, len(sq.hits))
	for i, h := range sq.hits {
		at[h.Chunk.ID] = i
	}
	if sq.bestRank == nil {
		sq.bestRank = make(map[string]int, len(hits))
	}
	for place, h := range hits {
		if best, ok := sq.bestRank[h.Chunk.ID]; !ok || place < best {
			sq.bestRank[h.Chunk.ID] = place
		}
		i, known := at[h.Chunk.ID]
		switch {
		case !known:
			sq.hits = append(sq.hits, h)
			fresh++
		case h.Scores.Relevance > sq.hits[i].Scores.Relevance:
			sq.hits[i] = h
		}
	}
	slices.SortStableFunc(sq.hits, byRelevance)
	return fresh
}

// byRelevance orders hits, the most relevant first.
func byRelevance(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) }

// accepted returns the hits that the grader calls relevant, best first, at most keep of them. It
// returns none if all are below the floor. It ignores chunks that the grader names but no search
// found.
func (sq *subQuestion) accepted(keep int) []assay.Hit {
	var hits []assay.Hit
	if sq.below {
		return nil
	}
	for _, id := range sq.grade.Relevant {
		i := slices.IndexFunc(sq.hits, func(h assay.Hit) bool { return h.Chunk.ID == id })
		if i >= 0 {
			hits = append(hits, sq.hits[i])
		}
	}
	hits = fairly(hits, sq.splitCollections)
	return hits[:min(len(hits), max(0, keep))]
}

// contrastsBoth reports whether a sentence of the accepted hits contrasts what the plan's two
// sub-questions name, as in "Unlike Peek, Read advances".
func (sq *subQuestion) contrastsBoth(plan role.Plan, limits Limits) bool {
	if len(plan.SubQuestions) != 2 {
		return false
	}
	a, b := plan.SubQuestions[0].Text, plan.SubQuestions[1].Text
	for _, h := range sq.accepted(limits.Keep) {
		for _, sp := range sentence.Spans(h.Text) {
			one, other, ok := lexical.Contrasts(h.Text[sp.Start:sp.End])
			if ok && (containsContent(one, a) && containsContent(other, b) || containsContent(one, b) && containsContent(other, a)) {
				return true
			}
		}
	}
	return false
}

// containsContent reports whether text has all content words of the second argument.
func containsContent(text, what string) bool {
	held := stemsOf("", text)
	return !slices.ContainsFunc(analysis.Tokens(what, ""), func(t analysis.Token) bool {
		return !t.Part && !held[t.Term] && !lexical.Function(strings.ToLower(what[t.Start:t.End]))
	})
}
