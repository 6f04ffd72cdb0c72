package retrieve

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay"
)

// vectorWeight is what similarity weighs against words in a weighted fusion.
const vectorWeight = 0.7

// rrfK damps the best ranks of reciprocal rank fusion.
//
// Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
// Condorcet and individual rank learning methods", SIGIR 2009.
const rrfK = 60

// fuse makes one list of the pools of a query's wordings, best first, ties by
// chunk ID. A chunk's fused score is the mean over the wordings; the other scores
// are those of the first wording that brought it.
func fuse(f assay.Fusion, pools []pool) []*candidate {
	var all []*candidate
	at := map[string]*candidate{}
	for _, p := range pools {
		scores := weighted(p)
		if f == assay.FusionRRF {
			scores = reciprocal(p)
		}
		for i, c := range p.list {
			if at[c.id] == nil {
				at[c.id] = c
				all = append(all, c)
			}
			at[c.id].fused += scores[i] / float64(len(pools))
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.fused, a.fused), cmp.Compare(a.id, b.id))
	})
	return all
}

// weighted returns the weighted sum of each candidate's normalised scores, in
// [0, 1]. One without a vector has that of its words alone.
func weighted(p pool) []float64 {
	text := normaliser(p.text, func(c *candidate) *float64 { return c.bm25 })
	near := normaliser(p.near, func(c *candidate) *float64 { return c.similarity })
	scores := make([]float64, len(p.list))
	for i, c := range p.list {
		words := text(c.bm25)
		switch {
		case c.similarity == nil:
			scores[i] = words
		case len(p.text) == 0:
			scores[i] = near(c.similarity)
		default:
			scores[i] = (1-vectorWeight)*words + vectorWeight*near(c.similarity)
		}
	}
	return scores
}

// normaliser returns what maps the scores of a list, best first, to [0, 1]: its
// last to 0, its first to 1. What is nil or below the last is 0.
func normaliser(list []*candidate, of func(*candidate) *float64) func(*float64) float64 {
	if len(list) == 0 {
		return func(*float64) float64 { return 0 }
	}
	low, high := *of(list[len(list)-1]), *of(list[0])
	return func(x *float64) float64 {
		switch {
		case x == nil || *x < low:
			return 0
		case high == low:
			return 1
		}
		return min(1, (*x-low)/(high-low))
	}
}

// reciprocal returns the sum of the reciprocal ranks of each candidate.
func reciprocal(p pool) []float64 {
	rank := map[*candidate]float64{}
	for _, list := range [][]*candidate{p.text, p.near} {
		for i, c := range list {
			rank[c] += 1 / float64(rrfK+i+1)
		}
	}
	scores := make([]float64, len(p.list))
	for i, c := range p.list {
		scores[i] = rank[c]
	}
	return scores
}
