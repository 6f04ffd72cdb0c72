package llm_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

func TestMeter(t *testing.T) {
	ctx := context.Background()
	if err := llm.Room(ctx, assay.Usage{Calls: 1 << 30}); err != nil {
		t.Errorf("without a meter: %v", err)
	}
	llm.Report(ctx, assay.Usage{Calls: 1}) // no meter receives it

	m := llm.NewMeter(assay.Usage{Calls: 3, InputTokens: 100})
	ctx = llm.WithMeter(ctx, m)
	llm.Report(ctx, assay.Usage{Calls: 1, InputTokens: 60, CostMicros: 5})
	llm.Report(ctx, assay.Usage{Calls: -7, InputTokens: -7}) // negative numbers are ignored
	if got, want := m.Spent(), (assay.Usage{Calls: 1, InputTokens: 60, CostMicros: 5}); got != want {
		t.Errorf("Spent() = %+v, want %+v", got, want)
	}
	for _, tt := range []struct {
		more assay.Usage
		fits bool
	}{
		{assay.Usage{Calls: 2, InputTokens: 40, CostMicros: 1 << 40}, true}, // no limit on cost
		{assay.Usage{Calls: 3}, false},
		{assay.Usage{Calls: 1, InputTokens: 30, OutputTokens: 11}, false},
	} {
		if err := llm.Room(ctx, tt.more); (err == nil) != tt.fits || err != nil && !errors.Is(err, assay.ErrBudget) {
			t.Errorf("Room(%+v) = %v, want it to fit: %v", tt.more, err, tt.fits)
		}
	}
}

func TestMeterWithPrice(t *testing.T) {
	m := llm.NewMeter(assay.Usage{CostMicros: 10})
	ctx := llm.WithPrice(llm.WithMeter(context.Background(), m), llm.Facts{Priced: true, Input: 1_000_000})
	llm.Report(ctx, assay.Usage{Calls: 1, InputTokens: 6})
	if got, want := m.Spent(), (assay.Usage{Calls: 1, InputTokens: 6, CostMicros: 6}); got != want {
		t.Errorf("Spent() = %+v, want %+v", got, want)
	}
	if err := llm.Room(ctx, assay.Usage{InputTokens: 4}); err != nil {
		t.Error(err)
	}
	if err := llm.Room(ctx, assay.Usage{InputTokens: 5}); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("Room = %v, want ErrBudget", err)
	}
	llm.Report(ctx, assay.Usage{InputTokens: 1, CostMicros: 3}) // its cost is higher than the price gives
	if got := m.Spent().CostMicros; got != 9 {
		t.Errorf("%d spent, want 9", got)
	}
	if ctx := context.Background(); llm.WithPrice(ctx, llm.Facts{Priced: true}) != ctx {
		t.Error("a context without a meter is not what it was")
	}
}

func TestMeterThatAllowsNothing(t *testing.T) {
	ctx := llm.WithMeter(context.Background(), llm.NewMeter(assay.Usage{Calls: -1}))
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("Room = %v, want ErrBudget", err)
	}
	if err := llm.Room(ctx, assay.Usage{InputTokens: 9}); err != nil {
		t.Errorf("Room = %v: tokens have no limit", err)
	}
}

// TestMeterOfCallsAtOnce checks that concurrent calls each have their own reservation until they
// are reported.
func TestMeterOfCallsAtOnce(t *testing.T) {
	ctx := llm.WithMeter(context.Background(), llm.NewMeter(assay.Usage{Calls: 2}))
	one := assay.Usage{Calls: 1}
	for n, fits := range []bool{true, true, false} {
		if err := llm.Room(ctx, one); (err == nil) != fits {
			t.Errorf("call %d: %v, want it to fit: %v", n+1, err, fits)
		}
	}
	llm.Report(ctx, assay.Usage{}) // one call was not made after all
	if err := llm.Room(ctx, one); err != nil {
		t.Error(err)
	}
}

func TestMeterOfManyCalls(t *testing.T) {
	m := llm.NewMeter(assay.Usage{})
	ctx := llm.WithMeter(context.Background(), m)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { llm.Report(ctx, assay.Usage{Calls: 1, InputTokens: 2}) })
	}
	wg.Wait()
	if got := m.Spent(); got.Calls != 50 || got.InputTokens != 100 {
		t.Errorf("Spent() = %+v", got)
	}
}

// TestMeterHoldsTheLargestCall checks that the report of a small call does not free the room that a
// large one holds that is still under way.
func TestMeterHoldsTheLargestCall(t *testing.T) {
	ctx := llm.WithMeter(t.Context(), llm.NewMeter(assay.Usage{InputTokens: 120}))
	large, small := assay.Usage{Calls: 1, InputTokens: 100}, assay.Usage{Calls: 1, InputTokens: 10}
	for _, u := range []assay.Usage{large, small} {
		if err := llm.Room(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	llm.Report(ctx, small)
	if err := llm.Room(ctx, assay.Usage{InputTokens: 20}); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("room for 20 tokens beside 10 spent and 100 held, of 120: %v", err)
	}
	if err := llm.Room(ctx, assay.Usage{InputTokens: 10}); err != nil {
		t.Errorf("no room for the 10 tokens that are left: %v", err)
	}
}

// TestMeterCountsAttemptsOnce checks that requests which a further attempt of a call repeats do not
// count as calls, neither when room is reserved nor when they are reported, while their tokens and
// costs always count.
func TestMeterCountsAttemptsOnce(t *testing.T) {
	m := llm.NewMeter(assay.Usage{Calls: 2, InputTokens: 70})
	attempt := llm.Attempts()
	ask := func(ctx context.Context, used assay.Usage) error {
		if err := llm.Room(ctx, assay.Usage{Calls: 1, InputTokens: 10}); err != nil {
			return err
		}
		llm.Report(ctx, used)
		return nil
	}
	made := assay.Usage{Calls: 1, InputTokens: 10, CostMicros: 1}
	for i, requests := range [][]assay.Usage{{{}}, {made}, {made, made}, {made, made}, {made}} { // none was made, one failed, ...
		ctx := attempt(llm.WithMeter(t.Context(), m))
		for _, used := range requests {
			if err := ask(ctx, used); err != nil {
				t.Errorf("attempt %d: %v", i, err)
			}
		}
	}
	if got, want := m.Spent(), (assay.Usage{Calls: 2, InputTokens: 60, CostMicros: 6}); got != want {
		t.Errorf("Spent() = %+v, want %+v", got, want)
	}
	other := llm.Attempts()(llm.WithMeter(t.Context(), m))
	if err := ask(other, made); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("another call: %v, want assay.ErrBudget", err)
	}
	again := attempt(llm.WithMeter(t.Context(), m))
	if err := ask(again, made); err != nil {
		t.Error(err)
	}
	if err := ask(again, made); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("a repeat without tokens: %v, want assay.ErrBudget", err)
	}
}
