package role

import (
	"context"
	"errors"

	"github.com/assay-rag/assay"
)

// Ends reports whether err ends a role's job, rather than standing for an output
// that cannot be used: the run was cancelled, suspended or ran out. A role returns
// such an error as it is.
func Ends(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	return ctx.Err() != nil || errors.Is(err, assay.ErrBudget) || errors.Is(err, assay.ErrDeadline) ||
		errors.Is(err, assay.ErrSuspended) || errors.Is(err, assay.ErrDiverged) || errors.Is(err, assay.ErrLeased)
}
