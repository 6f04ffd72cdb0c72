package retrieve

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// A Mark is a part of a hit's text that matches a term of the query: bytes [Start, End).
type Mark struct{ Start, End int }

// Marks returns the words of a hit's text that match the terms of a query, in their order. None
// overlaps or touches another.
func Marks(terms []assay.Term, h assay.Hit) []Mark {
	wanted := map[string]bool{}
	for _, t := range terms {
		wanted[t.Stem] = true
		for _, form := range t.Forms {
			wanted[form] = true
		}
	}
	for _, stem := range h.Matched {
		wanted[stem] = true
	}
	var found []Mark
	for _, t := range analysis.Tokens(h.Text, h.Language) {
		if wanted[t.Term] && t.Start < t.End {
			found = append(found, Mark{t.Start, t.End})
		}
	}
	slices.SortFunc(found, func(a, b Mark) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	var marks []Mark
	for _, m := range found {
		if n := len(marks); n > 0 && m.Start <= marks[n-1].End {
			marks[n-1].End = max(marks[n-1].End, m.End)
			continue
		}
		marks = append(marks, m)
	}
	return marks
}
