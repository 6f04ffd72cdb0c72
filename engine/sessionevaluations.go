package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// An EvaluationState says what became of an Evaluation.
type EvaluationState string

// The states of an evaluation.
const (
	EvaluationRunning     EvaluationState = "running"
	EvaluationDone        EvaluationState = "done"
	EvaluationFailed      EvaluationState = "failed"
	EvaluationCancelled   EvaluationState = "cancelled"
	EvaluationInterrupted EvaluationState = "interrupted" // its process ended before it did
)

// An Evaluation is a measurement of answers in the background. It has no text of a question, an answer
// or a document.
type Evaluation struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	By      string          `json:"by"` // the user who started it
	State   EvaluationState `json:"state"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	Done    int             `json:"done"`            // questions asked; of an evaluation that was interrupted not known, 0
	All     int             `json:"all"`             // questions to ask
	Error   string          `json:"error,omitempty"` // why it failed
	Result  json.RawMessage `json:"result,omitempty"`
}

const (
	evaluationKind = "evaluation" // of items in the registry, and the name of the lock

	// maxEvaluations is how many evaluations of a tenant are kept. The oldest are removed.
	maxEvaluations = 100

	// MaxEvaluationResult is the most bytes of the result of an evaluation.
	MaxEvaluationResult = 1 << 20
)

// evaluations are those that a host runs. The zero value is ready for use.
type evaluations struct {
	mu     sync.Mutex
	live   map[string]*liveEvaluation // by the tenant's identity
	closed bool
	work   sync.WaitGroup
}

type liveEvaluation struct {
	id     string
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when its end is stored and the lock is free

	done, all int  // guarded by evaluations.mu
	ending    bool // so is it: the work is done
}

// errCancelled ends an evaluation that a caller cancels.
var errCancelled = errors.New("cancelled")

// close interrupts the evaluations and waits for them.
func (l *evaluations) close() {
	l.mu.Lock()
	l.closed = true
	for _, e := range l.live {
		e.cancel(fs.ErrClosed)
	}
	l.mu.Unlock()
	l.work.Wait()
}

// An EvaluationWork asks the questions of an evaluation and returns its result. It calls progress with
// the number of questions asked.
type EvaluationWork func(ctx context.Context, progress func(done, all int)) (json.RawMessage, error)

// StartEvaluation runs work in the background of the host, whatever becomes of ctx. A tenant has one
// evaluation at a time: a second one is assay.ErrLocked. The evaluation is stored, so that it is
// known later even if the process ends before it does.
func (s *Session) StartEvaluation(ctx context.Context, name string, all int, work EvaluationWork) (Evaluation, error) {
	c, err := s.enter(ctx, "StartEvaluation")
	if err != nil {
		return Evaluation{}, err
	}
	e, err := s.startEvaluation(ctx, c, name, all, work)
	if err != nil {
		c.done()
	}
	return e, err
}

func (s *Session) startEvaluation(ctx context.Context, c *sessionCall, name string, all int, work EvaluationWork) (Evaluation, error) {
	if err := checkName("evaluation", name); err != nil {
		return Evaluation{}, err
	}
	if err := s.host.evaluations.awaitEnding(ctx, s.identity); err != nil {
		return Evaluation{}, err
	}
	lock, err := c.engine.tenant.Lock(ctx, evaluationKind)
	if err != nil {
		return Evaluation{}, fmt.Errorf("an evaluation of the tenant runs: %w", err)
	}
	e := Evaluation{
		ID: c.engine.config.NewID(), Name: name, By: c.acting.User, State: EvaluationRunning, Started: c.engine.config.Now().UTC(), All: all,
	}
	err = c.pruneEvaluations(ctx)
	if err == nil {
		err = c.storeEvaluation(ctx, e, "evaluation.started")
	}
	if err != nil {
		return Evaluation{}, errors.Join(err, lock.Close())
	}
	live := &liveEvaluation{id: e.ID, all: all, ended: make(chan struct{})}
	ctx, live.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l := &s.host.evaluations
	l.mu.Lock()
	if l.closed {
		live.cancel(fs.ErrClosed)
	}
	if l.live == nil {
		l.live = map[string]*liveEvaluation{}
	}
	l.live[s.identity] = live
	l.work.Add(1)
	l.mu.Unlock()
	go s.evaluate(ctx, c, e, live, lock, work)
	return e, nil
}

// awaitEnding waits until the end of an evaluation whose work is done is stored.
func (l *evaluations) awaitEnding(ctx context.Context, tenant string) error {
	l.mu.Lock()
	live := l.live[tenant]
	ending := live != nil && live.ending
	l.mu.Unlock()
	if !ending {
		return nil
	}
	select {
	case <-live.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// evaluate does the work of an evaluation and stores its end.
func (s *Session) evaluate(ctx context.Context, c *sessionCall, e Evaluation, live *liveEvaluation, lock io.Closer, work EvaluationWork) {
	l := &s.host.evaluations
	defer l.work.Done()
	defer c.done()
	result, err := work(ctx, func(done, all int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		live.done, live.all = done, all
	})
	if len(result) > MaxEvaluationResult {
		result, err = nil, fmt.Errorf("the result has %d bytes, at most %d are kept: %w", len(result), MaxEvaluationResult, assay.ErrInvalid)
	}
	switch cause := context.Cause(ctx); {
	case err == nil:
		e.State, e.Result = EvaluationDone, result
	case errors.Is(cause, errCancelled):
		e.State = EvaluationCancelled
	case cause != nil:
		e.State = EvaluationInterrupted
	default:
		e.State, e.Error = EvaluationFailed, err.Error()
	}
	l.mu.Lock()
	e.Done, e.All, live.ending = live.done, live.all, true
	l.mu.Unlock()
	e.Ended = c.engine.config.Now().UTC()
	// If it cannot be stored, the evaluation is known as interrupted.
	_ = c.storeEvaluation(context.WithoutCancel(ctx), e, "evaluation.ended")
	_ = lock.Close()
	l.mu.Lock()
	delete(l.live, s.identity)
	l.mu.Unlock()
	close(live.ended)
}

func (c *sessionCall) storeEvaluation(ctx context.Context, e Evaluation, kind string) error {
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	act := store.Act{Kind: kind, Subject: e.ID, Actor: c.acting}
	return c.engine.tenant.Registry().Set(ctx, store.RegistryItem{Kind: evaluationKind, Name: e.ID, Value: value}, act)
}

// pruneEvaluations removes the oldest evaluations, so that there is room for one more.
func (c *sessionCall) pruneEvaluations(ctx context.Context) error {
	all, err := c.storedEvaluations(ctx)
	if err != nil {
		return err
	}
	for len(all) >= maxEvaluations {
		oldest := all[len(all)-1]
		act := store.Act{Kind: "evaluation.removed", Subject: oldest.ID, Actor: c.acting}
		if err := c.engine.tenant.Registry().Delete(ctx, evaluationKind, oldest.ID, act); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		all = all[:len(all)-1]
	}
	return nil
}

// storedEvaluations returns the evaluations of the tenant, newest first.
func (c *sessionCall) storedEvaluations(ctx context.Context) ([]Evaluation, error) {
	items, err := c.engine.tenant.Registry().Items(ctx, evaluationKind)
	if err != nil {
		return nil, err
	}
	var all []Evaluation
	for _, item := range items {
		var e Evaluation
		if err := json.Unmarshal(item.Value, &e); err != nil {
			return nil, fmt.Errorf("evaluation %s: %w: %w", item.Name, assay.ErrDamaged, err)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Evaluation) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// evaluations returns the evaluations that the principal may see, its own or, for administrators, all,
// with their present states.
func (s *Session) evaluations(ctx context.Context, c *sessionCall) ([]Evaluation, error) {
	all, err := c.storedEvaluations(ctx)
	if err != nil {
		return nil, err
	}
	shown := []Evaluation{}
	for _, e := range all {
		if e.By != c.acting.User && !isPrivileged(c.acting) {
			continue
		}
		if e.State == EvaluationRunning {
			if e, err = s.present(ctx, c, e); err != nil {
				return nil, err
			}
		}
		shown = append(shown, e)
	}
	return shown, nil
}

// present returns an evaluation that was running when it was stored as it is now: running here, running
// in another process, which holds the lock, or interrupted.
func (s *Session) present(ctx context.Context, c *sessionCall, e Evaluation) (Evaluation, error) {
	l := &s.host.evaluations
	l.mu.Lock()
	live := l.live[s.identity]
	if live != nil && live.id == e.ID && !live.ending {
		e.Done, e.All = live.done, live.all
		l.mu.Unlock()
		return e, nil
	}
	l.mu.Unlock()
	lock, err := c.engine.tenant.Lock(ctx, evaluationKind)
	if errors.Is(err, assay.ErrLocked) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	if err := lock.Close(); err != nil {
		return e, err
	}
	item, err := c.engine.tenant.Registry().Item(ctx, evaluationKind, e.ID) // it may have ended meanwhile
	if err == nil {
		err = json.Unmarshal(item.Value, &e)
	}
	if e.State == EvaluationRunning {
		e.State = EvaluationInterrupted
	}
	return e, err
}

// Evaluations returns the principal's evaluations, newest first, without their results. Administrators
// see those of all users.
func (s *Session) Evaluations(ctx context.Context) ([]Evaluation, error) {
	return call(ctx, s, "Evaluations", func(c *sessionCall) ([]Evaluation, error) {
		all, err := s.evaluations(ctx, c)
		for i := range all {
			all[i].Result = nil
		}
		return all, err
	})
}

// Evaluation returns one of Evaluations, with its result if it is done.
func (s *Session) Evaluation(ctx context.Context, id string) (Evaluation, error) {
	return call(ctx, s, "Evaluation", func(c *sessionCall) (Evaluation, error) { return s.evaluation(ctx, c, id) })
}

func (s *Session) evaluation(ctx context.Context, c *sessionCall, id string) (e Evaluation, err error) {
	item, err := c.engine.tenant.Registry().Item(ctx, evaluationKind, id)
	if err != nil && !errors.Is(err, assay.ErrNotFound) {
		return Evaluation{}, err
	}
	if err == nil {
		if err := json.Unmarshal(item.Value, &e); err != nil {
			return Evaluation{}, fmt.Errorf("evaluation %q: %w: %w", id, assay.ErrDamaged, err)
		}
	}
	if err != nil || e.By != c.acting.User && !isPrivileged(c.acting) {
		return Evaluation{}, fmt.Errorf("evaluation %q: %w", id, assay.ErrNotFound)
	}
	if e.State == EvaluationRunning {
		return s.present(ctx, c, e)
	}
	return e, nil
}

// CancelEvaluation ends one of Evaluations that this process runs. Another one is assay.ErrInvalid.
func (s *Session) CancelEvaluation(ctx context.Context, id string) error {
	return do(ctx, s, "CancelEvaluation", func(c *sessionCall) error {
		e, err := s.evaluation(ctx, c, id)
		if err != nil {
			return err
		}
		l := &s.host.evaluations
		l.mu.Lock()
		defer l.mu.Unlock()
		live := l.live[s.identity] // also for a moment after the evaluation has ended
		if e.State == EvaluationRunning && live != nil && live.id == id {
			live.cancel(errCancelled)
			return nil
		}
		return fmt.Errorf("evaluation %s is not running here (%s): %w", id, e.State, assay.ErrInvalid)
	})
}
