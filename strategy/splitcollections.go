package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// maxSplit is the maximum number of collections that are searched separately. More than that are
// searched together.
const maxSplit = 6

// collectionsToSplit returns the collections that are searched separately: those that the question
// names, if there are at least two, or else the caller's, if the question compares things. Named
// reports that the question names them.
func (e Env) collectionsToSplit() (span []string, named bool) {
	for _, c := range e.NamedCollections {
		if (lexical.Mentions(e.Question, c) || lexical.Beside(e.Question, c, e.NamedCollections)) && (len(e.Collections) == 0 || slices.Contains(e.Collections, c)) && !slices.Contains(span, c) {
			span = append(span, c)
		}
	}
	if named = len(span) > 1; !named {
		span = nil
		if compares(e.Question) {
			span = slices.Compact(slices.Sorted(slices.Values(e.Collections)))
		}
	}
	if len(span) < 2 || len(span) > maxSplit || named && lexical.Without(e.Question, span...) == "" {
		return nil, false
	}
	return span, named
}

// withNamedCollections returns e set up for the collections that the question names: several are
// searched separately, and a single one is the only one searched. Their names are removed from the
// query.
func (e Env) withNamedCollections(notes *noteList) Env {
	if e.splitCollections, e.splitNamed = e.collectionsToSplit(); e.splitNamed {
		e.fullQuestion, e.Question = e.Question, lexical.Without(e.Question, e.splitCollections...)
		return e
	}
	if in := e.namedCollection(e.chosenMeaning); in != "" { // read only passages of the chosen meaning; its name is already removed
		e.Collections, e.oneCollection = []string{in}, true
	} else if in = e.namedCollection(e.Question); in != "" && e.chosenMeaning == "" {
		notes.say(assay.NoteQuestion, fmt.Sprintf("only the collection %s was searched, which the question names", in))
		e.Collections, e.oneCollection = []string{in}, true
		e.fullQuestion, e.Question = e.Question, lexical.OutOf(e.Question, in)
	}
	return e
}

// namedCollection returns the only collection that a text names as a place, as in "in orion", or
// "".
func (e Env) namedCollection(text string) string {
	in := ""
	for _, c := range e.NamedCollections {
		if !lexical.Place(text, c) || len(e.Collections) > 0 && !slices.Contains(e.Collections, c) {
			continue
		}
		if in != "" {
			return ""
		}
		in = c
	}
	return in
}

// restoreFullQuestion restores the question with the names of its collections in an answer.
func (e Env) restoreFullQuestion(r Result) Result {
	if e.fullQuestion != "" && r.Question == e.Question {
		r.Question = e.fullQuestion
	}
	return r
}

// compares reports whether a question compares things.
func compares(question string) bool {
	_, _, contrasts := lexical.Contrasts(question)
	return contrasts || comparing.MatchString(question)
}

var comparing = lazyregexp.New(`(?i)\b(compare[ds]?|comparison|both|vs|each of)\b`)

// splitsFor returns the collections that are searched separately for a query, or nil if it is one
// search.
func (e Env) splitsFor(q assay.Query) []string {
	if len(q.Collections) > 0 { // the query already names its collections
		return nil
	}
	return e.splitCollections
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
	var notes noteList
	var lists [][]assay.Hit
	for i, r := range results {
		if ended[i] != nil {
			notes.say(assay.NoteLimit, fmt.Sprintf("the collection %q was not searched: the run had no budget left for it (%s)", collections[i], stopOf(ended[i])))
			continue
		}
		notes.add(r)
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
	merged.Notes, merged.Index = notes.list(), notes.index
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

// addMissingCollections adds to the grade's missing points each collection named by the question
// that has no relevant hit.
func (sq *subQuestion) addMissingCollections(env Env) {
	sq.missingCollections = nil
	if !env.splitNamed || len(sq.splitCollections) < 2 || sq.grade.Failure != "" {
		return
	}
	relevant := sq.accepted(len(sq.hits))
	for _, c := range sq.splitCollections {
		if len(relevant) == 0 || slices.ContainsFunc(relevant, func(h assay.Hit) bool { return h.Collection == c }) {
			continue
		}
		sq.missingCollections = append(sq.missingCollections, fmt.Sprintf("what the collection %s says", c))
		if sq.grade.Verdict == assay.Sufficient {
			sq.grade.Verdict = assay.Partly
			sq.grade.Reason = fmt.Sprintf("nothing relevant was found in the collection %s", c)
		}
	}
	sq.grade.Missing = append(slices.Clone(sq.grade.Missing), sq.missingCollections...)
}

// splitPartsByCollection splits the parts of a question that names collections by the collection of
// their evidence, so that quotations made without a model answer it from each.
func (e Env) splitPartsByCollection(parts []role.Part, evidence []assay.Evidence) []role.Part {
	if !e.splitNamed || e.writer() != "" {
		return parts
	}
	var out []role.Part
	for _, p := range parts {
		for _, c := range e.splitCollections {
			side := p
			side.Evidence = slices.DeleteFunc(slices.Clone(p.Evidence), func(n int) bool { return evidence[n-1].Hit.Collection != c })
			if len(side.Evidence) > 0 {
				out = append(out, side)
			}
		}
	}
	return out
}

// noteCitedPerCollection adds a note with the number of passages cited from each separately
// searched collection, and sets the collection of each citation.
func (e Env) noteCitedPerCollection(a *Result, evidence []assay.Evidence) {
	if len(e.splitCollections) < 2 || len(a.Claims) == 0 {
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
	for _, c := range e.splitCollections {
		each = append(each, fmt.Sprintf("%s %d", c, len(cited[c])))
	}
	notes := noteList{texts: slices.Clone(a.Notes)}
	notes.say(assay.NoteSearch, "searched collections separately; passages cited from each: "+strings.Join(each, ", "))
	a.Notes = notes.texts
}
