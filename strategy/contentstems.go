package strategy

import "github.com/assay-rag/assay/internal/analysis"

// stemsOf returns the stems in texts, both for their language and for English. English is also used
// for texts of unknown language.
func stemsOf(language string, texts ...string) map[string]bool {
	held := map[string]bool{}
	for _, text := range texts {
		for _, t := range analysis.Tokens(text, "") {
			held[t.Term] = true
		}
		if language == "" || language == "en" {
			continue
		}
		for _, t := range analysis.Tokens(text, language) {
			held[t.Term] = true
		}
	}
	return held
}
