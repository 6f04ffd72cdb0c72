package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
)

// A witness is an observer that keeps what it is told.
type witness struct {
	mu       sync.Mutex
	begun    []ObservedRun
	steps    []run.Event
	outcomes []RunOutcome
	calls    []ObservedCall
	step     func() // called at each step; may be nil
}

func (w *witness) BeginRun(ctx context.Context, r ObservedRun) (context.Context, RunObserver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, r)
	return ctx, w
}

func (w *witness) BeginCall(ctx context.Context, c ObservedCall) (context.Context, func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	return ctx, func(error) {}
}

func (w *witness) Trace() string { return "trace-1" }

func (w *witness) Step(e run.Event) {
	w.mu.Lock()
	w.steps = append(w.steps, e)
	w.mu.Unlock()
	if w.step != nil {
		w.step()
	}
}

func (w *witness) Within(ctx context.Context, _ string) context.Context { return ctx }
func (w *witness) FirstText(string)                                     {}

func (w *witness) End(o RunOutcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes = append(w.outcomes, o)
}

// observed returns an engine with the handbook that w observes.
func observed(t *testing.T, w *witness) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: t.TempDir(), Observer: w, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ingestPaths(t, e, "testdata/handbook")
	return e
}

// TestObserver checks what an observer is told of a run that is interrupted and resumed.
func TestObserver(t *testing.T) {
	t.Parallel()
	w := &witness{}
	e := observed(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	searches := watch(t, e, func(context.Context, assay.Query) error { cancel(); return ctx.Err() })
	_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion, Strategy: "static"})
	stopped, ok := errors.AsType[*RunError](err)
	if !ok || !stopped.Resumable {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	searches.before = nil
	for _, err := range e.Resume(t.Context(), assay.Local(), stopped.Run) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(w.begun) != 2 || len(w.outcomes) != 2 {
		t.Fatalf("told of %d runs and %d outcomes, want 2", len(w.begun), len(w.outcomes))
	}
	if first := w.begun[0]; first.ID != stopped.Run || first.Resumed || first.Trace != "" || first.Strategy != "static" || first.Question != someQuestion {
		t.Errorf("the run began as %+v", first)
	}
	if second := w.begun[1]; second.ID != stopped.Run || !second.Resumed || second.Trace != "trace-1" {
		t.Errorf("the run continued as %+v", second)
	}
	if w.outcomes[0].State != assay.RunActive || w.outcomes[1].State != assay.RunDone || w.outcomes[1].Answer.Run != stopped.Run {
		t.Errorf("outcomes %s, %s", w.outcomes[0].State, w.outcomes[1].State)
	}
	seen := w.outcomes[1].Observation
	if seen.Run != stopped.Run || !seen.Searched || seen.Status != assay.Answered || seen.Claims == 0 || seen.Fault != "" {
		t.Errorf("the observation is %+v", seen)
	}
	all, err := e.Observations(t.Context(), assay.Local(), w.outcomes[1].Observation.Created.AddDate(0, 0, -1), nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d observations, %v", len(all), err)
	}
	if got, want := seen.TopRelevance, all[0].TopRelevance; got != want || seen.Claims != all[0].Claims || seen.Rejected != all[0].Rejected || seen.FirstTry != all[0].FirstTry {
		t.Errorf("told %+v, the journal gives %+v", seen, all[0])
	}
}

// TestObserverFork checks that a fork is told as a new run.
func TestObserverFork(t *testing.T) {
	t.Parallel()
	w := &witness{}
	e := observed(t, w)
	a := ask(t, e, someQuestion)
	for _, err := range e.Fork(t.Context(), assay.Local(), a.Run, "", nil) {
		if err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Fatal(err)
		}
	}
	if i := slices.IndexFunc(w.begun, func(r ObservedRun) bool { return r.Resumed || r.Trace != "" }); i >= 0 {
		t.Errorf("told of %+v", w.begun[i])
	}
}

// pairs returns what w was told of each run: how it began and how it ended.
func (w *witness) pairs(t *testing.T, want ...assay.RunState) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := make([]assay.RunState, len(w.outcomes))
	for i, o := range w.outcomes {
		got[i] = o.State
		if (o.State == assay.RunFailed) != (o.Err != nil) && o.State != assay.RunActive {
			t.Errorf("a run is %s with the error %v", o.State, o.Err)
		}
	}
	if len(w.begun) != len(want) || !slices.Equal(got, want) {
		t.Errorf("told of %d runs, which are %v; want %v", len(w.begun), got, want)
	}
}

// TestObserverHost checks that each run of a host begins and ends once for the observer, and how.
func TestObserverHost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*HostConfig) // of the host that resumes the run; nil: nothing
		want   assay.RunState
	}{
		"resumed": {nil, assay.RunDone},
		"not resumed": {func(c *HostConfig) {
			c.Recheck = func(context.Context, identity.Grant) error { return assay.ErrUnauthenticated }
		}, assay.RunFailed},
		"later": {func(c *HostConfig) {
			c.Recheck = func(context.Context, identity.Grant) error { return assay.ErrUnavailable }
		}, assay.RunActive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, g, first := t.TempDir(), newGate(), &witness{}
			h := liveHost(t, dir, g, func(c *HostConfig) { c.Observer = first })
			s := annOf(t, h)
			req := manyRequest()
			req.IdempotencyKey = "once"
			id := mustBegin(t, s, req)
			if again := mustBegin(t, s, req); again != id {
				t.Errorf("the same request began %s and %s", id, again)
			}
			letOneSearch(t, s, g, id)
			if err := h.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			first.pairs(t, assay.RunActive)
			second := &witness{}
			other := liveHost(t, dir, nil, func(c *HostConfig) {
				c.Observer = second
				if tt.change != nil {
					tt.change(c)
				}
			})
			if err := other.ResumeInterrupted(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.live.work.Wait()
			second.pairs(t, tt.want)
			if b := second.begun[0]; b.ID != id || !b.Resumed || b.Trace != "trace-1" {
				t.Errorf("the run continued as %+v", b)
			}
		})
	}
}

// TestObserverPanic checks that a run that a panic of its strategy has failed is told as failed.
func TestObserverPanic(t *testing.T) {
	t.Parallel()
	w := &witness{}
	s := annOf(t, liveHost(t, t.TempDir(), nil, func(c *HostConfig) {
		c.Observer = w
		c.Retriever = func(assay.Retriever) assay.Retriever { panic("a secret") }
	}))
	if _, err := last(s.Follow(t.Context(), mustBegin(t, s, manyRequest()), -1)); err == nil {
		t.Error("the run did not fail")
	}
	w.pairs(t, assay.RunFailed)
}

// refusingRuns is a Runs of which one method fails.
type refusingRuns struct {
	store.Runs
	at string
}

func (r refusingRuns) fails(at string) error {
	if r.at == at {
		return assay.ErrFull
	}
	return nil
}

func (r refusingRuns) Accept(ctx context.Context, a assay.Run, p store.Promise, records ...assay.Record) (store.Lease, error) {
	if err := r.fails("Accept"); err != nil {
		return nil, err
	}
	return r.Runs.Accept(ctx, a, p, records...)
}

func (r refusingRuns) Create(ctx context.Context, a assay.Run, records ...assay.Record) (store.Lease, error) {
	if err := r.fails("Create"); err != nil {
		return nil, err
	}
	return r.Runs.Create(ctx, a, records...)
}

func (r refusingRuns) Adopt(ctx context.Context, id string) error {
	if err := r.fails("Adopt"); err != nil {
		return err
	}
	return r.Runs.Adopt(ctx, id)
}

// TestObserverRefused checks that a run that the store refuses ends for the observer: as failed if
// it does not exist, and as active if it can be resumed.
func TestObserverRefused(t *testing.T) {
	t.Parallel()
	dir, g := t.TempDir(), newGate()
	h := liveHost(t, dir, g, nil)
	s := annOf(t, h)
	id := mustBegin(t, s, manyRequest())
	letOneSearch(t, s, g, id)
	if err := h.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	s = annOf(t, liveHost(t, dir, nil, func(c *HostConfig) { c.Observer = w }))
	c, err := s.enter(t.Context(), "Begin")
	if err != nil {
		t.Fatal(err)
	}
	defer c.done()
	runs := c.engine.runs
	c.engine.runs = refusingRuns{runs, "Create"}
	_, err = c.engine.Answer(t.Context(), staff, manyRequest())
	wantErr(t, "Answer", err, assay.ErrFull)
	w.pairs(t, assay.RunFailed)
	c.engine.runs = refusingRuns{runs, "Accept"}
	_, err = s.Begin(t.Context(), manyRequest())
	wantErr(t, "Begin", err, assay.ErrFull)
	w.pairs(t, assay.RunFailed, assay.RunFailed)
	c.engine.runs = refusingRuns{runs, "Adopt"}
	wantErr(t, "BeginResume", s.BeginResume(t.Context(), id), assay.ErrFull)
	w.pairs(t, assay.RunFailed, assay.RunFailed, assay.RunActive)
}

// TestObservedContext checks that the context of an observed run has the observer's values, and the end
// and cause of the context in which the run is driven.
func TestObservedContext(t *testing.T) {
	t.Parallel()
	type key string
	begun, leave := context.WithCancelCause(context.WithValue(context.WithValue(t.Context(), key("a"), 1), key("b"), 1))
	o := &observedRun{values: context.WithoutCancel(context.WithValue(begun, key("a"), 2))}
	driven, end := context.WithCancelCause(context.WithValue(t.Context(), key("c"), 3))
	inner, stop := context.WithCancel(o.of(driven))
	defer stop()
	leave(assay.ErrStopped)
	if inner.Err() != nil || inner.Value(key("a")) != 2 || inner.Value(key("b")) != 1 || inner.Value(key("c")) != 3 {
		t.Errorf("error %v, values %v %v %v", inner.Err(), inner.Value(key("a")), inner.Value(key("b")), inner.Value(key("c")))
	}
	end(assay.ErrFull)
	<-inner.Done()
	if cause := context.Cause(inner); cause != assay.ErrFull {
		t.Errorf("the cause is %v", cause)
	}
	if cause := context.Cause(o.of(driven)); cause != assay.ErrFull {
		t.Errorf("the cause of the context itself is %v", cause)
	}
}

// TestObserverHidden checks that the texts of steps are kept from the observer once a canary was
// found in the run.
func TestObserverHidden(t *testing.T) {
	t.Parallel()
	w := &witness{}
	o := &observedRun{observer: w, written: map[string]bool{}}
	tripped := false
	o.hideIf(func() bool { return tripped })
	o.step(run.Event{Phase: run.StepEnd, Path: "a", Input: []byte(`"in"`), Output: []byte(`"out"`)})
	tripped = true
	o.step(run.Event{Phase: run.StepEnd, Path: "b", Input: []byte(`"in"`), Output: []byte(`"out"`)})
	if w.steps[0].Input == nil || w.steps[1].Input != nil || w.steps[1].Output != nil {
		t.Errorf("told of %+v", w.steps)
	}
}

// TestObserverSlow checks that a slow observer is told no more steps, and still the end.
func TestObserverSlow(t *testing.T) {
	t.Parallel()
	w := &witness{}
	o := &observedRun{observer: w, written: map[string]bool{}}
	o.step(run.Event{Phase: run.StepStart, Path: "a"})
	o.spent.Store(int64(observerPatience)) // its calls took that long
	o.step(run.Event{Phase: run.StepStart, Path: "b"})
	o.step(run.Event{Phase: run.StepStart, Path: "c"})
	if len(w.steps) != 2 {
		t.Errorf("told of %d steps, want those before it was found slow", len(w.steps))
	}
	o.end(assay.Answer{Run: "r"}, nil)
	if len(w.outcomes) != 1 {
		t.Error("not told of the end")
	}
}

// TestObserverEmbeddings checks that calls of an encoder are told.
func TestObserverEmbeddings(t *testing.T) {
	t.Parallel()
	w := &witness{}
	e := &Engine{config: Config{Observer: w}}
	_, end := e.observeCall(t.Context(), ObservedCall{CallEmbed, "m", 2})
	end(nil)
	if len(w.calls) != 1 || w.calls[0] != (ObservedCall{CallEmbed, "m", 2}) {
		t.Errorf("told of %+v", w.calls)
	}
}
