package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// The exit codes, as `assay --help` lists them.
const (
	exitAnswered    = 0   // answered, or the command succeeded
	exitError       = 1   // any other error
	exitUsage       = 2   // the request is invalid: a flag, strategy, filter or question
	exitNotFound    = 3   // the documents do not answer the question
	exitIncomplete  = 4   // only part of the question is answered
	exitConflicting = 5   // the documents disagree
	exitReview      = 6   // the answer waits for a person, or a person rejected it
	exitLocked      = 7   // another process is using this data or run
	exitDamaged     = 8   // data is damaged, foreign or newer; a replay diverged
	exitGate        = 9   // an evaluation is worse than its gate allows
	exitInterrupted = 130 // interrupted, as by Ctrl-C
)

// exitTable is the help text for the constants above.
const exitTable = `Exit codes:
    0  answered, or done
    1  error
    2  invalid request: an unknown flag, strategy or filter, or an empty question
    3  the documents do not answer the question
    4  incomplete, or the question is ambiguous
    5  conflicting: the documents disagree; both sides are cited
    6  the answer waits for a review, or was rejected
    7  another process is using this data or run
    8  the data is damaged, foreign or newer, or a replay diverged
    9  assay eval: a figure is worse than --gate allows
  130  interrupted
`

// failures maps a kind of error to its exit code and, if one helps, a hint.
var failures = []struct {
	kind error
	code int
	hint string
}{
	{context.Canceled, exitInterrupted, ""},
	{assay.ErrInvalid, exitUsage, ""},
	{assay.ErrSuspended, exitReview, ""},
	{assay.ErrLocked, exitLocked, "wait until it has finished, or stop it"},
	{assay.ErrLeased, exitLocked, "wait until it has finished, or stop it"},
	{assay.ErrDamaged, exitDamaged, ""}, // see hintDoctor
	{assay.ErrForeign, exitDamaged, "name another directory with --data"},
	{assay.ErrNewer, exitDamaged, "update assay, or name another directory with --data"},
	{assay.ErrDiverged, exitDamaged, ""},
	{assay.ErrReadOnly, exitError, "make it writable, or name another directory with --data"},
	{assay.ErrFull, exitError, "make room and try again; what was stored before is kept"},
}

// exitCode maps an error to the process's exit code.
func exitCode(err error) int {
	if err == nil {
		return exitAnswered
	}
	if e, ok := errors.AsType[ended](err); ok {
		return e.code
	}
	for _, f := range failures {
		if errors.Is(err, f.kind) {
			return f.code
		}
	}
	return exitError
}

// statusCode maps the status of an answer to the process's exit code.
func statusCode(s assay.Status) int {
	switch s {
	case assay.Answered:
		return exitAnswered
	case assay.NotFound:
		return exitNotFound
	case assay.Incomplete:
		return exitIncomplete
	case assay.Conflicting:
		return exitConflicting
	case assay.PendingReview, assay.Rejected:
		return exitReview
	}
	return exitError
}

// ended is a result that was already printed. Only the exit code remains to be returned.
type ended struct{ code int }

func (e ended) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// end returns the error that makes a command exit with code, or nil for 0.
func end(code int) error {
	if code == exitAnswered {
		return nil
	}
	return ended{code}
}

// hinted is an error with its own hint, which replaces the one of its kind.
type hinted struct {
	err  error
	hint string
}

func (h hinted) Error() string { return h.err.Error() }
func (h hinted) Unwrap() error { return h.err }

// message formats an error for people. It omits the text of ErrInvalid, which the exit code already
// expresses, and adds a hint if there is one.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted" + hintOf(err)
	}
	return strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()) + hintOf(err)
}

func hintOf(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return "; " + h.hint
	}
	if hint := configHint(err); hint != "" {
		return hint
	}
	for _, f := range failures {
		if errors.Is(err, f.kind) && f.hint != "" {
			return "; " + f.hint
		}
	}
	return ""
}

// usagef returns an error for an invalid command line.
func usagef(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, assay.ErrInvalid)...)
}
