package chunk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
)

// Parameters of the semantic chunker.
const (
	topicWindow     = 3    // sentences on each side of a boundary that are compared
	topicPercentile = 0.90 // of the distances, above which a topic ends
)

// bySemantic cuts where the sentences before and after a boundary have the most distant vectors
// (Kamradt, "5 Levels of Text Splitting", level 4), and where a chunk would exceed the target.
func (s *splitter) bySemantic(ctx context.Context) error {
	if s.embed == nil {
		return fmt.Errorf("the semantic chunker needs an encoder: %w", assay.ErrInvalid)
	}
	pieces := s.sentences(s.doc.Blocks)
	if len(pieces) == 0 {
		return nil
	}
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = s.doc.Text[p.start:p.end]
	}
	vectors, err := s.embed(ctx, texts)
	if err != nil {
		return fmt.Errorf("embed sentences for the semantic chunker: %w", err)
	}
	if len(vectors) != len(pieces) {
		return errors.New("the encoder returned another number of vectors than sentences")
	}
	from := 0
	for _, end := range append(topicEnds(vectors), len(pieces)) {
		s.windows(pieces[from:end], 0, noHeadings)
		from = end
	}
	return nil
}

// topicEnds returns the indices of the vectors before which a topic ends, in order.
func topicEnds(vectors [][]float32) []int {
	if len(vectors) < 2 {
		return nil
	}
	distances := make([]float64, len(vectors)-1)
	for i := range distances {
		before := meanVector(vectors[max(i+1-topicWindow, 0) : i+1])
		after := meanVector(vectors[i+1 : min(i+1+topicWindow, len(vectors))])
		distances[i] = 1 - cosine(before, after)
	}
	sorted := slices.Sorted(slices.Values(distances))
	limit := sorted[int(topicPercentile*float64(len(sorted)-1))]
	var ends []int
	for i, d := range distances {
		if d > limit {
			ends = append(ends, i+1)
		}
	}
	return ends
}

func meanVector(vectors [][]float32) []float32 {
	sum := make([]float32, len(vectors[0]))
	for _, v := range vectors {
		for i := range min(len(sum), len(v)) {
			sum[i] += v[i]
		}
	}
	return sum // its length does not matter for the cosine
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
