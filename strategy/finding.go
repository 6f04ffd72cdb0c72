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
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A finding is the search state of one sub-question.
type finding struct {
	question   string
	asked      string       // question as put when a name in it is uncertain; empty: same as question
	filter     assay.Filter // the sub-question's own
	hits       []assay.Hit  // of all searches, distinct, by relevance
	terms      []assay.Term // of the question, from its first search
	grade      role.Grade
	searched   []assay.Searched
	sides      []string // gaps for named collections without a relevant hit
	below      bool     // all accepted hits are below the relevance floor
	passed     bool     // the last search was not graded, because all hits are below the floor
	graded     int      // number of searches at the last grading
	notes      notes
	tries      []try
	others     []filling      // the question with alternative names filled in, the likeliest first
	best       []assay.Hit    // of a hop: hits handed on if the number of passages is set
	places     map[string]int // best rank of each hit in any search, by chunk, from 0
	iterations int
	brought    int // number of hits of the last search
	dry        drought
	stop       assay.Stop
	took       time.Duration // time of its retrieval, by inTime
	late       bool          // that time is over, and the run's is not
	lacked     string        // the budget error's numbers, if the budget ended the search
	written    checkedDraft  // last draft from all findings; set on the first finding only
	each       []string      // collections that were searched separately; empty if none
	serves     []int         // indexes of the sub-questions that use this one's result
	ladder     climbing      // of a sub-question that Corrective looks up
}

// A try identifies a search, to detect repeated ones.
type try struct{ query, filter string }

func tryOf(query string, filter assay.Filter) try {
	return try{strings.Join(strings.Fields(strings.ToLower(query)), " "), filter.String()}
}

// sameWords reports whether two queries are the same up to case and white space.
func sameWords(query, other string) bool {
	return tryOf(query, assay.Filter{}) == tryOf(other, assay.Filter{})
}

// tried returns the queries that were searched before the last grading.
func (f *finding) tried() []string {
	queries := make([]string, f.graded)
	for i, s := range f.searched[:f.graded] {
		queries[i] = s.Query
	}
	return queries
}

// ends records that err ended the search.
func (f *finding) ends(stop assay.Stop, err error) {
	f.stop = stop
	if budget, ok := errors.AsType[*run.BudgetError](err); ok {
		f.lacked = fmt.Sprintf("a step may need %d, and %d are left", budget.Need, budget.Left)
	}
}

// sufficient reports whether the hits are sufficient to answer.
func (f finding) sufficient() bool { return f.grade.Verdict == assay.Sufficient }

// cutShort reports whether the run had to stop searching because it ran out of time, calls, tokens
// or money.
func (f *finding) cutShort() bool {
	return spentBy(f.stop)
}

// look makes one search and grades all hits found so far, unless all are below the relevance floor;
// then the querier names the next search. It returns the number of new hits.
func (f *finding) look(ctx context.Context, s run.Scope, env Env, q assay.Query) (fresh int, err error) {
	fresh, err = f.find(ctx, s, env, q)
	if err != nil {
		return fresh, err
	}
	if f.reachesFloor(env) {
		return fresh, f.regrade(ctx, s, env)
	}
	f.pass(env)
	return fresh, f.askQuerier(ctx, s, env)
}

// find makes one search without grading its hits; until regrade does, the search counts as
// Insufficient. It returns the number of new hits.
func (f *finding) find(ctx context.Context, s run.Scope, env Env, q assay.Query) (fresh int, err error) {
	found, err := env.search(ctx, s, q)
	if err != nil {
		return 0, err
	}
	f.iterations++
	f.tries = append(f.tries, tryOf(q.Text, q.Filter))
	return f.take(env, q, found), nil
}

// take adds the results of a search for q. It returns the number of new hits.
func (f *finding) take(env Env, q assay.Query, found assay.Results) (fresh int) {
	f.notes.add(found)
	fresh = f.merge(found.Hits)
	f.brought = len(found.Hits)
	f.dry.after(fresh, f.brought)
	if f.terms == nil {
		f.terms = found.Terms
	}
	searched := assay.Searched{
		Query: q.Text, Collections: q.Collections, Filter: assay.And(env.Filter, q.Filter), Hits: len(found.Hits), Grade: assay.Insufficient,
	}
	if env.placed {
		searched.Collections = env.within(q.Collections)
	}
	for _, h := range found.Hits {
		searched.TopRelevance = max(searched.TopRelevance, h.Scores.Relevance)
	}
	if each := env.spans(q); len(each) > 1 {
		f.each = each
		f.searched = append(f.searched, searchedEach(searched, found.Hits, each)...)
		return fresh
	}
	f.searched = append(f.searched, searched)
	return fresh
}

// regrade grades all hits and records the verdict on the last search. If the run ends first, the grade
// before stands.
func (f *finding) regrade(ctx context.Context, s run.Scope, env Env) error {
	grade, err := env.grade(ctx, s, *f)
	if err != nil {
		return err
	}
	f.grade, f.passed, f.graded = grade, false, len(f.searched)
	f.notes.outcome(role.GraderRole, f.grade.Outcome)
	f.grade.Missing = asked(env.Question).lines(f.grade.Missing)
	f.grade.Query = f.notes.bounded(role.GraderRole, f.grade.Query)
	if f.asked != "" && len(f.grade.Missing) > 0 { // the name in the missing part is uncertain
		f.grade.Missing = asked(env.Question).lines([]string{f.asked})
	}
	f.lackSides(env)
	f.holdToFloor(env)
	for i := range min(max(1, len(f.each)), len(f.searched)) { // the entries of the last search
		f.searched[len(f.searched)-1-i].Grade = f.grade.Verdict
	}
	return nil
}

// merge adds new hits and keeps the best relevance of known ones. Hits of equal relevance keep the
// order in which searches ranked them. It returns the number of new hits.
func (f *finding) merge(hits []assay.Hit) (fresh int) {
	at := make(map[string]int, len(f.hits))
	for i, h := range f.hits {
		at[h.Chunk.ID] = i
	}
	if f.places == nil {
		f.places = make(map[string]int, len(hits))
	}
	for place, h := range hits {
		if best, ok := f.places[h.Chunk.ID]; !ok || place < best {
			f.places[h.Chunk.ID] = place
		}
		i, known := at[h.Chunk.ID]
		switch {
		case !known:
			f.hits = append(f.hits, h)
			fresh++
		case h.Scores.Relevance > f.hits[i].Scores.Relevance:
			f.hits[i] = h
		}
	}
	slices.SortStableFunc(f.hits, byRelevance)
	return fresh
}

// byRelevance orders hits, the most relevant first.
func byRelevance(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) }

// accepted returns the hits that the grader calls relevant, best first, at most keep of them. It
// returns none if all are below the floor. It ignores chunks that the grader names but no search
// found.
func (f *finding) accepted(keep int) []assay.Hit {
	var hits []assay.Hit
	if f.below {
		return nil
	}
	for _, id := range f.grade.Relevant {
		i := slices.IndexFunc(f.hits, func(h assay.Hit) bool { return h.Chunk.ID == id })
		if i >= 0 {
			hits = append(hits, f.hits[i])
		}
	}
	hits = fairly(hits, f.each)
	return hits[:min(len(hits), max(0, keep))]
}

// holdTogether reports whether a sentence of the accepted hits contrasts what the plan's two
// sub-questions name, as in "Unlike Peek, Read advances".
func (f *finding) holdTogether(plan role.Plan, limits Limits) bool {
	if len(plan.SubQuestions) != 2 {
		return false
	}
	a, b := plan.SubQuestions[0].Text, plan.SubQuestions[1].Text
	for _, h := range f.accepted(limits.Keep) {
		for _, sp := range sentence.Spans(h.Text) {
			one, other, ok := surface.Contrasts(h.Text[sp.Start:sp.End])
			if ok && (speaksOf(one, a) && speaksOf(other, b) || speaksOf(one, b) && speaksOf(other, a)) {
				return true
			}
		}
	}
	return false
}

// speaksOf reports whether text has all content words of the second argument.
func speaksOf(text, what string) bool {
	held := stemsOf("", text)
	return !slices.ContainsFunc(analysis.Tokens(what, ""), func(t analysis.Token) bool {
		return !t.Part && !held[t.Term] && !surface.Function(strings.ToLower(what[t.Start:t.End]))
	})
}
