package language

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/analysis"
)

// Guess is like Detect for short texts. If there are too few letters, the language is that of the
// most function words. It returns "" if that is unclear.
func Guess(text string) string {
	if code := Detect(text); code != "" {
		return code
	}
	counts, words := analysis.StopCounts(text)
	codes := make([]string, 0, len(counts))
	for code := range counts {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	best, second := "", 0
	for _, code := range codes {
		switch n := counts[code]; {
		case best == "" || n > counts[best]:
			if best != "" {
				second = max(second, counts[best])
			}
			best = code
		default:
			second = max(second, n)
		}
	}
	const sure, lead = 0.25, 1.5 // share of the words, ratio to the second
	n := float64(counts[best])
	if n < 2 || n < max(sure*float64(words), lead*float64(second)) {
		return ""
	}
	return best
}

// Differ reports whether two language codes name different languages. Languages that Detect often
// confuses count as one, and an unknown language ("") differs from none.
func Differ(a, b string) bool {
	for _, group := range []string{"da no nb nn sv", "es pt gl ca", "cs sk", "hr sr bs sl", "id ms", "de lb nl af"} {
		if has := strings.Fields(group); slices.Contains(has, a) && slices.Contains(has, b) {
			return false
		}
	}
	return a != "" && b != "" && a != b
}
