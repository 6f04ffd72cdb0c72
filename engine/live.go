package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Defaults of HostConfig.MaxRuns and HostConfig.MaxWaiting.
const (
	DefaultMaxRuns    = 64
	DefaultMaxWaiting = 256
)

// liveRuns are the runs that a host drives in the background, and those that wait for their turn.
type liveRuns struct {
	mu          sync.Mutex
	runs        map[liveKey]*liveRun
	most        int             // runs that are driven at once
	mostWaiting int             // others
	places      int             // taken by both, and by requests that are about to store one
	driven      int             // slots that are taken
	queue       []chan struct{} // waits for slots, the oldest first; each is closed when it has one
	took        time.Duration   // average time of a drive
	closed      bool
	work        sync.WaitGroup
	alone       sync.Mutex // held while a run is driven that was interrupted twice without a step
}

func newLiveRuns(config HostConfig) *liveRuns {
	l := &liveRuns{runs: map[liveKey]*liveRun{}}
	l.limit(config)
	return l
}

// limit sets how many runs are driven and wait.
func (l *liveRuns) limit(config HostConfig) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.mostWaiting = cmp.Or(config.MaxRuns, DefaultMaxRuns), cmp.Or(config.MaxWaiting, DefaultMaxWaiting)
	l.next()
}

// next gives free slots to those that wait. The caller holds mu.
func (l *liveRuns) next() {
	for l.driven < l.most && len(l.queue) > 0 {
		l.driven++
		close(l.queue[0])
		l.queue = l.queue[1:]
	}
}

// wait waits for a slot, until give up is closed or ctx ends, and reports whether there is one.
func (l *liveRuns) wait(ctx context.Context, giveUp <-chan struct{}) bool {
	turn := make(chan struct{})
	l.mu.Lock()
	l.queue = append(l.queue, turn)
	l.next()
	l.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-giveUp:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, turn)
	if i < 0 { // it has got one meanwhile
		return true
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return false
}

// A BusyError reports that a host drives as many runs as it may and its queue is full, or that it is
// being closed. Nothing is stored. It wraps assay.ErrBusy.
type BusyError struct {
	RetryAfter time.Duration // a guess
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("no room for another run; try again in %s: %v", e.RetryAfter, assay.ErrBusy)
}

// Unwrap returns assay.ErrBusy.
func (e *BusyError) Unwrap() error { return assay.ErrBusy }

// add makes a run known to followers. Its context ends when the host is closed.
func (l *liveRuns) add(ctx context.Context, r *liveRun) context.Context {
	ctx, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	r.interrupt = interrupt
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.key] = r
	if l.closed {
		interrupt(fs.ErrClosed)
	}
	return ctx
}

func (l *liveRuns) remove(r *liveRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[r.key] == r {
		delete(l.runs, r.key)
	}
}

func (l *liveRuns) find(key liveKey) *liveRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[key]
}

// close interrupts the runs and waits for them until ctx ends. No other run is accepted.
func (l *liveRuns) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	for _, r := range l.runs {
		r.interrupt(fs.ErrClosed)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A drive is a run on its way through a host.
type drive struct {
	live  *liveRuns
	run   *liveRun // nil: not started
	place bool     // it is counted in liveRuns.places
	slot  bool     // it is counted in liveRuns.driven

	prepare func(context.Context) (*preparedRun, error)
	counted bool        // the attempt is counted already
	alone   *sync.Mutex // held during the drive; nil: none
	done    func()      // gives back the engine
}

// reserve takes a place, and a slot if one is free.
func (d *drive) reserve() error {
	l := d.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.places >= l.most+l.mostWaiting {
		wait := l.took * time.Duration(l.places) / time.Duration(l.most)
		return &BusyError{RetryAfter: min(max(wait.Round(time.Second), time.Second), time.Minute)}
	}
	d.takePlace()
	if d.slot = l.driven < l.most; d.slot {
		l.driven++
	}
	return nil
}

// takePlace takes a place even if there is none. The caller holds liveRuns.mu.
func (d *drive) takePlace() {
	d.live.places++
	d.live.work.Add(1)
	d.place = true
}

// give gives back all that d has taken.
func (d *drive) give() {
	d.done()
	if !d.place {
		return
	}
	d.live.mu.Lock()
	d.live.places--
	if d.slot {
		d.live.driven--
		d.live.next()
	}
	d.live.mu.Unlock()
	d.live.work.Done()
}

// start drives a run in the background. A place is taken.
func (d *drive) start(ctx context.Context, r *liveRun) {
	d.run = r
	ctx = d.live.add(ctx, r)
	go func() {
		defer d.give()
		defer d.live.remove(r)
		defer r.interrupt(nil)
		r.end(d.work(ctx))
	}()
}

// force starts a run that was promised earlier, whether there is a place or not. It reports false if the
// host is being closed.
func (d *drive) force(ctx context.Context, r *liveRun) bool {
	d.live.mu.Lock()
	if d.live.closed {
		d.live.mu.Unlock()
		d.done()
		return false
	}
	d.takePlace()
	d.live.mu.Unlock()
	d.start(ctx, r)
	return true
}

// work waits for the run's turn and drives it. A run that was cancelled does not wait, because it ends at
// its next step.
func (d *drive) work(ctx context.Context) (err error) {
	if d.alone != nil {
		d.alone.Lock()
		defer d.alone.Unlock()
	}
	if !d.slot {
		d.slot = d.live.wait(ctx, d.run.cancelled)
	}
	p, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return p.abandon(d.interrupted(ctx))
	}
	if !d.counted {
		if _, err := p.e.runs.Attempt(ctx, p.run.ID); err != nil {
			return p.abandon(&RunError{Run: p.run.ID, Resumable: true, Err: err})
		}
	}
	began := time.Now()
	err = d.drive(ctx, p)
	d.live.measure(time.Since(began))
	if err != nil && context.Cause(ctx) == fs.ErrClosed {
		err = errors.Join(d.interrupted(ctx), p.e.runs.Calm(context.WithoutCancel(ctx), p.run.ID))
	}
	return err
}

func (d *drive) interrupted(ctx context.Context) error {
	return &RunError{Run: d.run.key.run, Resumable: true, Err: fmt.Errorf("the server is being stopped: %w: %w", assay.ErrUnavailable, context.Cause(ctx))}
}

// drive drives a run and returns an error that is not stored. A panic, as in a strategy of the program,
// fails the run.
func (d *drive) drive(ctx context.Context, p *preparedRun) error {
	d.run.starts(len(p.records))
	p.reported = d.run.stored
	p.panicked = func(ctx context.Context, v any) error { return p.e.failPanicked(ctx, p.run.ID, v) }
	_, err := p.drive(ctx, d.run.emit)
	return err
}

// failPanicked ends a run after its strategy has panicked. The value of the panic may quote documents,
// and is not stored.
func (e *Engine) failPanicked(ctx context.Context, id string, v any) error {
	why := &RunError{Run: id, Err: fmt.Errorf("it failed by a programming error (%T)", v)}
	ctx = context.WithoutCancel(ctx)
	lease, err := e.runs.Acquire(ctx, id)
	if err != nil {
		return errors.Join(why, err)
	}
	return errors.Join(why, lease.Finish(ctx, assay.RunFailed, nil, why.Err.Error()), lease.Close())
}

// measure updates the average time of a drive.
func (l *liveRuns) measure(took time.Duration) {
	const weight = 8
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.took == 0 {
		l.took = took
	}
	l.took += (took - l.took) / weight
}

// Begin stores a run for a question and drives it in the background of the host, whatever becomes of
// ctx. It returns the run's ID when the run is durable. Follow yields its events. If the process dies,
// Host.ResumeInterrupted resumes the run.
//
// At most HostConfig.MaxRuns runs are driven at once, and HostConfig.MaxWaiting others wait for their turn. If
// there is no room, the error is a *BusyError. Otherwise the errors are those of Ask before a run
// exists.
//
// If a request of the user had the same IdempotencyKey, Begin returns the ID of its run, also after a
// restart and if both are made at once. If that was another request, the error is assay.ErrReused. A key
// is free again when its run is deleted or erased.
func (s *Session) Begin(ctx context.Context, req Request) (string, error) {
	asked, key := askedOf("ask", req), req.IdempotencyKey
	return s.begin(ctx, "Begin", asked, key, func(c *sessionCall, promise *store.Promise) (*preparedRun, error) {
		if err := c.checkRequest(ctx, &req); err != nil {
			return nil, err
		}
		return c.engine.prepare(ctx, c.principal, req, promise, "")
	})
}

// BeginFork is Begin for Fork. change is called twice and must do the same each time.
func (s *Session) BeginFork(ctx context.Context, id, step string, change func(*Request)) (string, error) {
	var changes Request
	if change != nil {
		change(&changes)
	}
	asked := askedOf("fork", id, step, changes)
	return s.begin(ctx, "BeginFork", asked, changes.IdempotencyKey, func(c *sessionCall, promise *store.Promise) (*preparedRun, error) {
		p, err := c.engine.prepareFork(ctx, c.principal, id, step, c.forking(change), promise)
		if err == nil {
			p.failed = nil // a run whose ID is known stays
		}
		return p, err
	})
}

// BeginResume is Begin for Resume. It does nothing if this host drives the run already, or if its answer
// waits for a review.
func (s *Session) BeginResume(ctx context.Context, id string) error {
	_, err := s.begin(ctx, "BeginResume", "", "", func(c *sessionCall, _ *store.Promise) (*preparedRun, error) {
		r, err := c.engine.run(ctx, c.principal, id)
		if err != nil {
			return nil, err
		}
		driven := s.host.live.find(liveKey{s.identity, id}) != nil
		if driven || r.State == assay.RunSuspended {
			return nil, errDriven
		}
		p, err := c.engine.prepareResume(ctx, c.principal, r)
		if err != nil {
			return nil, err
		}
		if err := c.engine.runs.Adopt(ctx, id); err != nil {
			return nil, p.abandon(err)
		}
		return p, nil
	})
	if errors.Is(err, errDriven) {
		return nil
	}
	return err
}

// errDriven says that there is nothing to begin.
var errDriven = errors.New("the run is driven already")

// begin prepares a run and drives it in the background. asked identifies what was asked.
func (s *Session) begin(ctx context.Context, method, asked, key string, prepare func(*sessionCall, *store.Promise) (*preparedRun, error)) (id string, err error) {
	c, err := s.enter(ctx, method)
	if err != nil {
		return "", err
	}
	d := &drive{live: s.host.live, done: c.done}
	defer func() {
		if d.run == nil { // it is not started
			d.give()
		}
	}()
	promise, err := promiseOf(c.principal, asked, key)
	if err != nil {
		return "", err
	}
	if id, err := c.earlier(ctx, promise); id != "" || err != nil {
		return id, err
	}
	if err := d.reserve(); err != nil {
		return "", err
	}
	if d.counted = d.slot; d.counted {
		promise.Attempts = 1
	}
	p, err := prepare(c, &promise)
	if err != nil {
		if id, earlierErr := c.earlier(context.WithoutCancel(ctx), promise); id != "" || earlierErr != nil { // it was begun meanwhile
			return id, earlierErr
		}
		return "", err
	}
	d.prepare = func(context.Context) (*preparedRun, error) { return p, nil }
	d.start(ctx, newLiveRun(liveKey{s.identity, p.run.ID}))
	return p.run.ID, nil
}

// promiseOf returns the promise for a request with an idempotency key; empty: none.
func promiseOf(principal assay.Principal, asked, key string) (store.Promise, error) {
	p := store.Promise{Request: asked}
	if key != "" {
		p.Slot = hashOf(principal.User + "\x00" + key)
	}
	return p, checkName("idempotency key", key)
}

// earlier returns the run of the same request under its idempotency key; empty: there is none.
func (c *sessionCall) earlier(ctx context.Context, p store.Promise) (string, error) {
	if p.Slot == "" {
		return "", nil
	}
	earlier, err := c.engine.runs.Promise(ctx, p.Slot)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case earlier.Request != p.Request:
		return "", fmt.Errorf("run %s: %w", earlier.Run, assay.ErrReused)
	}
	return earlier.Run, nil
}

// askedOf returns a hash of what was asked.
func askedOf(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err) // a Request can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Cancel ends one of the principal's active runs for good, in whichever process it is driven. It returns
// when that is durable and in the audit log. The run takes no other step that searches, calls a model
// or leaves the machine. It ends within a second or so with the answer that what it has verified gives,
// whose Stop is assay.StopCancelled, or as failed with assay.ErrCancelled if it cannot go on at all. The
// error is assay.ErrInvalid if the run has ended or waits for a review.
func (s *Session) Cancel(ctx context.Context, id string) error {
	c, err := s.enter(ctx, "Cancel")
	if err != nil {
		return err
	}
	r, err := c.engine.run(ctx, c.principal, id)
	if err == nil {
		err = c.engine.runs.Cancel(ctx, id, c.principal)
	}
	live := s.host.live.find(liveKey{s.identity, id})
	if err != nil || live != nil || r.Live {
		c.done()
		if err == nil && live != nil {
			live.cancel()
		}
		return err
	}
	// The run is interrupted. It is driven once more, and ends at its next step.
	live = newLiveRun(liveKey{s.identity, id})
	live.cancel()
	d := &drive{live: s.host.live, done: c.done, prepare: func(ctx context.Context) (*preparedRun, error) {
		return c.engine.prepareCancelled(ctx, r)
	}, counted: true}
	if !d.force(ctx, live) {
		return &BusyError{RetryAfter: time.Second}
	}
	return nil
}

// prepareCancelled takes the lease of an interrupted run that was cancelled. A run that cannot go on is
// failed.
func (e *Engine) prepareCancelled(ctx context.Context, r assay.Run) (*preparedRun, error) {
	p := &preparedRun{e: e, account: &admission{}}
	err := p.acquire(ctx, r.Principal, r.ID)
	if err == nil {
		return p, nil
	}
	if p.lease == nil {
		return nil, err
	}
	return nil, p.fail(ctx, fmt.Errorf("%w while it was interrupted", assay.ErrCancelled))
}
