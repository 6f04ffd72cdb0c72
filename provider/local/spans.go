package local

import (
	"cmp"
	"math"
	"slices"

	"github.com/assay-rag/assay/llm"
)

const (
	maxSpans      = 5  // of a reading
	maxSpanTokens = 48 // of a span, before it is extended to whole words
)

// answerable returns the logit of "the text answers the question": how far the tokens of the text
// are above [CLS], which represents "no answer", as start and as end.
func (l *logits) answerable() float64 {
	start, end := l.column(0), l.column(1)
	return (logSumExp(start) - float64(l.spans[0]) + logSumExp(end) - float64(l.spans[1])) / 2
}

// column returns the logits of the text's tokens as start (0) or end (1).
func (l *logits) column(which int) []float64 {
	column := make([]float64, l.to-l.from)
	for i := range column {
		column[i] = float64(l.spans[2*(l.first+i)+which])
	}
	return column
}

// extracts returns up to most of the likeliest spans of the window, best first, none overlapping a
// better one. The score is the probability of the start, given that it is in the text, times that
// of the end.
func (l *logits) extracts(most int) []llm.Extract {
	start, end := softmax(l.column(0), 1), softmax(l.column(1), 1)
	taken := make([]bool, len(start))
	var all []llm.Extract
	for len(all) < most {
		from, to, best := 0, -1, -1.0
		for i := range start {
			for j := i; j < min(i+maxSpanTokens, len(end)) && !taken[j]; j++ {
				if p := start[i] * end[j]; p > best {
					from, to, best = i, j, p
				}
			}
		}
		if to < 0 {
			break
		}
		all = append(all, llm.Extract{Start: l.text.starts[l.from+from], End: l.text.ends[l.from+to], Score: best})
		for l.text.continues(l.from+from) && from > 0 {
			from--
		}
		for l.text.continues(l.from+to+1) && to+1 < len(taken) {
			to++
		}
		for i := from; i <= to; i++ {
			taken[i] = true
		}
	}
	return all
}

// mergeSpans returns the best spans of several windows, none overlapping a better one.
func mergeSpans(spans []llm.Extract) []llm.Extract {
	slices.SortStableFunc(spans, func(a, b llm.Extract) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	var merged []llm.Extract
	for _, s := range spans {
		overlaps := func(better llm.Extract) bool { return s.Start < better.End && better.Start < s.End }
		if len(merged) < maxSpans && !slices.ContainsFunc(merged, overlaps) {
			merged = append(merged, s)
		}
	}
	return merged
}

// softmax returns the probabilities of logits, each multiplied by scale.
func softmax(logits []float64, scale float64) []float64 {
	p := make([]float64, len(logits))
	largest, sum := slices.Max(logits), 0.0
	for i, x := range logits {
		p[i] = math.Exp(scale * (x - largest))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// logSumExp returns the logarithm of the sum of the exponentials of x, which must not be empty.
func logSumExp(x []float64) float64 {
	largest, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}
