package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestParallelShares(t *testing.T) {
	ctx := context.Background()
	var j Memory
	budget := withBudget(assay.Budget{Calls: 9})
	one := assay.Usage{Calls: 1}
	// Branches call as often as the budget allows, in any order: 8 calls left give 3, 3, 2.
	strategy := func(r *Run) (calls [3]int, rest error) {
		s := r.Scope()
		if _, err := Do(ctx, s, call("before", one), 0, spends(one, nil)); err != nil {
			t.Fatal(err)
		}
		err := s.Parallel(ctx, "sub", 3, 3, func(ctx context.Context, b int, s Scope) error {
			for i := range 10 {
				if _, err := Do(ctx, s.Sub("round", i), call("call", one), i, spends(one, nil)); err != nil {
					return err
				}
				calls[b] = s.Spent().Calls
			}
			return nil
		})
		if err == nil || err.Error() != "step sub[0]/round[3]/call: budget exhausted: call_budget: up to 1 needed, 0 left (and 2 more of 3 branches failed)" {
			t.Errorf("Parallel = %v", err)
		}
		_, rest = Do(ctx, s, call("after", one), 0, spends(one, nil))
		return calls, rest
	}
	want := [3]int{3, 3, 2}
	r := start(t, &j, budget)
	got, rest := strategy(r)
	if got != want || !errors.Is(rest, assay.ErrBudget) || r.Scope().Spent().Calls != 9 {
		t.Errorf("calls = %v, then %v, spent %d; want %v, ErrBudget, 9", got, rest, r.Scope().Spent().Calls, want)
	}
	again := replay(t, j.Records())
	if got, _ := strategy(again); got != want || again.Finish() != nil {
		t.Errorf("replay: calls = %v, Finish() = %v", got, again.Finish())
	}
}

// TestParallelOverrun checks that a branch's spending beyond its share counts at the join, not
// before.
func TestParallelOverrun(t *testing.T) {
	ctx := context.Background()
	var j Memory
	r := start(t, &j, withBudget(assay.Budget{Tokens: 100}))
	err := r.Scope().Parallel(ctx, "sub", 2, 1, func(ctx context.Context, i int, s Scope) error {
		_, err := Do(ctx, s, call("call", assay.Usage{InputTokens: 50}), 0, spends(assay.Usage{InputTokens: 90}, nil))
		return err
	})
	if err != nil {
		t.Errorf("Parallel = %v, want nil: each had its share", err)
	}
	if _, err := Do(ctx, r.Scope(), call("after", assay.Usage{InputTokens: 1}), 0, never[int, int](t)); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("after the join: error = %v, want ErrBudget", err)
	}
}

func TestParallelBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ n, limit, want int }{{0, 3, 0}, {7, 3, 3}, {2, 9, 2}, {3, 0, 1}} {
			var j Memory
			var now, most, done atomic.Int64
			err := start(t, &j).Scope().Parallel(context.Background(), "sub", tt.n, tt.limit, func(ctx context.Context, i int, s Scope) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Second)
				now.Add(-1)
				done.Add(1)
				return nil
			})
			if err != nil || int(most.Load()) != tt.want || int(done.Load()) != tt.n {
				t.Errorf("%d branches, limit %d: %d at a time, %d done, %v", tt.n, tt.limit, most.Load(), done.Load(), err)
			}
		}
	})
}

// TestParallelErrors checks that the error of the first branch by number is returned, whichever
// fails first, and that a failure does not stop the other branches.
func TestParallelErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Memory
		ctx := context.Background()
		strategy := func(r *Run) (string, error) {
			err := r.Scope().Parallel(ctx, "sub", 4, 4, func(ctx context.Context, i int, s Scope) error {
				_, err := Do(ctx, s, search("one"), i, func(context.Context, int) (int, assay.Usage, error) {
					time.Sleep(time.Duration(10-i) * time.Second)
					if i == 0 {
						return 0, assay.Usage{}, nil
					}
					return 0, assay.Usage{}, fmt.Errorf("branch %d: %w", i, assay.ErrNotFound)
				})
				return err
			})
			return err.Error(), r.Finish()
		}
		live, err := strategy(start(t, &j))
		if want := "step sub[1]/one: branch 1: not found (and 2 more of 4 branches failed)"; live != want || err != nil {
			t.Errorf("Parallel = %s, Finish() = %v, want %s", live, err, want)
		}
		if n := len(j.Records()); n != 4 {
			t.Errorf("%d records, want 4", n)
		}
		// A replay does not depend on the order of the journal.
		records := j.Records()
		slices.Reverse(records)
		if again, err := strategy(replay(t, records)); again != live || err != nil {
			t.Errorf("replay = %s, %v", again, err)
		}
	})
}

// TestParallelSuspended checks that a suspended branch does not stop the others, and suspends the
// join.
func TestParallelSuspended(t *testing.T) {
	ctx := context.Background()
	var j Memory
	decided := false
	strategy := func(r *Run) error {
		err := r.Scope().Parallel(ctx, "sub", 3, 2, func(ctx context.Context, i int, s Scope) error {
			if i == 1 {
				_, err := Do(ctx, s, Step{Name: "review", Kind: assay.StepHuman}, 1, func(context.Context, int) (int, assay.Usage, error) {
					if !decided {
						return 0, assay.Usage{}, assay.ErrSuspended
					}
					return 1, assay.Usage{}, nil
				})
				if _, err := Do(ctx, s, search("after"), 1, answer[int](1)); err != nil && decided {
					t.Error(err)
				}
				return errors.Join(err, errors.New("hidden"))
			}
			_, err := Do(ctx, s, search("one"), 1, fails(assay.ErrNotFound))
			return err
		})
		if _, err := Do(ctx, r.Scope(), search("joined"), 1, answer[int](1)); err != nil && decided {
			t.Error(err)
		}
		return err
	}
	r := start(t, &j)
	if err := strategy(r); !errors.Is(err, assay.ErrSuspended) {
		t.Errorf("Parallel = %v, want ErrSuspended", err)
	}
	if err := r.Finish(); !errors.Is(err, assay.ErrSuspended) || len(j.Records()) != 2 {
		t.Errorf("Finish() = %v with %d records, want ErrSuspended with 2", err, len(j.Records()))
	}
	decided = true
	r = start(t, &j)
	if err := strategy(r); !errors.Is(err, assay.ErrNotFound) || errors.Is(err, assay.ErrSuspended) {
		t.Errorf("resumed: Parallel = %v, want ErrNotFound", err)
	}
	if err := r.Finish(); err != nil || len(j.Records()) != 5 {
		t.Errorf("resumed: Finish() = %v with %d records, want 5", err, len(j.Records()))
	}
}

func TestParallelPanic(t *testing.T) {
	boom := errors.New("boom")
	for name, blow := range map[string]func(){"panic": func() { panic(boom) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var j Memory
			var others atomic.Int64
			r := start(t, &j)
			func() {
				defer func() {
					p, ok := recover().(*BranchPanic)
					if !ok || p.Path != "sub[1]" || len(p.Stack) == 0 || name == "panic" && !errors.Is(p, boom) {
						t.Errorf("recovered %v", p)
					}
				}()
				var ready sync.WaitGroup
				ready.Add(3)
				err := r.Scope().Parallel(context.Background(), "sub", 3, 3, func(_ context.Context, i int, s Scope) error {
					ready.Done()
					ready.Wait()
					defer others.Add(1)
					if i == 1 {
						blow()
					}
					return nil
				})
				t.Errorf("Parallel = %v, want a panic", err)
			}()
			if others.Load() != 3 || r.Finish() == nil {
				t.Errorf("%d branches ended, Finish() = %v", others.Load(), r.Finish())
			}
		})
	}
}

// TestParallelHalted checks that Parallel reports a halt in one branch, whatever the branches
// return, and that stored steps of other branches are kept.
func TestParallelHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Memory
		full := journalFunc(func(ctx context.Context, rec assay.Record) (assay.Record, error) {
			if rec.Path == "sub[2]/one" {
				return assay.Record{}, assay.ErrFull
			}
			return j.Append(ctx, rec)
		})
		r := start(t, &j, withJournal(full))
		err := r.Scope().Parallel(context.Background(), "sub", 4, 3, func(ctx context.Context, i int, s Scope) error {
			Do(ctx, s, search("one"), i, sleeps(time.Duration(i+1)*time.Second))
			Do(ctx, s, search("two"), i, sleeps(5*time.Second))
			return nil
		})
		if !errors.Is(err, assay.ErrFull) || !errors.Is(r.Finish(), assay.ErrFull) {
			t.Errorf("Parallel = %v, Finish() = %v, want ErrFull", err, r.Finish())
		}
		var paths []string
		for _, rec := range j.Records() {
			paths = append(paths, rec.Path)
		}
		if diff := cmp.Diff([]string{"sub[0]/one", "sub[1]/one", "sub[0]/two", "sub[1]/two"}, paths); diff != "" {
			t.Errorf("paths (-want +got):\n%s", diff)
		}
	})
}

// TestParallelReplayDivergence checks that a replay, which takes branches in order, always finds
// the same divergence first.
func TestParallelReplayDivergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		strategy := func(r *Run, add int) error {
			return r.Scope().Parallel(ctx, "sub", 8, 8, func(ctx context.Context, i int, s Scope) error {
				time.Sleep(time.Duration(8-i) * time.Second) // the last one is the fastest
				in := i
				if i >= 3 {
					in += add
				}
				_, err := Do(ctx, s, search("one"), in, answer[int](1))
				return err
			})
		}
		if err := strategy(start(t, &j), 0); err != nil {
			t.Fatal(err)
		}
		var got *DivergenceError
		if err := strategy(replay(t, j.Records()), 10); !errors.As(err, &got) || got.Path != "sub[3]/one" || got.Diff != "in: 3 != 13" {
			t.Errorf("replay = %v", err)
		}
	})
}
