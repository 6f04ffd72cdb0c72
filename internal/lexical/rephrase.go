package lexical

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/analysis"
)

// Content returns the English stems of the content words of a text, in order, without words
// for searching.
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

// searching are words that only say that something is searched for.
var searching = []string{"find", "search", "information", "info", "details", "about", "regarding", "concerning"}

// Rephrases reports whether a query repeats an earlier one: it adds no content word, or nearly
// all content words are the same and only words other than names and numbers differ. Content
// returns the content words of a text. An empty query repeats none.
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
