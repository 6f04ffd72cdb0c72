package role

import (
	"context"
	"errors"
	"slices"

	"github.com/assay-rag/assay"
)

// Ends reports whether err ends the run: it was cancelled or suspended, or reached a limit.
// A role returns such an error unchanged. Any other error is only a failure of its job.
func Ends(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return err != nil
	}
	return slices.ContainsFunc(ending, func(end error) bool { return errors.Is(err, end) })
}

// ending are the errors that end a run.
var ending = []error{assay.ErrBudget, assay.ErrDeadline, assay.ErrSuspended, assay.ErrDiverged, assay.ErrLeased, assay.ErrQuota, assay.ErrStopped, assay.ErrCancelled}
