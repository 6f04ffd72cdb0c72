package local

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Clarifier calls a question ambiguous that does not say what it is about, unless all
// that was found is of one document and speaks of one thing: that is meant then. One
// that documents of several things answer differently can mean each of them.
type Clarifier struct{}

// Clarify implements role.Clarifier. It returns an error only when ctx has ended.
func (Clarifier) Clarify(ctx context.Context, _ role.Caller, in role.ClarifyInput) (role.Clarity, error) {
	if err := ctx.Err(); err != nil {
		return role.Clarity{}, err
	}
	out := role.Clarity{Readings: []int{}}
	clear := len(in.Means) == 1 && (in.Open == "" || ofOneDocument(in.Hits))
	if out.Ambiguous = !clear && (in.Open != "" || len(in.Means) > 1); out.Ambiguous {
		for i := range in.Means {
			out.Readings = append(out.Readings, i)
		}
	}
	return out, nil
}

// ofOneDocument reports whether all that was found is of one document.
func ofOneDocument(hits []assay.Hit) bool {
	return !slices.ContainsFunc(hits, func(h assay.Hit) bool { return h.Chunk.Document != hits[0].Chunk.Document })
}
