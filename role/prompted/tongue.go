package prompted

import (
	"slices"
	"unicode"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/language"
)

// tongue returns the code of the language that a text is written in, "" where
// that is not plain. A question is often too short to tell by its letters; its
// function words tell then, if they are of one language by far.
func tongue(text string) string {
	if code := language.Detect(text); code != "" {
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
	const sure, lead = 0.25, 2 // share of the words, times the second
	if best == "" || counts[best] < 2 || float64(counts[best]) < sure*float64(words) || counts[best] < lead*second {
		return ""
	}
	return best
}

func isLetter(r rune) bool { return unicode.IsLetter(r) }
