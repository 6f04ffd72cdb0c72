package ambiguity

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// askedBack matches an answer that asks which of several things a question means.
var askedBack = lazyregexp.New(`^What is meant(?: by "[^"]*")?: (.+?)(?:, or something else)?\?$`)

// AsksBack reports whether an answer asks what its question means.
func AsksBack(answer string) bool {
	return strings.HasPrefix(answer, "What is meant") || strings.HasPrefix(answer, "What is the question about?")
}

// Offered returns the readings that an answer offers when it asks back, verbatim, or nil if it does
// not.
func Offered(answer string) []string {
	m := askedBack.FindStringSubmatch(answer)
	if m == nil {
		return nil
	}
	i := strings.LastIndex(m[1], " or ")
	if i < 0 {
		return strings.Split(m[1], ", ")
	}
	return append(strings.Split(strings.TrimSuffix(m[1][:i], ","), ", "), m[1][i+len(" or "):])
}
