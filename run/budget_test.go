package run

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// spends returns a step function that uses u and returns err.
func spends(u assay.Usage, err error) func(context.Context, int) (int, assay.Usage, error) {
	return func(context.Context, int) (int, assay.Usage, error) { return 1, u, err }
}

func TestBudgetRefuses(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name    string
		budget  assay.Budget
		spent   assay.Usage
		reserve assay.Usage
		want    *BudgetError // nil: the step runs
	}{
		{"no limits", assay.Budget{}, assay.Usage{Calls: 1 << 30}, assay.Usage{Calls: 1 << 30}, nil},
		{"fits exactly", assay.Budget{Calls: 3, Tokens: 30, CostMicros: 5}, assay.Usage{Calls: 2, InputTokens: 10, OutputTokens: 10, CostMicros: 1},
			assay.Usage{Calls: 1, InputTokens: 4, OutputTokens: 6, CostMicros: 4}, nil},
		{"calls", assay.Budget{Calls: 3}, assay.Usage{Calls: 2}, assay.Usage{Calls: 2}, &BudgetError{Stop: assay.StopCallBudget, Need: 2, Left: 1}},
		{"tokens", assay.Budget{Tokens: 30}, assay.Usage{InputTokens: 10, OutputTokens: 10}, assay.Usage{InputTokens: 5, OutputTokens: 6},
			&BudgetError{Stop: assay.StopTokenBudget, Need: 11, Left: 10}},
		{"money", assay.Budget{CostMicros: 7}, assay.Usage{CostMicros: 7}, assay.Usage{CostMicros: 1}, &BudgetError{Stop: assay.StopMoneyBudget, Need: 1}},
		{"overrun", assay.Budget{Tokens: 5}, assay.Usage{OutputTokens: 50}, assay.Usage{InputTokens: 1}, &BudgetError{Stop: assay.StopTokenBudget, Need: 1}},
		{"free steps run after an overrun", assay.Budget{Calls: 1, Tokens: 5}, assay.Usage{Calls: 9, OutputTokens: 50}, assay.Usage{Searches: 1}, nil},
		{"what is reported does not refill", assay.Budget{Calls: 1}, assay.Usage{Calls: -5}, assay.Usage{Calls: 2}, &BudgetError{Stop: assay.StopCallBudget, Need: 2, Left: 1}},
		{"nor does an overflow", assay.Budget{Tokens: 9}, assay.Usage{InputTokens: math.MaxInt, OutputTokens: math.MaxInt}, assay.Usage{InputTokens: 1},
			&BudgetError{Stop: assay.StopTokenBudget, Need: 1}},
	}
	for _, tt := range tests {
		for _, failed := range []error{nil, assay.ErrNotFound} { // a failed call costs as much
			var j Memory
			r := start(t, &j, withBudget(tt.budget))
			if _, err := Do(ctx, r.Scope(), call("first", assay.Usage{}), 1, spends(tt.spent, failed)); !errors.Is(err, failed) {
				t.Fatal(err)
			}
			called := false
			_, err := Do(ctx, r.Scope(), call("second", tt.reserve), 1, func(context.Context, int) (int, assay.Usage, error) {
				called = true
				return 1, assay.Usage{}, nil
			})
			if called != (tt.want == nil) {
				t.Errorf("%s: called = %v", tt.name, called)
			}
			if tt.want == nil {
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			tt.want.Path = "second"
			check := func(err error) {
				t.Helper()
				var got *BudgetError
				if !errors.As(err, &got) || !errors.Is(err, assay.ErrBudget) || !cmp.Equal(got, tt.want) {
					t.Errorf("%s: error = %v, want %v", tt.name, err, tt.want)
				}
				if stop, ok := StopReason(err); !ok || stop != tt.want.Stop {
					t.Errorf("%s: StopReason = %v", tt.name, stop)
				}
			}
			check(err)
			// The refusal is recorded, so it is returned even without a limit.
			for _, again := range []*Run{replay(t, j.Records()), start(t, &j)} {
				if _, err := Do(ctx, again.Scope(), call("first", assay.Usage{}), 1, never[int, int](t)); !errors.Is(err, failed) {
					t.Error(err)
				}
				_, err := Do(ctx, again.Scope(), call("second", tt.reserve), 1, never[int, int](t))
				check(err)
				if again.Scope().Spent() != r.Scope().Spent() {
					t.Errorf("%s: Spent() = %+v, want %+v", tt.name, again.Scope().Spent(), r.Scope().Spent())
				}
			}
		}
	}
}

// TestBudgetOfResumedRun checks that recorded steps count towards the budget of a resumed run.
func TestBudgetOfResumedRun(t *testing.T) {
	ctx := context.Background()
	var j Memory
	budget := withBudget(assay.Budget{Calls: 2})
	one := assay.Usage{Calls: 1}
	strategy := func(r *Run, n int) (err error) {
		for i := range n {
			_, err = Do(ctx, r.Scope().Sub("try", i), call("call", one), i, spends(one, assay.ErrNotFound))
		}
		return err
	}
	if err := strategy(start(t, &j, budget), 1); !errors.Is(err, assay.ErrNotFound) {
		t.Fatal(err)
	}
	r := start(t, &j, budget)
	if err := strategy(r, 3); !errors.Is(err, assay.ErrBudget) || r.Scope().Spent().Calls != 2 {
		t.Errorf("error = %v after %d calls, want ErrBudget after 2", err, r.Scope().Spent().Calls)
	}
}

func TestStopReasonOfOthers(t *testing.T) {
	for err, want := range map[error]assay.Stop{
		assay.ErrDeadline: assay.StopDeadline, assay.ErrBudget: "", assay.ErrNotFound: "",
		restoreError("p", &assay.RecordedError{Kind: assay.ErrBudget.Error(), Message: "call_budget: of the day"}): "",
	} {
		if got, ok := StopReason(err); got != want || ok != (want != "") {
			t.Errorf("StopReason(%v) = %q, %v", err, got, ok)
		}
	}
}

func TestShares(t *testing.T) {
	got := func(l limit, n int) (list []limit) {
		for i := range n {
			list = append(list, l.share(i, n))
		}
		return list
	}
	want := []limit{{3, 1, unlimited}, {2, 1, unlimited}, {2, 0, unlimited}}
	if diff := cmp.Diff(want, got(limit{7, 2, unlimited}, 3), cmp.AllowUnexported(limit{})); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}
