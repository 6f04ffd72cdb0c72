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
// the answer last. An invalid request yields assay.ErrInvalid, one over a limit assay.ErrQuota (with
// a *limit.Error), and one while an administrator has stopped runs assay.ErrStopped. In these cases
// nothing is stored. A limit or a stop during the run ends it with the claims verified so far. Any other
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
	p, err := e.prepare(ctx, principal, req, nil, "")
	if err != nil {
		return assay.Answer{}, err
	}
	return p.drive(ctx, emit)
}

// prepare stores a run for a question. A nil promise is none. nodes is storedRequest.Nodes.
func (e *Engine) prepare(ctx context.Context, principal assay.Principal, req Request, promise *store.Promise, nodes string) (*preparedRun, error) {
	req, err := e.check(ctx, principal, req)
	if err != nil {
		return nil, err
	}
	req.ID = cmp.Or(req.ID, e.config.NewID())
	p, err := e.admitted(ctx, principal, req.ID)
	if err != nil {
		return nil, err
	}
	prior, err := e.conversation(ctx, principal, req)
	if err != nil {
		return nil, p.abandon(err)
	}
	began, err := e.begin(ctx, principal, req, prior)
	if err != nil {
		return nil, p.abandon(err)
	}
	began.Nodes = nodes
	if began.Key = e.cacheKey(ctx, principal, began); began.Key != "" && !req.NoCache {
		if began.Earlier, err = e.earlierRuns(ctx, began.Key, req.Question); err != nil {
			return nil, p.abandon(err)
		}
	}
	if err := p.create(ctx, principal, began, nil, promise); err != nil {
		return nil, p.abandon(err)
	}
	return p, nil
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

// Resume continues a run that was interrupted. Finished steps are taken from the journal; the
// remaining steps use the current documents and models. If another model does a role now than
// when the run began, the answer's Notes name it.
//
// If the run waits for a review or a reviewer has decided it, Resume returns the answer that its user sees now.
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
		if r.Answer != nil && r.Answer.Oversight != nil && r.State != assay.RunErased {
			return e.underReview(ctx, principal, id)
		}
		p, err := e.prepareResume(ctx, principal, r)
		if err != nil {
			return assay.Answer{}, err
		}
		return p.drive(ctx, emit)
	})
}

// prepareResume takes the lease of a run that was interrupted.
func (e *Engine) prepareResume(ctx context.Context, principal assay.Principal, r assay.Run) (*preparedRun, error) {
	if r.State == assay.RunErased {
		_, err := requestOf(r)
		return nil, err
	}
	if r.State == assay.RunDone || r.State == assay.RunFailed {
		return nil, fmt.Errorf("run %s has ended (%s): %w", r.ID, r.State, assay.ErrInvalid)
	}
	p, err := e.admitted(ctx, principal, r.ID)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(ctx, principal, r.ID); err != nil {
		return nil, p.abandon(err)
	}
	return p, nil
}

// requestOf decodes the stored request of a run.
func requestOf(r assay.Run) (storedRequest, error) {
	var req storedRequest
	if r.State == assay.RunErased {
		return req, fmt.Errorf("run %s was erased; its leaves and the reason are in the audit log: %w", r.ID, assay.ErrNotFound)
	}
	if err := json.Unmarshal(r.Request, &req); err != nil {
		return storedRequest{}, fmt.Errorf("run %s: its request cannot be read: %w: %w", r.ID, assay.ErrDamaged, err)
	}
	return req, nil
}

// questionOf is requestOf for a run that answers a question. The error for another run is
// assay.ErrInvalid.
func questionOf(r assay.Run) (storedRequest, error) {
	req, err := requestOf(r)
	if err == nil && req.Strategy == describeStrategy {
		err = fmt.Errorf("run %s describes images and answers no question, so it cannot be resumed, repeated or followed: %w", r.ID, assay.ErrInvalid)
	}
	return req, err
}

// check fills in a request's defaults and validates it, including its filter, before anything is
// stored.
func (e *Engine) check(ctx context.Context, principal assay.Principal, req Request) (Request, error) {
	models := e.config.Models.unless(req.Local)
	wall := defaultWall
	if !models.none() {
		wall = modelWall
	}
	if err := checkReviewMode(principal, &req); err != nil {
		return req, err
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
	if err := e.checkPrices(ctx, principal, req); err != nil {
		return req, err
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
	if errors.Is(err, assay.ErrInvalid) && e.filterOfService(principal.Access(), req) {
		err = nil
	}
	return req, err
}

// checkPrices checks that the price of all that a request may call is known, if a budget or a limit of
// money holds for it.
func (e *Engine) checkPrices(ctx context.Context, principal assay.Principal, req Request) error {
	limited, err := e.limitsCost(ctx, principal)
	if err != nil || !limited && req.Budget.CostMicros == 0 {
		return err
	}
	if err := e.checkWebPriced(req); err != nil {
		return err
	}
	return e.checkPriced(ctx, e.config.Models.unless(req.Local))
}

// drive runs a request from the end of its journal to the answer and stores the answer.
func (e *Engine) drive(ctx context.Context, r assay.Run, req storedRequest, lease store.Lease, records []assay.Record, observed *observedRun, emit func(Event)) (assay.Answer, error) {
	guarded := req.Guarded || e.reviewPossible(ctx, r, req.Request)
	if guarded {
		emit = withholding(emit)
	}
	if emit != nil {
		emit(Event{Kind: RunStarted, Run: r.ID})
	}
	ctx, canaries, err := e.watched(ctx, r.ID)
	if err != nil {
		return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
	}
	observed.hideIf(canaries.tripped)
	answer, halted, err := e.execute(ctx, r, req, lease, records, observed, canaries.passing(emit))
	if err != nil { // it may quote what the run read
		_ = canaries.screen(ctx, "error", err.Error())
	}
	if guarded && r.Steps > 0 { // a run that begins, as a fork, has only released steps
		err = withoutDivergence(err)
	}
	if canaries.tripped() { // which ended the run; release withholds its answer
		answer.Run, answer.Question, answer.Strategy, halted, err = r.ID, r.Question, req.Strategy, false, nil
	}
	if halted {
		return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
	}
	// The outcome is stored even if the process is being stopped.
	ctx = context.WithoutCancel(ctx)
	state := assay.RunDone
	if err == nil {
		answer, state, err = e.release(ctx, r, req, answer)
	}
	if waits, ok := errors.AsType[*suspension](err); ok {
		if err := lease.Suspend(ctx, answer, waits.review, waits.pins, waits.act); err != nil {
			return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
		}
		return answer, nil
	}
	if err != nil {
		return assay.Answer{}, &RunError{Run: r.ID, Err: errors.Join(err, lease.Finish(ctx, assay.RunFailed, nil, err.Error()))}
	}
	if err := lease.Finish(ctx, state, &answer, ""); err != nil {
		return assay.Answer{}, &RunError{Run: r.ID, Resumable: true, Err: err}
	}
	if state != assay.RunDone {
		return answer, nil
	}
	_ = e.offerToCache(ctx, r, req, answer) // the answer is already stored; a failure only keeps it out of the cache
	return answer, nil
}

// execute runs the strategy of a request. halted reports that the run did not end on its own and
// can be resumed.
func (e *Engine) execute(ctx context.Context, r assay.Run, req storedRequest, lease store.Lease, records []assay.Record, observed *observedRun, emit func(Event)) (answer assay.Answer, halted bool, err error) {
	defer e.embedder.answering()()
	ctx = e.outgoing(ctx)
	builtin, err := e.search(ctx)
	if err == nil {
		err = e.catchUp(ctx)
	}
	if err != nil {
		return assay.Answer{}, true, err
	}
	builtin = builtin.forRun(req)
	retriever, err := e.wrap(e.withServices(builtin, req.Local))
	if err != nil {
		return assay.Answer{}, true, err
	}
	observer := runObserver{}
	_, reported := lease.(observedLease) // the lease emits the steps that it stores
	observer.observe = func(ev run.Event) {
		observed.step(ev)
		switch {
		case emit == nil:
		case reported && ev.Phase == run.StepEnd:
			emit(Event{Kind: StepEnded, Run: r.ID, Step: &Step{Ordinal: -1, Path: ev.Path}})
		default:
			emit(eventOf(r.ID, ev))
		}
	}
	stopped, end := e.untilEnded(context.WithoutCancel(ctx), r.ID)
	defer end()
	session, err := run.New(run.Config{
		Run: r.ID, Journal: lease, Records: records, Budget: req.Budget, Ledger: runLedger{e, r.Principal, lease}, Stop: stopped,
		Now: e.config.Now, Observe: observer.stepEvent, Within: observed.within(),
	})
	if err != nil {
		return assay.Answer{}, false, err
	}
	tools := runTools{retriever: retriever, services: e.serviceNames(builtin.services(), req.Local)}
	answer, err = e.answer(ctx, r, req, session, tools, observed.texts(drafts(r.ID, emit)))
	observer.complete(&answer, req)
	halt := session.Finish()
	if errors.Is(err, errNodeEnded) && (halt == nil || notTaken(halt)) {
		return assay.Answer{}, true, err
	}
	if halt != nil {
		return assay.Answer{}, !errors.Is(halt, assay.ErrDiverged), halt
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
	env, err := e.environment(r, req, tools, written)
	if err != nil {
		return assay.Answer{}, err
	}
	scope := session.Scope()
	env.After = req.until.after(session)
	answer, err := strategy.Ask(ctx, scope, env, req.Strategy)
	if err != nil {
		return assay.Answer{}, err
	}
	answer.Run = r.ID
	answer.Usage = scope.Spent()
	return withLists(answer), nil
}

// environment returns what a strategy works with.
func (e *Engine) environment(r assay.Run, req storedRequest, tools runTools, written func(string, llm.Delta)) (strategy.Env, error) {
	models := e.config.Models.unless(req.Local)
	web, off := e.webOf(req)
	how := roleOptions{keys: req.Keys}
	if !tools.replays() {
		var err error
		if how.reader, err = e.reader(); err != nil {
			return strategy.Env{}, err
		}
		if how.reader == nil && req.Reader != "" { // the reader that the run began with is no longer configured
			how.reader = unavailableReader(req.Reader)
		}
	}
	roles, err := e.roles(e.screened(models), how, req.Local)
	if err != nil {
		return strategy.Env{}, err
	}
	return strategy.Env{
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
	}, nil
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
