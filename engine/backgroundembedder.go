package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Parameters of the background embedder.
const (
	followEvery = 2 * time.Second        // how often it looks for changes by other processes
	followBatch = 16                     // passages per batch; small, because questions wait for a batch
	followYield = 250 * time.Millisecond // how long a batch waits for questions in progress
	followFirst = 5 * time.Second        // pause after a failure; doubled after each further one
	followLast  = 5 * time.Minute
	flushEvery  = 8192 // vectors between index flushes; until then other processes read them one by one
)

// backgroundEmbedder makes the missing vectors of an engine's documents, in the background and for
// Embed. Only one pass runs at a time in a process, and only one process at a time makes vectors.
type backgroundEmbedder struct {
	engine *Engine
	every  time.Duration // see followEvery
	active atomic.Int32  // questions and searches in progress
	busy   atomic.Int32  // ingests in progress
	wanted atomic.Int32  // callers waiting for a foreground pass
	rate   atomic.Pointer[ingest.EmbedProgress]

	passLock chan struct{} // semaphore: holds a value during a pass
	kick     chan struct{} // signals new work
	cancel   context.CancelFunc
	done     chan struct{} // closed when the background goroutine has ended; nil: not started

	mu     sync.Mutex
	yields map[int]context.CancelFunc // cancel work that yields to an ingest
	next   int
}

func newBackgroundEmbedder(e *Engine) *backgroundEmbedder {
	return &backgroundEmbedder{engine: e, every: followEvery, passLock: make(chan struct{}, 1), kick: make(chan struct{}, 1), yields: map[int]context.CancelFunc{}}
}

// start starts the background goroutine that follows the content.
func (c *backgroundEmbedder) start() {
	ctx, cancel := context.WithCancel(c.engine.outgoing(context.Background()))
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		c.follow(ctx)
	}()
}

// stop stops the background goroutine and waits for it.
func (c *backgroundEmbedder) stop() {
	if c.done != nil {
		c.cancel()
		<-c.done
	}
}

// wake makes the background goroutine look for new work.
func (c *backgroundEmbedder) wake() {
	select {
	case c.kick <- struct{}{}:
	default: // already signalled
	}
}

// follow makes a pass whenever the content has changed, until ctx ends.
func (c *backgroundEmbedder) follow(ctx context.Context) {
	look := time.NewTicker(c.every)
	defer look.Stop()
	done := passState{sequence: -1}
	var failures time.Duration // length of the next pause
	var until time.Time        // end of the pause
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
		case errors.Is(err, errYield): // the caller that took over calls wake
		default:
			failures = min(cmp.Or(2*failures, followFirst), followLast)
			until = time.Now().Add(failures)
		}
	}
}

// passState describes the content that the last pass covered.
type passState struct {
	model    string
	sequence int64 // content sequence when the pass began
	complete int64 // every passage up to here has a vector
}

// followOnce makes one pass, if anything has changed since the last.
func (c *backgroundEmbedder) followOnce(ctx context.Context, last passState) (passState, error) {
	e := c.engine
	chosen, err := e.encoderSelector.selection(ctx)
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
	if report.Model != chosen.wanted { // the model changed while the pass waited; After was for the old one
		return last, errYield
	}
	now := passState{model: report.Model, sequence: sequence, complete: sequence}
	if len(report.Failed) > 0 { // they are retried after the next change
		now.complete = opts.After
	}
	return now, nil
}

// errYield is returned by a pass that stopped early: for a foreground pass, for an ingest, or
// because the wanted model changed.
var errYield = errors.New("another pass is to begin")

// yield is called before each background batch. It waits up to followYield for questions in
// progress and as long as necessary for an ingest. It returns errYield if a foreground pass is
// waiting.
func (c *backgroundEmbedder) yield(ctx context.Context) error {
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

// embeddingLock is the tenant's lock that the process making vectors holds. Without it, two
// processes would compute the same vectors.
const embeddingLock = "embedding"

// pass makes the vectors that the wanted model still lacks, adds them to the index, and drops the
// vectors of other models once the wanted model has caught up with them.
func (c *backgroundEmbedder) pass(ctx context.Context, opts ingest.EmbedOptions) (report ingest.EmbedReport, err error) {
	err = c.engine.unlessStopped(ctx, func(ctx context.Context) (err error) {
		report, err = c.passUnstopped(ctx, opts)
		return err
	})
	return report, err
}

// passUnstopped is pass until a stop ends ctx.
func (c *backgroundEmbedder) passUnstopped(ctx context.Context, opts ingest.EmbedOptions) (report ingest.EmbedReport, err error) {
	e := c.engine
	if e.tenant.ReadOnly() {
		return report, fmt.Errorf("make vectors: %w", assay.ErrReadOnly)
	}
	if _, _, err := c.encoder(ctx); err != nil {
		return report, err // fail before waiting for other passes
	}
	select {
	case c.passLock <- struct{}{}:
		defer func() { <-c.passLock }()
	case <-ctx.Done():
		return report, ctx.Err()
	}
	lock, err := c.lock(ctx, opts)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	model, encoder, err := c.encoder(ctx)
	if err != nil {
		return report, err
	}
	if isService(encoder) {
		account, err := e.tenant.Ledger().Admit(ctx, store.Admission{})
		if err != nil {
			return report, err
		}
		defer account.Close() // its calls are settled one by one
		encoder = runLedger{e, assay.Principal{}, account}.paid(e.shareVectors(encoder))
	}
	before := opts.Before
	opts.Before = func(ctx context.Context) error {
		if chosen, err := e.encoderSelector.selection(ctx); err != nil || chosen.wanted != model {
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
			_ = c.flush(ctx) // a persistent error is returned by the flush at the end
		}
		if shown != nil {
			shown(p)
		}
	}
	defer c.rate.Store(nil)
	report, err = ingest.Embed(ctx, shortLockContent{e.content, e}, encoder, opts)
	if report.Stored > flushed {
		err = errors.Join(err, c.flushLast(ctx))
	}
	if err == nil {
		err = c.dropReplaced(ctx, model, len(report.Failed))
	}
	return report, err
}

// encoder returns the wanted model and the encoder that makes its vectors.
func (c *backgroundEmbedder) encoder(ctx context.Context) (model string, e llm.Embedder, err error) {
	chosen, err := c.engine.encoderSelector.selection(ctx)
	if err != nil {
		return "", nil, err
	}
	if chosen.wanted == "" {
		return "", nil, cmp.Or(chosen.problem, errNoEncoder)
	}
	e, err = c.engine.encoderSelector.encoders.open(ctx, chosen.wanted)
	return chosen.wanted, e, err
}

// errNoEncoder is the error of an engine without encoders.
var errNoEncoder = fmt.Errorf("no encoder to make vectors with: %w", assay.ErrInvalid)

// lock waits for the embedding lock and returns it. While another process holds it, lock reports
// that process's progress.
func (c *backgroundEmbedder) lock(ctx context.Context, opts ingest.EmbedOptions) (io.Closer, error) {
	const every = 500 * time.Millisecond
	for {
		lock, err := c.engine.tenant.Lock(ctx, embeddingLock)
		if !errors.Is(err, assay.ErrLocked) {
			return lock, err
		}
		if opts.Progress != nil {
			report, err := c.engine.vectorReport(ctx)
			if err != nil {
				return nil, err
			}
			if report != nil {
				opts.Progress(ingest.EmbedProgress{Model: report.Model, Left: report.Missing()})
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if opts.Before != nil {
			if err := opts.Before(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// lastFlush is how long writing the index may take after ctx has ended. Vectors that are not in
// the index by then are read from the store by the next process.
const lastFlush = 2 * time.Second

// flushLast calls flush at the end of a pass. If ctx has ended it allows lastFlush more.
func (c *backgroundEmbedder) flushLast(ctx context.Context) error {
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

// flush adds the new vectors to the index on disk. If an ingest holds or wants the writer lock,
// flush gives up without an error, because the ingest flushes the index itself.
func (c *backgroundEmbedder) flush(ctx context.Context) error {
	ctx, end := c.yielding(ctx)
	defer end()
	err := c.engine.flushAlone(ctx, writerPatience)
	if errors.Is(err, assay.ErrLocked) || errors.Is(err, context.Canceled) {
		return nil // the other writer flushes the index
	}
	return err
}

// dropReplaced drops the vectors of every model that the wanted model has caught up with.
// Passages at which the wanted model failed do not count as missing.
func (c *backgroundEmbedder) dropReplaced(ctx context.Context, wanted string, failed int) error {
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
		e.encoderSelector.forget()
		if yielding.Err() != nil && ctx.Err() == nil {
			return errYield
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// yielding returns a context that is cancelled when an ingest of this engine begins. The caller
// must call end to release it.
func (c *backgroundEmbedder) yielding(ctx context.Context) (_ context.Context, end func()) {
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

// ingesting marks the beginning of an ingest; the returned function marks its end.
func (c *backgroundEmbedder) ingesting() (end func()) {
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

// answering marks the beginning of a question or search; the returned function marks its end.
func (c *backgroundEmbedder) answering() (end func()) {
	c.active.Add(1)
	return func() { c.active.Add(-1) }
}
