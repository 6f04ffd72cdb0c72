package ground

import (
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/sentence"
)

// A Claim is one checkable statement of a draft.
type Claim struct {
	Text     string
	Start    int // of Text in the statement, in bytes
	End      int
	Evidence []int // numbers that it cites, as the draft gave them
	Item     bool  // begins an item of a list
}

// Cut cuts a statement into claims, one a sentence, each resting on all of the
// statement's evidence. A statement of several lines is code or a table row and
// stays whole. What holds no letter or digit claims nothing and is left out.
func Cut(statement string, evidence []int) []Claim {
	whole := strings.TrimSpace(statement)
	from := strings.Index(statement, whole)
	spans := []sentence.Span{{Start: from, End: from + len(whole)}}
	if !strings.Contains(whole, "\n") {
		spans = sentence.Spans(statement)
	}
	var claims []Claim
	for _, sp := range spans {
		text := statement[sp.Start:sp.End]
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			claims = append(claims, Claim{Text: text, Start: sp.Start, End: sp.End, Evidence: evidence})
		}
	}
	return claims
}
