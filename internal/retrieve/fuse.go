package retrieve

import (
	"cmp"
	"math"
	"slices"

	"github.com/assay-rag/assay"
)

// vectorWeight is the weight of similarity against that of relevance by words in a weighted fusion.
// The mean nDCG@10 over eight shared sets in English with gte-small, by weight, is 0.3 0.853, 0.5
// 0.866, 0.6 0.872, 0.65 0.874, 0.7 0.875, 0.75 0.874, 0.8 0.874. With BM25 in place of relevance
// it is 0.868 at best. In leave-one-out tests the seven other sets also choose 0.7, except for
// anthropic-docs, where they choose 0.8 (0.819, not 0.830).
const vectorWeight = 0.7

// VectorWeight is the weight used if assay.Query.VectorWeight is 0, except among code.
const VectorWeight = vectorWeight

// leastWords is the score of the lowest hit found by words; candidates not found by words have 0.
const leastWords = 0.01

// rrfK dampens the best ranks in reciprocal rank fusion.
//
// Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
// individual rank learning methods", SIGIR 2009.
const rrfK = 60

// fuse sorts the candidates by their fused score, which is the mean over the wordings, best first.
// Ties are broken by chunk ID.
func (s *search) fuse() {
	slices.SortFunc(s.found, func(a, b *candidate) int { return cmp.Compare(a.hit.Chunk.ID, b.hit.Chunk.ID) })
	s.compareWords()
	for _, c := range s.found {
		c.fused, c.terms = 0, FusionTerms{}
	}
	scoresOf := s.weighted
	if s.query.Fusion == assay.FusionRRF {
		scoresOf = s.reciprocal
	}
	for n := range s.wordings {
		base, full := scoresOf(n)
		scores, of := trade(base, full, s.found)
		for i, c := range s.found {
			c.fused += scores[i] / float64(len(s.wordings))
			if n == 0 {
				c.tie = of[i]
				if of[i] != i {
					c.terms.Place = &scores[i]
				}
			}
		}
	}
	for _, c := range s.found {
		c.hit.Scores.Fused = &c.fused
	}
	s.byFused()
}

// codeVectorWeight is the default weight of similarity if most candidates are code. On functions of
// Go's source nDCG@10 is 0.783 with 0.3, 0.790 with 0.4, 0.783 with 0.5 and 0.726 with 0.7, and
// 0.727 with BM25 alone. On Python's, which were not used for the choice, it is 0.761, 0.796, 0.823
// and 0.872, and 0.674 with BM25 (120 queries over 400 passages each).
const codeVectorWeight = 0.5

// compareWords computes the score by words that compares candidates with each other. It is the
// relevance, which penalises code, unless most candidates are code. In that case it is BM25 plus
// the proximity of the query's words, because the relevance model was not trained on code.
func (s *search) compareWords() {
	code := 0
	for _, c := range s.found {
		if c.of[0].read.code {
			code++
		}
	}
	s.code = 2*code > len(s.found)
	for _, c := range s.found {
		for n := range s.wordings {
			r := &c.of[n]
			if r.among = r.words; s.code {
				r.among = r.read.inCode()
			}
		}
	}
}

// byFused sorts the candidates by their fused score.
func (s *search) byFused() {
	slices.SortStableFunc(s.found, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.fused, a.fused), cmp.Compare(a.tie, b.tie))
	})
	for i, c := range s.found {
		c.places.Fused = i + 1
	}
}

// trade returns the scores to sort candidates by if only some of them have a vector. If all have
// one, it returns full. Otherwise it returns base, but with the scores of the candidates that have
// a vector permuted among themselves into the order of full. A candidate without a vector thus
// keeps its rank, and scores of different kinds are never compared. Of holds, for each candidate,
// the index in base of the score that it got, to break ties by.
//
// Estimating the unknown similarities, from words or from the known ones, was worse than text alone
// with every tenth passage covered (nDCG@10 lower by 0.04, the mean of hotpotqa, musique and
// anthropic-docs) and with all covered but the relevant ones (lower by 0.05). This method gained
// 0.003 with every tenth covered, 0.025 with half and 0.051 with nine of ten, and lost nothing with
// all covered but the relevant ones.
func trade(base, full []float64, list []*candidate) (scores []float64, of []int) {
	var at []int // indexes of the candidates with a vector, by base
	of = make([]int, len(list))
	for i, c := range list {
		of[i] = i
		if known(c) {
			at = append(at, i)
		}
	}
	if len(at) == len(list) {
		return full, of
	}
	scores = slices.Clone(base)
	slices.SortStableFunc(at, func(i, j int) int { return cmp.Compare(base[j], base[i]) })
	order := slices.Clone(at)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(full[j], full[i]) })
	for place, i := range order {
		scores[i], of[i] = base[at[place]], at[place]
	}
	return scores, of
}

// weighted returns each candidate's normalised relevance by words, and the weighted sum of its
// normalised relevance and similarity; all values are in [0, 1]. In base, a candidate that was not
// found by words scores 0.
func (s *search) weighted(n int) (base, full []float64) {
	usual := vectorWeight
	if s.code {
		usual = codeVectorWeight
	}
	vectorWeight := cmp.Or(s.query.VectorWeight, usual)
	if s.query.Mode == assay.ModeVector {
		vectorWeight = 1
	}
	all, brought, similar := newScale(), newScale(), newScale()
	for _, c := range s.found {
		r := c.of[n]
		all.add(r.among)
		if r.bm25 != nil {
			brought.add(r.among)
		}
		if r.similarity != nil {
			similar.add(*r.similarity)
		}
	}
	base, full = make([]float64, len(s.found)), make([]float64, len(s.found))
	for i, c := range s.found {
		r := c.of[n]
		if r.bm25 != nil {
			base[i] = leastWords + (1-leastWords)*brought.of(r.among)
		}
		terms := FusionTerms{Words: base[i]}
		if r.similarity != nil {
			terms = FusionTerms{Words: (1 - vectorWeight) * all.of(r.among), Vector: vectorWeight * similar.of(*r.similarity)}
			full[i] = terms.Words + terms.Vector
		}
		s.account(c, terms)
	}
	return base, full
}

// A scale maps scores linearly to [0, 1], so that the lowest score added maps to 0 and the highest
// to 1. Scores out of that range map to 0 or 1.
type scale struct{ low, high float64 }

func newScale() scale { return scale{math.Inf(1), math.Inf(-1)} }

func (s *scale) add(x float64) { s.low, s.high = min(s.low, x), max(s.high, x) }

func (s *scale) of(x float64) float64 {
	switch {
	case x >= s.high:
		return 1
	case x <= s.low:
		return 0
	}
	return (x - s.low) / (s.high - s.low)
}

// reciprocal returns each candidate's reciprocal rank by words, and its sum with the reciprocal
// rank by similarity.
func (s *search) reciprocal(n int) (base, full []float64) {
	var order []int
	for i, c := range s.found {
		if c.of[n].bm25 != nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.found[j].of[n].among, s.found[i].of[n].among) })
	base = make([]float64, len(s.found))
	if s.query.Mode != assay.ModeVector {
		for rank, i := range order {
			base[i] = 1 / float64(rrfK+rank+1)
		}
	}
	full = slices.Clone(base)
	for i, c := range s.found {
		if r := c.of[n]; r.nearest > 0 {
			full[i] += 1 / float64(rrfK+r.nearest)
		}
		s.account(c, FusionTerms{Words: base[i], Vector: full[i] - base[i]})
	}
	return base, full
}

// account adds one wording's terms to the mean terms of a candidate's fused score.
func (s *search) account(c *candidate, terms FusionTerms) {
	c.terms.Words += terms.Words / float64(len(s.wordings))
	c.terms.Vector += terms.Vector / float64(len(s.wordings))
}
