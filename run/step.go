package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
)

// A Step names an effect.
type Step struct {
	Name  string // unique in its scope; see Scope.Sub for its form
	Kind  assay.StepKind
	Model string // the model called; empty: none. It is recorded, not compared.

	// Reserve is the most that the step can spend. The step is refused if that exceeds the amount
	// left to its branch. Zero counts are not checked.
	Reserve assay.Usage
}

// Do runs fn as one step, once. The result is in the journal before Do returns. In a resumed or
// replayed run, Do returns the recorded result (or error, by kind) and does not call fn.
//
// The result is the value that encoding/json reads back from the recorded JSON, even the first
// time, so that every run of the strategy sees the same value. in is recorded as JSON and
// identifies the input of fn: a recorded step with another input, or of another kind, is a
// [DivergenceError]. A value without a JSON form is assay.ErrInvalid.
//
// The context of fn ends with the wall time of the run or of the scope. fn returns its cost even if
// it fails; negative counts are taken as zero. It must not take steps. A resumed run may call it
// again if this run ends before the result is stored.
//
// An error of fn is recorded by its kind (the assay.Err value that it wraps) and text, and Do
// returns a [StepError] with those; other error types are lost. A step that exceeds the budget is
// refused with a [BudgetError] without calling fn. If the wall time is spent, the error is
// assay.ErrDeadline; if the ledger refuses the step, it is assay.ErrQuota; and if the run is to end,
// see [Config], it is assay.ErrStopped. All of these cost the amount that fn returned, and every replay returns them
// again.
//
// Other errors are not recorded: assay.ErrSuspended from fn, and errors that halt the run (see the
// package comment), including the end of ctx while fn fails. A result that fn returns after the end
// of ctx is kept.
func Do[In, Out any](ctx context.Context, s Scope, step Step, in In, fn func(context.Context, In) (Out, assay.Usage, error)) (Out, error) {
	checkName(step.Name)
	return do(ctx, s, s.join(step.Name), step, in, fn)
}

// do is Do with the full path of the step.
func do[In, Out any](ctx context.Context, s Scope, path string, step Step, in In, fn func(context.Context, In) (Out, assay.Usage, error)) (Out, error) {
	s.branch.enter(path)
	defer s.branch.leave()
	s.run.claim(path)
	var none, out Out
	input, err := journal.Canonical(in)
	if err != nil {
		return none, fmt.Errorf("step %s: input: %w", path, err)
	}
	rec := assay.Record{Run: s.run.id, Path: path, Kind: step.Kind, Model: step.Model, Input: input}
	known, err := s.lookup(ctx, &rec)
	if err != nil {
		return none, err
	}
	if known {
		if err := s.repeat(rec, &out); err != nil {
			return none, err
		}
		return out, nil
	}
	perform := func(ctx context.Context) (json.RawMessage, assay.Usage, error) {
		v, usage, err := fn(ctx, in)
		if err != nil {
			return nil, usage, err
		}
		raw, err := roundTrip(v, &out)
		return raw, usage, err
	}
	if err := s.perform(ctx, rec, step.Reserve, s.untilStop(step.Kind, perform)); err != nil {
		return none, err
	}
	return out, nil
}

// An effect is a step function that returns its result as canonical JSON.
type effect func(context.Context) (json.RawMessage, assay.Usage, error)

// roundTrip returns v as canonical JSON and reads it back into out.
func roundTrip(v, out any) (json.RawMessage, error) {
	raw, err := journal.Canonical(v)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("result cannot be read back from its JSON: %w: %w", assay.ErrInvalid, err)
	}
	return raw, nil
}

// lookup replaces rec by the journal's record of the step and reports whether there is one. If it
// returns an error, the step must not be taken.
func (s Scope) lookup(ctx context.Context, rec *assay.Record) (bool, error) {
	r := s.run
	if err := r.halted(); err != nil {
		return false, fmt.Errorf("step %s is not taken: %w", rec.Path, err)
	}
	if s.branch.suspended {
		return false, fmt.Errorf("step %s is not taken: %w", rec.Path, assay.ErrSuspended)
	}
	if gone(ctx) {
		return false, r.stop(cancelled(ctx, rec.Path))
	}
	known, ok := r.recorded[rec.Path]
	switch {
	case !ok:
		due := ""
		if r.journal != nil {
			due = r.due(rec.Path, s.branch)
			if due == "" || rec.Kind == assay.StepClock { // a reading of the clock costs nothing
				return false, nil
			}
		}
		return false, r.stop(&DivergenceError{Path: rec.Path, Reason: NotRecorded, Given: rec.Input, Before: due})
	case known.Kind != rec.Kind:
		return false, r.stop(&DivergenceError{
			Path: rec.Path, Reason: OtherKind, Recorded: known.Input, Given: rec.Input,
			Diff: fmt.Sprintf("%q != %q", known.Kind, rec.Kind),
		})
	case !bytes.Equal(known.Input, rec.Input):
		return false, r.stop(&DivergenceError{
			Path: rec.Path, Reason: OtherInput, Recorded: known.Input, Given: rec.Input,
			Diff: diff("in", known.Input, rec.Input),
		})
	}
	*rec = known
	return true, nil
}

// repeat takes the recorded step rec: it charges its cost and reads its result into out.
func (s Scope) repeat(rec assay.Record, out any) error {
	s.run.tell(Event{Phase: StepStart, Replayed: true}, rec, nil)
	s.branch.charge(rec.Usage)
	err := restoreError(rec.Path, rec.Error)
	if rec.Error == nil {
		if jerr := json.Unmarshal(rec.Output, out); jerr != nil {
			err = s.run.stop(&DivergenceError{
				Path: rec.Path, Reason: OtherResult, Recorded: rec.Input, Given: rec.Input, Diff: jerr.Error(),
			})
		}
	}
	s.run.tell(Event{Phase: StepEnd, Replayed: true}, rec, err)
	return err
}

// perform executes the step rec for the first time and records its result.
func (s Scope) perform(ctx context.Context, rec assay.Record, reserve assay.Usage, fn effect) (err error) {
	r := s.run
	rec.Started, rec.Ordinal = r.now(), -1
	r.tell(Event{Phase: StepStart}, rec, nil)
	if r.within != nil {
		ctx = r.within(ctx, rec.Path)
	}
	returned := false
	defer func() {
		if !returned {
			err = r.stop(fmt.Errorf("step %s panicked", rec.Path))
		}
		r.tell(Event{Phase: StepEnd}, rec, err)
	}()
	err = s.settle(ctx, &rec, reserve, fn)
	returned = true
	return err
}

// settle obtains the step's result, completes rec with it and stores it. The error is the one that
// Do returns.
func (s Scope) settle(ctx context.Context, rec *assay.Record, reserve assay.Usage, fn effect) error {
	r := s.run
	reserve = nonNegative(reserve)
	output, usage, err := s.attempt(ctx, *rec, reserve, fn)
	if s.unrecorded(ctx, err) {
		// The reservation of a step that cannot be settled stays until the lease is closed.
		defer func() { _ = s.giveBack(ctx, rec.Path, reserve, nonNegative(usage)) }()
	}
	rec.Usage = nonNegative(usage)
	ended := r.now()
	rec.Elapsed, rec.Active = max(0, ended.Sub(rec.Started)), r.activeAt(ended)
	if halt, ok := errors.AsType[haltError](err); ok {
		return halt.error
	}
	switch {
	case err == nil:
		rec.Output = output
	case errors.Is(err, assay.ErrSuspended):
		s.branch.suspended = true
		return fmt.Errorf("step %s: %w", rec.Path, err)
	case gone(ctx):
		return r.stop(cancelled(ctx, rec.Path))
	case errors.Is(err, context.Canceled) && ctx.Err() == nil:
		return r.stop(fmt.Errorf("step %s: %w", rec.Path, err))
	default:
		rec.Error = recordError(err)
	}
	if err := r.append(ctx, rec); err != nil {
		rec.Output = nil // the result is not durable
		return err
	}
	s.branch.charge(rec.Usage)
	return restoreError(rec.Path, rec.Error)
}

// unrecorded reports whether a step that ended with err gets no record.
func (s Scope) unrecorded(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	_, halted := errors.AsType[haltError](err)
	return halted || errors.Is(err, assay.ErrSuspended) || gone(ctx) || errors.Is(err, context.Canceled) && ctx.Err() == nil
}

// attempt calls fn, unless the budget, the wall time, the ledger or a stop refuses the
// step.
func (s Scope) attempt(ctx context.Context, rec assay.Record, reserve assay.Usage, fn effect) (json.RawMessage, assay.Usage, error) {
	if err := s.branch.reserve(reserve); err != nil {
		return nil, assay.Usage{}, err
	}
	if s.refusesAfterStop(rec.Kind) && s.run.ended() {
		return nil, assay.Usage{}, s.run.stoppedError(nil)
	}
	deadline := s.deadline(rec.Kind)
	var left time.Duration
	if deadline > 0 {
		if left = deadline - s.run.activeAt(s.run.now()); left <= 0 {
			return nil, assay.Usage{}, deadlineError(deadline, nil)
		}
	}
	if err := s.setAside(ctx, rec.Path, reserve, deadline); err != nil {
		return nil, assay.Usage{}, err
	}
	if deadline == 0 {
		return fn(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, left, errWall)
	defer cancel()
	output, usage, err := fn(limited)
	if err != nil && context.Cause(limited) == errWall && !errors.Is(err, assay.ErrDeadline) {
		err = deadlineError(deadline, err)
	}
	return output, usage, err
}

// gone reports whether the caller's context has ended. A context that ended because a group around
// the step ran out of wall time does not count; such a step is refused like any other.
func gone(ctx context.Context) bool { return ctx.Err() != nil && context.Cause(ctx) != errWall }

// errWall is the cause of a context ended by the run's wall time.
var errWall = fmt.Errorf("%w: the step was stopped", assay.ErrDeadline)

// deadlineError returns the error for spent wall time. A nil err means that the step was not
// started; otherwise the step was stopped and failed with err.
func deadlineError(deadline time.Duration, err error) error {
	if err == nil {
		return fmt.Errorf("not started: %w: %v of active time are spent", assay.ErrDeadline, deadline)
	}
	return fmt.Errorf("stopped: %w: %v of active time are spent (%v)", assay.ErrDeadline, deadline, err)
}
