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

// Group runs fn as a step that consists of steps. fn takes them in the scope that it is given,
// whose path is the group's. When they have ended, Group records the result of fn, so its record
// follows theirs.
//
// If the journal holds the group's result, neither the group nor its steps are executed again: they
// are taken and charged as recorded, even if fn would now take different ones. An interrupted group
// is resumed: fn is called again and its finished steps return their recorded results.
//
// A group spends nothing itself, because its steps reserve their own needs. Group panics if
// step.Reserve is not zero. The context of fn ends with the wall time, and further steps are then
// refused. Otherwise Group is like [Do].
func Group[In, Out any](ctx context.Context, s Scope, step Step, in In, fn func(context.Context, Scope, In) (Out, error)) (Out, error) {
	checkName(step.Name)
	if step.Reserve != (assay.Usage{}) {
		panic(fmt.Sprintf("run: the group %s reserves usage, which only its steps may", s.join(step.Name)))
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
		if s.branch.suspended { // whatever fn returned
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

// haltError is the error of a group inside which the run was halted. The group is not recorded.
type haltError struct{ error }

func (e haltError) Unwrap() error { return e.error }

// repeatWithin takes the steps of the group at path as recorded, in the order in which they ended.
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

// Affords returns how many steps that each spend up to u fit into the budget left to s's branch. It
// is math.MaxInt if there is no limit. It is the same in every replay. Like a step, it must not be
// called during another step of the branch.
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
