package local

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Clarify implements role.Clarifier. It decides that a question is ambiguous if it has several
// possible meanings, or a word without an antecedent. A question with one meaning and hits of
// one document is clear. It returns an error only when ctx has ended.
func (Rewriter) Clarify(ctx context.Context, _ role.Caller, in role.ClarifyInput) (role.Clarity, error) {
	if err := ctx.Err(); err != nil {
		return role.Clarity{}, err
	}
	out := role.Clarity{Readings: []int{}}
	resolved := len(in.Means) == 1 && ofOneDocument(in.Hits)
	if out.Ambiguous = len(in.Means) > 1 || in.Open != "" && !resolved; out.Ambiguous {
		for i := range in.Means {
			out.Readings = append(out.Readings, i)
		}
	}
	return out, nil
}

// ofOneDocument reports whether all hits are of one document.
func ofOneDocument(hits []assay.Hit) bool {
	return !slices.ContainsFunc(hits, func(h assay.Hit) bool { return h.Chunk.Document != hits[0].Chunk.Document })
}
