package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/assay-rag/assay"
)

// An Identified source has a unique name. The index of another source is then recognised regardless
// of its sequence number. Without a name, it is recognised only if its sequence number is one that
// the source has not reached.
type Identified interface {
	// Identity returns a name that is unique to this source and never changes.
	Identity(ctx context.Context) (string, error)
}

// A Searcher is the index on one machine: immutable segments, mapped from a folder or in memory. It
// implements Index.
type Searcher struct {
	folder   *folder
	source   Source
	identity string
	lost     error
	limits   limits

	sequence atomic.Int64 // of current

	mu      sync.Mutex
	current *snapshot // searched snapshot; nil after Close
	closed  bool
	seen    fs.FileInfo      // manifest last read or written; nil: none
	flushed *snapshot        // its snapshot; nil: unknown
	merging *backgroundMerge // nil: none
	failed  error            // errors of merges not yet reported
	pause   func() error     // set by tests: called before a merge is published

	// updating is a lock that is held while the snapshot is replaced. Sending to it acquires the
	// lock. It is a channel so that waiting can be cancelled.
	updating chan struct{}
	workers  workers // guarded by updating

	// flushing is a lock that is held while the manifest is replaced. It is acquired before
	// updating.
	flushing chan struct{}
	swept    bool // leftover files have been removed from the folder

	lifetime context.Context // of merges
	end      context.CancelFunc
}

// limits are sizes that tests can reduce.
type limits struct {
	builderPostings, builderBytes int // of all builders together, see builder.full
	batchBytes                    int // bytes of text, see reading
	vectorBytes                   int // see fetching
	smallRows                     int // see toMerge
}

var defaultLimits = limits{
	builderPostings: 8 << 20,
	builderBytes:    16 << 20,
	batchBytes:      256 << 10,
	vectorBytes:     32 << 20,
	smallRows:       2048,
}

// share returns the limits of one builder if there are the given number of builders.
func (l limits) share(builders int) limits {
	l.builderPostings /= builders
	l.builderBytes /= builders
	return l
}

var _ Index = (*Searcher)(nil)

// Open opens the index of a source, stored in dir. It does not write, so the folder may be missing
// or read-only. If the stored index is unusable (torn, of another source or of another version),
// Open ignores it, Lost returns the reason, and the first search reads the source again.
func Open(ctx context.Context, dir string, source Source) (*Searcher, error) {
	return open(ctx, dir, source, defaultLimits)
}

func open(ctx context.Context, dir string, source Source, l limits) (*Searcher, error) {
	s := &Searcher{
		folder:   newFolder(dir),
		source:   source,
		limits:   l,
		updating: make(chan struct{}, 1),
		flushing: make(chan struct{}, 1),
	}
	s.workers.limits = l
	if named, ok := source.(Identified); ok {
		var err error
		if s.identity, err = named.Identity(ctx); err != nil {
			return nil, fmt.Errorf("open index: %w", err)
		}
	}
	sequence, err := source.Sequence(ctx)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	s.lifetime, s.end = context.WithCancel(context.Background())
	snap, info, err := s.folder.load(s.identity)
	if err == nil && snap.sequence > sequence {
		err = fmt.Errorf("the index holds sequence %d, its source only %d: %w", snap.sequence, sequence, assay.ErrForeign)
		snap.release()
	}
	s.seen = info
	switch {
	case err == nil:
		s.flushed = snap.use()
	case errors.Is(err, fs.ErrNotExist) && info == nil: // there is no index
		snap = newSnapshot(0, nil, nil)
	default:
		snap = newSnapshot(0, nil, nil)
		s.lost = fmt.Errorf("index in %s: %w", dir, err)
	}
	s.current = snap
	s.sequence.Store(snap.sequence)
	return s, nil
}

// Lost returns the reason why Open could not use the stored index. It returns nil if Open could use
// it or if there was none.
func (s *Searcher) Lost() error { return s.lost }

// Sequence implements Index.
func (s *Searcher) Sequence() int64 { return s.sequence.Load() }

// Search implements Index.
func (s *Searcher) Search(ctx context.Context, access assay.Access, q assay.Query) (Result, error) {
	if err := checkQuery(q); err != nil {
		return Result{}, err
	}
	snap, err := s.catchUp(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	defer snap.release()
	result, err := snap.search(ctx, access, q)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// Nearest implements Index.
func (s *Searcher) Nearest(ctx context.Context, access assay.Access, q assay.Query, v Vector) (Result, error) {
	if err := checkQuery(q); err != nil {
		return Result{}, err
	}
	snap, err := s.catchUpVectors(ctx, v.Model)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	defer snap.release()
	result, err := snap.nearest(ctx, access, q, v)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// Similarities implements Index.
func (s *Searcher) Similarities(ctx context.Context, access assay.Access, v Vector, chunks []string) ([]*float64, error) {
	snap, err := s.catchUpVectors(ctx, v.Model)
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	defer snap.release()
	list, err := snap.similarities(ctx, access, v, chunks)
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	return list, nil
}

// Vectors implements Index.
func (s *Searcher) Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error) {
	snap, err := s.catchUpVectors(ctx, model)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	defer snap.release()
	list, err := snap.vectorsOf(access, model, chunks)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return list, nil
}

// use returns the current snapshot. The caller must release it.
func (s *Searcher) use() (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("index: %w", fs.ErrClosed)
	}
	return s.current.use(), nil
}

// replace makes next the current snapshot. The caller keeps its own use of next and must hold
// s.updating.
func (s *Searcher) replace(next *snapshot) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("index: %w", fs.ErrClosed)
	}
	before := s.current
	s.current = next.use()
	s.sequence.Store(next.sequence)
	s.mu.Unlock()
	before.release() // outside the lock, because it may unmap and remove large files
	return nil
}

// catchUp returns a snapshot that includes everything that the source had committed when catchUp
// was called. The caller must release it.
func (s *Searcher) catchUp(ctx context.Context) (*snapshot, error) {
	sequence, err := s.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := s.use()
	if err != nil || snap.sequence == sequence {
		return snap, err
	}
	snap.release()
	return s.update(ctx, func(snap *snapshot) (*snapshot, error) {
		return s.advance(ctx, snap, new(fileSink))
	})
}

// catchUpVectors is like catchUp but also includes the vectors of a model. It repeats both steps
// until the source has not changed between them, because otherwise a document that was replaced in
// between would have neither its old nor its new vectors. If the source changes constantly,
// catchUpVectors runs until the context ends.
func (s *Searcher) catchUpVectors(ctx context.Context, model string) (*snapshot, error) {
	source, ok := s.source.(VectorSource)
	if !ok {
		return s.catchUp(ctx)
	}
	for {
		snap, err := s.catchUp(ctx)
		if err != nil {
			return nil, err
		}
		if complete, known := snap.models[model]; known && complete == snap.sequence {
			return snap, nil
		}
		snap.release()
		snap, err = s.update(ctx, func(snap *snapshot) (*snapshot, error) {
			return snap.catchUpModel(ctx, source, model, s.limits.vectorBytes, new(fileSink))
		})
		if err != nil {
			return nil, err
		}
		sequence, err := s.source.Sequence(ctx)
		if err == nil && sequence == snap.sequence {
			return snap, nil
		}
		snap.release()
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
}

// update replaces the current snapshot by the result of make and returns that result.
func (s *Searcher) update(ctx context.Context, make func(*snapshot) (*snapshot, error)) (*snapshot, error) {
	if err := acquire(ctx, s.updating); err != nil {
		return nil, err
	}
	defer release(s.updating)
	snap, err := s.use()
	if err != nil {
		return nil, err
	}
	defer snap.release()
	next, err := make(snap)
	if err != nil {
		return nil, err
	}
	if err := s.replace(next); err != nil {
		next.release()
		return nil, err
	}
	return next, nil
}

// advance returns the snapshot after snap, which includes everything that the source has committed.
// It first adopts a newer manifest. The caller must hold s.updating.
func (s *Searcher) advance(ctx context.Context, snap *snapshot, to *fileSink) (*snapshot, error) {
	sequence, err := s.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	snap = s.adopt(snap, sequence)
	defer snap.release()
	// Another search may have updated in the meantime.
	if snap.sequence == sequence {
		return snap.use(), nil
	}
	if snap.sequence > sequence { // the source was replaced by an older one
		empty := newSnapshot(0, nil, nil)
		defer empty.release()
		snap = empty
	}
	return snap.advance(ctx, s.source, sequence, &s.workers, to)
}

// adopt returns the snapshot that another process has written, if it is at least as new as snap and
// not newer than the source. Otherwise it returns snap. The caller must hold s.updating.
func (s *Searcher) adopt(snap *snapshot, sequence int64) *snapshot {
	if unchanged, err := s.manifestUnchanged(); err != nil || unchanged {
		return snap.use()
	}
	written, info, err := s.folder.load(s.identity)
	if err != nil || written.sequence < snap.sequence {
		if err == nil {
			written.release()
		}
		s.setFlushed(nil, info) // unusable or outdated: do not read it again
		return snap.use()
	}
	if written.sequence > sequence { // possibly by more than a commit in between
		written.release()
		return snap.use()
	}
	s.setFlushed(written, info)
	return written
}

// Close implements Index. Later calls of Search and Flush fail. Calls in progress finish normally,
// and a background merge is abandoned.
func (s *Searcher) Close() error {
	s.end()
	s.flushing <- struct{}{} // wait for updates and flushes in progress
	s.updating <- struct{}{}
	s.mu.Lock()
	s.closed = true
	merging := s.merging
	for _, snap := range []**snapshot{&s.current, &s.flushed} {
		if *snap != nil {
			(*snap).release()
			*snap = nil
		}
	}
	s.mu.Unlock()
	release(s.updating)
	release(s.flushing)
	if merging != nil {
		<-merging.done
	}
	return nil
}

// acquire waits for a lock that is a channel of capacity one.
func acquire(ctx context.Context, lock chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func release(lock chan struct{}) { <-lock }

// union returns the distinct strings of the given lists, sorted.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
