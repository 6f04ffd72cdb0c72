package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// sleeps returns a step function that takes d, or less if its context ends.
func sleeps(d time.Duration) func(context.Context, int) (int, assay.Usage, error) {
	return func(ctx context.Context, n int) (int, assay.Usage, error) {
		select {
		case <-time.After(d):
			return n, assay.Usage{}, nil
		case <-ctx.Done():
			return 0, assay.Usage{Calls: 1}, ctx.Err()
		}
	}
}

func TestWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		wall := withBudget(assay.Budget{Wall: 10 * time.Second})
		r := start(t, &j, wall)
		if _, err := Do(ctx, r.Scope(), search("one"), 1, sleeps(4*time.Second)); err != nil {
			t.Fatal(err)
		}
		// The run is interrupted for a day, which does not count.
		time.Sleep(24 * time.Hour)
		r = start(t, &j, wall)
		began := time.Now()
		strategy := func(r *Run) (errs []string) {
			_, err1 := Do(ctx, r.Scope(), search("one"), 1, never[int, int](t))
			_, err2 := Do(ctx, r.Scope(), search("two"), 1, sleeps(time.Hour))
			_, err3 := Do(ctx, r.Scope(), search("three"), 1, never[int, int](t))
			elapsed, err4 := r.Scope().Elapsed(ctx)
			_, err5 := Do(ctx, r.Scope(), Step{Name: "review", Kind: assay.StepHuman}, 1, answer[int](2))
			for i, err := range []error{err1, err2, err3, err4, err5} {
				if deadline := i == 1 || i == 2; errors.Is(err, assay.ErrDeadline) != deadline {
					t.Errorf("step %d: error = %v", i+1, err)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("step %d: %v comes through as a context's end", i+1, err)
				}
				if err != nil {
					errs = append(errs, err.Error())
				}
			}
			if elapsed != 10*time.Second {
				t.Errorf("Elapsed() = %v, want 10s", elapsed)
			}
			return errs
		}
		live := strategy(r)
		if got := time.Since(began); got != 6*time.Second {
			t.Errorf("the resumed run took %v, want 6s", got)
		}
		if got := r.Scope().Spent().Calls; got != 1 {
			t.Errorf("the stopped call was charged %d times", got)
		}
		for name, again := range map[string]*Run{"replay": replay(t, j.Records()), "resume": start(t, &j)} {
			if diff := cmp.Diff(live, strategy(again)); diff != "" {
				t.Errorf("%s: errors differ (-live +%s):\n%s", name, name, diff)
			}
			if err := again.Finish(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !strings.HasPrefix(live[0], "step two: stopped: run deadline exceeded: 10s") || !strings.HasPrefix(live[1], "step three: not started: ") {
			t.Errorf("messages = %q", live)
		}
	})
}

// TestWallTimeEndsStep checks that a function that hides its reason to fail cannot hide spent wall
// time, and that a late result is still a result.
func TestWallTimeEndsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		r := start(t, &j, withBudget(assay.Budget{Wall: time.Second}))
		late := func(context.Context, int) (int, assay.Usage, error) {
			time.Sleep(2 * time.Second)
			return 3, assay.Usage{}, nil
		}
		if _, err := Do(ctx, r.Scope(), search("intime"), 1, fails(assay.ErrNotFound)); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("error = %v, want ErrNotFound: there is time left", err)
		}
		until := r.Scope().Until(500 * time.Millisecond)
		_, err := Do(ctx, until, search("hidden"), 1, func(ctx context.Context, _ int) (int, assay.Usage, error) {
			<-ctx.Done()
			return 0, assay.Usage{}, errors.New("connection reset")
		})
		if !errors.Is(err, assay.ErrDeadline) || !strings.Contains(err.Error(), "connection reset") {
			t.Errorf("error = %v, want ErrDeadline with the function's text", err)
		}
		if _, err := Do(ctx, until, search("refused"), 1, never[int, int](t)); !errors.Is(err, assay.ErrDeadline) {
			t.Errorf("error = %v, want ErrDeadline", err)
		}
		if _, err := Do(ctx, until.Until(time.Hour).Sub("sub", 0), search("refused"), 1, never[int, int](t)); !errors.Is(err, assay.ErrDeadline) {
			t.Errorf("a scope inside has more time: %v", err)
		}
		// The end of the scope is before that of the run, so there is time to finish.
		if got, err := Do(ctx, r.Scope(), search("late"), 1, late); got != 3 || err != nil {
			t.Errorf("late result = %v, %v", got, err)
		}
	})
}

func TestElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		strategy := func(r *Run) (list []time.Duration) {
			for i := range 2 {
				for _, s := range []Scope{r.Scope(), r.Scope().Sub("round", i)} {
					time.Sleep(time.Second)
					d, err := s.Elapsed(ctx)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, d)
				}
			}
			return list
		}
		want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}
		if diff := cmp.Diff(want, strategy(start(t, &j))); diff != "" {
			t.Errorf("live (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, strategy(replay(t, j.Records()))); diff != "" {
			t.Errorf("replay (-want +got):\n%s", diff)
		}
		var paths []string
		for _, rec := range j.Records() {
			paths = append(paths, rec.Path)
		}
		if diff := cmp.Diff([]string{"clock[0]", "round[0]/clock[0]", "clock[1]", "round[1]/clock[0]"}, paths); diff != "" {
			t.Errorf("paths (-want +got):\n%s", diff)
		}
	})
}

// TestClockGoesBackwards checks that a clock that goes backwards gives no negative times.
func TestClockGoesBackwards(t *testing.T) {
	var j Memory
	now := time.Unix(1000, 0)
	r := start(t, &j, func(c *Config) { c.Now = func() time.Time { now = now.Add(-time.Second); return now } })
	if _, err := Do(context.Background(), r.Scope(), search("one"), 1, answer[int](1)); err != nil {
		t.Fatal(err)
	}
	if rec := j.Records()[0]; rec.Elapsed != 0 || rec.Active != 0 {
		t.Errorf("elapsed %v, active %v, want 0", rec.Elapsed, rec.Active)
	}
}
