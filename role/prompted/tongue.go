package prompted

import (
	"slices"
	"strings"
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
	const sure, lead = 0.25, 1.5 // share of the words, times the second
	if best == "" || counts[best] < 2 || float64(counts[best]) < sure*float64(words) || float64(counts[best]) < lead*float64(second) {
		return ""
	}
	return best
}

// foreign reports whether two texts are plainly of different languages. Those that
// are often taken for one another count as one.
func foreign(a, b string) bool {
	for _, group := range []string{"da no nb nn sv", "es pt gl ca", "cs sk", "hr sr bs sl", "id ms", "de lb nl af"} {
		if has := strings.Fields(group); slices.Contains(has, a) && slices.Contains(has, b) {
			return false
		}
	}
	return a != "" && b != "" && a != b
}

func isLetter(r rune) bool { return unicode.IsLetter(r) }
