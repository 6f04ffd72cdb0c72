package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Querier chooses the next query by its words: a name that the last searches brought and
// the question does not have, with what of the question is still open beside it; what is
// missing; the question's words alone. It knows nothing of meaning: a name is a guess,
// the best the one that stands next to what the question asks about.
type Querier struct{}

// Next implements role.Querier. It returns an error only when ctx has ended.
func (Querier) Next(ctx context.Context, _ role.Caller, in role.QueryInput) (role.NextQuery, error) {
	if err := ctx.Err(); err != nil {
		return role.NextQuery{}, err
	}
	q := read(in.Question, nil)
	for _, next := range append(bridges(q, in.History), withoutBridge(q, in)...) {
		next.Query = strings.Join(distinct(strings.Fields(next.Query)), " ")
		repeats := func(a role.Asked) bool { return surface.Rephrases(next.Query, a.Query, contentOf) }
		if next.Query != "" && !slices.ContainsFunc(in.History, repeats) {
			return next, nil
		}
	}
	return role.NextQuery{Reason: "every query that its words make was searched"}, nil
}

// contentOf returns the stems of a text's words of content.
func contentOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, stem := range surface.Content(text) {
		set[stem] = true
	}
	return set
}

// A bridge is a name by which a search may come nearer to what is asked.
type bridge struct {
	name     string
	weight   float64  // share of the question that is said beside it
	distance int      // in words, to what the question says and names nothing
	open     []string // words of the question that are not said beside it
}

// maxBridges is how many names are worth a query, the best first.
const maxBridges = 8

// bridges returns queries for the names that searches brought: those of the last search
// first, by how much of the question is said in their sentence, then by how near they
// stand to it.
func bridges(q question, history []role.Asked) []role.NextQuery {
	asked := contentOf(q.text)
	for _, a := range history {
		for stem := range contentOf(a.Query) {
			asked[stem] = true
		}
	}
	var out []role.NextQuery
	for _, a := range slices.Backward(history) {
		var found []bridge
		for line := range strings.Lines(a.Brought) {
			found = append(found, bridgesIn(q, line, asked)...)
		}
		slices.SortStableFunc(found, func(a, b bridge) int {
			return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.distance, b.distance))
		})
		for _, b := range found[:min(len(found), maxBridges)] {
			gap := strings.Join(b.open, " ")
			out = append(out, role.NextQuery{
				Query: b.name + " " + gap, Gap: gap,
				Reason: fmt.Sprintf("%s is named where the question's other words stand", b.name),
			})
		}
	}
	return out
}

// bridgesIn returns the names of a sentence that neither the question nor an earlier
// query has.
func bridgesIn(q question, sentence string, asked map[string]bool) []bridge {
	words := surface.Words(strings.ToLower(sentence))
	held := stems("", sentence)
	var open []string
	said := 0.0
	for _, t := range q.terms {
		if holdsTerm(held, t) || slices.ContainsFunc(words, func(w string) bool { return kin(w, t.Text) }) {
			said += t.Weight
		} else {
			open = append(open, t.Text)
		}
	}
	if len(open) == 0 || !leadsOn(q, held, said) {
		return nil
	}
	var finder entity.Finder
	var out []bridge
	for _, name := range finder.Question(sentence, "") {
		known := true
		for stem := range contentOf(name) {
			known = known && asked[stem]
		}
		if !known { // nor is one without a word of content
			out = append(out, bridge{name: name, weight: said / q.weight(), distance: distance(q, words, name), open: open})
		}
	}
	return out
}

// leadsOn reports whether a sentence is about what the question begins from, so that a name
// in it may lead on: it speaks of something that the question names, or, where that is
// nothing, has half of the weight of its words.
func leadsOn(q question, held map[string]bool, said float64) bool {
	if len(q.names) == 0 {
		return said >= q.weight()/2
	}
	return slices.ContainsFunc(q.names, func(name string) bool { return q.speaksOf(held, name) })
}

// distance is how many words stand between a name and the nearest word of its sentence
// that is of the question and of no name there; as many as there are where none is.
func distance(q question, words []string, name string) int {
	first, _, _ := strings.Cut(name, " ")
	at := slices.Index(words, first)
	best := len(words)
	if at < 0 {
		return best
	}
	named := wordsOf(strings.Join(q.names, " "))
	for i, w := range words {
		if !named[w] && slices.ContainsFunc(q.terms, func(t assay.Term) bool { return kin(w, t.Text) }) {
			best = min(best, max(i-at, at-i))
		}
	}
	return best
}

// kin reports whether two words begin alike, as "directed" and "director" do.
func kin(a, b string) bool {
	const minRoot = 5
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return true
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n >= minRoot && n >= max(len(a), len(b))-4
}

// withoutBridge returns the queries that need no name: what is missing, with the names of
// the question; its words of content; what no search has brought, with the names.
func withoutBridge(q question, in role.QueryInput) []role.NextQuery {
	var out []role.NextQuery
	names := strings.Join(q.names, " ")
	for _, gap := range in.Gaps {
		words := strings.Join(contentWords(gap), " ")
		out = append(out, role.NextQuery{Query: words + " " + names, Gap: gap, Reason: "it is said to be missing"})
	}
	var words, lacking []string
	held := map[string]bool{}
	for _, a := range in.History {
		for stem := range stems("", a.Brought) {
			held[stem] = true
		}
	}
	for _, t := range q.terms {
		words = append(words, t.Text)
		if !holdsTerm(held, t) {
			lacking = append(lacking, t.Text)
		}
	}
	if gap := strings.Join(lacking, " "); gap != "" {
		out = append(out, role.NextQuery{Query: gap + " " + names, Gap: gap, Reason: "no search has brought it"})
	}
	return append(out, role.NextQuery{Query: strings.Join(words, " "), Gap: in.Question, Reason: "the question's words alone"})
}
