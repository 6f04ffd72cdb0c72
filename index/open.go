package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// An Identified source has a name of its own. An index that was written for
// another source is then recognised, whatever the sequences are; without it
// only by a sequence that the source has not reached.
type Identified interface {
	// Identity returns a name that no other source has and that never changes.
	Identity(ctx context.Context) (string, error)
}

// A Searcher is the index on one machine: immutable segments in memory, read
// from and written to a folder. It implements Index.
type Searcher struct {
	dir      string
	source   Source
	identity string
	lost     error

	current atomic.Pointer[snapshot]
	closed  atomic.Bool

	// updating is held, by having put something into it, while the snapshot is
	// replaced. It is a channel so that who waits for it can be cancelled.
	updating chan struct{}
	analyzer *analysis.Analyzer // of who is updating

	// flushing is held while files are written; flushed is what they hold.
	flushing chan struct{}
	flushed  *snapshot
	written  map[*segment]string // file names
}

var _ Index = (*Searcher)(nil)

// Open opens the index of a source that is kept in dir. It does not write: the
// folder may be missing or read-only. Whatever there is unusable (missing, torn,
// of another source or another version) is left aside, see Lost, and the first
// search reads the source again.
func Open(ctx context.Context, dir string, source Source) (*Searcher, error) {
	s := &Searcher{
		dir:      dir,
		source:   source,
		updating: make(chan struct{}, 1),
		analyzer: analysis.NewAnalyzer(""),
		flushing: make(chan struct{}, 1),
	}
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
	snap, written, err := load(dir, s.identity)
	if err == nil && snap.sequence > sequence {
		snap, err = nil, fmt.Errorf("the index holds sequence %d, its source only %d: %w", snap.sequence, sequence, assay.ErrForeign)
	}
	if err != nil {
		snap = newSnapshot(0, nil)
		if !errors.Is(err, fs.ErrNotExist) || exists(filepath.Join(dir, manifestName)) {
			s.lost = fmt.Errorf("index in %s: %w", dir, err)
		}
	} else {
		s.flushed, s.written = snap, written
	}
	s.current.Store(snap)
	return s, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Lost returns why Open could not use the index that was there, nil when it
// could or there was none.
func (s *Searcher) Lost() error { return s.lost }

// Search implements Index.
func (s *Searcher) Search(ctx context.Context, access assay.Access, q assay.Query) (Result, error) {
	if err := checkQuery(q); err != nil {
		return Result{}, err
	}
	snap, err := s.catchUp(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	result, err := snap.search(ctx, access, q)
	if err != nil {
		return Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// Version implements Index.
func (s *Searcher) Version() assay.IndexVersion {
	return assay.IndexVersion{Sequence: s.current.Load().sequence}
}

// Close implements Index. A search or Flush after it fails; those under way end
// as they would have.
func (s *Searcher) Close() error {
	s.closed.Store(true)
	return nil
}

// catchUp returns a snapshot that holds all that the source had committed when
// it was called.
func (s *Searcher) catchUp(ctx context.Context) (*snapshot, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("index: %w", fs.ErrClosed)
	}
	sequence, err := s.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	if snap := s.current.Load(); snap.sequence == sequence {
		return snap, nil
	}
	if err := acquire(ctx, s.updating); err != nil {
		return nil, err
	}
	defer release(s.updating)
	// Another search may have updated meanwhile; then to more than sequence.
	snap := s.current.Load()
	if snap.sequence >= sequence {
		if sequence, err = s.source.Sequence(ctx); err != nil {
			return nil, err
		}
		if snap.sequence == sequence {
			return snap, nil
		}
		if snap.sequence > sequence { // the source was replaced by an older one
			snap = newSnapshot(0, nil)
		}
	}
	next, err := snap.advance(ctx, s.source, sequence, s.analyzer)
	if err != nil {
		return nil, fmt.Errorf("read changes after %d: %w", snap.sequence, err)
	}
	s.current.Store(next)
	return next, nil
}

// Flush implements Index. Errors of writing wrap assay.ErrFull or
// assay.ErrReadOnly; the index on disk is then what it was, and this one goes on.
func (s *Searcher) Flush(ctx context.Context) error {
	if _, err := s.catchUp(ctx); err != nil {
		return fmt.Errorf("flush index: %w", err)
	}
	if err := acquire(ctx, s.flushing); err != nil {
		return fmt.Errorf("flush index: %w", err)
	}
	defer release(s.flushing)
	snap := s.current.Load()
	if snap == s.flushed && exists(filepath.Join(s.dir, manifestName)) {
		return nil
	}
	written, err := snap.save(s.dir, s.identity, s.written)
	if err != nil {
		return fmt.Errorf("flush index to %s: %w", s.dir, err)
	}
	s.flushed, s.written = snap, written
	return nil
}

// acquire waits for a lock that is a channel of capacity one.
func acquire(ctx context.Context, lock chan struct{}) error {
	select {
	case lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func release(lock chan struct{}) { <-lock }
