package assay

import (
	"context"
	"errors"
)

// Kinds of failure that callers handle differently. Errors of this module wrap at most one of them;
// test with errors.Is. The message names the operation and its object.
var (
	// ErrInvalid means that the request itself is wrong (an empty question, an unknown filter key,
	// a malformed option). A retry cannot help.
	ErrInvalid = errors.New("invalid request")

	// ErrNotFound means that the named document, chunk or run does not exist for this principal. It
	// is also returned if it exists but is not visible to the principal.
	ErrNotFound = errors.New("not found")

	// ErrBudget means that a step was refused because its upper bound exceeds the rest of the run's
	// budget.
	ErrBudget = errors.New("budget exhausted")

	// ErrDeadline means that the run's wall time, counted while it was active, is spent.
	ErrDeadline = errors.New("run deadline exceeded")

	// ErrLocked means that another live process is the writer of this data.
	ErrLocked = errors.New("locked by another process")

	// ErrLeased means that another live process is driving this run.
	ErrLeased = errors.New("run is active in another process")

	// ErrReadOnly means that this process cannot write the data.
	ErrReadOnly = errors.New("data is read-only")

	// ErrFull means that the disk is full. Writes acknowledged before are kept.
	ErrFull = errors.New("no space left on device")

	// ErrNewer means that a newer version of this program wrote the data.
	ErrNewer = errors.New("written by a newer version")

	// ErrForeign means that the data belongs to another program.
	ErrForeign = errors.New("not assay's data")

	// ErrDamaged means that stored bytes do not match their checksums or are partly missing.
	ErrDamaged = errors.New("data is damaged")

	// ErrDiverged means that a replayed or resumed run did not take the recorded path.
	ErrDiverged = errors.New("run diverged from its journal")

	// ErrUnavailable means that a remote service (a model's provider, a search) could not be
	// reached, refused the request or broke off.
	ErrUnavailable = errors.New("service unavailable")

	// ErrSuspended means that the run waits for a human decision. It is not a failure.
	ErrSuspended = errors.New("run is suspended")
)

// Exit codes of programs. ExitCode returns those of errors, and Status.ExitCode those of answers.
const (
	ExitOK          = 0   // done, or answered
	ExitError       = 1   // any other error
	ExitInvalid     = 2   // the request is invalid
	ExitNotFound    = 3   // the documents do not answer the question
	ExitIncomplete  = 4   // only part of the question is answered
	ExitConflicting = 5   // the documents disagree
	ExitReview      = 6   // the answer waits for a person, or a person rejected it
	ExitLocked      = 7   // another process uses the data or the run
	ExitDamaged     = 8   // data is damaged, foreign or newer, or a replay diverged
	ExitInterrupted = 130 // interrupted by a signal
)

// StatusClientClosed is the HTTP status for a request that its client cancelled. It is not
// registered; nginx introduced it.
const StatusClientClosed = 499

// kinds maps the kinds of failure to exit codes and HTTP statuses. If an error wraps several, the
// first row decides.
var kinds = []struct {
	err    error
	exit   int
	status int
}{
	{context.Canceled, ExitInterrupted, StatusClientClosed},
	{ErrInvalid, ExitInvalid, 400},   // Bad Request
	{ErrSuspended, ExitReview, 202},  // Accepted
	{ErrLocked, ExitLocked, 409},     // Conflict
	{ErrLeased, ExitLocked, 409},     // Conflict
	{ErrDamaged, ExitDamaged, 500},   // Internal Server Error
	{ErrForeign, ExitDamaged, 500},   // Internal Server Error
	{ErrNewer, ExitDamaged, 500},     // Internal Server Error
	{ErrDiverged, ExitDamaged, 409},  // Conflict
	{ErrReadOnly, ExitError, 503},    // Service Unavailable
	{ErrFull, ExitError, 507},        // Insufficient Storage
	{ErrNotFound, ExitError, 404},    // Not Found
	{ErrBudget, ExitError, 422},      // Unprocessable Content
	{ErrDeadline, ExitError, 504},    // Gateway Timeout
	{ErrUnavailable, ExitError, 502}, // Bad Gateway
	{context.DeadlineExceeded, ExitError, 504},
}

// ExitCode returns the exit code of a program that ends with err: ExitOK for nil, and ExitError for
// an error of no kind above.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.exit
		}
	}
	return ExitError
}

// StatusCode returns the HTTP status for err: 200 for nil, and 500 for an error of no kind above.
func StatusCode(err error) int {
	if err == nil {
		return 200
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.status
		}
	}
	return 500
}

// ExitCode returns the exit code of a program whose question was answered with this status.
func (s Status) ExitCode() int {
	switch s {
	case Answered:
		return ExitOK
	case NotFound:
		return ExitNotFound
	case Incomplete:
		return ExitIncomplete
	case Conflicting:
		return ExitConflicting
	case PendingReview, Rejected:
		return ExitReview
	}
	return ExitError
}
