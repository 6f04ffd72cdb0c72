package local

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/llm"
)

// ReadHits reads a question against hits, the rows of tables behind their heads. It returns nil where there is no reader, or
// where most of the hits are in a language that it does not know.
func ReadHits(ctx context.Context, reader llm.Reader, question string, hits []assay.Hit) ([]llm.Reading, error) {
	if reader == nil || foreign(reader, hits) {
		return nil, ctx.Err()
	}
	excerpts := make([]llm.Excerpt, len(hits))
	from := make([][]int, len(hits)) // where in its hit each byte of an excerpt stands
	for i, h := range hits {
		excerpts[i].Heading = h.Under()
		excerpts[i].Text, from[i] = layout.Of(h.Text, h.Chunk.Kind).Readable()
	}
	readings, err := readTexts(ctx, reader, question, excerpts)
	for i, r := range readings {
		for k, s := range r.Spans {
			start := from[i][s.Start]
			r.Spans[k].Start, r.Spans[k].End = start, max(start, from[i][s.End-1])+1
		}
	}
	return readings, err
}

// readTexts reads a question against passages. What is no probability counts as 0, and what
// is no span of its passage is left out.
func readTexts(ctx context.Context, reader llm.Reader, question string, passages []llm.Excerpt) ([]llm.Reading, error) {
	if len(passages) == 0 {
		return []llm.Reading{}, ctx.Err()
	}
	readings, err := reader.Read(ctx, question, passages)
	if err != nil {
		return nil, err
	}
	if len(readings) != len(passages) {
		return nil, assay.ErrUnavailable
	}
	out := make([]llm.Reading, len(readings))
	for i, r := range readings {
		out[i] = llm.Reading{Answerable: probability(r.Answerable), Relevance: probability(r.Relevance)}
		for _, s := range r.Spans {
			if s.Score = probability(s.Score); 0 <= s.Start && s.Start < s.End && s.End <= len(passages[i].Text) && s.Score > 0 {
				out[i].Spans = append(out[i].Spans, s)
			}
		}
	}
	return out, nil
}

// probability is x if it is one, else 0.
func probability(x float64) float64 {
	if 0 <= x && x <= 1 {
		return x
	}
	return 0
}

// foreign reports whether most of the hits are in a language that a reader was not made
// for, as far as it says for which it was.
func foreign(reader llm.Reader, hits []assay.Hit) bool {
	l, ok := reader.(llm.Linguist)
	if !ok || len(l.Languages()) == 0 {
		return false
	}
	n := 0
	for _, h := range hits {
		if h.Language != "" && !slices.Contains(l.Languages(), h.Language) {
			n++
		}
	}
	return 2*n > len(hits)
}

// answerable is the probability that the likeliest of some passages answers a question.
func answerable(readings []llm.Reading) float64 {
	best := 0.0
	for _, r := range readings {
		best = max(best, r.Answerable)
	}
	return best
}

// MostAnswerable returns the index of the reading that is most likely to answer; -1: there
// is none.
func MostAnswerable(readings []llm.Reading) int {
	if len(readings) == 0 {
		return -1
	}
	return byAnswerable(readings)[0]
}

// byAnswerable returns the indexes of readings, the most answerable first.
func byAnswerable(readings []llm.Reading) []int {
	order := make([]int, len(readings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(readings[b].Answerable, readings[a].Answerable) })
	return order
}

// logit is the log odds of a probability, within ±8.
func logit(p float64) float64 {
	const most = 8
	return max(-most, min(most, math.Log(p/(1-p))))
}
