package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
)

// A Ledger keeps limits that several runs share. It is consulted only for steps that are executed,
// so a replay never reaches it. It is safe for concurrent use.
type Ledger interface {
	// Reserve sets up to most aside for the step at path, in addition to what is set aside for it
	// already. An error that wraps assay.ErrQuota refuses the step and is recorded as its result. Any
	// other error halts the run. The reservation ends when the journal stores the step's record.
	Reserve(ctx context.Context, path string, most assay.Usage) error

	// Settle ends the reservation of a step that gets no record, because the run was halted. used is
	// the most that the step may have cost; zero: it made no call.
	Settle(ctx context.Context, path string, used assay.Usage) error
}

// errStop is the cause of a context ended by Config.Stop.
var errStop = fmt.Errorf("%w: the step was stopped", assay.ErrStopped)

// ended reports whether the run is to end with what it has.
func (r *Run) ended() bool { return r.stopping != nil && r.stopping.Err() != nil }

// Closing returns a scope with the same path whose steps are executed even if Config.Stop has ended.
// A strategy uses it for the last steps towards an answer, which must be short and cost nothing.
func (s Scope) Closing() Scope {
	s.closing = true
	return s
}

// refusesAfterStop reports whether a step is refused once Config.Stop has ended: it searches, calls
// a model or leaves the machine. The others are needed to end with what was found.
func (s Scope) refusesAfterStop(kind assay.StepKind) bool {
	if s.closing {
		return false
	}
	switch kind {
	case assay.StepSearch, assay.StepModel, assay.StepWeb, assay.StepTool, assay.StepRerank:
		return true
	}
	return false
}

// stoppedError returns the error for a step after Config.Stop has ended. A nil err means that the step
// was not started; otherwise it was stopped and failed with err.
func (r *Run) stoppedError(err error) error {
	kind := assay.ErrStopped
	if errors.Is(context.Cause(r.stopping), assay.ErrCancelled) {
		kind = assay.ErrCancelled
	}
	if err == nil {
		return fmt.Errorf("not started: %w", kind)
	}
	return fmt.Errorf("stopped: %w (%v)", kind, err)
}

// untilStop wraps a step's function so that its context ends with Config.Stop. It is not used for
// groups, whose other steps go on.
func (s Scope) untilStop(kind assay.StepKind, fn effect) effect {
	stop := s.run.stopping
	if stop == nil || !s.refusesAfterStop(kind) {
		return fn
	}
	return func(ctx context.Context) (json.RawMessage, assay.Usage, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(stop, func() { cancel(errStop) })()
		output, usage, err := fn(ctx)
		if err != nil && context.Cause(ctx) == errStop {
			err = s.run.stoppedError(err)
		}
		return output, usage, err
	}
}

// setAside asks the ledger for a step's upper bound. An error of the ledger itself halts the run. It is
// none if a group around the step has used up the wall time meanwhile; the step is then refused.
func (s Scope) setAside(ctx context.Context, path string, most assay.Usage, deadline time.Duration) error {
	if s.run.ledger == nil || noCost(most) {
		return nil
	}
	err := s.run.ledger.Reserve(ctx, path, most)
	if err == nil || errors.Is(err, assay.ErrQuota) || gone(ctx) {
		return err
	}
	if context.Cause(ctx) == errWall {
		return deadlineError(deadline, nil)
	}
	return haltError{s.run.stop(fmt.Errorf("step %s: %w", path, err))}
}

// giveBack settles a step that gets no record. A call that may have reached its provider counts at
// least with its upper bound.
func (s Scope) giveBack(ctx context.Context, path string, most, reported assay.Usage) error {
	if s.run.ledger == nil || noCost(most) && noCost(reported) {
		return nil
	}
	if !noCost(reported) {
		reported = assay.Usage{
			Calls: max(most.Calls, reported.Calls), InputTokens: max(most.InputTokens, reported.InputTokens),
			OutputTokens: max(most.OutputTokens, reported.OutputTokens), CostMicros: max(most.CostMicros, reported.CostMicros),
		}
	}
	ctx, cancel := outlive(ctx, appendGrace)
	defer cancel()
	return s.run.ledger.Settle(ctx, path, reported)
}

// noCost reports whether u has no calls, tokens or cost.
func noCost(u assay.Usage) bool { return u.Calls == 0 && tokens(u) == 0 && u.CostMicros == 0 }

// Further returns a function with which the step name of this scope, while it is executed, sets more
// aside than its Reserve before it spends more. The error wraps assay.ErrQuota if a limit is reached,
// and assay.ErrStopped if the run is to end; the step then does without. The function is nil in a run
// without a ledger that is never stopped.
func (s Scope) Further(name string) func(context.Context, assay.Usage) error {
	if s.run.ledger == nil && s.run.stopping == nil {
		return nil
	}
	path := s.join(name)
	return func(ctx context.Context, more assay.Usage) error {
		if s.run.ended() {
			return s.run.stoppedError(nil)
		}
		err := s.setAside(ctx, path, nonNegative(more), s.deadline(assay.StepModel))
		if halt, ok := errors.AsType[haltError](err); ok {
			return halt.error
		}
		return err
	}
}
