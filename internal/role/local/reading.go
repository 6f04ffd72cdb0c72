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

// maxParts bounds the rows and entries that are read separately, in bytes. Those of the first
// hits come first.
const maxParts = 4000

// ReadHits reads a question against hits. Each row of a table and each entry of a definition
// list is also read separately, since readers seldom find the right row in a whole table. It
// returns nil if there is no reader, or if most hits are in a language that the reader does
// not know.
func ReadHits(ctx context.Context, reader llm.Reader, question string, hits []assay.Hit) ([]llm.Reading, error) {
	if reader == nil || foreign(reader, hits) {
		return nil, ctx.Err()
	}
	var excerpts, texts []llm.Excerpt
	var parts []layout.Part
	var of []int // indexes of the hits of the parts
	size := 0
	for i, h := range hits {
		excerpts = append(excerpts, llm.Excerpt{Heading: h.Under(), Text: h.Text})
		for _, p := range layout.Of(h.Text, h.Chunk.Kind).Parts() {
			if size += len(p.Text); size > maxParts {
				break
			}
			parts, of = append(parts, p), append(of, i)
			texts = append(texts, llm.Excerpt{Heading: h.Under(), Text: p.Text})
		}
	}
	readings, err := readTexts(ctx, reader, question, append(excerpts, texts...))
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		r := &readings[of[i]]
		r.Spans = slices.DeleteFunc(r.Spans, func(s llm.Extract) bool { return s.Start < p.End && s.End > p.Start })
	}
	for i, p := range parts {
		readings[of[i]] = withPart(readings[of[i]], p, readings[len(hits)+i])
	}
	return readings[:len(hits)], nil
}

// withPart adds the reading of a part to that of its passage. The score of the part is the
// probability that it answers the question.
func withPart(passage llm.Reading, p layout.Part, reading llm.Reading) llm.Reading {
	passage.Answerable = max(passage.Answerable, reading.Answerable)
	passage.Relevance = max(passage.Relevance, reading.Relevance)
	answer := llm.Extract{Start: p.Start, End: p.End, Score: reading.Answerable}
	if len(reading.Spans) > 0 {
		s := reading.Spans[0]
		answer.Start = p.At[s.Start]
		answer.End = max(answer.Start, p.At[s.End-1]) + 1
	}
	if answer.Score > 0 {
		passage.Spans = append(passage.Spans, answer)
		slices.SortStableFunc(passage.Spans, func(a, b llm.Extract) int { return cmp.Compare(b.Score, a.Score) })
	}
	return passage
}

// readTexts reads a question against passages. Invalid probabilities count as 0, and invalid
// spans are left out.
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
			inside := 0 <= s.Start && s.Start < s.End && s.End <= len(passages[i].Text)
			if s.Score = probability(s.Score); inside && s.Score > 0 {
				out[i].Spans = append(out[i].Spans, s)
			}
		}
	}
	return out, nil
}

// probability returns x if it is a probability, else 0.
func probability(x float64) float64 {
	if 0 <= x && x <= 1 {
		return x
	}
	return 0
}

// foreign reports whether most of the hits are in languages that the reader does not know. A
// reader that does not list its languages knows all.
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

// answerable returns the highest probability that a passage answers the question.
func answerable(readings []llm.Reading) float64 {
	best := 0.0
	for _, r := range readings {
		best = max(best, r.Answerable)
	}
	return best
}

// MostAnswerable returns the index of the reading with the highest probability of an answer,
// or -1 if there are no readings.
func MostAnswerable(readings []llm.Reading) int {
	if len(readings) == 0 {
		return -1
	}
	return byAnswerable(readings)[0]
}

// byAnswerable returns the indexes of readings, most answerable first.
func byAnswerable(readings []llm.Reading) []int {
	order := make([]int, len(readings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(readings[b].Answerable, readings[a].Answerable) })
	return order
}

// logit returns the log odds of a probability, within ±8.
func logit(p float64) float64 {
	const most = 8
	return max(-most, min(most, math.Log(p/(1-p))))
}
