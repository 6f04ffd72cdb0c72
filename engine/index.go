package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/store"
)

// An Index is the index of a tenant's content. It may also be
//
//   - a graph.Index, which gives the graph of the passages that a search may find, so that searches
//     can walk over it;
//   - a settler, whose background work Flush waits for;
//   - a sizer, whose size Doctor reports;
//   - a lagger, which searches do not bring up to date.
type Index = index.Follower

// A settler works in the background, for example to merge files. Settle waits until it is done.
type settler interface {
	Settle(ctx context.Context) error
}

// A sizer knows the number of bytes that its index takes.
type sizer interface {
	Size(ctx context.Context) (bytes int64, err error)
}

// A loser knows why the stored index could not be used when it was opened; nil: it could.
type loser interface{ Lost() error }

// openIndex opens the configured index of a tenant, by default one of files in dir.
func (c Config) openIndex(ctx context.Context, t store.Tenant, dir string) (Index, error) {
	if c.OpenIndex == nil {
		return index.Open(ctx, dir, t.Content())
	}
	ix, err := c.OpenIndex(ctx, t)
	if err == nil && ix == nil {
		return nil, fmt.Errorf("tenant %s has no index: %w", t.Name(), assay.ErrInvalid)
	}
	return ix, err
}

// walkerOver returns a walker over the graph of an index, or nil if it has none.
func walkerOver(ix Index) retrieve.Walker {
	if g, ok := ix.(graph.Index); ok {
		return graph.New(g, graph.Options{})
	}
	return nil
}

// An indexDir is the folder of the index.
type indexDir struct {
	path      string
	temporary string // removed by close; empty: the folder is the tenant's
}

// indexDirOf returns the folder of a tenant's index, or a temporary one if the tenant has none. The
// folder of an index that is elsewhere is empty.
func (c Config) indexDirOf(t store.Tenant) (indexDir, error) {
	if path := t.IndexDir(); path != "" {
		return indexDir{path: path}, nil
	}
	if c.OpenIndex != nil {
		return indexDir{}, nil
	}
	temporary, err := os.MkdirTemp("", "assay-index-*")
	if err != nil {
		return indexDir{}, fmt.Errorf("create a folder for the index: %w", err)
	}
	return indexDir{path: filepath.Join(temporary, "index"), temporary: temporary}, nil
}

func (d indexDir) close() error {
	if d.temporary == "" {
		return nil
	}
	return os.RemoveAll(d.temporary)
}

// rebuild writes an index that was lost or written by another version, so that not every
// searching process rebuilds it. If another process is writing, or the directory is read-only,
// the index stays in memory only. A lagger is left to awaitIndex. The only error is that ctx has ended.
func (e *Engine) rebuild(ctx context.Context) error {
	if _, ok := e.index.(lagger); ok || e.index.Sequence() > 0 {
		return nil
	}
	err := e.write(ctx, 0, func(store.Writer) error { return e.index.Flush(ctx) })
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// catchUp brings the open index up to date before a run starts, because rebuilding a lost or
// outdated index can take longer than a run's wall time. It ignores errors in the content, which
// the run's first search records in the journal. The only error is that ctx has ended.
func (e *Engine) catchUp(ctx context.Context) error {
	e.mu.Lock()
	ix := e.index
	e.mu.Unlock()
	if err := ix.CatchUp(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// openedIndex returns the index, which it opens if necessary.
func (e *Engine) openedIndex(ctx context.Context) (Index, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.index != nil {
		return e.index, nil
	}
	ix, err := e.config.openIndex(ctx, e.tenant, e.indexDir.path)
	if err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	e.index = ix
	if err := e.rebuild(ctx); err != nil {
		return nil, err
	}
	return ix, nil
}

// flushAlone is flush with the writer lock, which a lagger does not need. The errors are those of write.
func (e *Engine) flushAlone(ctx context.Context, patience time.Duration) error {
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return err
	}
	if _, ok := ix.(lagger); ok {
		return e.flush(ctx)
	}
	return e.write(ctx, patience, func(store.Writer) error { return e.flush(ctx) })
}

// flushUpload flushes the index after an upload. The document is stored, so that an index in a cluster
// that cannot be reached is not an error. A later search has it flushed.
func (e *Engine) flushUpload(ctx context.Context) error {
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return err
	}
	err = e.flushAlone(ctx, uploadPatience)
	if _, ok := ix.(lagger); ok && errors.Is(err, assay.ErrUnavailable) {
		return nil
	}
	return err
}

// flush writes pending changes to the index, so that the next process need not repeat the work. It
// waits for the index's background work to finish, because this process may be about to exit. If another
// process writes an index that is a lagger, the changes are written in the background after it.
func (e *Engine) flush(ctx context.Context) error {
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return err
	}
	if _, ok := ix.(lagger); ok {
		err = e.flushLagger(ctx, indexPatience)
		if errors.Is(err, assay.ErrLocked) {
			e.indexWriter.due()
			err = nil
		}
		if err != nil {
			return fmt.Errorf("write the index: %w", err)
		}
		return nil
	}
	err = ix.Flush(ctx)
	if s, ok := ix.(settler); ok && err == nil {
		err = s.Settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}

// indexSize returns the number of bytes that a tenant's index takes.
func (x *examination) indexSize() (bytes int64, err error) {
	if x.config.OpenIndex == nil {
		return folderSize(x.tenant.IndexDir())
	}
	ix, err := x.config.openIndex(x.ctx, x.tenant, "")
	if err != nil {
		return 0, err
	}
	if s, ok := ix.(sizer); ok {
		bytes, err = s.Size(x.ctx)
	}
	return bytes, errors.Join(err, ix.Close())
}
