package retrieve

import (
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lexical"
)

// features returns the features of h and whether h contains no content word of the query. The
// features are nil if the query has no content word.
func (r *rater) features(h assay.Hit) (features []float64, wordless bool) {
	if r.weight == 0 {
		return nil, true
	}
	near := make([]bool, len(r.terms)) // in headings or title
	body := make([]bool, len(r.terms))
	stems := map[string]bool{}
	analyzer := r.analyzers.In(h.Language)
	names := r.namesIn(h.Language)
	for _, text := range append([]string{h.Title}, h.Chunk.Headings...) {
		analyzer.Each(text, func(t analysis.Token) {
			stems[t.Term] = true
			for _, i := range r.at[t.Term] {
				near[i] = true
			}
		})
	}
	var matches []match
	analyzer.Each(h.Text, func(t analysis.Token) {
		if len(names) > 0 {
			stems[t.Term] = true
		}
		for _, i := range r.at[t.Term] {
			body[i] = true
			matches = append(matches, match{term: i, position: t.Position})
		}
	})
	held, heading, worst := 0.0, 0.0, 0.0
	for i, t := range r.terms {
		if near[i] {
			heading += t.Weight
		}
		if body[i] || near[i] {
			held += t.Weight
		} else {
			worst = max(worst, t.Weight)
		}
	}
	coverage := held / r.weight
	bm25 := 0.0
	if h.Scores.BM25 != nil && r.idf > 0 {
		bm25 = *h.Scores.BM25 / r.idf
	}
	return []float64{
		1,
		coverage,
		coverage * coverage,
		r.window(matches, near) / r.weight,
		r.window(matches, make([]bool, len(r.terms))) / r.weight,
		heading / r.weight,
		r.focus(h),
		r.pairs(matches),
		r.phrase(matches),
		worst,
		namesMissing(names, stems),
		bm25,
		math.Log1p(held),
		math.Log1p(float64(len(r.terms))),
	}, held == 0
}

// A match is an occurrence of a query term in a hit's body.
type match struct{ term, position int }

// window returns the greatest total weight of distinct terms within windowWords of the body. Terms
// marked in counted are counted in every window.
func (r *rater) window(matches []match, counted []bool) float64 {
	base := 0.0
	for i, t := range r.terms {
		if counted[i] {
			base += t.Weight
		}
	}
	best, sum := base, base
	inside := make([]int, len(r.terms))
	first := 0
	for _, m := range matches {
		if inside[m.term]++; inside[m.term] == 1 && !counted[m.term] {
			sum += r.terms[m.term].Weight
		}
		for matches[first].position <= m.position-windowWords {
			out := matches[first].term
			if inside[out]--; inside[out] == 0 && !counted[out] {
				sum -= r.terms[out].Weight
			}
			first++
		}
		best = max(best, sum)
	}
	return best
}

// focus returns the share of the content words of h's last heading, or else its title, that the
// query contains. It is 1 if every content word of the heading is in the query.
func (r *rater) focus(h assay.Hit) float64 {
	heading := h.Title
	if hs := h.Chunk.Headings; len(hs) > 0 {
		heading = hs[len(hs)-1]
	}
	return lexical.Focus(heading, h.Language, func(stem string) bool { return len(r.at[stem]) > 0 })
}

// pairs returns the share of adjacent query terms that occur within pairWords of each other
// anywhere in the body; 0 for a single term.
func (r *rater) pairs(matches []match) float64 {
	if len(r.terms) < 2 {
		return 0
	}
	close := make([]bool, len(r.terms))
	for i, m := range matches {
		for _, n := range matches[i+1:] {
			if n.position-m.position > pairWords {
				break
			}
			if n.term == m.term+1 || n.term == m.term-1 {
				close[min(m.term, n.term)] = true
			}
		}
	}
	n := 0
	for _, c := range close {
		if c {
			n++
		}
	}
	return float64(n) / float64(len(r.terms)-1)
}

// phrase returns the share of adjacent query terms that occur in the body in the query's order,
// either side by side or at the same distance as in the query; 0 for a single term.
func (r *rater) phrase(matches []match) float64 {
	if len(r.terms) < 2 {
		return 0
	}
	stands := make([]bool, len(r.terms))
	for i, m := range matches {
		for _, n := range matches[i+1:] {
			distance := n.position - m.position
			if distance > phraseWords {
				break
			}
			// A compound matches two terms at one position.
			if n.term == m.term+1 && (distance <= 1 || distance == r.gaps[m.term]) {
				stands[m.term] = true
			}
		}
	}
	n := 0
	for _, s := range stands {
		if s {
			n++
		}
	}
	return float64(n) / float64(len(r.terms)-1)
}

// namesMissing returns the share of the query's names and numbers, given by their stems, of which
// the hit lacks a word; 0 if there are none.
func namesMissing(names [][]string, held map[string]bool) float64 {
	if len(names) == 0 {
		return 0
	}
	n := 0
	for _, name := range names {
		if slices.ContainsFunc(name, func(stem string) bool { return !held[stem] }) {
			n++
		}
	}
	return float64(n) / float64(len(names))
}
