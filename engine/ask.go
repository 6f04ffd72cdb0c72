package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// A RunError reports that a run ended without an answer.
type RunError struct {
	Run       string // run ID
	Resumable bool   // Resume can continue it
	Err       error
}

func (e *RunError) Error() string { return fmt.Sprintf("run %s: %v", e.Run, e.Err) }

// Unwrap returns the error that ended the run.
func (e *RunError) Unwrap() error { return e.Err }

// Ask answers a question on behalf of principal. It yields an Event for each step of the run and
// the answer last. An invalid request yields assay.ErrInvalid, and nothing is stored. Any other
// failure is yielded last, as a *RunError.
//
// Breaking out of the loop cancels the run. A run that was cancelled, or whose journal could not
// be written, can be resumed. A run that failed for another reason is stored with its error.
func (e *Engine) Ask(ctx context.Context, principal assay.Principal, req Request) iter.Seq2[Event, error] {
	return stream(ctx, func(ctx context.Context, emit func(Event)) (assay.Answer, error) {
		return e.ask(ctx, principal, req, emit)
	})
}

// Answer runs Ask and returns only the final answer.
func (e *Engine) Answer(ctx context.Context, principal assay.Principal, req Request) (assay.Answer, error) {
	return e.ask(ctx, principal, req, nil)
}

// ask implements Ask and Answer; emit may be nil.
func (e *Engine) ask(ctx context.Context, principal assay.Principal, req Request, emit func(Event)) (assay.Answer, error) {
	req, err := e.check(ctx, principal, req)
	if err != nil {
		return assay.Answer{}, err
	}
	prior, err := e.conversation(ctx, principal, req)
	if err != nil {
		return assay.Answer{}, err
	}
	began, err := e.begin(ctx, principal, req, prior)
	if err != nil {
		return assay.Answer{}, err
	}
	if began.Key = e.cacheKey(ctx, principal, began); began.Key != "" && !req.NoCache {
		if began.Earlier, err = e.earlierRuns(ctx, began.Key, req.Question); err != nil {
			return assay.Answer{}, err
		}
	}
	return e.start(ctx, principal, began, nil, emit)
}

// begin returns what a new run stores about its request, except the cache's part.
func (e *Engine) begin(ctx context.Context, principal assay.Principal, req Request, prior priorTurns) (storedRequest, error) {
	req.History = prior.turns
	models := e.config.Models.unless(req.Local)
	began := storedRequest{
		Request: req, Models: models.named(), ContextTokens: models.contextTokens(), Keep: models.keep(),
		EarlierTurns: prior.earlier, Rests: prior.documents, Searcher: e.searcherName(req),
	}
	reader, err := e.reader()
	if err != nil {
		return storedRequest{}, err
	}
	if reader != nil {
		began.Reader = reader.Model()
	}
	if req.Strategy == "managed" {
		began.Managed = e.managedName()
	}
	if models.Roles[role.PlannerRole] != nil && req.Strategy != "static" {
		if began.Keys, err = e.keys(ctx, principal.Access(), req.Collections); err != nil {
			return storedRequest{}, err
		}
	}
	if began.NamedCollections, err = e.named(ctx, principal.Access(), req); err != nil {
		return storedRequest{}, err
	}
	if req.Strategy == "" || req.Strategy == "auto" {
		if began.Outline, err = models.outline(ctx, req.Question); err != nil {
			return storedRequest{}, err
		}
	}
	return began, nil
}

// start creates a run whose journal begins with records, and runs it to its answer.
func (e *Engine) start(ctx context.Context, principal assay.Principal, began storedRequest, records []assay.Record, emit func(Event)) (answer assay.Answer, err error) {
	request, err := json.Marshal(began)
	if err != nil {
		return assay.Answer{}, fmt.Errorf("store the request: %w", err)
	}
	r := assay.Run{
		ID:        cmp.Or(began.ID, e.config.NewID()),
		Principal: principal,
		Question:  began.Question,
		Request:   request,
		State:     assay.RunActive,
		Created:   e.config.Now().UTC(),
	}
	lease, err := e.runs.Create(ctx, r, records...)
	if err != nil {
		return assay.Answer{}, err
	}
	defer func() { err = errors.Join(err, lease.Close()) }() // also after a panic, so that the run can be resumed
	for i := range records {
		records[i].Run = r.ID
	}
	return e.drive(ctx, r, began, lease, records, emit)
}

// Resume continues a run that was interrupted. Finished steps are taken from the journal; the
// remaining steps use the current documents and models. If another model does a role now than
// when the run began, the answer's Notes name it.
//
// Resume returns assay.ErrLeased while a live process drives the run. It returns assay.ErrInvalid
// if the run has ended, if the principal's access has changed since the run began, or if the run
// was interrupted in the middle of a job whose model or prompt has changed since. Such a job can
// only be finished with the model and prompt that it began with.
func (e *Engine) Resume(ctx context.Context, principal assay.Principal, id string) iter.Seq2[Event, error] {
	return stream(ctx, func(ctx context.Context, emit func(Event)) (answer assay.Answer, err error) {
		r, err := e.run(ctx, principal, id)
		if err != nil {
			return assay.Answer{}, err
		}
		if r.State == assay.RunDone || r.State == assay.RunFailed {
			return assay.Answer{}, fmt.Errorf("run %s has ended (%s): %w", id, r.State, assay.ErrInvalid)
		}
		lease, err := e.runs.Acquire(ctx, id)
		if err != nil {
			return assay.Answer{}, err
		}
		defer func() { err = errors.Join(err, lease.Close()) }()
		return e.resume(ctx, principal, id, lease, emit)
	})
}

// resume continues a run whose lease the caller holds.
func (e *Engine) resume(ctx context.Context, principal assay.Principal, id string, lease store.Lease, emit func(Event)) (assay.Answer, error) {
	r, records, err := e.journal(ctx, principal, id) // read again under the lease
	if err != nil {
		return assay.Answer{}, err
	}
	if principal.Access().Key() != r.Principal.Access().Key() {
		return assay.Answer{}, fmt.Errorf("run %s: the access of %s has changed since it began; ask again: %w", id, principal.User, assay.ErrInvalid)
	}
	req, err := requestOf(r)
	if err != nil {
		return assay.Answer{}, err
	}
	if _, err := strategy.Lookup(req.Strategy, e.config.Strategies...); err != nil {
		return assay.Answer{}, fmt.Errorf("run %s: %w", id, err)
	}
	if err := checkInterrupted(records, e.config.Models.unless(req.Local)); err != nil {
		return assay.Answer{}, fmt.Errorf("run %s: %w", id, err)
	}
	return e.drive(ctx, r, req, lease, records, emit)
}

// requestOf decodes the stored request of a run.
func requestOf(r assay.Run) (storedRequest, error) {
	var req storedRequest
	if err := json.Unmarshal(r.Request, &req); err != nil {
		return storedRequest{}, fmt.Errorf("run %s: its request cannot be read: %w: %w", r.ID, assay.ErrDamaged, err)
	}
	return req, nil
}

// check fills in a request's defaults and validates it, including its filter, before anything is
// stored.
func (e *Engine) check(ctx context.Context, principal assay.Principal, req Request) (Request, error) {
	models := e.config.Models.unless(req.Local)
	wall := defaultWall
	if !models.none() {
		wall = modelWall
	}
	req.Strategy = cmp.Or(req.Strategy, e.config.Strategy)
	req, err := req.complete(wall, e.config.Strategies)
	if err != nil {
		return req, err
	}
	req.Limits = req.Limits.Over(req.Mode.Limits(e.config.Limits))
	req.Settings = req.Settings.Over(req.Mode.Settings(e.config.Settings))
	if err := e.checkManaged(req); err != nil {
		return req, err
	}
	if err := e.checkWebPriced(req); err != nil {
		return req, err
	}
	if req.Budget.CostMicros > 0 {
		if err := e.checkPriced(ctx, models); err != nil {
			return req, err
		}
	}
	if err := e.checkCollections(ctx, principal.Access(), req.Collections); err != nil {
		return req, err
	}
	if req.Filter.IsZero() {
		return req, nil
	}
	builtin, err := e.search(ctx)
	if err != nil {
		return req, err
	}
	retriever, err := e.wrap(builtin)
	if err != nil {
		return req, err
	}
	probe := assay.Query{Text: req.Question, Collections: req.Collections, Filter: req.Filter, Limit: 1, Mode: assay.ModeText}
	_, err = retriever.Retrieve(ctx, principal.Access(), probe)
	return req, err
}

// drive runs a request from the end of its journal to the answer and stores the answer.
func (e *Engine) drive(ctx context.Context, r assay.Run, req storedRequest, lease store.Lease, records []assay.Record, emit func(Event)) (assay.Answer, error) {
	if emit != nil {
		emit(Event{Kind: RunStarted, Run: r.ID})
	}
	answer, halted, err := e.execute(ctx, r, req, lease, records, emit)
	if halted {
		return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
	}
	// The outcome is stored even if the process is being stopped.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return assay.Answer{}, &RunError{Run: r.ID, Err: errors.Join(err, lease.Finish(ctx, assay.RunFailed, nil, err.Error()))}
	}
	if err := lease.Finish(ctx, assay.RunDone, &answer, ""); err != nil {
		return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
	}
	_ = e.offerToCache(ctx, r, req, answer) // the answer is already stored; a failure only keeps it out of the cache
	return answer, nil
}

// execute runs the strategy of a request. halted reports that the run did not end on its own and
// can be resumed.
func (e *Engine) execute(ctx context.Context, r assay.Run, req storedRequest, lease store.Lease, records []assay.Record, emit func(Event)) (answer assay.Answer, halted bool, err error) {
	defer e.embedder.answering()()
	builtin, err := e.search(ctx)
	if err == nil {
		err = e.catchUp(ctx)
	}
	if err != nil {
		return assay.Answer{}, true, err
	}
	builtin = builtin.forRun(req)
	retriever, err := e.wrap(builtin)
	if err != nil {
		return assay.Answer{}, true, err
	}
	observer := runObserver{}
	if emit != nil {
		observer.observe = func(ev run.Event) { emit(eventOf(r.ID, ev)) }
	}
	session, err := run.New(run.Config{
		Run: r.ID, Journal: lease, Records: records, Budget: req.Budget, Now: e.config.Now, Observe: observer.stepEvent,
	})
	if err != nil {
		return assay.Answer{}, false, err
	}
	tools := runTools{retriever: retriever, services: builtin.services()}
	answer, err = e.answer(ctx, r, req, session, tools, drafts(r.ID, emit))
	observer.complete(&answer, req)
	if stopped := session.Finish(); stopped != nil {
		return assay.Answer{}, !errors.Is(stopped, assay.ErrDiverged), stopped
	}
	return answer, false, err
}

// runTools are the services of a live run. They are zero in a replay, which calls none.
type runTools struct {
	retriever assay.Retriever
	services  string // names of the remote services that the retriever may call
}

// replays reports whether the run is replayed.
func (t runTools) replays() bool { return t.retriever == nil }

// answer calls the strategy and completes its answer with the run's ID and usage. written
// receives the text that a model writes (see strategy.Env); it may be nil.
func (e *Engine) answer(ctx context.Context, r assay.Run, req storedRequest, session *run.Run, tools runTools, written func(string, llm.Delta)) (assay.Answer, error) {
	models := e.config.Models.unless(req.Local)
	web, off := e.webOf(req)
	scope := session.Scope()
	how := roleOptions{keys: req.Keys}
	if !tools.replays() {
		var err error
		if how.reader, err = e.reader(); err != nil {
			return assay.Answer{}, err
		}
		if how.reader == nil && req.Reader != "" { // the reader that the run began with is no longer configured
			how.reader = unavailableReader(req.Reader)
		}
	}
	roles, err := e.roles(models, how, req.Local)
	if err != nil {
		return assay.Answer{}, err
	}
	answer, err := strategy.Ask(ctx, scope, strategy.Env{
		Request: strategy.Request{
			Question:         req.Question,
			History:          req.History,
			EarlierTurns:     req.EarlierTurns,
			Collections:      req.Collections,
			Filter:           req.Filter,
			Access:           r.Principal.Access(),
			Sections:         models.sections(),
			Outline:          req.Outline,
			NamedCollections: req.NamedCollections,
			Began:            req.Models,
			ReaderModel:      req.Reader,
		},
		Tools: strategy.Tools{
			Retriever:  tools.retriever,
			Content:    e.content,
			Roles:      roles,
			Services:   tools.services,
			Web:        web,
			NoWeb:      off,
			Catalogue:  e.searchable(r.Principal.Access(), req.Request),
			Managed:    e.managedOf(req),
			Strategies: e.config.Strategies,
			Earlier:    req.Earlier,
			Cache:      answerCache{e, r.Principal, req},
		},
		Limits:   req.limits(),
		Settings: req.Settings,
		Stream:   written,
	}, req.Strategy)
	if err != nil {
		return assay.Answer{}, err
	}
	answer.Run = r.ID
	answer.Usage = scope.Spent()
	return withLists(answer), nil
}

// withLists replaces each nil list in the answer with an empty one, so that its JSON contains no
// null lists.
func withLists(a assay.Answer) assay.Answer {
	a.Claims = list(a.Claims)
	a.Citations = list(a.Citations)
	a.Missing = list(a.Missing)
	a.Searched = list(a.Searched)
	a.Closest = list(a.Closest)
	for i := range a.Claims {
		a.Claims[i].Citations = list(a.Claims[i].Citations)
	}
	for i := range a.Citations {
		a.Citations[i].Heading = list(a.Citations[i].Heading)
	}
	if a.Review != nil {
		for _, sub := range a.Review.SubAnswers {
			for i := range sub.Citations {
				sub.Citations[i].Heading = list(sub.Citations[i].Heading)
			}
		}
	}
	for i := range a.Closest {
		a.Closest[i].Heading = list(a.Closest[i].Heading)
	}
	return a
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// stream runs work and yields the events it emits, then its answer or error. It cancels work if
// the consumer breaks or panics, and waits for work to end before it returns. A panic of work, as
// in a strategy of the caller, is raised again in the consumer's goroutine, which can recover.
func stream(ctx context.Context, work func(context.Context, func(Event)) (assay.Answer, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		events := make(chan Event)
		var answer assay.Answer
		var err error
		var panicked *workPanic
		go func() {
			defer close(events)
			defer func() {
				if p := recover(); p != nil {
					panicked = &workPanic{p, debug.Stack()}
				}
			}()
			answer, err = work(ctx, func(ev Event) { events <- ev })
		}()
		defer func() {
			cancel()
			for range events { // wait until work has ended
			}
			if panicked != nil {
				panic(panicked)
			}
		}()
		for ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
		if panicked != nil {
			return
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		yield(Event{Kind: RunEnded, Run: answer.Run, Answer: &answer}, nil)
	}
}

// A workPanic is the value with which stream panics after its work has panicked.
type workPanic struct {
	value any
	stack []byte // of the work's goroutine
}

func (p *workPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Unwrap returns the value if it is an error, otherwise nil.
func (p *workPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
