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
	Model string // that is called; empty: none. It is recorded, not compared.

	// Reserve is the most that the step can spend: the step is refused when that
	// does not fit into what its branch has left. Zero counts are not checked.
	Reserve assay.Usage
}

// Do runs fn as one step, once. The result is in the journal before Do returns.
// When the run is resumed or replayed, Do returns the recorded result (or error,
// by kind) and does not call fn.
//
// The result is what encoding/json reads back from the recorded JSON, the first
// time too, so that every run of the strategy sees the same value. in is recorded
// as JSON and says what fn works on: a recorded step with another input, or of
// another kind, is a [DivergenceError]. What has no JSON form is
// assay.ErrInvalid.
//
// fn gets a context that ends when the wall time of the run, or of the scope,
// does. It returns what it spent even when it fails; negative counts are taken
// as zero. It must not take steps, and may be called again by a resumed run if
// this one ends before the result is stored.
//
// An error of fn is recorded by its kind (the assay.Err value that it wraps) and
// text, and Do returns a [StepError] made from those; fn's own error types do not
// pass. A step that does not fit into the budget is refused with a [BudgetError]
// and fn is not called. When the wall time is spent, the error is
// assay.ErrDeadline. All of these cost what fn says was spent, and are returned
// again by every replay.
//
// The rest is not recorded: assay.ErrSuspended from fn, and what halts the run
// (see the package comment), among it an end of ctx while fn fails. A result that
// fn returns in spite of that is kept.
func Do[In, Out any](ctx context.Context, s Scope, step Step, in In, fn func(context.Context, In) (Out, assay.Usage, error)) (Out, error) {
	checkName(step.Name)
	return do(ctx, s, s.join(step.Name), step, in, fn)
}

// do is Do with the whole path of the step.
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
	if err := s.perform(ctx, rec, step.Reserve, perform); err != nil {
		return none, err
	}
	return out, nil
}

// An effect is a step's function with its result as canonical JSON.
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

// lookup replaces rec by what the journal holds for it, and reports whether it
// holds anything. The error says that the step must not be taken.
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
	case !ok && r.journal == nil:
		return false, r.stop(&DivergenceError{Path: rec.Path, Reason: NotRecorded, Given: rec.Input})
	case !ok:
		return false, nil
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

// repeat takes the recorded step rec: it charges it and reads its result into out.
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

// perform takes the step rec for the first time and records its result.
func (s Scope) perform(ctx context.Context, rec assay.Record, reserve assay.Usage, fn effect) (err error) {
	r := s.run
	rec.Started = r.now()
	r.tell(Event{Phase: StepStart}, rec, nil)
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

// settle gets the step's result, completes rec with it and stores it. The error
// is the step's, as Do returns it.
func (s Scope) settle(ctx context.Context, rec *assay.Record, reserve assay.Usage, fn effect) error {
	r := s.run
	output, usage, err := s.attempt(ctx, *rec, reserve, fn)
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
	if err := r.append(ctx, *rec); err != nil {
		rec.Output = nil // it is not durable
		return err
	}
	s.branch.charge(rec.Usage)
	return restoreError(rec.Path, rec.Error)
}

// attempt calls fn, unless the budget or the wall time refuses it.
func (s Scope) attempt(ctx context.Context, rec assay.Record, reserve assay.Usage, fn effect) (json.RawMessage, assay.Usage, error) {
	if err := s.branch.reserve(nonNegative(reserve)); err != nil {
		return nil, assay.Usage{}, err
	}
	deadline := s.deadline(rec.Kind)
	if deadline == 0 {
		return fn(ctx)
	}
	left := deadline - s.run.activeAt(s.run.now())
	if left <= 0 {
		return nil, assay.Usage{}, deadlineError(deadline, nil)
	}
	limited, cancel := context.WithTimeoutCause(ctx, left, errWall)
	defer cancel()
	output, usage, err := fn(limited)
	if err != nil && context.Cause(limited) == errWall && !errors.Is(err, assay.ErrDeadline) {
		err = deadlineError(deadline, err)
	}
	return output, usage, err
}

// gone reports whether the caller has gone: ctx has ended, and not because a group
// around the step ran out of wall time, which refuses the step like any other.
func gone(ctx context.Context) bool { return ctx.Err() != nil && context.Cause(ctx) != errWall }

// errWall is the cause of a context that the run's wall time has ended.
var errWall = fmt.Errorf("%w: the step was stopped", assay.ErrDeadline)

// deadlineError says that the wall time is spent: before the step, or during it,
// so that it failed with err.
func deadlineError(deadline time.Duration, err error) error {
	if err == nil {
		return fmt.Errorf("not started: %w: %v of active time are spent", assay.ErrDeadline, deadline)
	}
	return fmt.Errorf("stopped: %w: %v of active time are spent (%v)", assay.ErrDeadline, deadline, err)
}
