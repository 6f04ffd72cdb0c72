package strategy

import "github.com/assay-rag/assay/internal/analysis"

// stemsOf returns the stems that texts hold, in their language and in English, which is
// also the language of texts whose own is not known.
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
