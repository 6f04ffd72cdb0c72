package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// The exit codes, as `assay --help` lists them. Those of errors and answers are in the root package.
const (
	exitAnswered    = assay.ExitOK
	exitError       = assay.ExitError
	exitUsage       = assay.ExitInvalid
	exitNotFound    = assay.ExitNotFound
	exitLocked      = assay.ExitLocked
	exitDamaged     = assay.ExitDamaged
	exitGate        = 9 // an evaluation is worse than its gate allows
	exitInterrupted = assay.ExitInterrupted
)

// exitTable is the help text for the constants above.
const exitTable = `Exit codes:
  0  answered, or done                            6  the answer awaits a review, or was rejected
  1  error                                        7  another process is using this data or run
  2  invalid request, such as an unknown flag     8  damaged, foreign or newer data; replay diverged
  3  the documents do not answer the question     9  assay eval: a figure fails --gate
  4  incomplete, or the question is ambiguous    10  not allowed, over a limit, or stopped
  5  conflicting: both sides are cited          130  interrupted
`

// hints maps a kind of error to its hint.
var hints = []struct {
	kind error
	hint string
}{
	{assay.ErrLocked, "wait until it has finished, or stop it"},
	{assay.ErrLeased, "wait until it has finished, or stop it"},
	{assay.ErrForeign, "name another directory with --data"},
	{assay.ErrNewer, "update assay, or name another directory with --data"},
	{assay.ErrReadOnly, "make it writable, or name another directory with --data"},
	{assay.ErrQuota, "see: assay limit usage"},
	{assay.ErrStopped, "see: assay doctor; to go on: assay stop --lift"},
	{assay.ErrFull, "free some space and try again; everything stored so far is kept"},
}

// hintList adds the command that lists what there is to the error of a name that is not found.
func hintList(err error, list string) error {
	if errors.Is(err, assay.ErrNotFound) {
		return hinted{err, "see: " + list}
	}
	return err
}

// hintBytes adds a hint to the error of data that is in no data directory, to which the hints of its
// kind would not apply.
func hintBytes(err error, hint string) error {
	if errors.Is(err, assay.ErrDamaged) || errors.Is(err, assay.ErrForeign) {
		return hinted{err, hint}
	}
	return err
}

// exitCode maps an error to the process's exit code.
func exitCode(err error) int {
	if e, ok := errors.AsType[ended](err); ok {
		return e.code
	}
	return assay.ExitCode(err)
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
	for _, h := range hints {
		if errors.Is(err, h.kind) {
			return "; " + h.hint
		}
	}
	return ""
}

// usagef returns an error for an invalid command line.
func usagef(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, assay.ErrInvalid)...)
}
