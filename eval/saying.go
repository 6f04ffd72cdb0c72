package eval

import (
	"slices"

	"github.com/assay-rag/assay/eval/metric"
)

// What a long right answer and what was said have to have in common for the one to be
// taken for the other: most of its words. Shorter ones have to stand there as they are.
const (
	longAnswer = 6   // words
	sameWords  = 0.6 // share of a long answer's words
)

// saysAny reports whether a text has one of the right answers, by its words alone.
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
