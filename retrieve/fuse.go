package retrieve

import (
	"cmp"
	"math"
	"slices"

	"github.com/assay-rag/assay"
)

// vectorWeight is what similarity weighs against the relevance of words in a
// weighted fusion. Mean nDCG@10 of eight shared sets in English with gte-small, by
// weight: 0.3 0.853, 0.5 0.866, 0.6 0.872, 0.65 0.874, 0.7 0.875, 0.75 0.874, 0.8
// 0.874; BM25 in place of relevance, at its best 0.868. For a set that is left out
// the seven others choose 0.7 as well, for anthropic-docs 0.8 (0.819, not 0.830).
const vectorWeight = 0.7

// VectorWeight is what an assay.Query whose VectorWeight is 0 has, except among code.
const VectorWeight = vectorWeight

// leastWords is what the last of those has that words brought; the others have 0.
const leastWords = 0.01

// rrfK damps the best ranks of reciprocal rank fusion.
//
// Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
// Condorcet and individual rank learning methods", SIGIR 2009.
const rrfK = 60

// fuse orders the candidates by their fused score, the mean over the wordings,
// best first, ties by chunk ID.
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

// codeVectorWeight is what similarity weighs where most candidates are code, unless the
// query says. On functions of Go's source nDCG@10 is 0.783 with 0.3, 0.790 with 0.4, 0.783
// with 0.5 and 0.726 with 0.7, BM25 alone 0.727; of Python's, where nothing was chosen,
// 0.761, 0.796, 0.823 and 0.872, BM25 0.674 (120 queries of 400 passages each).
const codeVectorWeight = 0.5

// compareWords scores the candidates by words beside one another: by relevance, which
// puts code behind prose, and where most candidates are code by BM25 and how near the
// words stand to one another, for relevance was not learned from code.
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

// byFused orders the candidates by their fused score.
func (s *search) byFused() {
	slices.SortStableFunc(s.found, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.fused, a.fused), cmp.Compare(a.tie, b.tie))
	})
	for i, c := range s.found {
		c.places.Fused = i + 1
	}
}

// trade returns the scores by which candidates are ordered of which only some have
// a vector: where all have, those in full, else those in base, but with the
// candidates that have one trading theirs among themselves until they are in the
// order of full. So a candidate without a vector keeps its place, and nothing of
// unlike kind is compared. Of says whose place in base each has, to break ties by.
//
// Any guess at the unknown similarities, from words or from the known ones, lost
// against text alone with every tenth passage covered (nDCG@10 0.04 less, the mean
// of hotpotqa, musique and anthropic-docs) or with all but the relevant ones (0.05
// less); this gained 0.003 with every tenth covered, 0.025 with half, 0.051 with
// nine of ten, and lost nothing with all but the relevant ones.
func trade(base, full []float64, list []*candidate) (scores []float64, of []int) {
	var at []int // of those known, by base
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

// weighted returns each candidate's normalised relevance by words, and the
// weighted sum of that and of its normalised similarity; all in [0, 1]. What words
// did not bring has no place among what they did.
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

// A scale maps the scores that were added to it to [0, 1], the least to 0 and the
// greatest to 1, and those beyond them to the ends.
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

// reciprocal returns the reciprocal rank of each candidate by words, and that plus
// the one by similarity.
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

// account adds what a wording gives a candidate to what its fused score is made of.
func (s *search) account(c *candidate, terms FusionTerms) {
	c.terms.Words += terms.Words / float64(len(s.wordings))
	c.terms.Vector += terms.Vector / float64(len(s.wordings))
}
