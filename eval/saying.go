package eval

import (
	"slices"

	"github.com/assay-rag/assay/eval/metric"
)

// A long answer matches a text that has most of its words. A shorter one must occur verbatim.
const (
	longAnswer = 6   // words
	sameWords  = 0.6 // share of a long answer's words
)

// saysAny reports whether a text has one of the right answers, judged by its words only.
func saysAny(text string, answers []string) bool {
	return slices.ContainsFunc(answers, func(right string) bool { return says(text, right) })
}

func says(text, right string) bool {
	if metric.Contains(text, []string{right}) == 1 {
		return true
	}
	words := metric.Words(right)
	if len(words) < longAnswer {
		return false
	}
	left := map[string]int{}
	for _, w := range metric.Words(text) {
		left[w]++
	}
	same := 0
	for _, w := range words {
		if left[w] > 0 {
			left[w]--
			same++
		}
	}
	return float64(same) >= sameWords*float64(len(words))
}
