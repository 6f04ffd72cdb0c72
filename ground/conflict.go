package ground

import (
	"slices"

	"github.com/assay-rag/assay"
)

// Sourced is a claim and the documents that it cites.
type Sourced struct {
	Text      string
	Documents []string // document IDs
}

// Conflict finds two claims from different documents that say the same thing
// with another number or negation. It returns the first such pair, by index.
// It is as strict as the local verifier and misses what that misses.
func Conflict(claims []Sourced) (i, j int, found bool) {
	for i := range claims {
		for j := i + 1; j < len(claims); j++ {
			if shareDocument(claims[i], claims[j]) {
				continue
			}
			a := judge(claims[i].Text, Passage{Quote: claims[j].Text})
			b := judge(claims[j].Text, Passage{Quote: claims[i].Text})
			if a.Verdict == assay.Contradicted && b.Verdict == assay.Contradicted {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

func shareDocument(a, b Sourced) bool {
	return slices.ContainsFunc(a.Documents, func(d string) bool { return slices.Contains(b.Documents, d) })
}
