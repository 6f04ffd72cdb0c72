package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// CatchUp brings the index up to date with the source, as the next search would. If the folder
// holds no usable index, CatchUp reads and analyses every document, so it is better called before a
// user waits for a search.
func (s *Searcher) CatchUp(ctx context.Context) error {
	snap, err := s.catchUp(ctx)
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	snap.release()
	return nil
}

// advance returns the snapshot after s. It holds everything that src had committed up to sequence,
// and possibly later commits. New segments are written to the fileSink.
func (s *snapshot) advance(ctx context.Context, src Source, sequence int64, w *workers, to *fileSink) (*snapshot, error) {
	r := sourceRead{to: to, workers: w, sequence: sequence, changed: make(map[rawID]struct{})}
	if err := r.read(ctx, src, s.sequence); err != nil {
		return nil, fmt.Errorf("read changes after %d: %w", s.sequence, err)
	}
	views := withoutDocuments(s.views, r.changed)
	for _, segment := range r.fresh {
		views = append(views, wholeView(segment))
	}
	views, err := mergeInMemory(ctx, views, w.limits.smallRows)
	if err != nil {
		return nil, err
	}
	return newSnapshot(r.sequence, s.models, views), nil
}

// sourceRead is one pass over a source's changes.
type sourceRead struct {
	to       *fileSink
	workers  *workers
	sequence int64
	changed  map[rawID]struct{} // documents

	mu    sync.Mutex
	fresh []*segment
}

// read makes segments of the changes after a sequence number. A single batch is analysed without
// starting goroutines. More than one batch is analysed by a workerPool while the source is being
// read.
func (r *sourceRead) read(ctx context.Context, src Source, after int64) error {
	var c *workerPool // nil: not needed yet
	err := r.eachBatch(ctx, src, after, func(batch []assay.Change, last bool) error {
		if c == nil && last {
			return r.buildAlone(ctx, batch)
		}
		if c == nil {
			c = r.startWorkers(ctx)
		}
		return c.send(batch)
	})
	if c != nil {
		return c.wait(err)
	}
	return err
}

// eachBatch calls f with the changes that carry documents, in batches of about limits.batchBytes of
// text. The last call has the remaining changes, possibly none.
func (r *sourceRead) eachBatch(ctx context.Context, src Source, after int64, f func(batch []assay.Change, last bool) error) error {
	var batch []assay.Change
	size := 0
	for c, err := range src.Changes(ctx, after) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := r.note(c); err != nil {
			return err
		}
		if c.Deleted {
			continue
		}
		batch = append(batch, c)
		if size += len(c.Document.Text) + 1000; size >= r.workers.limits.batchBytes {
			if err := f(batch, false); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	return f(batch, true)
}

// workerPool is a group of workers, one for each processor, up to maxWorkers.
type workerPool struct {
	group *errgroup.Group
	ctx   context.Context
	queue chan []assay.Change
}

// maxWorkers bounds the memory of a workerPool. Its builders share the limits, so with more workers
// each cuts smaller segments, but each worker has its own cache of words. Flushing 300,000 chunks
// of 100 words takes 260 MB with two workers, 350 MB with four and 580 MB with eight. (16 workers
// that did not share the limits took 1.5 GB.)
const maxWorkers = 4

func (r *sourceRead) startWorkers(ctx context.Context) *workerPool {
	group, ctx := errgroup.WithContext(ctx)
	c := &workerPool{group, ctx, make(chan []assay.Change)}
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	share := r.workers.limits.share(workers)
	for range workers {
		group.Go(func() error { return r.work(ctx, &worker{limits: share, builder: newBuilder()}, c.queue) })
	}
	return c
}

// send hands a batch to the next free worker.
func (c *workerPool) send(batch []assay.Change) error {
	select {
	case c.queue <- batch:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// wait waits until all workers have finished, or until all have stopped if err ended the reading.
// It returns the first error.
func (c *workerPool) wait(err error) error {
	if err != nil {
		c.group.Go(func() error { return err })
	}
	close(c.queue)
	return c.group.Wait()
}

// note checks a change and records its document as changed.
func (r *sourceRead) note(c assay.Change) error {
	r.sequence = max(r.sequence, c.Sequence)
	if !c.Deleted && (c.Document == nil || c.Document.ID != c.ID) {
		return fmt.Errorf("change %d of document %s comes without it: %w", c.Sequence, c.ID, assay.ErrDamaged)
	}
	id, ok := parseID(c.ID)
	if !ok {
		if c.Deleted {
			return nil // it was never indexed
		}
		return fmt.Errorf("document %q: an ID is 32 hexadecimal digits: %w", c.ID, assay.ErrInvalid)
	}
	if _, twice := r.changed[id]; twice {
		return fmt.Errorf("document %s comes twice among the changes: %w", c.ID, assay.ErrDamaged)
	}
	r.changed[id] = struct{}{}
	return nil
}

// work builds segments of the batches in the queue.
func (r *sourceRead) work(ctx context.Context, w *worker, queue <-chan []assay.Change) error {
	for batch := range queue {
		if err := r.build(ctx, w, batch); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.cut(w)
}

// buildAlone makes a segment of a few documents.
func (r *sourceRead) buildAlone(ctx context.Context, batch []assay.Change) error {
	w := &r.workers.first
	w.limits, w.builder = r.workers.limits, newBuilder()
	if err := r.build(ctx, w, batch); err != nil {
		return err
	}
	return r.cut(w)
}

// build adds documents to w's builder and cuts a segment when the builder is full.
func (r *sourceRead) build(ctx context.Context, w *worker, batch []assay.Change) error {
	for _, c := range batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.builder.add(c.Document, c.Chunks, w.analyzers.In(language(c.Document))); err != nil {
			return err
		}
		if w.builder.full(w.limits) {
			if err := r.cut(w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *sourceRead) cut(w *worker) error {
	if w.builder.rows.count() == 0 {
		return nil
	}
	s, err := w.builder.cut(r.to)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh = append(r.fresh, s)
	return nil
}

// workers holds the limits of builders and the first worker. That worker is kept between small
// updates, because an analyzer is faster on words that it has seen before.
type workers struct {
	limits limits
	first  worker
}

type worker struct {
	limits    limits // of its builder
	builder   *builder
	analyzers analysis.Analyzers
}
