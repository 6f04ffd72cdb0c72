package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
)

// Group runs fn as a step that is made of steps: fn takes those in the scope that
// it is given, whose path is the group's, and Group records what it makes of them
// when they have ended. Its records follow theirs.
//
// A group whose result the journal holds is not done again, nor are its steps:
// they are taken and charged as the journal has them, whatever fn would ask for
// today. One that was interrupted is: fn is called again and its steps return what
// was recorded.
//
// A group spends nothing itself, so step.Reserve has to be zero, else Group panics:
// its steps reserve what they need. Its fn gets a context that ends when the wall time does, and its
// steps are refused from then on. Otherwise Group is as [Do].
func Group[In, Out any](ctx context.Context, s Scope, step Step, in In, fn func(context.Context, Scope, In) (Out, error)) (Out, error) {
	checkName(step.Name)
	if step.Reserve != (assay.Usage{}) {
		panic(fmt.Sprintf("run: the group %s reserves what its steps have to", s.join(step.Name)))
	}
	inner := s
	inner.path = s.join(step.Name)
	path := inner.path
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
		s.repeatWithin(path)
		if err := s.repeat(rec, &out); err != nil {
			return none, err
		}
		return out, nil
	}
	perform := func(ctx context.Context) (json.RawMessage, assay.Usage, error) {
		v, err := inside(ctx, inner, in, fn)
		if halted := s.run.halted(); halted != nil {
			return nil, assay.Usage{}, haltError{halted}
		}
		if s.branch.suspended { // whatever fn made of it
			return nil, assay.Usage{}, fmt.Errorf("inside it: %w", assay.ErrSuspended)
		}
		if err != nil {
			return nil, assay.Usage{}, err
		}
		raw, err := roundTrip(v, &out)
		return raw, assay.Usage{}, err
	}
	if err := s.perform(ctx, rec, assay.Usage{}, perform); err != nil {
		return none, err
	}
	return out, nil
}

// inside calls fn while the branch is free for its steps.
func inside[In, Out any](ctx context.Context, s Scope, in In, fn func(context.Context, Scope, In) (Out, error)) (Out, error) {
	s.branch.leave()
	defer s.branch.enter(s.path)
	return fn(ctx, s, in)
}

// haltError is the error of a group inside which the run was halted: nothing is
// recorded of it.
type haltError struct{ error }

func (e haltError) Unwrap() error { return e.error }

// repeatWithin takes the recorded steps of the group at path as they are, in the
// order in which they ended.
func (s Scope) repeatWithin(path string) {
	var within []assay.Record
	for p, rec := range s.run.recorded {
		if strings.HasPrefix(p, path+"/") {
			within = append(within, rec)
		}
	}
	slices.SortFunc(within, func(a, b assay.Record) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Path, b.Path))
	})
	for _, rec := range within {
		s.run.claim(rec.Path)
		s.run.tell(Event{Phase: StepStart, Replayed: true}, rec, nil)
		s.branch.charge(rec.Usage)
		s.run.tell(Event{Phase: StepEnd, Replayed: true}, rec, restoreError(rec.Path, rec.Error))
	}
}

// Affords returns how many times a step that spends up to u fits into what s's
// branch has left: 0, not even once; math.MaxInt, where nothing limits it. It is the
// same in every replay. Like a step, it must not be called while another step of
// the branch is taken.
func (s Scope) Affords(u assay.Usage) int {
	left, times := s.branch.left(), int64(math.MaxInt)
	for _, d := range []struct{ need, left int64 }{
		{int64(u.Calls), left.calls}, {tokens(u), left.tokens}, {u.CostMicros, left.micros},
	} {
		if d.need > 0 && d.left != unlimited {
			times = min(times, d.left/d.need)
		}
	}
	return int(times)
}
