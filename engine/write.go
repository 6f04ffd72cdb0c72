package engine

import (
	"context"
	"errors"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// writerPatience is how long an ingest waits for the writer lock before it returns
// assay.ErrLocked. Storing vectors holds the lock only briefly.
const writerPatience = time.Second

// forever is the patience of a caller that waits until its context ends.
const forever time.Duration = -1

// writer takes the writer lock. While another process holds it, writer tries again until the
// patience has run out, and then returns assay.ErrLocked.
func (e *Engine) writer(ctx context.Context, patience time.Duration) (store.Writer, error) {
	const first, longest = 5 * time.Millisecond, 200 * time.Millisecond
	began := time.Now()
	for pause := first; ; pause = min(2*pause, longest) {
		w, err := e.tenant.Writer(ctx)
		if !errors.Is(err, assay.ErrLocked) || patience != forever && time.Since(began) >= patience {
			return w, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// write runs fn with the writer lock held.
func (e *Engine) write(ctx context.Context, patience time.Duration, fn func(store.Writer) error) error {
	w, err := e.writer(ctx, patience)
	if err != nil {
		return err
	}
	return errors.Join(fn(w), w.Close())
}

// shortLockContent is the content with a PutVectors that holds the writer lock only for its own
// transaction, so that others can ingest in between.
type shortLockContent struct {
	store.Content
	engine *Engine
}

// PutVectors implements ingest.Vectors.
func (b shortLockContent) PutVectors(ctx context.Context, model string, vectors ...store.Vector) (sequence int64, err error) {
	err = b.engine.write(ctx, forever, func(w store.Writer) error {
		sequence, err = w.PutVectors(ctx, model, vectors...)
		return err
	})
	return sequence, err
}
