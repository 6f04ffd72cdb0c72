package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// maxSpan is the maximum number of collections that are searched separately. More than that are
// searched together.
const maxSpan = 6

// spanOf returns the collections that are searched separately: those that the question names, if
// there are at least two, or else the caller's, if the question compares things. Named reports that
// the question names them.
func (e Env) spanOf() (span []string, named bool) {
	for _, c := range e.NamedCollections {
		if (surface.Mentions(e.Question, c) || surface.Beside(e.Question, c, e.NamedCollections)) && (len(e.Collections) == 0 || slices.Contains(e.Collections, c)) && !slices.Contains(span, c) {
			span = append(span, c)
		}
	}
	if named = len(span) > 1; !named {
		span = nil
		if compares(e.Question) {
			span = slices.Compact(slices.Sorted(slices.Values(e.Collections)))
		}
	}
	if len(span) < 2 || len(span) > maxSpan || named && surface.Without(e.Question, span...) == "" {
		return nil, false
	}
	return span, named
}

// spanning returns e set up for the collections that the question names: several are searched
// separately, and a single one is the only one searched. Their names are removed from the query.
func (e Env) spanning(said *notes) Env {
	if e.span, e.spanNamed = e.spanOf(); e.spanNamed {
		e.whole, e.Question = e.Question, surface.Without(e.Question, e.span...)
		return e
	}
	if in := e.placeOf(e.picked); in != "" { // read only passages of the chosen meaning; its name is already removed
		e.Collections, e.placed = []string{in}, true
	} else if in = e.placeOf(e.Question); in != "" && e.picked == "" {
		said.say(assay.NoteQuestion, fmt.Sprintf("only the collection %s was searched, which the question names", in))
		e.Collections, e.placed = []string{in}, true
		e.whole, e.Question = e.Question, surface.OutOf(e.Question, in)
	}
	return e
}

// placeOf returns the only collection that a text names as a place, as in "in orion", or "".
func (e Env) placeOf(text string) string {
	in := ""
	for _, c := range e.NamedCollections {
		if !surface.Place(text, c) || len(e.Collections) > 0 && !slices.Contains(e.Collections, c) {
			continue
		}
		if in != "" {
			return ""
		}
		in = c
	}
	return in
}

// inWhole restores the question with the names of its collections in an answer.
func (e Env) inWhole(r Result) Result {
	if e.whole != "" && r.Question == e.Question {
		r.Question = e.whole
	}
	return r
}

// compares reports whether a question compares things.
func compares(question string) bool {
	_, _, contrasts := surface.Contrasts(question)
	return contrasts || comparing.MatchString(question)
}

var comparing = lazyregexp.New(`(?i)\b(compare[ds]?|comparison|both|vs|each of)\b`)

// spans returns the collections that are searched separately for a query, or nil if it is one
// search.
func (e Env) spans(q assay.Query) []string {
	if len(q.Collections) > 0 { // the query already names its collections
		return nil
	}
	return e.span
}

// searchEach searches each of the collections in parallel and merges the results in turns, so that
// each gets its share: first the best hit of each, ordered by relevance, then the second, and so
// on. A collection that exceeds the budget is skipped and noted.
func (e Env) searchEach(ctx context.Context, s run.Scope, q assay.Query, collections []string) (assay.Results, error) {
	results := make([]assay.Results, len(collections))
	ended := make([]error, len(collections))
	err := s.Parallel(ctx, "collection", len(collections), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		q := q
		q.Collections = []string{collections[i]}
		var err error
		if results[i], err = e.searchOne(ctx, s, q); stopOf(err) != "" {
			ended[i], err = err, nil
		}
		return err
	})
	if err != nil {
		return assay.Results{}, err
	}
	var merged assay.Results
	var said notes
	var lists [][]assay.Hit
	for i, r := range results {
		if ended[i] != nil {
			said.say(assay.NoteLimit, fmt.Sprintf("the collection %q was not searched: the run had no room for it (%s)", collections[i], stopOf(ended[i])))
			continue
		}
		said.add(r)
		merged.Chunks += r.Chunks
		merged.Total = min(merged.Total+r.Total, assay.MaxTotal)
		for _, t := range r.Terms {
			k := slices.IndexFunc(merged.Terms, func(o assay.Term) bool { return o.Stem == t.Stem })
			if k < 0 {
				merged.Terms = append(merged.Terms, t)
				continue
			}
			merged.Terms[k].Chunks = max(merged.Terms[k].Chunks, t.Chunks)
			merged.Terms[k].Weight = min(merged.Terms[k].Weight, t.Weight)
		}
		lists = append(lists, r.Hits)
	}
	if len(lists) == 0 {
		return assay.Results{}, ended[0]
	}
	limit := q.Limit
	if limit == 0 {
		limit = e.Limits.Candidates
	}
	limit = max(limit, e.Limits.Passages)
	merged.Hits = inTurns(lists)
	merged.Hits = merged.Hits[:min(len(merged.Hits), limit)]
	merged.Notes, merged.Index = said.list(), said.index
	return merged, nil
}

// inTurns merges lists: first the first hit of each, then the second, and so on. The hits of one
// turn are ordered by relevance.
func inTurns(lists [][]assay.Hit) []assay.Hit {
	var all []assay.Hit
	for turn := 0; ; turn++ {
		var of []assay.Hit
		for _, l := range lists {
			if turn < len(l) {
				of = append(of, l[turn])
			}
		}
		if len(of) == 0 {
			return all
		}
		slices.SortStableFunc(of, byRelevance)
		all = append(all, of...)
	}
}

// fairly orders hits so that the collections take turns. Hits of one collection keep their order,
// and hits of others come last.
func fairly(hits []assay.Hit, collections []string) []assay.Hit {
	if len(collections) < 2 {
		return hits
	}
	lists := make([][]assay.Hit, len(collections))
	var others []assay.Hit
	for _, h := range hits {
		if i := slices.Index(collections, h.Collection); i >= 0 {
			lists[i] = append(lists[i], h)
		} else {
			others = append(others, h)
		}
	}
	return append(inTurns(lists), others...)
}

// searchedEach splits the record of a search in several collections into one for each.
func searchedEach(searched assay.Searched, hits []assay.Hit, collections []string) []assay.Searched {
	each := make([]assay.Searched, len(collections))
	for i, c := range collections {
		each[i] = searched
		each[i].Collections, each[i].Hits, each[i].TopRelevance = []string{c}, 0, 0
		for _, h := range hits {
			if h.Collection == c {
				each[i].Hits++
				each[i].TopRelevance = max(each[i].TopRelevance, h.Scores.Relevance)
			}
		}
	}
	return each
}

// lackSides adds to the grade's missing points each collection named by the question that has no
// relevant hit.
func (f *finding) lackSides(env Env) {
	f.sides = nil
	if !env.spanNamed || len(f.each) < 2 || f.grade.Failure != "" {
		return
	}
	relevant := f.accepted(len(f.hits))
	for _, c := range f.each {
		if len(relevant) == 0 || slices.ContainsFunc(relevant, func(h assay.Hit) bool { return h.Collection == c }) {
			continue
		}
		f.sides = append(f.sides, fmt.Sprintf("what the collection %s says", c))
		if f.grade.Verdict == assay.Sufficient {
			f.grade.Verdict = assay.Partly
			f.grade.Reason = fmt.Sprintf("nothing relevant was found in the collection %s", c)
		}
	}
	f.grade.Missing = append(slices.Clone(f.grade.Missing), f.sides...)
}

// bySide splits the parts of a question that names collections by the collection of their evidence,
// so that quotations made without a model answer it from each.
func (e Env) bySide(parts []role.Part, evidence []assay.Evidence) []role.Part {
	if !e.spanNamed || e.writer() != "" {
		return parts
	}
	var out []role.Part
	for _, p := range parts {
		for _, c := range e.span {
			side := p
			side.Evidence = slices.DeleteFunc(slices.Clone(p.Evidence), func(n int) bool { return evidence[n-1].Hit.Collection != c })
			if len(side.Evidence) > 0 {
				out = append(out, side)
			}
		}
	}
	return out
}

// bySpan adds a note with the number of passages cited from each separately searched collection,
// and sets the collection of each citation.
func (e Env) bySpan(a *Result, evidence []assay.Evidence) {
	if len(e.span) < 2 || len(a.Claims) == 0 {
		return
	}
	cited := map[string][]int{}
	for i, c := range a.Citations {
		if c.Number < 1 || c.Number > len(evidence) {
			continue
		}
		in := evidence[c.Number-1].Hit.Collection
		a.Citations[i].Collection = in
		if !slices.Contains(cited[in], c.Number) {
			cited[in] = append(cited[in], c.Number)
		}
	}
	var each []string
	for _, c := range e.span {
		each = append(each, fmt.Sprintf("%s %d", c, len(cited[c])))
	}
	said := notes{texts: slices.Clone(a.Notes)}
	said.say(assay.NoteSearch, "collections searched each for itself, and passages cited of each: "+strings.Join(each, ", "))
	a.Notes = said.texts
}
