package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/stats"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/run"
)

// An Observer is told of the runs of an engine and of its calls to encoders and rerankers. Package
// telemetry implements it.
//
// Its methods, and those of a RunObserver, are called in the goroutines of the runs and must return
// at once. They cannot change a run. After a panic of an observer, or if its calls have taken more
// than a second altogether, it is told no more steps of that run. Observers are safe for concurrent
// use.
type Observer interface {
	// BeginRun is called before the first step of a run, or of a run that is resumed. The run is
	// performed in the returned context, which must be derived from ctx. A nil RunObserver ignores
	// the run.
	BeginRun(ctx context.Context, r ObservedRun) (context.Context, RunObserver)

	// BeginCall is called before an encoder or a reranker is called. The call is made in the returned
	// context, and the returned function is called with its error when it has ended.
	BeginCall(ctx context.Context, c ObservedCall) (context.Context, func(error))
}

// A RunObserver is told of one run, or of one continuation of it.
type RunObserver interface {
	// Trace identifies the run in the observer's terms. It is stored with the run, and is the Trace
	// of the ObservedRun when the run is resumed.
	Trace() string

	// Step is called when a step starts and when it ends, for steps that are taken from the journal
	// too. Calls are sequential.
	Step(e run.Event)

	// Within returns the context in which the step at a path is performed. It is called after Step
	// for the start of the step.
	Within(ctx context.Context, path string) context.Context

	// FirstText is called once for each model call whose text is streamed, when the first piece
	// arrives. path is that of the call.
	FirstText(path string)

	// End is called once, when the run has ended or was interrupted.
	End(o RunOutcome)
}

// An ObservedRun is a run that begins or continues.
type ObservedRun struct {
	ID       string
	Strategy string // that was requested
	Question string
	Resumed  bool
	Review   bool   // its steps are those of a reviewer's decision about the answer
	Trace    string // of the run when it began; empty: it was not observed, or it begins now
}

// A RunOutcome is how a run, or a continuation of it, has ended.
type RunOutcome struct {
	// State is RunDone, RunFailed, RunSuspended, or RunActive if the run was interrupted and can be
	// resumed.
	State  assay.RunState
	Answer assay.Answer // as it is shown to the user; zero if there is none
	Err    error

	// Observation holds the measurements of the whole run, those of steps before a resume included.
	// Its Citations, Stale and Fault are not set.
	Observation Observation
}

// An ObservedCall is a call of an encoder or a reranker.
type ObservedCall struct {
	Kind  CallKind
	Model string // as its Model method returns it
	Texts int    // that are embedded or ordered
}

// A CallKind is the kind of an ObservedCall.
type CallKind string

// The kinds of calls.
const (
	CallEmbed  CallKind = "embed"
	CallRerank CallKind = "rerank"
)

// observerPatience is how long the calls of an observer may take in one run altogether.
const observerPatience = time.Second

// An observedRun tells the configured observer of one run. A nil observedRun tells nothing.
type observedRun struct {
	observer RunObserver
	values   context.Context // what the observer added to the context in which the run began
	run      assay.Run
	hidden   func() bool // the texts of steps must not be passed on; nil: they may

	silent atomic.Bool // the observer is told no more steps
	failed atomic.Bool // the observer panicked
	spent  atomic.Int64

	records []assay.Record // of the steps that ended, with the payloads that stats.Observe reads

	mu      sync.Mutex
	written map[string]bool // paths of the calls whose first text was reported
}

// observeRun tells the observer that a run begins. It returns nil if there is none.
func (e *Engine) observeRun(ctx context.Context, r assay.Run, req storedRequest, resumed bool) *observedRun {
	if e.config.Observer == nil {
		return nil
	}
	begun := ObservedRun{ID: r.ID, Strategy: req.Strategy, Question: r.Question, Resumed: resumed}
	if resumed {
		begun.Trace = req.Trace
	}
	within, o := e.observe(ctx, r, begun)
	if o != nil {
		o.values = context.WithoutCancel(within) // so that it has no cause of its own
	}
	return o
}

// of returns ctx with the values that the observer added.
func (o *observedRun) of(ctx context.Context) context.Context {
	if o == nil {
		return ctx
	}
	return valuesContext{ctx, o.values}
}

// A valuesContext is a context with the values of another.
type valuesContext struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c valuesContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// observeReview tells the observer that a reviewer's decision about a run is recorded.
func (e *Engine) observeReview(ctx context.Context, r assay.Run, req storedRequest) (context.Context, *observedRun) {
	if e.config.Observer == nil {
		return ctx, nil
	}
	return e.observe(ctx, r, ObservedRun{ID: r.ID, Strategy: req.Strategy, Review: true, Trace: req.Trace})
}

func (e *Engine) observe(ctx context.Context, r assay.Run, begun ObservedRun) (context.Context, *observedRun) {
	o := &observedRun{run: r, written: map[string]bool{}}
	within := ctx
	o.call(func() { within, o.observer = e.config.Observer.BeginRun(ctx, begun) })
	if o.observer == nil || o.failed.Load() {
		return ctx, nil
	}
	return within, o
}

// call calls the observer, unless it has failed or is slow.
func (o *observedRun) call(fn func()) {
	if o == nil || o.silent.Load() {
		return
	}
	o.guarded(fn)
}

// guarded calls fn and recovers from a panic of it.
func (o *observedRun) guarded(fn func()) {
	began := time.Now()
	defer func() {
		if recover() != nil {
			o.failed.Store(true)
			o.silent.Store(true)
		}
		if o.spent.Add(int64(time.Since(began))) > int64(observerPatience) {
			o.silent.Store(true)
		}
	}()
	fn()
}

// trace returns what is stored with the run.
func (o *observedRun) trace() (trace string) {
	o.call(func() { trace = o.observer.Trace() })
	return trace
}

// step tells the observer of a step.
func (o *observedRun) step(ev run.Event) {
	if o == nil {
		return
	}
	if ev.Phase == run.StepEnd {
		o.records = append(o.records, measured(o.run.ID, len(o.records), ev))
	}
	if o.hidden != nil && o.hidden() {
		ev.Input, ev.Output = nil, nil
	}
	o.call(func() { o.observer.Step(ev) })
}

// measured returns the record of a step with the payloads that stats.Observe reads.
func measured(id string, ordinal int, ev run.Event) assay.Record {
	rec := assay.Record{
		Run: id, Ordinal: ordinal, Path: ev.Path, Kind: ev.Kind, Model: ev.Model,
		Usage: ev.Usage, Started: ev.Started, Elapsed: ev.Elapsed, Active: ev.Active,
	}
	switch ev.Kind {
	case assay.StepVerify:
		rec.Input, rec.Output = ev.Input, ev.Output
	case assay.StepGrade, assay.StepTool, assay.StepModel:
		rec.Output = ev.Output
	}
	if ev.Err != nil {
		rec.Error = &assay.RecordedError{Message: ev.Err.Error()}
	}
	return rec
}

// within returns the function that returns the context in which a step is performed. It is nil if
// there is no observer.
func (o *observedRun) within() func(context.Context, string) context.Context {
	if o == nil {
		return nil
	}
	return func(ctx context.Context, path string) context.Context {
		inner := ctx
		o.call(func() { inner = o.observer.Within(ctx, path) })
		return inner
	}
}

// stored sets the run as it was stored.
func (o *observedRun) stored(r assay.Run) {
	if o != nil {
		o.run = r
	}
}

// hideIf keeps the inputs and outputs of further steps from the observer once hidden returns true,
// as after a canary was found.
func (o *observedRun) hideIf(hidden func() bool) {
	if o != nil {
		o.hidden = hidden
	}
}

// texts returns a function that tells the observer of the first piece of each text, before it calls
// written. It returns nil if written is nil, so that texts are not streamed for the observer alone.
func (o *observedRun) texts(written func(string, llm.Delta)) func(string, llm.Delta) {
	if o == nil || written == nil {
		return written
	}
	return func(path string, d llm.Delta) {
		if o.first(path) {
			o.call(func() { o.observer.FirstText(path) })
		}
		written(path, d)
	}
}

// first reports whether the call at path streams its first text.
func (o *observedRun) first(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written[path] {
		return false
	}
	o.written[path] = true
	return true
}

// end tells the observer how the run has ended. A run that ended with neither an answer nor an error
// has panicked.
func (o *observedRun) end(answer assay.Answer, err error) {
	if o == nil || o.failed.Load() {
		return
	}
	outcome := RunOutcome{State: assay.RunDone, Answer: answer, Err: err}
	failed, isRun := errors.AsType[*RunError](err)
	switch {
	case isRun && failed.Resumable, err == nil && answer.Run == "":
		outcome.State = assay.RunActive
	case err != nil:
		outcome.State = assay.RunFailed
	case answer.Status == assay.PendingReview:
		outcome.State = assay.RunSuspended
	}
	r := o.run
	r.State, r.Answer, r.Steps = outcome.State, nil, len(o.records)
	if err == nil && answer.Run != "" {
		r.Answer = &answer
	}
	outcome.Observation = stats.Observe(r, o.records, nil)
	outcome.Observation.Fault = "" // the records lack payloads
	o.guarded(func() { o.observer.End(outcome) })
}

// observeCall tells the observer of a call to an encoder or a reranker. The returned function must
// be called with the call's error.
func (e *Engine) observeCall(ctx context.Context, c ObservedCall) (within context.Context, end func(error)) {
	within, end = ctx, func(error) {}
	if e.config.Observer == nil {
		return within, end
	}
	defer func() {
		if recover() != nil {
			within, end = ctx, func(error) {}
		}
	}()
	inner, done := e.config.Observer.BeginCall(ctx, c)
	if inner == nil || done == nil {
		return ctx, end
	}
	return inner, func(err error) {
		defer func() { _ = recover() }()
		done(err)
	}
}

// An observedEmbedder is an encoder in this process whose calls are observed. Those of services are
// observed by screenedEmbedder.
type observedEmbedder struct {
	llm.Embedder
	e *Engine
}

// Languages implements llm.Linguist.
func (o observedEmbedder) Languages() []string {
	if l, ok := o.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// Embed implements llm.Embedder.
func (o observedEmbedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	ctx, end := o.e.observeCall(ctx, ObservedCall{CallEmbed, o.Model(), len(texts)})
	vectors, err := o.Embedder.Embed(ctx, p, texts)
	end(err)
	return vectors, err
}

// observeLocal returns an encoder in this process whose calls are observed, if there is an observer.
func (e *Engine) observeLocal(encoder llm.Embedder) llm.Embedder {
	if e.config.Observer == nil {
		return encoder
	}
	return observedEmbedder{encoder, e}
}
