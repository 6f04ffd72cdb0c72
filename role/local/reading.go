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

// maxRows is how many rows of tables are read at most, of the first hits first.
const maxRows = 60

// ReadHits reads a question against hits, and against each row of their tables behind the
// heads of its columns: of a whole table a reader seldom finds the row. It returns nil where
// there is no reader, or where most of the hits are in a language that it does not know.
func ReadHits(ctx context.Context, reader llm.Reader, question string, hits []assay.Hit) ([]llm.Reading, error) {
	if reader == nil || foreign(reader, hits) {
		return nil, ctx.Err()
	}
	var excerpts, texts []llm.Excerpt
	var rows []layout.Row
	var of []int // the hits of the rows
	for i, h := range hits {
		excerpts = append(excerpts, llm.Excerpt{Heading: h.Under(), Text: h.Text})
		all := layout.Of(h.Text, h.Chunk.Kind).Rows()
		if len(rows)+len(all) > maxRows {
			continue
		}
		for _, r := range all {
			rows, of = append(rows, r), append(of, i)
			texts = append(texts, llm.Excerpt{Heading: h.Under(), Text: r.Text})
		}
	}
	readings, err := readTexts(ctx, reader, question, append(excerpts, texts...))
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		r := &readings[of[i]]
		r.Spans = slices.DeleteFunc(r.Spans, func(s llm.Extract) bool { return s.Start < row.End && s.End > row.Start })
	}
	for i, row := range rows {
		readings[of[i]] = withRow(readings[of[i]], row, readings[len(hits)+i])
	}
	return readings[:len(hits)], nil
}

// withRow is a passage's reading with that of a row of it: the row is an answer as far as it
// answers the question.
func withRow(passage llm.Reading, row layout.Row, reading llm.Reading) llm.Reading {
	passage.Answerable = max(passage.Answerable, reading.Answerable)
	passage.Relevance = max(passage.Relevance, reading.Relevance)
	answer := llm.Extract{Start: row.Start, End: row.End, Score: reading.Answerable}
	if len(reading.Spans) > 0 {
		s := reading.Spans[0]
		answer.Start = row.At[s.Start]
		answer.End = max(answer.Start, row.At[s.End-1]) + 1
	}
	if answer.Score > 0 {
		passage.Spans = append(passage.Spans, answer)
		slices.SortStableFunc(passage.Spans, func(a, b llm.Extract) int { return cmp.Compare(b.Score, a.Score) })
	}
	return passage
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
