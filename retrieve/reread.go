package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/llm"
)

// ReadHits is how many of the best hits are read: more than that takes longer than it is
// worth, see docs/evaluation.md.
const ReadHits = 10

// reread has the best hits read, which gives them another relevance and another order,
// unless the Ranker has the last word on that. A reader that fails has read nothing, and a
// note says so. Code, which no reader was trained on, and hits in a language that this one
// was not made for keep what they have.
func (s *search) reread(ctx context.Context) error {
	var best []*candidate
	var at []int
	var passages []llm.Excerpt
	if s.Reader == nil || s.query.Unranked {
		return nil
	}
	for i, c := range s.found[:min(len(s.found), ReadHits)] {
		if !Readable(s.Reader, c.hit) {
			continue
		}
		best, at = append(best, c), append(at, i)
		passages = append(passages, llm.Excerpt{Heading: c.hit.Under(), Text: c.hit.Text})
	}
	if len(best) == 0 {
		return nil
	}
	readings, err := s.Reader.Read(ctx, s.query.Text, passages)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(readings) != len(best) {
		err = fmt.Errorf("%d readings for %d hits", len(readings), len(best))
	}
	if err != nil {
		s.note("the hits are not read: " + trimmed(err))
		return nil
	}
	scores := map[*candidate]float64{}
	for i, c := range best {
		c.hit.Scores.Relevance = readRelevance(readings[i], c.hit.Scores.Relevance)
		scores[c] = ReadScore(c.hit, readings[i].Relevance, ReadWeight)
	}
	if d, ok := s.Ranker.(Decider); ok && d.Decides() {
		return nil
	}
	slices.SortStableFunc(best, func(a, b *candidate) int { return cmp.Compare(scores[b], scores[a]) })
	for i, c := range best {
		s.found[at[i]] = c
	}
	return nil
}

// Readable reports whether a reader's word on a hit counts.
func Readable(r llm.Reader, h assay.Hit) bool {
	return made(r, h.Language) && (h.Chunk.Kind == assay.ChunkTable || !surface.MostlyCode(h.Text))
}

// made reports whether a reader was made for a language, as far as it says for which.
func made(r llm.Reader, language string) bool {
	l, ok := r.(llm.Linguist)
	return !ok || language == "" || len(l.Languages()) == 0 || slices.Contains(l.Languages(), language)
}

// ReadWeight is what the relevance that the reader gives a hit weighs, beside the score that
// ordered it, in its new order. `assay eval fit-reading` measures each weight; 0, the order
// before it, until one is measured to be better on sets that the reader was not trained on.
const ReadWeight = 0.0

// ReadScore is the score of a hit that was read: the one that ordered it, and the reader's
// relevance with a weight.
func ReadScore(h assay.Hit, relevance, weight float64) float64 {
	score := weight * relevance
	switch {
	case h.Scores.Rerank != nil:
		score += *h.Scores.Rerank
	case h.Scores.Fused != nil:
		score += *h.Scores.Fused
	}
	return score
}

// The weights of what the reader says and of what words and vectors say in a hit's
// relevance.
const (
	readerWeight = 0.7
	ownWeight    = 0.3
)

// readRelevance is the relevance of a hit that was read, from the reader's and its own.
func readRelevance(r llm.Reading, own float64) float64 {
	x := readerWeight*logOdds(r.Relevance) + ownWeight*logOdds(own)
	return 1 / (1 + math.Exp(-x))
}

// logOdds are the log odds of a probability, within ±6; those of what is none are -6.
func logOdds(p float64) float64 {
	const most = 6
	if !(p > 0) {
		return -most
	}
	return max(-most, min(most, math.Log(p/(1-p))))
}
