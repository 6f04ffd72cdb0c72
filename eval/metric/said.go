package metric

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Said returns the text of an answer without citation numbers: its claims, and the few words that
// join the clauses of a sentence.
func Said(a assay.Answer) string {
	var b strings.Builder
	end := -1 // of the previous claim
	for _, c := range a.Claims {
		if c.Start < 0 || c.End < c.Start || c.End > len(a.Text) {
			continue
		}
		if 0 <= end && end <= c.Start {
			b.WriteString(joint(a.Text[end:c.Start]))
		}
		b.WriteString(a.Text[c.Start:c.End])
		end = c.End
	}
	return b.String()
}

// mostJoining is the greatest number of words that join two clauses.
const mostJoining = 3

// joint returns the words between two claims if they belong to the same sentence, else a space.
func joint(between string) string {
	words := strings.Fields(citationNumbers.ReplaceAllString(between, " "))
	if strings.Contains(between, "\n") || len(words) == 0 || len(words) > mostJoining {
		return " "
	}
	for _, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && r != ',' && r != '’' && r != '\'' }) {
			return " "
		}
	}
	text := strings.Join(words, " ") + " "
	if !strings.HasPrefix(text, ",") {
		text = " " + text
	}
	return text
}

// citationNumbers matches the citation numbers in an answer.
var citationNumbers = lazyregexp.New(`\s*\[\d+(?:, *\d+)*\]`)

// Uncited returns the text of an answer on one line, without citation numbers.
func Uncited(text string) string {
	return strings.Join(strings.Fields(citationNumbers.ReplaceAllString(text, "")), " ")
}

// A long answer matches a text that has most of its words. A shorter one must occur verbatim.
const (
	longAnswer = 6   // words
	sameWords  = 0.6 // share of a long answer's words
)

// SaysAny reports whether a text has one of the right answers, judged by its words only.
func SaysAny(text string, answers []string) bool {
	return slices.ContainsFunc(answers, func(right string) bool { return Says(text, right) })
}

// Says reports whether a text has a right answer. It must occur verbatim, or most of its words do if
// it is long.
func Says(text, right string) bool {
	if Contains(text, []string{right}) == 1 {
		return true
	}
	words := Words(right)
	if len(words) < longAnswer {
		return false
	}
	left := map[string]int{}
	for _, w := range Words(text) {
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
