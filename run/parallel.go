package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/assay-rag/assay"
)

// Parallel runs fn for the branches name[0] to name[n-1], at most limit of them at a time (less
// than 1 counts as 1), and returns when all have ended. Each branch gets its own scope and an equal
// share of the budget left to s's branch; the remainder goes to the first ones. A branch does not
// affect other branches or the scopes around it until all are joined, in order, and their cost is
// charged to s's branch. fn must do likewise: it takes steps only in the scope that it is given,
// and writes only data of branch i.
//
// A failing branch does not stop the others, because the moment of the stop would be random.
// Parallel returns the error of the failed branch with the lowest number. If a branch is suspended
// it returns assay.ErrSuspended instead, and if the run was halted the reason for that.
//
// A panic of fn halts the run. After the other branches have ended, Parallel panics with a
// *[BranchPanic].
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

// A fork is the set of branches of one Parallel.
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
		f.scopes[i].branch = &branch{path: f.scopes[i].path, limit: left.share(i, n), suspended: s.branch.suspended}
	}
	return f
}

// work runs all branches. A replay runs them in order: it has nothing to wait for, and so always
// finds the same divergence first.
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

// branch runs branch i, unless the run is already halted.
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

// join charges the branches to the branch of s and returns Parallel's error.
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

// A BranchPanic is the value with which Parallel panics after a branch has panicked.
type BranchPanic struct {
	Path  string // of the branch
	Value any    // the panic value; nil if it called runtime.Goexit
	Stack []byte // stack trace of the panic
}

func (p *BranchPanic) Error() string {
	return fmt.Sprintf("branch %s: %v\n\n%s", p.Path, p.Value, p.Stack)
}

// Unwrap returns Value if it is an error, otherwise nil.
func (p *BranchPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
