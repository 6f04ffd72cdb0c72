package resilient

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// asks makes a call and returns the kind of its error, or "".
func asks(ctx context.Context, m llm.Model, attempts int) llm.ErrorKind {
	_, err := m.Generate(ctx, request(attempts), nil)
	if e, _ := errors.AsType[*llm.Error](err); e != nil {
		return e.Kind
	}
	return ""
}

// TestBreaker checks that an endpoint that keeps failing is paused, then probed, and used again if
// the probe succeeds.
func TestBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner := newSequence(failed(llm.ServerError), failed(llm.Unreachable), failed(llm.TimedOut), failed(llm.ServerError), nil)
		g := New(Config{OpenAfter: 3, OpenFor: 20 * time.Second})
		m := g.Model(inner, llm.Facts{})
		step := func(what string, want llm.ErrorKind, calls int) {
			t.Helper()
			if kind := asks(t.Context(), m, 1); kind != want || len(inner.Requests()) != calls {
				t.Fatalf("%s: %q after %d calls, want %q after %d", what, kind, len(inner.Requests()), want, calls)
			}
		}
		step("first", llm.ServerError, 1)
		step("second", llm.Unreachable, 2)
		step("third", llm.TimedOut, 3)
		step("open", llm.Open, 3)
		other := g.Model(&llmtest.Scripted{Name: "scripted/other"}, llm.Facts{})
		if kind := asks(t.Context(), other, 4); kind != llm.Open {
			t.Errorf("another model of the endpoint: %q", kind)
		}
		_, err := m.Generate(t.Context(), request(4), nil)
		if e, _ := errors.AsType[*llm.Error](err); e == nil || e.RetryAfter != 20*time.Second || e.Usage.Calls != 0 || len(e.Attempts) != 0 {
			t.Errorf("%v with %+v, want to be told to come back in 20 s", err, e)
		}
		time.Sleep(20 * time.Second)
		step("half open, and it fails", llm.ServerError, 4)
		step("open again", llm.Open, 4)
		time.Sleep(20 * time.Second)
		step("half open, and it goes well", "", 5)
		step("closed", "", 6)
		step("closed", "", 7)
	})
}

// TestBreakerKnowsRefusals checks that an endpoint that answers is not paused, even if it refuses
// every request.
func TestBreakerKnowsRefusals(t *testing.T) {
	for _, kind := range []llm.ErrorKind{llm.RateLimited, llm.BadKey, llm.BadRequest, llm.TooLong, llm.Filtered, llm.BadReply} {
		bubble(t, func(t *testing.T) {
			m := New(Config{OpenAfter: 2}).Model(newSequence(failed(kind)), llm.Facts{})
			for range 10 {
				if got := asks(t.Context(), m, 1); got != kind {
					t.Fatalf("%q, want %q", got, kind)
				}
			}
		})
	}
}

// TestBreakerAndCancelledCalls checks that a cancelled call counts neither as a failure nor as a
// success of the endpoint. The next call probes in its place.
func TestBreakerAndCancelledCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := New(Config{OpenAfter: 2, OpenFor: 20 * time.Second})
		blocked := g.Model(llmtest.HostileModel(new(llmtest.Scripted), "blocks until the end"), llm.Facts{})
		giveUp := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := blocked.Generate(ctx, request(1), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		for range 5 {
			giveUp()
		}
		down, fine := g.Model(newSequence(failed(llm.ServerError)), llm.Facts{}), g.Model(new(llmtest.Scripted), llm.Facts{})
		if kind := asks(t.Context(), fine, 1); kind != "" {
			t.Fatalf("%q after calls that were given up", kind)
		}
		asks(t.Context(), down, 1)
		asks(t.Context(), down, 1)
		if kind := asks(t.Context(), fine, 1); kind != llm.Open {
			t.Fatalf("%q after two failures", kind)
		}
		time.Sleep(20 * time.Second)
		giveUp()
		if kind := asks(t.Context(), fine, 1); kind != llm.Open {
			t.Errorf("%q after the one that was let through was given up", kind)
		}
		time.Sleep(20 * time.Second)
		if kind := asks(t.Context(), fine, 1); kind != "" {
			t.Errorf("%q, want another to be let through", kind)
		}
	})
}

// TestBreakerAndCallsNotMade checks the same for an error of the caller's side, in which case no
// call was made.
func TestBreakerAndCallsNotMade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := New(Config{OpenAfter: 1, OpenFor: 20 * time.Second})
		down, fine := g.Model(newSequence(failed(llm.ServerError)), llm.Facts{}), g.Model(new(llmtest.Scripted), llm.Facts{})
		asks(t.Context(), down, 1)
		time.Sleep(20 * time.Second)
		_, _, err := Do(t.Context(), g, Read{Name: "far"}, func(context.Context) (int, error) { return 0, assay.ErrBudget })
		if !errors.Is(err, assay.ErrBudget) {
			t.Fatal(err)
		}
		if kind := asks(t.Context(), fine, 1); kind != llm.Open {
			t.Errorf("%q after a call that was not made, want it left alone", kind)
		}
		time.Sleep(20 * time.Second)
		if kind := asks(t.Context(), fine, 1); kind != "" {
			t.Errorf("%q, want another to be let through", kind)
		}
	})
}

// TestBreakerBeforeWaiting checks that a call does not wait for its turn while the circuit is open.
func TestBreakerBeforeWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := New(Config{OpenAfter: 1, OpenFor: 10 * time.Second, Requests: 1}).Model(newSequence(failed(llm.ServerError)), llm.Facts{})
		asks(t.Context(), m, 1)
		start := time.Now()
		if kind := asks(t.Context(), m, 4); kind != llm.Open || time.Since(start) != 0 {
			t.Errorf("%q after %v", kind, time.Since(start))
		}
	})
}

// TestBackoff checks that waits double up to a limit and are drawn between zero and that maximum,
// so that calls do not all return at once. A wait requested by the server is kept in full.
func TestBackoff(t *testing.T) {
	tests := []struct {
		attempts    int
		asked       time.Duration
		least, most time.Duration
	}{
		{1, 0, 0, time.Second}, {2, 0, 0, 2 * time.Second}, {4, 0, 0, 8 * time.Second}, {9, 0, 0, 20 * time.Second}, {1 << 40, 0, 0, 20 * time.Second},
		{1, 7 * time.Second, 7 * time.Second, 8 * time.Second}, {5, 7 * time.Second, 7 * time.Second, 8 * time.Second},
	}
	for _, test := range tests {
		draw := 0.0
		g := New(Config{Rand: func() float64 { return draw }})
		if got := g.backoff(test.attempts, test.asked); got != test.least {
			t.Errorf("after %d attempts, asked for %v: at least %v, want %v", test.attempts, test.asked, got, test.least)
		}
		draw = 1
		if got := g.backoff(test.attempts, test.asked); got != test.most {
			t.Errorf("after %d attempts, asked for %v: at most %v, want %v", test.attempts, test.asked, got, test.most)
		}
	}
}

// TestConcurrency checks that concurrency stays within the configured limit, and that all calls are
// made.
func TestConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var now, most, calls atomic.Int64
		m := New(Config{Concurrency: 3}).Model(modelFunc(func(ctx context.Context) (llm.Response, error) {
			defer now.Add(-1)
			for n := now.Add(1); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			calls.Add(1)
			return llm.Response{Text: "ok", Finish: llm.FinishStop}, sleep(ctx, time.Duration(rand.IntN(1000))*time.Millisecond)
		}), llm.Facts{})
		var g errgroup.Group
		for range 200 {
			g.Go(func() error { _, err := m.Generate(t.Context(), request(1), nil); return err })
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if most.Load() != 3 || calls.Load() != 200 {
			t.Errorf("%d at once, %d in all; want 3 and 200", most.Load(), calls.Load())
		}
	})
}

type modelFunc func(context.Context) (llm.Response, error)

func (modelFunc) Model() string { return "func/model" }

func (f modelFunc) Generate(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	return f(ctx)
}

// TestRates checks that calls keep to the endpoint's rate limits: they wait, or fail at once if
// waiting is futile.
func TestRates(t *testing.T) {
	tokens := request(1).InputTokens() + request(1).MaxTokens
	for name, config := range map[string]Config{"requests": {Requests: 2}, "tokens": {Tokens: 2*tokens + 1}, "both": {Requests: 2, Tokens: 100 * tokens}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				inner := new(llmtest.Scripted)
				m := New(config).Model(inner, llm.Facts{})
				start := time.Now()
				for i, want := range []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute} {
					if kind := asks(t.Context(), m, 1); kind != "" {
						t.Fatalf("call %d: %q", i, kind)
					}
					if elapsed := time.Since(start); elapsed != want {
						t.Errorf("call %d was made after %v, want %v", i, elapsed, want)
					}
				}
				asks(t.Context(), m, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				before := time.Now()
				_, err := m.Generate(ctx, request(4), nil)
				e, _ := errors.AsType[*llm.Error](err)
				if e == nil || e.Kind != llm.RateLimited || e.Usage.Calls != 0 || time.Since(before) != 0 || len(inner.Requests()) != 6 {
					t.Errorf("%v after %v, want %q at once and no call", err, time.Since(before), llm.RateLimited)
				}
			})
		})
	}
}

// TestRateUnderOneRequest checks that a request with more tokens than the limit per minute is still
// made, with a delay.
func TestRateUnderOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := New(Config{Tokens: 100}).Model(new(llmtest.Scripted), llm.Facts{})
		start := time.Now()
		for range 3 {
			if kind := asks(t.Context(), m, 1); kind != "" {
				t.Fatal(kind)
			}
		}
		if elapsed := time.Since(start); elapsed < 4*time.Minute || elapsed > 8*time.Minute {
			t.Errorf("three requests of more than 200 tokens, at 100 a minute, took %v", elapsed)
		}
	})
}

// TestAnyOrder checks the limits and the sums for random sequences of outcomes.
func TestAnyOrder(t *testing.T) {
	kinds := []llm.ErrorKind{"", "", llm.RateLimited, llm.ServerError, llm.BrokeOff, llm.BadKey, llm.TimedOut}
	for seed := range uint64(300) {
		bubble(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 1))
			g := New(Config{Concurrency: 2, OpenAfter: 4, OpenFor: 5 * time.Second, Requests: 30, Rand: draw.Float64})
			for range 10 {
				calls := 0
				m := g.Model(modelFunc(func(ctx context.Context) (llm.Response, error) {
					calls++
					if err := sleep(ctx, time.Duration(draw.IntN(3000))*time.Millisecond); err != nil {
						return llm.Response{}, err
					}
					if kind := kinds[draw.IntN(len(kinds))]; kind != "" {
						return llm.Response{}, waits(kind, time.Duration(draw.IntN(4))*time.Second)
					}
					return llm.Response{Text: "ok", Finish: llm.FinishStop}, nil
				}), llm.Facts{})
				attempts, deadline := 1+draw.IntN(5), time.Duration(1+draw.IntN(20))*time.Second
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				start := time.Now()
				r, err := m.Generate(ctx, request(attempts), nil)
				spent := r.Usage.Calls
				if e, _ := errors.AsType[*llm.Error](err); e != nil {
					spent = e.Usage.Calls
				}
				if calls > attempts || spent != calls || time.Since(start) > deadline || err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
					t.Errorf("seed %d: %d calls of %d allowed, %d told, after %v of %v: %v", seed, calls, attempts, spent, time.Since(start), deadline, err)
				}
				cancel()
			}
			synctest.Wait()
		})
	}
}

func TestNewRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative limit is taken")
		}
	}()
	New(Config{Concurrency: -1})
}
