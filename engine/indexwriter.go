package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/assay-rag/assay"
)

// A lagger is an index whose searches find the documents of the last Flush, and which one process at a
// time can write. Flush needs no writer lock of the content.
type lagger interface {
	// Lags reports whether searches do not find changes or vectors of the content yet.
	Lags(ctx context.Context) (bool, error)
}

// indexLock is the tenant's lock that a process holds while it writes an index that is a lagger.
const indexLock = "index"

// indexPatience is how long a change of the content waits for another process that writes the index. The
// rest is left to an indexWriter.
const indexPatience = 2 * time.Second

// An indexWriter flushes a lagger in the background, once for all calls of due that precede.
type indexWriter struct {
	engine *Engine
	wake   chan struct{}
	start  sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex
	err error // of the last flush
}

func newIndexWriter(e *Engine) *indexWriter {
	w := &indexWriter{engine: e, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// due makes the index be flushed soon. A process that may not write leaves it to others.
func (w *indexWriter) due() {
	if w.engine.tenant.ReadOnly() {
		return
	}
	w.start.Do(func() { w.done.Go(w.run) })
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *indexWriter) run() {
	for {
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return
		}
		err := w.engine.flushLagger(w.ctx, forever)
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}
}

// lastErr returns the error of the last flush in the background, or nil.
func (w *indexWriter) lastErr() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// stop interrupts a flush and waits for its end. Another process, or the next one, completes it.
func (w *indexWriter) stop() {
	w.cancel()
	w.done.Wait()
}

// flushLagger flushes the index, which is a lagger. While another process writes it, flushLagger waits, and
// returns assay.ErrLocked when the patience has run out.
func (e *Engine) flushLagger(ctx context.Context, patience time.Duration) error {
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		lock, err := e.lockIndex(ctx, patience)
		if err != nil {
			return err
		}
		err = errors.Join(ix.Flush(ctx), lock.Close())
		if !errors.Is(err, assay.ErrLocked) || patience != forever && time.Since(began) >= patience {
			return err
		}
		// The lock ended with its connection, and another process has it now.
	}
}

// lockIndex takes the index lock. While another process holds it, lockIndex tries again until the
// patience has run out, and then returns assay.ErrLocked.
func (e *Engine) lockIndex(ctx context.Context, patience time.Duration) (io.Closer, error) {
	const first, longest = 5 * time.Millisecond, 200 * time.Millisecond
	began := time.Now()
	for pause := first; ; pause = min(2*pause, longest) {
		lock, err := e.tenant.Lock(ctx, indexLock)
		if !errors.Is(err, assay.ErrLocked) || patience != forever && time.Since(began) >= patience {
			return lock, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// firstPatience is how long a search waits for the first index of a tenant, except in a process without
// background work, which waits until its context ends.
const firstPatience = 10 * time.Second

// awaitIndex has an index that is behind its content flushed in the background. If nothing of it can be
// searched yet, awaitIndex waits; the error is then assay.ErrUnavailable.
func (e *Engine) awaitIndex(ctx context.Context, ix Index) error {
	if _, ok := ix.(lagger); !ok {
		return nil
	}
	sequence, err := e.content.Sequence(ctx)
	if err != nil || ix.Sequence() == sequence {
		return err
	}
	if ix.Sequence() == 0 { // another process may have written it meanwhile
		_ = ix.CatchUp(ctx)
	}
	if ix.Sequence() == sequence {
		return nil
	}
	e.indexWriter.due()
	for began := time.Now(); ix.Sequence() == 0; {
		if !e.config.NoBackground && time.Since(began) >= firstPatience || e.tenant.ReadOnly() {
			return errors.Join(fmt.Errorf("the index is being built, and cannot be searched yet: %w", assay.ErrUnavailable), e.indexWriter.lastErr())
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.indexWriter.lastErr(); err != nil && e.config.NoBackground {
			return fmt.Errorf("build the index: %w", err)
		}
		_ = ix.CatchUp(ctx) // of an index that cannot be used the writer makes another
	}
	return nil
}

// lags reports whether the index is a lagger that does not have all changes.
func (e *Engine) lags(ctx context.Context) (bool, error) {
	if e.config.OpenIndex == nil {
		return false, nil
	}
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return false, err
	}
	l, ok := ix.(lagger)
	if !ok {
		return false, nil
	}
	return l.Lags(ctx)
}

// tendIndex has a lagger flushed in the background if it is open, so that rows which no search needs any
// more are deleted, and changes that a process left behind which was killed are found.
func (e *Engine) tendIndex() {
	e.mu.Lock()
	_, ok := e.index.(lagger)
	e.mu.Unlock()
	if ok {
		e.indexWriter.due()
	}
}
