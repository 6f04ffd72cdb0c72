package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// How vectors catch up in the background.
const (
	followEvery = 2 * time.Second        // how often it looks for what others ingested
	followBatch = 16                     // passages at a time: who asks competes with no more
	followYield = 250 * time.Millisecond // how long a batch waits for questions that are being answered
	followFirst = 5 * time.Second        // after a failure; twice as long after the next
	followLast  = 5 * time.Minute
	flushEvery  = 8192 // vectors after which the index is written; others read them one by one till then
)

// A catching lets the vectors of an engine's documents catch up with their text:
// one pass at a time in a process, and one process at a time.
type catching struct {
	engine *Engine
	every  time.Duration // see followEvery
	active atomic.Int32  // questions and searches that are being answered
	busy   atomic.Int32  // ingests
	wanted atomic.Int32  // who waits to make a pass in the foreground
	rate   atomic.Pointer[ingest.EmbedProgress]

	passing chan struct{} // held, by having put something into it, during a pass
	kick    chan struct{} // there is something to do
	cancel  context.CancelFunc
	done    chan struct{} // closed when the background has ended; nil: there is none

	mu     sync.Mutex
	yields map[int]context.CancelFunc // of what gives the writer's place up for an ingest
	next   int
}

func newCatching(e *Engine) *catching {
	return &catching{engine: e, every: followEvery, passing: make(chan struct{}, 1), kick: make(chan struct{}, 1), yields: map[int]context.CancelFunc{}}
}

// start begins to follow the content in the background.
func (c *catching) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		c.follow(ctx)
	}()
}

// stop ends the background and waits for it.
func (c *catching) stop() {
	if c.done != nil {
		c.cancel()
		<-c.done
	}
}

// wake has the background look for something to do.
func (c *catching) wake() {
	select {
	case c.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// follow makes a pass whenever the content has changed, until ctx ends.
func (c *catching) follow(ctx context.Context) {
	look := time.NewTicker(c.every)
	defer look.Stop()
	done := passed{sequence: -1}
	var failures time.Duration // the next pause
	var until time.Time        // of the pause
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-look.C:
			if time.Now().Before(until) {
				continue
			}
		}
		now, err := c.followOnce(ctx, done)
		switch {
		case err == nil:
			done, failures = now, 0
		case errors.Is(err, errYield): // who took over wakes it up again
		default:
			failures = min(cmp.Or(2*failures, followFirst), followLast)
			until = time.Now().Add(failures)
		}
	}
}

// A passed says what the last pass has seen to.
type passed struct {
	model    string
	sequence int64 // of the content, when it began
	complete int64 // up to here no passage lacks a vector
}

// followOnce makes one pass, if anything has changed since the last.
func (c *catching) followOnce(ctx context.Context, last passed) (passed, error) {
	e := c.engine
	chosen, err := e.chooser.choose(ctx)
	if err != nil {
		return last, err
	}
	sequence, err := e.content.Sequence(ctx)
	if err != nil || chosen.wanted == "" || chosen.wanted == last.model && sequence == last.sequence {
		return last, err
	}
	opts := ingest.EmbedOptions{Batch: followBatch, Uncounted: true, Before: c.yield}
	if chosen.wanted == last.model {
		opts.After = last.complete
	}
	report, err := c.pass(ctx, opts)
	if err != nil {
		return last, err
	}
	if report.Model != chosen.wanted { // changed while the pass waited: After was not of this one
		return last, errYield
	}
	now := passed{model: report.Model, sequence: sequence, complete: sequence}
	if len(report.Failed) > 0 { // they are tried again with the next change
		now.complete = opts.After
	}
	return now, nil
}

// errYield says that a pass has made way: for another one, for an ingest, or because
// another model is wanted now.
var errYield = errors.New("another pass is to begin")

// yield is called before each batch in the background. Questions go first, for a
// while; an ingest and a pass in the foreground go first.
func (c *catching) yield(ctx context.Context) error {
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		switch {
		case c.wanted.Load() > 0:
			return errYield
		case c.busy.Load() == 0 && (c.active.Load() == 0 || waited >= followYield):
			return ctx.Err()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// embeddingLock is the file whose lock makes a process the one that makes vectors:
// two would make the same ones.
const embeddingLock = "embedding.lock"

// pass makes the vectors that the wanted model lacks, has the index take them up,
// and drops those of models that it has caught up with.
func (c *catching) pass(ctx context.Context, opts ingest.EmbedOptions) (report ingest.EmbedReport, err error) {
	e := c.engine
	if e.tenant.ReadOnly() {
		return report, fmt.Errorf("make vectors: %w", assay.ErrReadOnly)
	}
	if _, _, err := c.encoder(ctx); err != nil {
		return report, err // before waiting for others
	}
	select {
	case c.passing <- struct{}{}:
		defer func() { <-c.passing }()
	case <-ctx.Done():
		return report, ctx.Err()
	}
	lock := flock.New(filepath.Join(e.tenant.Dir(), embeddingLock))
	if err := c.alone(ctx, lock, opts); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	model, encoder, err := c.encoder(ctx)
	if err != nil {
		return report, err
	}
	before := opts.Before
	opts.Before = func(ctx context.Context) error {
		if chosen, err := e.chooser.choose(ctx); err != nil || chosen.wanted != model {
			return cmp.Or(err, errYield)
		}
		if before == nil {
			return nil
		}
		return before(ctx)
	}
	flushed := 0
	shown := opts.Progress
	opts.Progress = func(p ingest.EmbedProgress) {
		c.rate.Store(&p)
		if p.Stored-flushed >= flushEvery {
			flushed = p.Stored
			_ = c.flush(ctx) // what fails now fails again at the end
		}
		if shown != nil {
			shown(p)
		}
	}
	defer c.rate.Store(nil)
	report, err = ingest.Embed(ctx, briefly{e.content, e}, encoder, opts)
	if report.Stored > flushed {
		err = errors.Join(err, c.flushLast(ctx))
	}
	if err == nil {
		err = c.dropReplaced(ctx, model, len(report.Failed))
	}
	return report, err
}

// encoder returns the model that is wanted, and what makes its vectors.
func (c *catching) encoder(ctx context.Context) (model string, e llm.Embedder, err error) {
	chosen, err := c.engine.chooser.choose(ctx)
	if err != nil {
		return "", nil, err
	}
	if chosen.wanted == "" {
		return "", nil, cmp.Or(chosen.problem, errNoEncoder)
	}
	e, err = c.engine.chooser.shelf.open(ctx, chosen.wanted)
	return chosen.wanted, e, err
}

// errNoEncoder is the error of an engine without encoders.
var errNoEncoder = fmt.Errorf("no encoder to make vectors with: %w", assay.ErrInvalid)

// alone waits until no other process makes vectors, and shows how far that one is.
func (c *catching) alone(ctx context.Context, lock *flock.Flock, opts ingest.EmbedOptions) error {
	const every = 500 * time.Millisecond
	for {
		ok, err := lock.TryLock()
		if err != nil {
			return fmt.Errorf("lock %s: %w", lock.Path(), err)
		}
		if ok {
			return nil
		}
		if opts.Progress != nil {
			report, err := c.engine.vectorReport(ctx)
			if err != nil {
				return err
			}
			if report != nil {
				opts.Progress(ingest.EmbedProgress{Model: report.Model, Left: report.Missing()})
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
		if opts.Before != nil {
			if err := opts.Before(ctx); err != nil {
				return err
			}
		}
	}
}

// lastFlush is how long the index may take to be written once ctx has ended. What is
// not in it by then, the next process reads from the store.
const lastFlush = 2 * time.Second

// flushLast is flush at the end of a pass, which may be that of ctx.
func (c *catching) flushLast(ctx context.Context) error {
	if ctx.Err() == nil {
		return c.flush(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	if err := c.flush(last); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// flush has the index on disk take up the vectors, unless an ingest wants the
// writer's place, which will do it.
func (c *catching) flush(ctx context.Context) error {
	ctx, end := c.yielding(ctx)
	defer end()
	err := c.engine.write(ctx, writerPatience, func(store.Writer) error { return c.engine.flush(ctx) })
	if errors.Is(err, assay.ErrLocked) || errors.Is(err, context.Canceled) {
		return nil // whoever writes does it
	}
	return err
}

// dropReplaced drops the vectors of models that the wanted one has caught up with,
// but for passages that it failed at.
func (c *catching) dropReplaced(ctx context.Context, wanted string, failed int) error {
	e := c.engine
	models, err := e.content.Models(ctx)
	if err != nil || len(models) == 0 || len(models) == 1 && models[0] == wanted {
		return err
	}
	have, err := e.content.Coverage(ctx, wanted)
	if err != nil {
		return err
	}
	yielding, end := c.yielding(ctx)
	defer end()
	for _, m := range models {
		if m == wanted {
			continue
		}
		old, err := e.content.Coverage(ctx, m)
		if err != nil {
			return err
		}
		if have.Embedded+failed < old.Embedded {
			continue
		}
		err = e.write(yielding, forever, func(w store.Writer) error { return w.DropModel(yielding, m) })
		e.chooser.forget()
		if yielding.Err() != nil && ctx.Err() == nil {
			return errYield
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// yielding returns a context that ends when an ingest of this engine begins; end
// releases it.
func (c *catching) yielding(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.next
	c.next++
	c.yields[n] = cancel
	return ctx, func() {
		c.mu.Lock()
		delete(c.yields, n)
		c.mu.Unlock()
		cancel()
	}
}

// ingesting says that an ingest begins; the function it returns, that it has ended.
func (c *catching) ingesting() (end func()) {
	c.busy.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.yields {
		cancel()
	}
	return func() {
		c.busy.Add(-1)
		c.wake()
	}
}

// answering says that a question is being answered; the function it returns, that
// it is no more.
func (c *catching) answering() (end func()) {
	c.active.Add(1)
	return func() { c.active.Add(-1) }
}
