package local

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Comparer sets sentences of different documents side by side, verbatim, that share
// most of their words of content, and says how they stand to one another: they agree
// where they have the same words, numbers and negations, conflict where both cannot
// hold, and differ otherwise. What is said in other words it does not find, and that a
// document is silent it does not say.
type Comparer struct{}

// The bounds of a comparison.
const (
	maxPoints  = 8
	maxSides   = 16 // of a piece of evidence that are looked at
	minAligned = 0.4
	minAgreed  = 0.75 // share of all words of content that both have
)

// Compare implements role.Comparer. It returns an error only when ctx has ended.
func (Comparer) Compare(ctx context.Context, _ role.Caller, in role.Reading) (role.Contrast, error) {
	out := role.Contrast{Points: []role.Point{}}
	q := read(in.Question, nil)
	var all []side
	for _, ev := range in.Evidence {
		all = append(all, sidesOf(q, ev)...)
	}
	var pairs []pair
	for i, a := range all {
		if err := ctx.Err(); err != nil {
			return role.Contrast{}, err
		}
		for _, b := range all[i+1:] {
			if a.document == b.document {
				continue
			}
			if p, ok := align(a, b, surface.Labels(in.Question)); ok {
				pairs = append(pairs, p)
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(rank(b.relation), rank(a.relation)), cmp.Compare(b.weight(), a.weight()))
	})
	used := map[string]bool{} // by the text: one point a sentence
	for _, p := range pairs {
		if len(out.Points) == maxPoints || used[p.a.text] || used[p.b.text] {
			continue
		}
		used[p.a.text], used[p.b.text] = true, true
		out.Points = append(out.Points, role.Point{
			Aspect: p.aspect, Relation: p.relation,
			Sides: []role.Statement{{Text: p.a.text, Evidence: []int{p.a.number}}, {Text: p.b.text, Evidence: []int{p.b.number}}},
		})
	}
	return out, nil
}

// rank orders relations: what cannot both hold is to be seen first.
func rank(r role.Relation) int {
	if r == role.Conflict {
		return 1
	}
	return 0
}

// A side is a sentence of the evidence that can be compared.
type side struct {
	text     string
	number   int
	document string
	score    float64 // how well it speaks of the question; 1 without one
	content  map[string]bool
	words    []string // of content, in their order
}

// sidesOf returns the sentences of a piece of evidence: those that speak of the
// question, the best first, where there is one.
func sidesOf(q question, ev assay.Evidence) []side {
	var out []side
	for _, c := range candidatesOf(q, ev) {
		if c.kind != prose && c.kind != item || len(q.terms) > 0 && c.score <= 0 {
			continue
		}
		s := side{text: c.text, number: ev.Number, document: cmp.Or(ev.Hit.Chunk.Document, ev.Hit.URI), score: 1, content: contentOf(c.text), words: contentWords(c.text)}
		if len(q.terms) > 0 {
			s.score = c.score
		}
		if len(s.content) > 1 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b side) int { return cmp.Compare(b.score, a.score) })
	return out[:min(len(out), maxSides)]
}

// A pair is two sentences about the same.
type pair struct {
	a, b     side
	aspect   string
	relation role.Relation
	overlap  float64
}

func (p pair) weight() float64 { return p.overlap * (p.a.score + p.b.score) }

// align sets two sentences side by side; ok is false when they are not about the same.
// about are the numbers that the question names.
func align(a, b side, about []string) (pair, bool) {
	shared := 0
	for stem := range a.content {
		if b.content[stem] {
			shared++
		}
	}
	overlap := float64(shared) / float64(min(len(a.content), len(b.content)))
	opposed := ground.Opposed(a.text, b.text, about)
	if shared < 2 || overlap < minAligned && !opposed {
		return pair{}, false
	}
	p := pair{a: a, b: b, aspect: aspect(a, b), relation: role.Differ, overlap: overlap}
	alike := float64(shared) / float64(len(a.content)+len(b.content)-shared)
	sameNumbers := slices.Equal(surface.Numbers(a.text), surface.Numbers(b.text))
	switch {
	case opposed:
		p.relation = role.Conflict
	case alike >= minAgreed && sameNumbers && surface.Negations(a.text)%2 == surface.Negations(b.text)%2:
		p.relation = role.Agree
	}
	return p, true
}

// aspect names what two sentences share, in the words of the first: at most five.
func aspect(a, b side) string {
	const most = 5
	var words []string
	for _, w := range a.words {
		for stem := range contentOf(w) {
			if b.content[stem] && len(words) < most && !slices.ContainsFunc(words, func(o string) bool { return strings.EqualFold(o, w) }) {
				words = append(words, w)
				break
			}
		}
	}
	return strings.Join(words, " ")
}
