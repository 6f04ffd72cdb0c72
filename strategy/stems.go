package strategy

import "github.com/assay-rag/assay/internal/analysis"

// stemsOf returns the stems that a text holds, in its language and in English, which is
// also the language of a text whose own is not known.
func stemsOf(text, language string) map[string]bool {
	held := map[string]bool{}
	for _, t := range analysis.Tokens(text, "") {
		held[t.Term] = true
	}
	if language != "" && language != "en" {
		for _, t := range analysis.Tokens(text, language) {
			held[t.Term] = true
		}
	}
	return held
}
