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

// A Climb is the recorded input of a rung: what was searched and why.
type Climb struct {
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

// A Footing is the recorded output of a rung: the evidence for the sub-question after it.
type Footing struct {
	Hits       int                `json:"hits"`        // of this search
	AboveFloor int                `json:"above_floor"` // hits of all searches so far whose relevance reaches the floor
	Grade      assay.GradeVerdict `json:"grade"`       // of all hits
	Missing    []string           `json:"missing,omitempty"`
}

// climbing is the position of a sub-question on the ladder.
type climbing struct {
	taken   []Rung
	skipped map[Rung]string // why a rung was not taken
	records int             // rungs in the journal
	unread  int             // new hits of searches for statements that were not graded yet
}

func (c *climbing) skip(r Rung, why string) {
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

// climb makes a search, grades all hits found so far, and records the rung.
func (f *finding) climb(ctx context.Context, s, outer run.Scope, env Env, next search) error {
	f.ladder.taken = append(f.ladder.taken, next.rung)
	before := len(f.searched)
	q := assay.Query{Text: next.query, Filter: next.filter, Collections: next.collections}
	err := f.searchFor(ctx, s.Sub("round", f.iterations), env, q, next.rung == RungRedrive)
	if next.rung != RungQuestion {
		for i := before; i < len(f.searched); i++ {
			f.searched[i].Rung = string(next.rung)
		}
	}
	first := next.rung == RungQuestion && f.sufficient()
	if err != nil || first {
		return err
	}
	return f.record(ctx, outer, env, Climb{
		Rung: next.rung, Query: next.query, Filter: assay.And(env.Filter, next.filter), Collections: next.collections, Why: next.why,
	}, f.brought)
}

// searchFor makes a search and grades all hits found so far. If the search is for a statement and
// brings nothing new, the grade before stands.
func (f *finding) searchFor(ctx context.Context, s run.Scope, env Env, q assay.Query, statement bool) error {
	if !statement {
		_, err := f.look(ctx, s, env, q)
		return err
	}
	before := len(f.searched)
	fresh, err := f.find(ctx, s, env, q)
	if err == nil && fresh > 0 {
		return f.regrade(ctx, s, env)
	}
	for i := before; i < len(f.searched); i++ {
		f.searched[i].Grade = cmp.Or(f.grade.Verdict, assay.Insufficient)
	}
	return err
}

// record makes a rung a step of the journal. A run that has no time left for that goes on without.
func (f *finding) record(ctx context.Context, s run.Scope, env Env, c Climb, hits int) error {
	step := run.Step{Name: string(c.Rung), Kind: assay.StepRung}
	scope := s.Sub("rung", f.ladder.records)
	f.ladder.records++
	_, err := run.Do(ctx, scope, step, c, func(context.Context, Climb) (Footing, assay.Usage, error) {
		above := 0
		for _, h := range f.hits {
			if h.Scores.Relevance >= env.Limits.Floor {
				above++
			}
		}
		return Footing{Hits: hits, AboveFloor: above, Grade: cmp.Or(f.grade.Verdict, assay.Insufficient), Missing: f.grade.Missing}, assay.Usage{}, nil
	})
	if stopOf(err) != "" {
		return nil
	}
	return err
}

// next returns the search after last, one rung up the ladder: another name, if there are several; a
// reformulation; a wider filter; another collection; and, while there are iterations, further
// reformulations. Only the sub-question's own filter is widened. The caller's filter, collections
// and access apply to every search (see Env.search). The web is the rung after these (see lastRung).
func (f *finding) next(ctx context.Context, s run.Scope, env Env, last search) (search, error) {
	why := f.insufficientAt(last)
	dry := f.dry.ends()
	for len(f.others) > 0 && !dry {
		text := f.others[0].text
		if f.others = f.others[1:]; !f.wasTried(text, last.filter) {
			f.question, f.terms = text, nil
			return search{rung: RungName, query: text, filter: last.filter, why: why}, nil
		}
	}
	reformulated := search{rung: RungReformulate, query: f.grade.Query, filter: last.filter, why: why}
	better := !dry && f.grade.Query != "" && !f.wasTried(f.grade.Query, last.filter)
	if better && !slices.Contains(f.ladder.taken, RungReformulate) {
		return reformulated, nil
	}
	if !better {
		f.ladder.skip(RungReformulate, f.noQuery(dry))
	}
	if last.filter.Op != "" && !f.wasTried(f.question, assay.Filter{}) {
		return search{rung: RungWiden, query: f.question, why: why + "; " + f.ladder.passed(RungReformulate)}, nil
	}
	if last.filter.Op == "" && !slices.Contains(f.ladder.taken, RungWiden) {
		f.ladder.skip(RungWiden, "the sub-question has no filter of its own")
	}
	if !slices.Contains(f.ladder.taken, RungCollection) && f.ladder.skipped[RungCollection] == "" {
		others, err := f.otherCollections(ctx, s, env)
		if err != nil {
			return search{}, err
		}
		if len(others) > 0 {
			why += "; " + f.ladder.passed(RungReformulate, RungWiden)
			return search{rung: RungCollection, query: f.question, collections: others, why: why}, nil
		}
	}
	switch {
	case better:
		return reformulated, nil
	case dry || f.grade.Query == "":
		return search{stop: assay.StopNoProgress}, nil
	}
	return search{stop: assay.StopCircular}, nil
}

// insufficientAt says in words why the search after last is needed.
func (f *finding) insufficientAt(last search) string {
	why := fmt.Sprintf("after %s the evidence is %s", last.rung, cmp.Or(f.grade.Verdict, assay.Insufficient))
	if f.grade.Reason != "" {
		why += ": " + remark(f.grade.Reason)
	}
	return strings.TrimSuffix(why, ".")
}

// noQuery says why there is no other reformulation.
func (f *finding) noQuery(dry bool) string {
	switch {
	case dry:
		return "two searches in a row brought hardly a new passage"
	case f.grade.Query == "":
		return "the grader knows no better query"
	}
	return "the query that the grader proposes was searched before"
}

// passed says in words which of the rungs below were taken and why the others were not.
func (c *climbing) passed(below ...Rung) string {
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
func (f *finding) otherCollections(ctx context.Context, s run.Scope, env Env) ([]string, error) {
	switch {
	case env.placed || len(env.span) > 1:
		f.ladder.skip(RungCollection, "the question names the collections to search")
		return nil, nil
	case len(f.hits) == 0:
		f.ladder.skip(RungCollection, "no collection has a passage with these words")
		return nil, nil
	}
	all, err := env.catalogue(ctx, s)
	if stopOf(err) != "" {
		f.ladder.skip(RungCollection, fmt.Sprintf("the run had no room to list the collections (%s)", stopOf(err)))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	count, most := map[string]int{}, ""
	for _, h := range f.hits { // the most relevant first, so that it decides between equal counts
		if count[h.Collection]++; count[h.Collection] > count[most] {
			most = h.Collection
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == most })
	if len(others) == 0 || len(others) == len(all) {
		f.ladder.skip(RungCollection, "there is no other collection")
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
func (e Env) giveUp(ctx context.Context, s run.Scope, found []finding) error {
	for i := range found {
		f := &found[i]
		if f.sufficient() || f.cutShort() || len(f.searched) == 0 {
			continue
		}
		c := Climb{Rung: RungGiveUp, Filter: assay.And(e.Filter, f.filter), Why: f.insufficientAt(search{rung: f.ladder.top()})}
		for _, r := range ladder {
			if !slices.Contains(f.ladder.taken, r) {
				c.Skipped = append(c.Skipped, SkippedRung{r, cmp.Or(f.ladder.skipped[r], "no search was left for it")})
			}
		}
		if err := f.record(ctx, s.Sub("given", i), e, c, 0); err != nil {
			return err
		}
	}
	return nil
}

// top returns the last rung that was taken.
func (c *climbing) top() Rung {
	if len(c.taken) == 0 {
		return RungQuestion
	}
	return c.taken[len(c.taken)-1]
}
