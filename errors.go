package assay

import (
	"context"
	"errors"
	"slices"
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

	// ErrUnauthenticated means that a credential is missing, expired, revoked or not valid here. The
	// message does not say which, except to an operator.
	ErrUnauthenticated = errors.New("not authenticated")

	// ErrForbidden means that the principal is known and lacks the right to do this.
	ErrForbidden = errors.New("not allowed")

	// ErrQuota means that a limit of requests, runs, tokens, calls or money is reached.
	ErrQuota = errors.New("limit reached")

	// ErrStopped means that an administrator has stopped the tenant or all runs.
	ErrStopped = errors.New("stopped by an administrator")

	// ErrBusy means that this process does as much at once as it is allowed to. Another attempt in a
	// few seconds can help.
	ErrBusy = errors.New("too busy")

	// ErrChanged means that the object is not the version that the caller named, so that it was not
	// replaced or deleted.
	ErrChanged = errors.New("changed meanwhile")

	// ErrCancelled means that the owner of the run cancelled it.
	ErrCancelled = errors.New("run was cancelled")

	// ErrReused means that the idempotency key of the request was used for another one.
	ErrReused = errors.New("idempotency key was used for another request")
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
	ExitDenied      = 10  // not authenticated, not allowed, over a limit, or stopped
	ExitInterrupted = 130 // interrupted by a signal
)

// StatusClientClosed is the HTTP status for a request that its client cancelled. It is not
// registered; nginx introduced it.
const StatusClientClosed = 499

// A Kind is a kind of failure with its meaning for programs and over HTTP.
type Kind struct {
	Err    error  // one of the errors above, or one of package context
	Name   string // a stable word, such as "not_found"
	Exit   int    // exit code of a program
	Status int    // HTTP status
}

// kinds are the kinds of failure. If an error wraps several, the first row decides.
var kinds = []Kind{
	{context.Canceled, "interrupted", ExitInterrupted, StatusClientClosed},
	{ErrInvalid, "invalid", ExitInvalid, 400},       // Bad Request
	{ErrSuspended, "suspended", ExitReview, 409},    // Conflict
	{ErrLocked, "locked", ExitLocked, 409},          // Conflict
	{ErrLeased, "leased", ExitLocked, 409},          // Conflict
	{ErrDamaged, "damaged", ExitDamaged, 500},       // Internal Server Error
	{ErrForeign, "foreign", ExitDamaged, 500},       // Internal Server Error
	{ErrNewer, "newer", ExitDamaged, 500},           // Internal Server Error
	{ErrDiverged, "diverged", ExitDamaged, 409},     // Conflict
	{ErrReadOnly, "read_only", ExitError, 503},      // Service Unavailable
	{ErrFull, "full", ExitError, 507},               // Insufficient Storage
	{ErrNotFound, "not_found", ExitError, 404},      // Not Found
	{ErrChanged, "changed", ExitError, 412},         // Precondition Failed
	{ErrBudget, "budget", ExitError, 422},           // Unprocessable Content
	{ErrDeadline, "deadline", ExitError, 504},       // Gateway Timeout
	{ErrUnavailable, "unavailable", ExitError, 502}, // Bad Gateway
	{ErrUnauthenticated, "unauthenticated", ExitDenied, 401},
	{ErrForbidden, "forbidden", ExitDenied, 403},
	{ErrQuota, "quota", ExitDenied, 429},        // Too Many Requests
	{ErrStopped, "stopped", ExitDenied, 503},    // Service Unavailable
	{ErrBusy, "busy", ExitDenied, 503},          // Service Unavailable
	{ErrCancelled, "cancelled", ExitError, 409}, // Conflict
	{ErrReused, "reused", ExitInvalid, 422},     // Unprocessable Content
	{context.DeadlineExceeded, "timeout", ExitError, 504},
}

// Kinds returns the kinds of failure. If an error wraps several, the first decides.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf returns the kind of an error, and false for one of no kind.
func KindOf(err error) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return errors.Is(err, k.Err) })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// ExitCode returns the exit code of a program that ends with err: ExitOK for nil, and ExitError for
// an error of no kind above.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if k, ok := KindOf(err); ok {
		return k.Exit
	}
	return ExitError
}

// StatusCode returns the HTTP status for err: 200 for nil, and 500 for an error of no kind above.
func StatusCode(err error) int {
	if err == nil {
		return 200
	}
	if k, ok := KindOf(err); ok {
		return k.Status
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
