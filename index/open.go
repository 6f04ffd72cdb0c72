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

// An Identified source has a name of its own. An index that was written for
// another source is then recognised, whatever the sequences are; without it
// only by a sequence that the source has not reached.
type Identified interface {
	// Identity returns a name that no other source has and that never changes.
	Identity(ctx context.Context) (string, error)
}

// A Searcher is the index on one machine: immutable segments, mapped from a
// folder or in memory. It implements Index.
type Searcher struct {
	folder   *folder
	source   Source
	identity string
	lost     error
	limits   limits

	sequence atomic.Int64 // of current

	mu      sync.Mutex
	current *snapshot // what is searched; nil after Close
	closed  bool
	seen    fs.FileInfo  // the manifest that was last read or written; nil: none
	flushed *snapshot    // what it says; nil: not known
	merging *merging     // nil: none
	failed  error        // of the merges since it was last reported
	pause   func() error // of tests: called before a merge is published

	// updating is held, by having put something into it, while the snapshot is
	// replaced. It is a channel so that who waits for it can be cancelled.
	updating chan struct{}
	workers  workers // of who is updating

	// flushing is held while the manifest is replaced; it is taken before updating.
	flushing chan struct{}
	swept    bool // what others left in the folder has been removed

	lifetime context.Context // of merges
	end      context.CancelFunc
}

// Limits are sizes that tests make small.
type limits struct {
	builderPostings, builderBytes int // of all builders at work, see builder.full
	batchBytes                    int // of text, see reading
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

// share returns the limits of one of so many builders.
func (l limits) share(builders int) limits {
	l.builderPostings /= builders
	l.builderBytes /= builders
	return l
}

var _ Index = (*Searcher)(nil)

// Open opens the index of a source that is kept in dir. It does not write: the
// folder may be missing or read-only. Whatever there is unusable (missing, torn,
// of another source or another version) is left aside, see Lost, and the first
// search reads the source again.
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

// Lost returns why Open could not use the index that was there, nil when it
// could or there was none.
func (s *Searcher) Lost() error { return s.lost }

// Version implements Index.
func (s *Searcher) Version() assay.IndexVersion {
	return assay.IndexVersion{Sequence: s.sequence.Load()}
}

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

// use returns the current snapshot, which the caller releases.
func (s *Searcher) use() (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("index: %w", fs.ErrClosed)
	}
	return s.current.use(), nil
}

// replace makes next the current snapshot, of which the caller keeps a use. The
// caller is updating.
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
	before.release() // which may unmap and remove large files: searches need not wait for that
	return nil
}

// catchUp returns a snapshot that holds all that the source had committed when
// it was called. The caller releases it.
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
		return s.advance(ctx, snap, new(site))
	})
}

// catchUpVectors is catchUp for the vectors of a model too. It looks at both until
// the source has not moved between the two looks: of a document that was replaced
// then, neither the old vectors nor the new are there. A source that never rests
// keeps it until the context ends.
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
			return snap.catchUpModel(ctx, source, model, s.limits.vectorBytes, new(site))
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

// update replaces the current snapshot by what make makes of it, and returns it.
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

// advance returns the snapshot after snap, which holds all that the source has
// committed. A manifest that is newer is adopted first. The caller is updating.
func (s *Searcher) advance(ctx context.Context, snap *snapshot, to *site) (*snapshot, error) {
	sequence, err := s.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	snap = s.adopt(snap, sequence)
	defer snap.release()
	// Another search may have updated meanwhile.
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

// adopt returns what another process has written since, if that is as new as
// snap and no newer than the source, else snap. The caller is updating.
func (s *Searcher) adopt(snap *snapshot, sequence int64) *snapshot {
	if unchanged, err := s.manifestUnchanged(); err != nil || unchanged {
		return snap.use()
	}
	written, info, err := s.folder.load(s.identity)
	if err != nil || written.sequence < snap.sequence {
		if err == nil {
			written.release()
		}
		s.setFlushed(nil, info) // unusable, or behind: there is no reason to look again
		return snap.use()
	}
	if written.sequence > sequence { // by more than what was committed just now?
		written.release()
		return snap.use()
	}
	s.setFlushed(written, info)
	return written
}

// Close implements Index. A search or Flush after it fails; those under way end
// as they would have; a merge is given up.
func (s *Searcher) Close() error {
	s.end()
	s.flushing <- struct{}{} // who updates or flushes ends before
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

// union returns the distinct strings of some sorted lists, sorted.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
