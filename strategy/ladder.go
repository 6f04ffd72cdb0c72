package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// A Rung is a step of the escalation ladder of Corrective. It is also the name of the step that
// records it.
type Rung string

// The rungs, in the order in which they are taken.
const (
	RungQuestion    Rung = "question"           // the sub-question as it was planned
	RungName        Rung = "another_name"       // the sub-question with the next likely name in its slot
	RungReformulate Rung = "reformulate"        // the query that the grader proposes
	RungWiden       Rung = "widen_filter"       // without the sub-question's own filter
	RungCollection  Rung = "another_collection" // without the collection that most hits are from
	RungWeb         Rung = "web"
	RungGiveUp      Rung = "give_up" // the answer is "not found"

	RungRedrive Rung = "redrive" // the words of a statement of the draft that is not grounded
)

// ladder lists the rungs above the question that every sub-question has.
var ladder = []Rung{RungReformulate, RungWiden, RungCollection, RungWeb}

// RungInput is the recorded input of a rung: what was searched and why.
type RungInput struct {
	Rung        Rung         `json:"rung"`
	Query       string       `json:"query,omitempty"`
	Filter      assay.Filter `json:"filter"`                // the caller's and the sub-question's
	Collections []string     `json:"collections,omitempty"` // the ones that the search was narrowed to; empty: all of the caller's
	Why         string       `json:"why,omitempty"`         // why the rungs before did not suffice

	// Skipped are the rungs that were not taken, of a sub-question that was given up.
	Skipped []SkippedRung `json:"skipped,omitempty"`
}

// A SkippedRung is a rung that was not taken.
type SkippedRung struct {
	Rung Rung   `json:"rung"`
	Why  string `json:"why"`
}

// RungOutput is the recorded output of a rung: the evidence for the sub-question after it.
type RungOutput struct {
	Hits       int                `json:"hits"`        // of this search
	AboveFloor int                `json:"above_floor"` // hits of all searches so far whose relevance reaches the floor
	Grade      assay.GradeVerdict `json:"grade"`       // of all hits
	Missing    []string           `json:"missing,omitempty"`
}

// ladderState is the position of a sub-question on the ladder.
type ladderState struct {
	taken    []Rung
	skipped  map[Rung]string // why a rung was not taken
	records  int             // rungs in the journal
	ungraded int             // new hits of searches for statements that were not graded yet
}

func (c *ladderState) skip(r Rung, why string) {
	if c.skipped == nil {
		c.skipped = map[Rung]string{}
	}
	c.skipped[r] = why
}

// A search is one search of a sub-question and the rung that it belongs to.
type search struct {
	rung        Rung
	query       string
	filter      assay.Filter // the sub-question's own
	collections []string
	why         string
	stop        assay.Stop // why there is no further search; the other fields are then empty
}

// searchRung makes a search, grades all hits found so far, and records the rung.
func (sq *subQuestion) searchRung(ctx context.Context, s, outer run.Scope, env Env, next search) error {
	sq.ladder.taken = append(sq.ladder.taken, next.rung)
	before := len(sq.searched)
	q := assay.Query{Text: next.query, Filter: next.filter, Collections: next.collections}
	err := sq.searchFor(ctx, s.Sub("round", sq.iterations), env, q, next.rung == RungRedrive)
	if next.rung != RungQuestion {
		for i := before; i < len(sq.searched); i++ {
			sq.searched[i].Rung = string(next.rung)
		}
	}
	first := next.rung == RungQuestion && sq.sufficient()
	if err != nil || first {
		return err
	}
	return sq.recordRung(ctx, outer, env, RungInput{
		Rung: next.rung, Query: next.query, Filter: assay.And(env.Filter, next.filter), Collections: next.collections, Why: next.why,
	}, sq.lastHits)
}

// searchFor makes a search and grades all hits found so far. If the search is for a statement and
// brings nothing new, the grade before stands.
func (sq *subQuestion) searchFor(ctx context.Context, s run.Scope, env Env, q assay.Query, statement bool) error {
	if !statement {
		_, err := sq.searchAndGrade(ctx, s, env, q)
		return err
	}
	before := len(sq.searched)
	fresh, err := sq.search(ctx, s, env, q)
	if err == nil && fresh > 0 {
		return sq.gradeAll(ctx, s, env)
	}
	for i := before; i < len(sq.searched); i++ {
		sq.searched[i].Grade = cmp.Or(sq.grade.Verdict, assay.Insufficient)
	}
	return err
}

// recordRung makes a rung a step of the journal. A run that has no time left for that goes on
// without.
func (sq *subQuestion) recordRung(ctx context.Context, s run.Scope, env Env, c RungInput, hits int) error {
	step := run.Step{Name: string(c.Rung), Kind: assay.StepRung}
	scope := s.Sub("rung", sq.ladder.records)
	sq.ladder.records++
	_, err := run.Do(ctx, scope, step, c, func(context.Context, RungInput) (RungOutput, assay.Usage, error) {
		above := 0
		for _, h := range sq.hits {
			if h.Scores.Relevance >= env.Limits.Floor {
				above++
			}
		}
		return RungOutput{Hits: hits, AboveFloor: above, Grade: cmp.Or(sq.grade.Verdict, assay.Insufficient), Missing: sq.grade.Missing}, assay.Usage{}, nil
	})
	if stopOf(err) != "" {
		return nil
	}
	return err
}

// next returns the search after last, one rung up the ladder: another name, if there are several; a
// reformulation; a wider filter; another collection; and, while there are iterations, further
// reformulations. Only the sub-question's own filter is widened. The caller's filter, collections
// and access apply to every search (see Env.search). The web is the rung after these (see webRung).
func (sq *subQuestion) next(ctx context.Context, s run.Scope, env Env, last search) (search, error) {
	why := sq.insufficientReason(last)
	dry := sq.noProgress.stalled()
	for len(sq.alternatives) > 0 && !dry {
		text := sq.alternatives[0].text
		if sq.alternatives = sq.alternatives[1:]; !sq.wasSearched(text, last.filter) {
			sq.question, sq.terms = text, nil
			return search{rung: RungName, query: text, filter: last.filter, why: why}, nil
		}
	}
	reformulated := search{rung: RungReformulate, query: sq.grade.Query, filter: last.filter, why: why}
	better := !dry && sq.grade.Query != "" && !sq.wasSearched(sq.grade.Query, last.filter)
	if better && !slices.Contains(sq.ladder.taken, RungReformulate) {
		return reformulated, nil
	}
	if !better {
		sq.ladder.skip(RungReformulate, sq.noQueryReason(dry))
	}
	if last.filter.Op != "" && !sq.wasSearched(sq.question, assay.Filter{}) {
		return search{rung: RungWiden, query: sq.question, why: why + "; " + sq.ladder.skippedReasons(RungReformulate)}, nil
	}
	if last.filter.Op == "" && !slices.Contains(sq.ladder.taken, RungWiden) {
		sq.ladder.skip(RungWiden, "the sub-question has no filter of its own")
	}
	if !slices.Contains(sq.ladder.taken, RungCollection) && sq.ladder.skipped[RungCollection] == "" {
		others, err := sq.otherCollections(ctx, s, env)
		if err != nil {
			return search{}, err
		}
		if len(others) > 0 {
			why += "; " + sq.ladder.skippedReasons(RungReformulate, RungWiden)
			return search{rung: RungCollection, query: sq.question, collections: others, why: why}, nil
		}
	}
	switch {
	case better:
		return reformulated, nil
	case dry || sq.grade.Query == "":
		return search{stop: assay.StopNoProgress}, nil
	}
	return search{stop: assay.StopCircular}, nil
}

// insufficientReason says in words why the search after last is needed.
func (sq *subQuestion) insufficientReason(last search) string {
	why := fmt.Sprintf("after %s the evidence is %s", last.rung, cmp.Or(sq.grade.Verdict, assay.Insufficient))
	if sq.grade.Reason != "" {
		why += ": " + remarkLine(sq.grade.Reason)
	}
	return strings.TrimSuffix(why, ".")
}

// noQueryReason says why there is no other reformulation.
func (sq *subQuestion) noQueryReason(dry bool) string {
	switch {
	case dry:
		return "two searches in a row found few new passages"
	case sq.grade.Query == "":
		return "the grader proposed no other query"
	}
	return "the query that the grader proposes was searched before"
}

// skippedReasons says in words which of the rungs below were taken and why the others were not.
func (c *ladderState) skippedReasons(below ...Rung) string {
	var parts []string
	for _, r := range below {
		if slices.Contains(c.taken, r) {
			parts = append(parts, string(r)+" was tried")
		} else if why := c.skipped[r]; why != "" {
			parts = append(parts, fmt.Sprintf("no %s: %s", r, why))
		}
	}
	return strings.Join(parts, "; ")
}

// otherCollections returns the collections that the caller may search, without the one that most
// hits are from, which may have crowded out the others. It returns nil if there is no other one or
// the question names where to search.
func (sq *subQuestion) otherCollections(ctx context.Context, s run.Scope, env Env) ([]string, error) {
	switch {
	case env.oneCollection || len(env.splitCollections) > 1:
		sq.ladder.skip(RungCollection, "the question names the collections to search")
		return nil, nil
	case len(sq.hits) == 0:
		sq.ladder.skip(RungCollection, "no collection has a passage with these words")
		return nil, nil
	}
	all, err := env.catalogue(ctx, s)
	if stopOf(err) != "" {
		sq.ladder.skip(RungCollection, fmt.Sprintf("the run had no budget left to list the collections (%s)", stopOf(err)))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	count, most := map[string]int{}, ""
	for _, h := range sq.hits { // the most relevant first, so that it decides between equal counts
		if count[h.Collection]++; count[h.Collection] > count[most] {
			most = h.Collection
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == most })
	if len(others) == 0 || len(others) == len(all) {
		sq.ladder.skip(RungCollection, "there is no other collection")
		return nil, nil
	}
	return others, nil
}

// collectionsStep is the name of the step that lists the collections.
const collectionsStep = "collections"

// catalogue lists the collections that the caller may search.
func (e Env) catalogue(ctx context.Context, s run.Scope) ([]string, error) {
	if len(e.Collections) > 0 {
		return e.Collections, nil
	}
	if e.Catalogue == nil {
		return nil, nil
	}
	step := run.Step{Name: collectionsStep, Kind: assay.StepRung}
	return run.Do(ctx, s, step, struct{}{}, func(ctx context.Context, _ struct{}) ([]string, assay.Usage, error) {
		names, err := e.Catalogue(ctx)
		return names, assay.Usage{}, err
	})
}

// giveUp records the end of the ladder for each sub-question that is still insufficient, unless its
// search was cut short.
func (e Env) giveUp(ctx context.Context, s run.Scope, found []subQuestion) error {
	for i := range found {
		sq := &found[i]
		if sq.sufficient() || sq.cutShort() || len(sq.searched) == 0 {
			continue
		}
		c := RungInput{Rung: RungGiveUp, Filter: assay.And(e.Filter, sq.filter), Why: sq.insufficientReason(search{rung: sq.ladder.top()})}
		for _, r := range ladder {
			if !slices.Contains(sq.ladder.taken, r) {
				c.Skipped = append(c.Skipped, SkippedRung{r, cmp.Or(sq.ladder.skipped[r], "no search was left for it")})
			}
		}
		if err := sq.recordRung(ctx, s.Sub("given", i), e, c, 0); err != nil {
			return err
		}
	}
	return nil
}

// top returns the last rung that was taken.
func (c *ladderState) top() Rung {
	if len(c.taken) == 0 {
		return RungQuestion
	}
	return c.taken[len(c.taken)-1]
}
