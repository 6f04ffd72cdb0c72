package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/store"
)

// A fakeCluster is what the laggingIndexes of several engines share.
type fakeCluster struct {
	t       *testing.T
	flushed atomic.Int64 // sequence number of the content
	writing atomic.Bool
	flushes atomic.Int64

	mu      sync.Mutex
	refuses []error // of the next flushes
}

// A laggingIndex is an index that has what was flushed, by one engine at a time.
type laggingIndex struct {
	Index
	content store.Content
	cluster *fakeCluster
}

func (x laggingIndex) Sequence() int64               { return x.cluster.flushed.Load() }
func (x laggingIndex) CatchUp(context.Context) error { return nil }

func (x laggingIndex) Lags(ctx context.Context) (bool, error) {
	sequence, err := x.content.Sequence(ctx)
	return sequence != x.Sequence(), err
}

func (x laggingIndex) Flush(ctx context.Context) error {
	c := x.cluster
	if c.writing.Swap(true) {
		c.t.Error("two processes write the index at once")
	}
	defer c.writing.Store(false)
	c.flushes.Add(1)
	c.mu.Lock()
	var err error
	if len(c.refuses) > 0 {
		err, c.refuses = c.refuses[0], c.refuses[1:]
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	sequence, err := x.content.Sequence(ctx)
	if err == nil {
		c.flushed.Store(sequence)
	}
	return err
}

// open opens an engine on a data directory with an index in the cluster.
func (c *fakeCluster) open(dir string) *Engine {
	c.t.Helper()
	return openConfig(c.t, Config{Dir: dir, NoBackground: true, OpenIndex: func(ctx context.Context, tenant store.Tenant) (Index, error) {
		ix, err := index.Open(ctx, c.t.TempDir(), tenant.Content())
		if err != nil {
			return nil, err
		}
		return laggingIndex{ix, tenant.Content(), c}, nil
	}})
}

// awaitFlush waits until the index has all changes of the content.
func (c *fakeCluster) awaitFlush(e *Engine) {
	c.t.Helper()
	for {
		sequence, err := e.content.Sequence(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if c.flushed.Load() == sequence {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLaggingIndex checks that one of several engines at a time writes an index that searches do not bring
// up to date, that no change fails while another does, and that what a process left behind is flushed
// after the next search.
func TestLaggingIndex(t *testing.T) {
	t.Parallel()
	ctx, dir, c := t.Context(), t.TempDir(), &fakeCluster{t: t}
	first, second := c.open(dir), c.open(dir)
	if _, err := first.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}}); err != nil {
		t.Fatal(err)
	}
	if lags, err := second.lags(ctx); lags || err != nil {
		t.Errorf("the index lags after an ingest: %v", err)
	}

	lock, err := second.tenant.Lock(ctx, indexLock)
	if err != nil {
		t.Fatal(err)
	}
	before := c.flushed.Load()
	if _, err := first.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}, Collection: "again"}); err != nil {
		t.Errorf("an ingest while another process writes the index: %v", err)
	}
	if c.flushed.Load() != before {
		t.Error("the index was flushed without its lock")
	}
	req := storedRequest{Request: Request{Question: someQuestion}}
	if key := first.cacheKey(ctx, assay.Local(), req); key != "" {
		t.Errorf("the key of the cache is %s while the index lags, want none", key)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	c.awaitFlush(first)
	if key := first.cacheKey(ctx, assay.Local(), req); key == "" && program() != "" {
		t.Error("there is no key of the cache though the index has all changes")
	}

	// A process that stored documents was killed before it flushed.
	err = first.write(ctx, forever, func(w store.Writer) error {
		for d, err := range w.Documents(ctx, "again") {
			if err != nil {
				return err
			}
			_, err = w.Delete(ctx, d.ID)
			return err
		}
		return errors.New("there is no document")
	})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.refuses = []error{fmt.Errorf("another writer: %w", assay.ErrLocked)} // its lock was lost
	c.mu.Unlock()
	if _, err := second.Search(ctx, assay.Local(), assay.Query{Text: someQuestion, Limit: 3}); err != nil {
		t.Errorf("a search while the index lags: %v", err)
	}
	c.awaitFlush(second)
}

// TestFirstIndex checks that a search waits for the first index of a tenant, and returns why there is
// none.
func TestFirstIndex(t *testing.T) {
	t.Parallel()
	ctx, dir, c := t.Context(), t.TempDir(), &fakeCluster{t: t}
	own := openConfig(t, Config{Dir: dir, NoBackground: true})
	if _, err := own.Ingest(ctx, IngestRequest{Paths: []string{"testdata/handbook"}}); err != nil {
		t.Fatal(err)
	}
	e := c.open(dir)
	down := errors.New("no room")
	c.refuses = []error{down}
	q := assay.Query{Text: someQuestion, Limit: 3}
	if _, err := e.Search(ctx, assay.Local(), q); !errors.Is(err, down) {
		t.Errorf("a search without an index: %v, want why there is none", err)
	}
	if r, err := e.Search(ctx, assay.Local(), q); err != nil || len(r.Hits) == 0 {
		t.Errorf("a search after it: %d hits, %v", len(r.Hits), err)
	}
}
