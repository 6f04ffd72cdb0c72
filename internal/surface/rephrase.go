package surface

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/analysis"
)

// Content returns the stems of a text's words of content, in order, stemmed as English:
// those that are no function words and do not only say that something is searched.
func Content(text string) []string {
	var stems []string
	for _, t := range analysis.Tokens(text, "") {
		word := strings.ToLower(text[t.Start:t.End])
		if !t.Part && !Function(word) && !slices.Contains(searching, word) {
			stems = append(stems, t.Term)
		}
	}
	return stems
}

// searching are the words that only say that something is searched.
var searching = []string{"find", "search", "information", "info", "details", "about", "regarding", "concerning"}

// Rephrases reports whether a query asks what an earlier one did: it adds no word of
// content to it, or nearly all of their words are the same and what differs is no name
// and no number. Content returns the words of content of a text. A query of blanks asks
// nothing.
func Rephrases(query, earlier string, content func(string) map[string]bool) bool {
	const minShared = 0.8
	if strings.TrimSpace(query) == "" {
		return false
	}
	a, b := content(query), content(earlier)
	shared := 0
	for stem := range a {
		if b[stem] {
			shared++
		}
	}
	if shared == len(a) {
		return true
	}
	if float64(shared) < minShared*float64(len(a)+len(b)-shared) {
		return false
	}
	for _, name := range append(Names(query), Numbers(query)...) {
		for stem := range content(name) {
			if !b[stem] {
				return false
			}
		}
	}
	return true
}
