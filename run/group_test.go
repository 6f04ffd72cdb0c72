package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func group(name string) Step { return Step{Name: name, Kind: assay.StepGrade} }

// twoCalls returns a group of two calls that returns the sum of their results.
func twoCalls(perform func(context.Context, int) (int, assay.Usage, error)) func(context.Context, Scope, int) (int, error) {
	return func(ctx context.Context, s Scope, in int) (int, error) {
		total := 0
		for i := range 2 {
			n, err := Do(ctx, s.Sub("call", i), call("model", assay.Usage{Calls: 1}), in+i, perform)
			if err != nil {
				return 0, err
			}
			total += n
		}
		return total, nil
	}
}

// callsOnce returns its input and costs one call.
func callsOnce(_ context.Context, n int) (int, assay.Usage, error) {
	return n, assay.Usage{Calls: 1, InputTokens: 7}, nil
}

// notDone returns a group function that must not be called.
func notDone(t *testing.T) func(context.Context, Scope, int) (int, error) {
	return func(context.Context, Scope, int) (int, error) {
		t.Error("the group's function is called")
		return 0, nil
	}
}

// paths lists the paths of the records in j, in order.
func paths(j *Memory) []string {
	var list []string
	for _, rec := range j.Records() {
		list = append(list, rec.Path)
	}
	return list
}

func TestGroupRecordsBeforeItReturns(t *testing.T) {
	ctx := context.Background()
	var j Memory
	r := start(t, &j)
	got, err := Group(ctx, r.Scope().Sub("round", 0), group("grade"), 3, twoCalls(callsOnce))
	if got != 7 || err != nil {
		t.Errorf("Group = %v, %v, want 7", got, err)
	}
	want := []string{"round[0]/grade/call[0]/model", "round[0]/grade/call[1]/model", "round[0]/grade"}
	if diff := cmp.Diff(want, paths(&j)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	rec := j.Records()[2]
	if string(rec.Input) != "3" || string(rec.Output) != "7" || rec.Kind != assay.StepGrade || rec.Usage != (assay.Usage{}) {
		t.Errorf("record of the group = %+v", rec)
	}
	if got, want := r.Scope().Spent(), (assay.Usage{Calls: 2, InputTokens: 14}); got != want {
		t.Errorf("Spent() = %+v, want %+v", got, want)
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
}

// TestGroupRepeats checks that a finished group is not executed again: its cost is charged, and
// observers see each of its steps.
func TestGroupRepeats(t *testing.T) {
	ctx := context.Background()
	var j Memory
	var told []string
	observe := withObserver(func(e Event) { told = append(told, fmt.Sprint(e.Phase, " ", e.Path, " ", e.Replayed)) })
	if _, err := Group(ctx, start(t, &j, observe).Scope(), group("grade"), 3, twoCalls(callsOnce)); err != nil {
		t.Fatal(err)
	}
	live := told
	if diff := cmp.Diff([]string{
		"start grade false", "start grade/call[0]/model false", "end grade/call[0]/model false",
		"start grade/call[1]/model false", "end grade/call[1]/model false", "end grade false",
	}, live); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	runs := map[string]*Run{"resume": start(t, &j, observe, withBudget(assay.Budget{Calls: 2}))}
	var err error
	if runs["replay"], err = Replay(Config{Run: "r", Records: j.Records(), Budget: assay.Budget{Calls: 2}, Observe: func(e Event) {
		told = append(told, fmt.Sprint(e.Phase, " ", e.Path, " ", e.Replayed))
	}}); err != nil {
		t.Fatal(err)
	}
	for name, r := range runs {
		told = nil
		got, err := Group(ctx, r.Scope(), group("grade"), 3, notDone(t))
		if got != 7 || err != nil {
			t.Errorf("%s: Group = %v, %v, want 7", name, got, err)
		}
		if got, want := r.Scope().Spent(), (assay.Usage{Calls: 2, InputTokens: 14}); got != want {
			t.Errorf("%s: Spent() = %+v, want %+v", name, got, want)
		}
		if n := r.Scope().Affords(assay.Usage{Calls: 1}); n != 0 {
			t.Errorf("%s: %d more calls are afforded, want none", name, n)
		}
		steps := map[string]int{}
		for _, line := range told {
			if !strings.HasSuffix(line, " true") {
				t.Errorf("%s: told %q as if it were done now", name, line)
			}
			steps[line]++
		}
		if len(steps) != len(live) || len(told) != len(live) {
			t.Errorf("%s: told %q, want what was told live", name, told)
		}
		if err := r.Finish(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(j.Records()); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

// TestGroupGoesOn checks that an interrupted group resumes without executing its finished steps
// again.
func TestGroupGoesOn(t *testing.T) {
	ctx := context.Background()
	var j Memory
	done := 0
	r := start(t, &j, withJournal(journalFunc(func(ctx context.Context, rec assay.Record) (assay.Record, error) {
		if len(j.Records()) == 1 {
			return assay.Record{}, assay.ErrFull
		}
		return j.Append(ctx, rec)
	})))
	counted := func(ctx context.Context, n int) (int, assay.Usage, error) { done++; return callsOnce(ctx, n) }
	if _, err := Group(ctx, r.Scope(), group("grade"), 3, twoCalls(counted)); !errors.Is(err, assay.ErrFull) {
		t.Fatalf("Group = %v, want ErrFull", err)
	}
	checkHalted(t, r, assay.ErrFull, &j, 1)
	r = start(t, &j)
	got, err := Group(ctx, r.Scope(), group("grade"), 3, twoCalls(counted))
	if got != 7 || err != nil || done != 3 {
		t.Errorf("resumed: Group = %v, %v after %d calls, want 7 after 3", got, err, done)
	}
	if got := r.Scope().Spent().Calls; got != 2 {
		t.Errorf("%d calls charged, want 2", got)
	}
	if diff := cmp.Diff([]string{"grade/call[0]/model", "grade/call[1]/model", "grade"}, paths(&j)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestGroupDiverges(t *testing.T) {
	ctx := context.Background()
	var j Memory
	if _, err := Group(ctx, start(t, &j).Scope(), group("grade"), 3, twoCalls(callsOnce)); err != nil {
		t.Fatal(err)
	}
	var got *DivergenceError
	if _, err := Group(ctx, replay(t, j.Records()).Scope(), group("grade"), 4, notDone(t)); !errors.As(err, &got) || got.Diff != "in: 3 != 4" {
		t.Errorf("another input: %v", err)
	}
	if _, err := Group(ctx, replay(t, j.Records()).Scope(), Step{Name: "grade", Kind: assay.StepPlan}, 3, notDone(t)); !errors.As(err, &got) || got.Reason != OtherKind {
		t.Errorf("another kind: %v", err)
	}
	if _, err := Group(ctx, replay(t, nil).Scope(), group("grade"), 3, notDone(t)); !errors.As(err, &got) || got.Reason != NotRecorded {
		t.Errorf("not recorded: %v", err)
	}
	r := replay(t, j.Records())
	if err := r.Finish(); !errors.As(err, &got) || got.Reason != NotTaken || got.Steps != 3 {
		t.Errorf("not taken: %v", err)
	}
}

// TestGroupsNest checks groups in groups and in branches, and branches in groups.
func TestGroupsNest(t *testing.T) {
	ctx := context.Background()
	var j Memory
	budget := withBudget(assay.Budget{Calls: 8})
	strategy := func(r *Run) (sum int, afforded int, err error) {
		sum, err = Group(ctx, r.Scope(), group("outer"), 1, func(ctx context.Context, s Scope, in int) (int, error) {
			first, err := Group(ctx, s, group("inner"), in, twoCalls(callsOnce))
			if err != nil {
				return 0, err
			}
			sums := make([]int, 2)
			err = s.Parallel(ctx, "sub", 2, 2, func(ctx context.Context, i int, s Scope) (err error) {
				sums[i], err = Group(ctx, s, group("inner"), in+i, twoCalls(callsOnce))
				return err
			})
			if left := s.Affords(assay.Usage{Calls: 1}); left != 2 && err == nil {
				t.Errorf("inside, %d calls are left, want 2", left)
			}
			return first + sums[0] + sums[1], err
		})
		return sum, r.Scope().Affords(assay.Usage{Calls: 1}), err
	}
	sum, left, err := strategy(start(t, &j, budget))
	if sum != 3+3+5 || left != 2 || err != nil {
		t.Errorf("sum = %d, %d calls left, %v; want 11 and 2", sum, left, err)
	}
	if n := len(j.Records()); n != 10 {
		t.Errorf("%d records, want 10: %v", n, paths(&j))
	}
	again := replay(t, j.Records())
	if sum, _, err := strategy(again); sum != 11 || err != nil || again.Finish() != nil || again.Scope().Spent().Calls != 6 {
		t.Errorf("replay: sum = %d, %v, Finish() = %v, spent %+v", sum, err, again.Finish(), again.Scope().Spent())
	}
	// A run that ended inside does not execute finished steps again.
	for n := range len(j.Records()) {
		var cut Memory
		for _, rec := range j.Records()[:n] {
			if _, err := cut.Append(ctx, rec); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, &cut, budget)
		if sum, left, err := strategy(r); sum != 11 || left != 2 || err != nil || r.Finish() != nil {
			t.Errorf("after %d records: sum = %d, %d left, %v, Finish() = %v", n, sum, left, err, r.Finish())
		}
	}
}

func TestGroupPanics(t *testing.T) {
	ctx := context.Background()
	for name, fn := range map[string]func(context.Context, Scope, int) (int, error){
		"before a step": func(context.Context, Scope, int) (int, error) { panic("boom") },
		"in a step": func(ctx context.Context, s Scope, _ int) (int, error) {
			return Do(ctx, s, search("one"), 1, func(context.Context, int) (int, assay.Usage, error) { panic("boom") })
		},
		"after a step": func(ctx context.Context, s Scope, _ int) (int, error) {
			if _, err := Do(ctx, s, search("one"), 1, answer[int](1)); err != nil {
				t.Error(err)
			}
			panic("boom")
		},
	} {
		var j Memory
		open := map[string]bool{}
		r := start(t, &j, withObserver(func(e Event) { open[e.Path] = e.Phase == StepStart }))
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("%s: recovered %v, want boom", name, got)
				}
			}()
			_, err := Group(ctx, r.Scope(), group("grade"), 1, fn)
			t.Errorf("%s: Group = %v, want a panic", name, err)
		}()
		for path, started := range open {
			if started {
				t.Errorf("%s: nobody was told that %s ended", name, path)
			}
		}
		if r.Finish() == nil {
			t.Errorf("%s: the run is not halted", name)
		}
		for _, rec := range j.Records() {
			if rec.Path == "grade" {
				t.Errorf("%s: the group is recorded", name)
			}
		}
		if n, err := Group(ctx, start(t, &j).Scope(), group("grade"), 1, func(ctx context.Context, s Scope, _ int) (int, error) {
			return Do(ctx, s, search("one"), 1, answer[int](5))
		}); err != nil {
			t.Errorf("%s: resumed: %v, %v", name, n, err)
		}
	}
}

// TestGroupIsCancelled checks that a cancellation inside a group halts the run, and that unfinished
// steps are not recorded, whatever the group's function returns.
func TestGroupIsCancelled(t *testing.T) {
	for name, makes := range map[string]func(error) (int, error){
		"returns it":          func(err error) (int, error) { return 0, err },
		"hides it":            func(error) (int, error) { return 0, errors.New("a plain error") },
		"takes it for result": func(error) (int, error) { return 9, nil },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		var j Memory
		r := start(t, &j)
		_, err := Group(ctx, r.Scope(), group("grade"), 1, func(ctx context.Context, s Scope, _ int) (int, error) {
			if _, err := Do(ctx, s, search("one"), 1, answer[int](1)); err != nil {
				t.Error(err)
			}
			_, err := Do(ctx, s, search("two"), 1, func(ctx context.Context, _ int) (int, assay.Usage, error) {
				cancel()
				return 0, assay.Usage{}, ctx.Err()
			})
			return makes(err)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Group = %v, want Canceled", name, err)
		}
		checkHalted(t, r, context.Canceled, &j, 1)
	}
}

// TestGroupFails checks that a group's own error is its result, and is the same in every replay.
func TestGroupFails(t *testing.T) {
	ctx := context.Background()
	var j Memory
	_, live := Group(ctx, start(t, &j).Scope(), group("grade"), 1, func(ctx context.Context, s Scope, _ int) (int, error) {
		_, err := Do(ctx, s, search("one"), 1, fails(fmt.Errorf("no connection: %w", assay.ErrUnavailable)))
		return 0, fmt.Errorf("the grader: %w", err)
	})
	if !errors.Is(live, assay.ErrUnavailable) || !strings.Contains(live.Error(), "no connection") {
		t.Errorf("Group = %v, want ErrUnavailable", live)
	}
	_, err := Group(ctx, replay(t, j.Records()).Scope(), group("grade"), 1, notDone(t))
	if !errors.Is(err, assay.ErrUnavailable) || err.Error() != live.Error() {
		t.Errorf("replay: %v, want %v", err, live)
	}
}

// TestGroupOutOfTime checks that the steps of a group are refused after the end of the wall time,
// and that the group's result is the same in a replay.
func TestGroupOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		for name, limit := range map[string]func(Scope) Scope{
			"of the run":   func(s Scope) Scope { return s },
			"of the scope": func(s Scope) Scope { return s.Until(time.Second) },
		} {
			var j Memory
			wall := 10 * time.Second
			first := errors.New("")
			var second error
			body := func(ctx context.Context, s Scope, _ int) (int, error) {
				_, first = Do(ctx, s, search("one"), 1, sleeps(time.Hour))
				_, second = Do(ctx, s, search("two"), 1, never[int, int](t))
				if _, err := s.Elapsed(ctx); err != nil {
					t.Errorf("%s: the clock cannot be read: %v", name, err)
				}
				return 0, second
			}
			r := start(t, &j, withBudget(assay.Budget{Wall: wall}))
			_, live := Group(ctx, limit(r.Scope()), group("grade"), 1, body)
			for what, err := range map[string]error{"the first step": first, "the second step": second, "the group": live} {
				if !errors.Is(err, assay.ErrDeadline) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %s: %v, want ErrDeadline", name, what, err)
				}
			}
			if n := len(j.Records()); n != 4 {
				t.Errorf("%s: %d records, want 4", name, n)
			}
			if err := r.Finish(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for mode, again := range map[string]*Run{"replay": replay(t, j.Records()), "resume": start(t, &j)} {
				_, err := Group(ctx, limit(again.Scope()), group("grade"), 1, notDone(t))
				if !errors.Is(err, assay.ErrDeadline) || err.Error() != live.Error() || again.Finish() != nil {
					t.Errorf("%s, %s: %v, want %v", name, mode, err, live)
				}
			}
		}
	})
}

// TestGroupIsStopped checks that a function that does not return by itself is stopped with the wall
// time, and may return a partial result.
func TestGroupIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		r := start(t, &j, withBudget(assay.Budget{Wall: time.Second}))
		_, err := Group(ctx, r.Scope(), group("hangs"), 1, func(ctx context.Context, _ Scope, _ int) (int, error) {
			<-ctx.Done()
			return 0, errors.New("broken pipe")
		})
		if !errors.Is(err, assay.ErrDeadline) || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("error = %v, want ErrDeadline with the function's text", err)
		}
		if _, err := Group(ctx, r.Scope(), group("refused"), 1, notDone(t)); !errors.Is(err, assay.ErrDeadline) {
			t.Errorf("error = %v, want ErrDeadline", err)
		}
		if err := r.Finish(); err != nil {
			t.Error(err)
		}
	})
}

// TestGroupOverBudget checks that a refusal inside a group names the exhausted budget, even if it
// comes from the journal as the group's own error.
func TestGroupOverBudget(t *testing.T) {
	ctx := context.Background()
	for stop, budget := range map[assay.Stop]assay.Budget{
		assay.StopCallBudget: {Calls: 1}, assay.StopTokenBudget: {Tokens: 9}, assay.StopMoneyBudget: {CostMicros: 1},
	} {
		var j Memory
		spend := assay.Usage{Calls: 1, InputTokens: 8, CostMicros: 1}
		body := func(ctx context.Context, s Scope, in int) (int, error) {
			for i := range 5 {
				n := s.Affords(spend)
				_, err := Do(ctx, s.Sub("call", i), call("model", spend), in, spends(spend, nil))
				if (n == 0) != errors.Is(err, assay.ErrBudget) {
					t.Errorf("%s: %d more are afforded, and then %v", stop, n, err)
				}
				if err != nil {
					return 0, fmt.Errorf("the grader: %w", err)
				}
			}
			return 0, nil
		}
		_, live := Group(ctx, start(t, &j, withBudget(budget)).Scope(), group("grade"), 1, body)
		_, again := Group(ctx, replay(t, j.Records()).Scope(), group("grade"), 1, notDone(t))
		for mode, err := range map[string]error{"live": live, "replay": again} {
			if got, ok := StopReason(err); !ok || got != stop {
				t.Errorf("%s: StopReason(%v) = %q, want %q", mode, err, got, stop)
			}
		}
		if n := len(j.Records()); n != 3 {
			t.Errorf("%s: %d records, want a call, a refusal and the group", stop, n)
		}
	}
}

// TestGroupSuspended checks that a group with a step that waits for a person is suspended, whatever
// its function returns, and resumes after the decision.
func TestGroupSuspended(t *testing.T) {
	ctx := context.Background()
	for name, makes := range map[string]func(int, error) (int, error){
		"returns it":          func(n int, err error) (int, error) { return n, err },
		"hides it":            func(int, error) (int, error) { return 0, errors.New("a plain error") },
		"takes it for result": func(int, error) (int, error) { return 9, nil },
	} {
		var j Memory
		decided := false
		decide := func(context.Context, int) (int, assay.Usage, error) {
			if !decided {
				return 0, assay.Usage{}, assay.ErrSuspended
			}
			return 4, assay.Usage{}, nil
		}
		body := func(ctx context.Context, s Scope, in int) (int, error) {
			if _, err := Do(ctx, s, search("one"), 1, answer[int](1)); err != nil {
				t.Error(err)
			}
			n, err := Do(ctx, s, Step{Name: "review", Kind: assay.StepHuman}, in, decide)
			return makes(n, err)
		}
		r := start(t, &j)
		if _, err := Group(ctx, r.Scope(), group("grade"), 1, body); !errors.Is(err, assay.ErrSuspended) {
			t.Errorf("%s: Group = %v, want ErrSuspended", name, err)
		}
		checkHalted(t, r, assay.ErrSuspended, &j, 1)
		decided = true
		r = start(t, &j)
		if _, err := Group(ctx, r.Scope(), group("grade"), 1, body); errors.Is(err, assay.ErrSuspended) || r.Finish() != nil || len(j.Records()) != 3 {
			t.Errorf("%s: after the decision %v, Finish() = %v, %d records", name, err, r.Finish(), len(j.Records()))
		}
	}
}

func TestAffords(t *testing.T) {
	for _, tt := range []struct {
		budget assay.Budget
		spent  assay.Usage
		one    assay.Usage
		want   int
	}{
		{assay.Budget{Calls: 5}, assay.Usage{Calls: 1}, assay.Usage{Calls: 1}, 4},
		{assay.Budget{Calls: 5, Tokens: 100}, assay.Usage{Calls: 1, OutputTokens: 10}, assay.Usage{Calls: 1, InputTokens: 20, OutputTokens: 20}, 2},
		{assay.Budget{CostMicros: 10}, assay.Usage{CostMicros: 3}, assay.Usage{Calls: 1, CostMicros: 8}, 0},
		{assay.Budget{Calls: 1}, assay.Usage{Calls: 9}, assay.Usage{Calls: 1}, 0},
		{assay.Budget{Calls: 1}, assay.Usage{}, assay.Usage{InputTokens: 5}, int(^uint(0) >> 1)},
	} {
		var j Memory
		r := start(t, &j, withBudget(tt.budget))
		if _, err := Do(context.Background(), r.Scope(), call("one", assay.Usage{}), 1, spends(tt.spent, nil)); err != nil {
			t.Fatal(err)
		}
		if got := r.Scope().Affords(tt.one); got != tt.want {
			t.Errorf("of %+v, %+v spent: affords %+v %d times, want %d", tt.budget, tt.spent, tt.one, got, tt.want)
		}
	}
}
