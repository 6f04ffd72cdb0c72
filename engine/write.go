package engine

import (
	"context"
	"errors"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Who stores vectors takes the writer's place for a moment at a time. An ingest
// waits that long for it before it says that another process is at work.
const writerPatience = time.Second

// forever is the patience of who goes on until its context ends.
const forever time.Duration = -1

// writer takes the writer's place. While another has it, it tries again until the
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

// write runs fn as the content's writer.
func (e *Engine) write(ctx context.Context, patience time.Duration, fn func(store.Writer) error) error {
	w, err := e.writer(ctx, patience)
	if err != nil {
		return err
	}
	return errors.Join(fn(w), w.Close())
}

// briefly is the content with a PutVectors that takes the writer's place for its
// transaction alone, so that others ingest in between.
type briefly struct {
	store.Content
	engine *Engine
}

// PutVectors implements ingest.Vectors.
func (b briefly) PutVectors(ctx context.Context, model string, vectors ...store.Vector) (sequence int64, err error) {
	err = b.engine.write(ctx, forever, func(w store.Writer) error {
		sequence, err = w.PutVectors(ctx, model, vectors...)
		return err
	})
	return sequence, err
}
