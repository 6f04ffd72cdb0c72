package local

import (
	"context"

	"github.com/assay-rag/assay/role"
)

// Clarifier calls a question ambiguous that does not say what it is about, unless all
// that was found speaks of one thing: that is meant then. One that documents of several
// things answer differently can mean each of them.
type Clarifier struct{}

// Clarify implements role.Clarifier. It returns an error only when ctx has ended.
func (Clarifier) Clarify(ctx context.Context, _ role.Caller, in role.ClarifyInput) (role.Clarity, error) {
	if err := ctx.Err(); err != nil {
		return role.Clarity{}, err
	}
	out := role.Clarity{Readings: []int{}}
	if out.Ambiguous = len(in.Means) > 1 || in.Open != "" && len(in.Means) == 0; out.Ambiguous {
		for i := range in.Means {
			out.Readings = append(out.Readings, i)
		}
	}
	return out, nil
}
