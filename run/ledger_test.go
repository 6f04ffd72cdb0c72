package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// A purse is a Ledger with a number of tokens for all runs.
type purse struct {
	mu      sync.Mutex
	left    int64
	held    map[string]int64
	settled map[string]assay.Usage
	err     error
}

func (p *purse) Reserve(_ context.Context, path string, most assay.Usage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if n := tokens(most); n > p.left {
		return fmt.Errorf("the limit of 100 tokens a day is reached: %d left%w", p.left, quiet{assay.ErrQuota})
	} else if n > 0 {
		p.left -= n
	}
	if p.held == nil {
		p.held = map[string]int64{}
	}
	p.held[path] += tokens(most)
	return nil
}

func (p *purse) Settle(_ context.Context, path string, used assay.Usage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled == nil {
		p.settled = map[string]assay.Usage{}
	}
	p.settled[path] = used
	return nil
}

// quiet is an error without a text.
type quiet struct{ error }

func (q quiet) Error() string { return "" }
func (q quiet) Unwrap() error { return q.error }

func paid(tokens int) Step {
	return Step{Name: "model", Kind: assay.StepModel, Reserve: assay.Usage{Calls: 1, InputTokens: tokens}}
}

// payingProgram takes steps of 60 tokens until one is refused, and records how it ended.
func payingProgram(ctx context.Context, s Scope) (string, error) {
	for i := range 5 {
		_, err := Do(ctx, s.Sub("round", i), paid(60), i, func(context.Context, int) (string, assay.Usage, error) {
			return "ok", assay.Usage{Calls: 1, InputTokens: 50}, nil
		})
		if stop, ok := StopReason(err); ok {
			return fmt.Sprintf("%s after %d: %v", stop, i, err), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "all", nil
}

func TestLedgerRefusesAStep(t *testing.T) {
	var j Memory
	r, err := New(Config{Run: "r", Journal: &j, Ledger: &purse{left: 130}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := payingProgram(t.Context(), r.Scope())
	want := "quota after 2: step round[2]/model: the limit of 100 tokens a day is reached: 10 left"
	if err != nil || got != want || r.Finish() != nil {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
	again, err := Replay(Config{Run: "r", Records: j.Records(), Ledger: &purse{err: errors.New("a replay asks the ledger")}})
	if err != nil {
		t.Fatal(err)
	}
	if replayed, err := payingProgram(t.Context(), again.Scope()); err != nil || replayed != got || again.Finish() != nil {
		t.Fatalf("replayed %q, %v", replayed, err)
	}
	// A resumed run reserves only for the steps that it executes.
	p := &purse{left: 1000}
	resumed, err := New(Config{Run: "r", Journal: &Memory{}, Records: j.Records()[:1], Ledger: p})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := payingProgram(t.Context(), resumed.Scope()); got != "all" || err != nil {
		t.Fatalf("resumed: %q, %v", got, err)
	}
	if diff := cmp.Diff(map[string]int64{"round[1]/model": 60, "round[2]/model": 60, "round[3]/model": 60, "round[4]/model": 60}, p.held); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
}

func TestLedgerFailureHaltsTheRun(t *testing.T) {
	broken := errors.New("disk on fire")
	r, err := New(Config{Run: "r", Journal: &Memory{}, Ledger: &purse{err: broken}})
	if err != nil {
		t.Fatal(err)
	}
	called := false
	_, err = Do(t.Context(), r.Scope(), paid(1), 0, func(context.Context, int) (int, assay.Usage, error) {
		called = true
		return 0, assay.Usage{}, nil
	})
	if !errors.Is(err, broken) || !errors.Is(r.Finish(), broken) || called {
		t.Errorf("Do = %v, Finish = %v, called %v", err, r.Finish(), called)
	}
}

// TestUnrecordedStepsAreSettled checks that a step without a record is settled: at its upper bound if
// it may have reached the provider, else at nothing.
// A slowLedger answers only when the context of a reservation has ended.
type slowLedger struct{ purse }

func (*slowLedger) Reserve(ctx context.Context, _ string, _ assay.Usage) error {
	<-ctx.Done()
	return fmt.Errorf("version of the registry: %w", ctx.Err())
}

// TestWallTimeEndsDuringReservation checks that a run whose wall time ends while the ledger is asked
// goes on to its honest end, unlike one whose ledger fails.
func TestWallTimeEndsDuringReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var j Memory
		r, err := New(Config{Run: "r", Journal: &j, Ledger: &slowLedger{}, Budget: assay.Budget{Wall: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		var inner error
		_, err = Group(ctx, r.Scope(), Step{Name: "verify", Kind: assay.StepModel}, 1, func(ctx context.Context, s Scope, in int) (int, error) {
			_, inner = Do(ctx, s, paid(60), in, func(context.Context, int) (int, assay.Usage, error) {
				t.Error("the step was taken")
				return 0, assay.Usage{}, nil
			})
			return 0, inner
		})
		for what, err := range map[string]error{"the step": inner, "the group": err} {
			if stop, ok := StopReason(err); !ok || stop != assay.StopDeadline {
				t.Errorf("%s: %v, want the stop of the deadline", what, err)
			}
		}
		if err := r.Finish(); err != nil {
			t.Errorf("the run: %v", err)
		}
		if n := len(j.Records()); n != 2 {
			t.Errorf("%d records, want those of the step and the group", n)
		}
	})
}

func TestUnrecordedStepsAreSettled(t *testing.T) {
	for _, test := range []struct {
		name     string
		reported assay.Usage
		want     assay.Usage
	}{
		{"a call in progress", assay.Usage{Calls: 1}, assay.Usage{Calls: 1, InputTokens: 60}},
		{"more than was reserved", assay.Usage{Calls: 1, InputTokens: 70}, assay.Usage{Calls: 1, InputTokens: 70}},
		{"no call", assay.Usage{}, assay.Usage{}},
	} {
		p := &purse{left: 1000}
		r, err := New(Config{Run: "r", Journal: &Memory{}, Ledger: p})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err = Do(ctx, r.Scope(), paid(60), 0, func(ctx context.Context, _ int) (int, assay.Usage, error) {
			cancel()
			return 0, test.reported, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]assay.Usage{"model": test.want}, p.settled); diff != "" {
			t.Errorf("%s: settled (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestFurther(t *testing.T) {
	p := &purse{left: 100}
	stop, cancel := context.WithCancel(t.Context())
	r, err := New(Config{Run: "r", Journal: &Memory{}, Ledger: p, Stop: stop})
	if err != nil {
		t.Fatal(err)
	}
	further := r.Scope().Further("model")
	_, err = Do(t.Context(), r.Scope(), paid(60), 0, func(ctx context.Context, _ int) (int, assay.Usage, error) {
		if err := further(ctx, assay.Usage{InputTokens: 30}); err != nil {
			t.Error(err)
		}
		if err := further(ctx, assay.Usage{InputTokens: 11}); !errors.Is(err, assay.ErrQuota) {
			t.Errorf("over the limit: %v", err)
		}
		return 0, assay.Usage{}, nil
	})
	if err != nil || p.held["model"] != 90 {
		t.Errorf("Do = %v, %d reserved", err, p.held["model"])
	}
	cancel()
	if err := further(t.Context(), assay.Usage{}); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
	if plain, err := New(Config{Run: "r", Journal: &Memory{}}); err != nil || plain.Scope().Further("model") != nil {
		t.Errorf("a run without a ledger and a stop has Further, %v", err)
	}
}

// stoppedProgram takes a group with a call, in which the stop arrives, then further steps of all kinds.
func stoppedProgram(ctx context.Context, s Scope, call func(context.Context)) ([]string, error) {
	var got []string
	note := func(what string, err error) error {
		stop, ok := StopReason(err)
		if err != nil && !ok {
			return err
		}
		got = append(got, what+":"+string(stop))
		return nil
	}
	_, err := Group(ctx, s, Step{Name: "job", Kind: assay.StepGenerate}, 0, func(ctx context.Context, s Scope, _ int) (int, error) {
		_, err := Do(ctx, s, Step{Name: "model", Kind: assay.StepModel}, 0, func(ctx context.Context, _ int) (int, assay.Usage, error) {
			call(ctx)
			return 0, assay.Usage{Calls: 1}, ctx.Err()
		})
		if err := note("call", err); err != nil {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, errors.New("the context of the group has ended")
		}
		_, err = Do(ctx, s, Step{Name: "read", Kind: assay.StepRead}, 0, func(context.Context, int) (int, assay.Usage, error) { return 7, assay.Usage{}, nil })
		return 0, note("read", err)
	})
	if err != nil {
		return nil, err
	}
	none := func(context.Context, int) (int, assay.Usage, error) { return 1, assay.Usage{}, nil }
	for i, kind := range []assay.StepKind{assay.StepSearch, assay.StepModel, assay.StepWeb, assay.StepTool, assay.StepVerify, assay.StepHuman, assay.StepClock} {
		_, err := Do(ctx, s.Sub("after", i), Step{Name: "step", Kind: kind}, 0, none)
		if err := note(string(kind), err); err != nil {
			return nil, err
		}
	}
	_, err = Do(ctx, s.Sub("last", 0).Closing(), Step{Name: "step", Kind: assay.StepSearch}, 0, none)
	return got, note("closing", err)
}

func TestStop(t *testing.T) {
	var j Memory
	stop, cancel := context.WithCancel(t.Context())
	r, err := New(Config{Run: "r", Journal: &j, Stop: stop})
	if err != nil {
		t.Fatal(err)
	}
	got, err := stoppedProgram(t.Context(), r.Scope(), func(ctx context.Context) {
		cancel()
		<-ctx.Done() // the call in progress is cancelled
	})
	if err := errors.Join(err, r.Finish()); err != nil {
		t.Fatal(err)
	}
	want := []string{"call:stopped", "read:", "search:stopped", "model:stopped", "web:stopped", "tool:stopped", "verify:", "human:", "clock:", "closing:"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("steps (-want +got):\n%s", diff)
	}
	again, err := Replay(Config{Run: "r", Records: j.Records(), Stop: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	// The group's function is not called again.
	replayed, err := stoppedProgram(t.Context(), again.Scope(), nil)
	if diff := cmp.Diff(want[2:], replayed); diff != "" || errors.Join(err, again.Finish()) != nil {
		t.Fatalf("replayed (-want +got):\n%s, %v, %v", diff, err, again.Finish())
	}
}

// TestStopKeepsAResult checks that the result of a call that ended in spite of the stop is kept.
func TestStopKeepsAResult(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	r, err := New(Config{Run: "r", Journal: &Memory{}, Stop: stop})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Do(t.Context(), r.Scope(), paid(0), 0, func(context.Context, int) (int, assay.Usage, error) {
		cancel()
		return 42, assay.Usage{Calls: 1}, nil
	})
	if got != 42 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}
