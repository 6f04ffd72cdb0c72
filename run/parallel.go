package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/assay-rag/assay"
)

// Parallel runs fn for the branches name[0] to name[n-1], at most limit of them
// at a time (less than 1 counts as 1), and returns when all have ended. Each
// branch gets its own scope, and its equal share of what s's branch has left to
// spend; what does not divide goes to the first ones. A branch affects neither
// another branch nor the scopes around it, until all are joined, in order: what
// they spent is charged to s's branch. fn keeps to the same: it takes its steps
// in the scope that it is given, in no other, and writes what belongs to branch i
// and nothing else.
//
// A branch that fails does not stop the others: when one ended would depend on
// chance. Parallel returns the error of the first branch, by number, that failed.
// It returns assay.ErrSuspended instead when a branch is suspended, and why the
// run was halted when it was.
//
// A panic of fn halts the run; when the other branches have ended, Parallel
// panics with a *[BranchPanic].
func (s Scope) Parallel(ctx context.Context, name string, n, limit int, fn func(ctx context.Context, i int, s Scope) error) error {
	if n <= 0 {
		return nil
	}
	s.branch.enter(s.Sub(name, 0).path)
	defer s.branch.leave()
	f := s.fork(name, n)
	f.work(ctx, limit, fn)
	return f.join(s)
}

// A fork is the branches of one Parallel.
type fork struct {
	run    *Run
	scopes []Scope
	errs   []error
	panics []*BranchPanic
	next   atomic.Int64
}

func (s Scope) fork(name string, n int) *fork {
	f := &fork{run: s.run, scopes: make([]Scope, n), errs: make([]error, n), panics: make([]*BranchPanic, n)}
	left := s.branch.left()
	for i := range f.scopes {
		f.scopes[i] = s.Sub(name, i)
		f.scopes[i].branch = &branch{limit: left.share(i, n), suspended: s.branch.suspended}
	}
	return f
}

// work runs all branches. A replay has nothing to wait for, and finds the same
// divergence first when it runs them in order.
func (f *fork) work(ctx context.Context, limit int, fn func(ctx context.Context, i int, s Scope) error) {
	worker := func() {
		for i := f.take(); i < len(f.scopes); i = f.take() {
			f.branch(ctx, i, fn)
		}
	}
	workers := min(max(limit, 1), len(f.scopes))
	if workers == 1 || f.run.journal == nil {
		worker()
		return
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(worker)
	}
	wg.Wait()
}

func (f *fork) take() int { return int(f.next.Add(1)) - 1 }

// branch runs branch i, unless the run was halted before.
func (f *fork) branch(ctx context.Context, i int, fn func(ctx context.Context, i int, s Scope) error) {
	if f.errs[i] = f.run.halted(); f.errs[i] != nil {
		return
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		path := f.scopes[i].path
		f.panics[i] = &BranchPanic{Path: path, Value: recover(), Stack: debug.Stack()}
		f.errs[i] = f.run.stop(fmt.Errorf("branch %s panicked", path))
	}()
	f.errs[i] = fn(ctx, i, f.scopes[i])
	returned = true
}

// join charges the branches to those of s and returns Parallel's error.
func (f *fork) join(s Scope) error {
	var first error
	failed := 0
	for i, scope := range f.scopes {
		if f.panics[i] != nil {
			panic(f.panics[i])
		}
		s.branch.charge(scope.branch.spent)
		s.branch.suspended = s.branch.suspended || scope.branch.suspended
		if f.errs[i] != nil {
			if failed++; first == nil {
				first = f.errs[i]
			}
		}
	}
	if err := s.run.halted(); err != nil {
		return err
	}
	if s.branch.suspended {
		return fmt.Errorf("scope %s: %w", f.scopes[0].path, assay.ErrSuspended)
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more of %d branches failed)", first, failed-1, len(f.scopes))
	}
	return first
}

// A BranchPanic is what Parallel panics with when a branch has.
type BranchPanic struct {
	Path  string // of the branch
	Value any    // what it panicked with; nil when it called runtime.Goexit
	Stack []byte // where
}

func (p *BranchPanic) Error() string {
	return fmt.Sprintf("branch %s: %v\n\n%s", p.Path, p.Value, p.Stack)
}

// Unwrap returns Value when it is an error.
func (p *BranchPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
