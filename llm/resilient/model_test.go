package resilient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const grade = `{"verdict":"sufficient","relevant_chunks":["c1"],"missing":[],"cited":[1,2]}`

func request(attempts int) llm.Request {
	return llm.Request{System: "You grade.", Messages: []llm.Message{{Speaker: llm.User, Text: "Is it enough?"}}, MaxTokens: 200, Attempts: attempts}
}

// bubble runs a test with a fake clock.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// whole is a Guard's Rand that draws the longest wait.
func whole() float64 { return 0.999999999 }

// A sequence is a model with a list of outcomes. The last one repeats.
type sequence struct {
	llmtest.Scripted
	steps []error // nil means a reply
}

func newSequence(steps ...error) *sequence {
	s := &sequence{steps: steps}
	s.Reply = func(llm.Request) (llm.Response, error) {
		err := s.steps[0]
		if len(s.steps) > 1 {
			s.steps = s.steps[1:]
		}
		return llm.Response{Text: "fine", Usage: assay.Usage{InputTokens: 100, OutputTokens: 10}}, err
	}
	return s
}

func failed(kind llm.ErrorKind) *llm.Error {
	return &llm.Error{Model: "scripted/model", Kind: kind, Message: "no", Usage: assay.Usage{Calls: 1}}
}

func waits(kind llm.ErrorKind, wait time.Duration) *llm.Error {
	e := failed(kind)
	e.RetryAfter = wait
	return e
}

// TestAttempts checks that only temporary errors are retried, and no more often than the request
// allows.
func TestAttempts(t *testing.T) {
	for _, kind := range []llm.ErrorKind{
		llm.RateLimited, llm.Overloaded, llm.ServerError, llm.Unreachable, llm.TimedOut, llm.BrokeOff, llm.Open, llm.BadKey, llm.NoModel,
		llm.BadRequest, llm.TooLong, llm.NoQuota, llm.Filtered, llm.TooLarge, llm.BadReply, "banana",
	} {
		for _, attempts := range []int{-1, 0, 1, 2, 4, 9} {
			bubble(t, func(t *testing.T) {
				inner := newSequence(failed(kind))
				_, err := New(Config{OpenAfter: 100}).Model(inner, llm.Facts{}).Generate(t.Context(), request(attempts), nil)
				want := 1
				if kind.Temporary() {
					want = max(1, attempts)
				}
				if n := len(inner.Requests()); n != want {
					t.Errorf("%s, %d attempts allowed: %d made, want %d", kind, attempts, n, want)
				}
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Usage.Calls != want || len(e.Attempts) != want-1 || !errors.Is(err, assay.ErrUnavailable) {
					t.Errorf("%s: %v with %+v, want an error with the usage of %d calls", kind, err, e, want)
				}
				if kind == "banana" && e.Kind != llm.BadReply {
					t.Errorf("kind %q", e.Kind)
				}
			})
		}
	}
}

// TestUsageAddsUp checks that the usage of a call is the sum of its attempts, with their price.
func TestUsageAddsUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := failed(llm.BrokeOff)
		broken.Usage = assay.Usage{Calls: 1, InputTokens: 100, OutputTokens: 5}
		inner := newSequence(failed(llm.RateLimited), broken, failed(llm.BrokeOff), nil)
		facts := llm.Facts{Window: 1000, Priced: true, Input: 1_000_000, Output: 10_000_000}
		m := New(Config{}).Model(inner, facts)
		req := request(4)
		r, err := m.Generate(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		guessed := req.InputTokens() // of the attempt that broke off without reporting usage
		want := assay.Usage{Calls: 4, InputTokens: 200 + guessed, OutputTokens: 15, CostMicros: int64(200+guessed) + 150}
		if diff := cmp.Diff(want, r.Usage); diff != "" || !r.Estimated {
			t.Errorf("usage (-want +got), estimated %v:\n%s", r.Estimated, diff)
		}
		attempts := []llm.Attempt{{Kind: llm.RateLimited, Message: "no"}, {Kind: llm.BrokeOff, Message: "no"}, {Kind: llm.BrokeOff, Message: "no"}}
		if diff := cmp.Diff(attempts, r.Attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if llm.FactsOf(m) != facts || m.Model() != inner.Model() {
			t.Errorf("%s with %+v", m.Model(), llm.FactsOf(m))
		}
		for _, req := range inner.Requests() {
			if req.Attempts != 1 {
				t.Errorf("a provider is asked for %d attempts", req.Attempts)
			}
		}
	})
}

// TestEstimates checks that estimated tokens do not exceed the requested maximum.
func TestEstimates(t *testing.T) {
	long := strings.Repeat("word ", 10_000)
	for name, inner := range map[string]func(stream func(llm.Delta)) (llm.Response, error){
		"no usage told": func(func(llm.Delta)) (llm.Response, error) { return llm.Response{Text: long}, nil },
		"estimated by the provider": func(func(llm.Delta)) (llm.Response, error) {
			return llm.Response{Text: long, Estimated: true, Usage: assay.Usage{Calls: 1, InputTokens: 10, OutputTokens: 10_000}}, nil
		},
		"too large": func(stream func(llm.Delta)) (llm.Response, error) {
			stream(llm.Delta{Text: long})
			return llm.Response{}, failed(llm.TooLarge)
		},
		"estimated in an error": func(func(llm.Delta)) (llm.Response, error) {
			e := failed(llm.TooLarge)
			e.Usage = assay.Usage{Calls: 1, InputTokens: 10, OutputTokens: 10_000}
			return llm.Response{}, e
		},
	} {
		m := New(Config{}).Model(streamer(func(_ int, stream func(llm.Delta)) (llm.Response, error) { return inner(stream) }), llm.Facts{})
		r, err := m.Generate(t.Context(), request(1), nil)
		usage := r.Usage
		if e, _ := errors.AsType[*llm.Error](err); e != nil {
			usage = e.Usage
		}
		if usage.OutputTokens != request(1).MaxTokens || usage.InputTokens == 0 || err == nil && !r.Estimated {
			t.Errorf("%s: %+v, estimated %v; want %d tokens of output", name, usage, r.Estimated, request(1).MaxTokens)
		}
	}
}

// TestWaits checks that a call waits as long as the server asks, and not at all if that is futile.
func TestWaits(t *testing.T) {
	tests := map[string]struct {
		steps    []error
		deadline time.Duration
		elapsed  time.Duration // just below the actual time
		calls    int
		kind     llm.ErrorKind // "" means a reply
	}{
		"doubles":              {[]error{failed(llm.ServerError), failed(llm.ServerError), failed(llm.ServerError), nil}, time.Hour, 7 * time.Second, 4, ""},
		"as the server asks":   {[]error{waits(llm.RateLimited, 30*time.Second), nil}, time.Hour, 31 * time.Second, 2, ""},
		"longer than it waits": {[]error{waits(llm.RateLimited, 61*time.Second), nil}, time.Hour, 0, 1, llm.RateLimited},
		"past the deadline":    {[]error{waits(llm.RateLimited, 30*time.Second), nil}, 20 * time.Second, 0, 1, llm.RateLimited},
		"own wait past it":     {[]error{failed(llm.Overloaded), nil}, 900 * time.Millisecond, 0, 1, llm.Overloaded},
		"for ages":             {[]error{waits(llm.RateLimited, 1<<63-1), nil}, time.Hour, 0, 1, llm.RateLimited},
		"a wait below nothing": {[]error{waits(llm.RateLimited, -time.Hour), nil}, time.Hour, time.Second, 2, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				inner, start := newSequence(test.steps...), time.Now()
				_, err := New(Config{Rand: whole}).Model(inner, llm.Facts{}).Generate(ctx, request(4), nil)
				e, _ := errors.AsType[*llm.Error](err)
				if n := len(inner.Requests()); n != test.calls || (err == nil) != (test.kind == "") || e != nil && e.Kind != test.kind {
					t.Errorf("%d calls, %v; want %d and %q", n, err, test.calls, test.kind)
				}
				if elapsed := time.Since(start); elapsed > test.elapsed || elapsed < test.elapsed-10*time.Millisecond {
					t.Errorf("it took %v, want %v", elapsed, test.elapsed)
				}
			})
		})
	}
}

// TestTimeout checks that an attempt that takes too long is cancelled and retried.
func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner := &llmtest.Scripted{}
		m := New(Config{Timeout: time.Minute}).Model(llmtest.HostileModel(inner, "blocks every other time"), llm.Facts{})
		start := time.Now()
		r, err := m.Generate(t.Context(), request(2), nil)
		if err != nil || r.Usage.Calls != 2 || len(r.Attempts) != 1 || r.Attempts[0].Kind != llm.TimedOut {
			t.Errorf("%+v, %v; want a reply after an attempt that timed out", r, err)
		}
		if elapsed := time.Since(start); elapsed < time.Minute || elapsed > time.Minute+time.Second {
			t.Errorf("it took %v", elapsed)
		}
	})
}

// TestCancelled checks that a cancelled call ends at once at any stage, and reports its usage.
func TestCancelled(t *testing.T) {
	tests := map[string]struct {
		config Config
		model  llm.Model
		spent  int
	}{
		"while asking":             {Config{}, llmtest.HostileModel(new(llmtest.Scripted), "blocks until the end"), 1},
		"while it streams":         {Config{}, llmtest.HostileModel(new(llmtest.Scripted), "streams forever, slowly"), 1},
		"while waiting to retry":   {Config{}, newSequence(waits(llm.RateLimited, 50*time.Second)), 1},
		"while waiting for a turn": {Config{Concurrency: 1}, new(llmtest.Scripted), 0},
		"while pacing":             {Config{Requests: 1}, new(llmtest.Scripted), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := New(test.config)
				other, stop := context.WithCancel(t.Context())
				defer stop()
				if test.config.Concurrency == 1 { // a call that does not end takes the only slot
					go g.Model(llmtest.HostileModel(new(llmtest.Scripted), "blocks until the end"), llm.Facts{}).Generate(other, request(1), nil)
					synctest.Wait()
				}
				if test.config.Requests == 1 {
					if _, err := g.Model(new(llmtest.Scripted), llm.Facts{}).Generate(other, request(1), nil); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel)
				start := time.Now()
				_, err := g.Model(test.model, llm.Facts{}).Generate(ctx, request(4), func(llm.Delta) {})
				e, _ := errors.AsType[*llm.Error](err)
				if elapsed := time.Since(start); !errors.Is(err, context.Canceled) || elapsed != 10*time.Second {
					t.Errorf("%v after %v, want context.Canceled after 10 s", err, elapsed)
				}
				if test.spent == 0 && e != nil || test.spent > 0 && (e == nil || e.Usage.Calls != test.spent) {
					t.Errorf("spent %+v, want %d calls", e, test.spent)
				}
			})
		})
	}
}

// TestHostileModels checks that for any behaviour of a model, a guarded one keeps the contract,
// makes no more attempts than allowed, and ends when its context does.
func TestHostileModels(t *testing.T) {
	for _, fault := range llmtest.ModelFaults {
		t.Run(string(fault), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				inner := &llmtest.Scripted{Reply: llmtest.Say(grade), Known: llm.Facts{Priced: true, Input: 1e9, Output: 1e9}}
				g := New(Config{})
				m := g.Model(&counted{inner: llmtest.HostileModel(inner, fault)}, llm.Facts{})
				for _, attempts := range []int{1, 4} {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					start := time.Now()
					count := m.(*model).inner.(*counted)
					count.calls = 0
					r, err := m.Generate(ctx, request(attempts), func(llm.Delta) {})
					if count.calls > attempts {
						t.Errorf("%d calls, %d are allowed", count.calls, attempts)
					}
					if elapsed := time.Since(start); elapsed > 2*time.Minute {
						t.Errorf("it took %v", elapsed)
					}
					checkKept(ctx, t, r, err, count.calls)
					cancel()
				}
			})
		})
	}
}

type counted struct {
	inner llm.Model
	calls int
}

func (c *counted) Model() string { return c.inner.Model() }

func (c *counted) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	c.calls++
	return c.inner.Generate(ctx, req, stream)
}

func (c *counted) Facts() llm.Facts { return llm.FactsOf(c.inner) }

// checkKept checks the contract of llm.Model.
func checkKept(ctx context.Context, t *testing.T, r llm.Response, err error, calls int) {
	t.Helper()
	usage := r.Usage
	if err != nil {
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e == nil || ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			t.Fatalf("the error is a %T: %v", err, err)
		}
		if len(e.Message) > 1000 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\n\x00") || strings.Contains(err.Error(), llmtest.Canary) || e.RetryAfter < 0 || !known(e.Kind) {
			t.Errorf("the error is %.300q with %+v", e.Message, e.Kind)
		}
		usage = e.Usage
		if r.Text != "" || r.Calls != nil {
			t.Errorf("an error and a reply: %+v", r)
		}
	}
	if usage.Calls != calls || usage.InputTokens < 0 || usage.InputTokens > calls*maxTokens || usage.OutputTokens < 0 || usage.CostMicros < 0 || usage.Searches != 0 {
		t.Errorf("usage %+v of %d calls", usage, calls)
	}
	ids := map[string]bool{}
	for _, c := range r.Calls {
		if c.ID == "" || ids[c.ID] || !utf8.ValidString(c.ID+c.Name+c.Arguments) {
			t.Errorf("call %q", c)
		}
		ids[c.ID] = true
	}
	if len(r.Calls) > maxCalls || len(r.Text) > 8<<20 || !utf8.ValidString(r.Text+r.Served) || len(r.Served) > 1000 || r.Cached < 0 || len(r.Attempts) != max(0, calls-1) && err == nil {
		t.Errorf("%d calls, %d bytes, served by %.100q, %d cached, %d attempts", len(r.Calls), len(r.Text), r.Served, r.Cached, len(r.Attempts))
	}
	if err == nil && !slices.Contains([]llm.Finish{llm.FinishStop, llm.FinishLength, llm.FinishTools, llm.FinishRefused, llm.FinishOther}, r.Finish) {
		t.Errorf("finish %q", r.Finish)
	}
}

// TestPassesOn checks that a valid reply is passed on unchanged.
func TestPassesOn(t *testing.T) {
	want := llm.Response{Text: "Five — 漢字.", Finish: llm.FinishTools, Served: "gpt-4.1", Cached: 7, Usage: assay.Usage{Calls: 1, InputTokens: 20, OutputTokens: 3},
		Calls: []llm.ToolCall{{ID: "a", Name: "search", Arguments: `{"q":1}`, Opaque: "sig"}, {ID: "b", Name: "search", Arguments: `{}`}}}
	inner := &llmtest.Scripted{Reply: func(llm.Request) (llm.Response, error) { return want, nil }}
	var told []string
	got, err := New(Config{}).Model(inner, llm.Facts{}).Generate(t.Context(), request(1), func(d llm.Delta) { told = append(told, d.Text) })
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"Five ", "— ", "漢字."}, told); diff != "" {
		t.Errorf("the stream was told (-want +got):\n%s", diff)
	}
}

// TestStreamsOnce checks that the stream receives a text only once.
func TestStreamsOnce(t *testing.T) {
	type try struct {
		pieces []string
		text   string // of the reply; empty if it broke off
	}
	tests := map[string]struct {
		tries []try
		told  []string
	}{
		"the same again":      {[]try{{[]string{"Five ", "days"}, ""}, {[]string{"Five", " days may", " be"}, "Five days may be"}}, []string{"Five ", "days", " may", " be"}},
		"something else":      {[]try{{[]string{"Five ", "days"}, ""}, {[]string{"Five", " weeks", " or so"}, "Five weeks or so"}}, []string{"Five ", "days"}},
		"shorter, then else":  {[]try{{[]string{"abc"}, ""}, {[]string{"ab"}, ""}, {[]string{"a", "b", "c", "d"}, "abcd"}}, []string{"abc", "d"}},
		"told at the end":     {[]try{{nil, ""}, {nil, "all of it"}}, []string{"all of it"}},
		"told in part":        {[]try{{[]string{"all "}, "all of it"}}, []string{"all ", "of it"}},
		"another than it was": {[]try{{[]string{"one"}, "two"}}, []string{"one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := New(Config{}).Model(streamer(func(n int, stream func(llm.Delta)) (llm.Response, error) {
					try := test.tries[n]
					for _, p := range try.pieces {
						stream(llm.Delta{Text: p})
					}
					if try.text == "" {
						return llm.Response{}, failed(llm.BrokeOff)
					}
					return llm.Response{Text: try.text, Finish: llm.FinishStop}, nil
				}), llm.Facts{})
				var told []string
				r, err := m.Generate(t.Context(), request(5), func(d llm.Delta) { told = append(told, d.Text) })
				if err != nil || r.Text != test.tries[len(test.tries)-1].text {
					t.Errorf("%+v, %v", r, err)
				}
				if diff := cmp.Diff(test.told, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// streamer returns a model that calls f with the number of the call, from 0.
func streamer(f func(n int, stream func(llm.Delta)) (llm.Response, error)) llm.Model {
	return &streaming{f: f}
}

type streaming struct {
	f func(int, func(llm.Delta)) (llm.Response, error)
	n int
}

func (s *streaming) Model() string { return "streaming/model" }

func (s *streaming) Generate(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	s.n++
	return s.f(s.n-1, stream)
}

// TestListenerPanics checks that a panic of the stream callback propagates and is not attributed to
// the model.
func TestListenerPanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	New(Config{}).Model(new(llmtest.Scripted), llm.Facts{}).Generate(t.Context(), request(3), func(llm.Delta) { panic("mine") })
	t.Error("no panic")
}

// TestIdentified checks that calls get distinct identifiers.
func TestIdentified(t *testing.T) {
	tests := map[string][2][]string{
		"kept":     {{"a", "b"}, {"a", "b"}},
		"twice":    {{"a", "a", "b", "a"}, {"a", "call_2", "b", "call_4"}},
		"missing":  {{"", "", "x"}, {"call_1", "call_2", "x"}},
		"made up":  {{"", "call_1", "call_2", ""}, {"call_3", "call_1", "call_2", "call_4"}},
		"no UTF-8": {{"\xff", "\xfe"}, {"\uFFFD", "call_2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var calls []llm.ToolCall
			for i, id := range test[0] {
				calls = append(calls, llm.ToolCall{ID: id, Name: fmt.Sprint(i)})
			}
			var got []string
			for i, c := range identified(calls) {
				if got = append(got, c.ID); c.Name != fmt.Sprint(i) {
					t.Errorf("call %d is %q", i, c.Name)
				}
			}
			if diff := cmp.Diff(test[1], got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}
