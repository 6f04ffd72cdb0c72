package run

import (
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
)

// kinds are the errors that keep their identity in a journal.
var kinds = []error{
	assay.ErrInvalid, assay.ErrNotFound, assay.ErrBudget, assay.ErrDeadline, assay.ErrLocked, assay.ErrLeased,
	assay.ErrReadOnly, assay.ErrFull, assay.ErrNewer, assay.ErrForeign, assay.ErrDamaged, assay.ErrDiverged,
	assay.ErrUnavailable, assay.ErrSuspended, assay.ErrUnauthenticated, assay.ErrForbidden, assay.ErrQuota, assay.ErrStopped, assay.ErrBusy, assay.ErrCancelled, assay.ErrReused, assay.ErrChanged,
}

// A StepError is the error of a step in its recorded form.
type StepError struct {
	Path    string
	Kind    error // one of package assay's Err values, or nil
	Message string
}

func (e *StepError) Error() string { return fmt.Sprintf("step %s: %s", e.Path, e.Message) }

// Unwrap returns e.Kind.
func (e *StepError) Unwrap() error { return e.Kind }

// recordError returns the recorded form of err.
func recordError(err error) *assay.RecordedError {
	rec := &assay.RecordedError{Message: err.Error()}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			rec.Kind = kind.Error()
			break
		}
	}
	if budget, ok := errors.AsType[*BudgetError](err); ok {
		rec.Message = budget.message()
	}
	return rec
}

// restoreError returns the error of the step at path, or nil if rec is nil. It drops a kind that
// this version does not know.
func restoreError(path string, rec *assay.RecordedError) error {
	if rec == nil {
		return nil
	}
	if rec.Kind == assay.ErrBudget.Error() {
		if budget := parseBudgetError(path, rec.Message); budget != nil {
			return budget
		}
	}
	e := &StepError{Path: path, Message: rec.Message}
	for _, kind := range kinds {
		if kind.Error() == rec.Kind {
			e.Kind = kind
		}
	}
	return e
}
