package assay

import "errors"

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
