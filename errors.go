package assay

import "errors"

// Kinds of failure that callers handle differently. Errors of this module wrap
// at most one of them; test with errors.Is. A message says what was being done
// and to what.
var (
	// ErrInvalid: the request itself is wrong (an empty question, an unknown
	// filter key, a malformed option). Repeating it cannot help.
	ErrInvalid = errors.New("invalid request")

	// ErrNotFound: the named document, chunk or run does not exist for this
	// principal. It is also the answer for what exists but may not be seen.
	ErrNotFound = errors.New("not found")

	// ErrBudget: a step was refused because its upper bound does not fit into
	// what the run may still spend.
	ErrBudget = errors.New("budget exhausted")

	// ErrDeadline: the run's wall time, counted while it was active, is spent.
	ErrDeadline = errors.New("run deadline exceeded")

	// ErrLocked: another live process is the writer of this data.
	ErrLocked = errors.New("locked by another process")

	// ErrLeased: another live process is driving this run.
	ErrLeased = errors.New("run is active in another process")

	// ErrReadOnly: the data cannot be written by this process.
	ErrReadOnly = errors.New("data is read-only")

	// ErrFull: the disk is full. What was acknowledged before is kept.
	ErrFull = errors.New("no space left on device")

	// ErrNewer: the data was written by a newer version of this program.
	ErrNewer = errors.New("written by a newer version")

	// ErrForeign: the data belongs to another program.
	ErrForeign = errors.New("not assay's data")

	// ErrDamaged: stored bytes do not match their checksums or are missing in
	// part.
	ErrDamaged = errors.New("data is damaged")

	// ErrDiverged: a replayed or resumed run did not take the recorded path.
	ErrDiverged = errors.New("run diverged from its journal")

	// ErrUnavailable: a service that was asked (a model's provider, a search) could
	// not be reached, refused or broke off.
	ErrUnavailable = errors.New("service unavailable")

	// ErrSuspended: the run waits for a human decision. It is not a failure.
	ErrSuspended = errors.New("run is suspended")
)
