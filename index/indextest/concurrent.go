package indextest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
)

// pair is two documents that are always put together, with the same counter in
// both; a search must see both of one state.
func pair(counter int) []Entry {
	text := fmt.Sprintf("needle n%d", counter)
	a, b := NewEntry("c", "first", "", text), NewEntry("c", "second", "", text)
	b.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"*"}}
	return []Entry{a, b}
}

// testReadersBesideWriter searches while documents change and the index is
// flushed: each search sees one state, and at least what was committed before it.
func testReadersBesideWriter(t *testing.T, open Opener) {
	s := NewSource("a")
	var committed atomic.Int64
	committed.Store(s.Put(pair(0)...))
	ix := open(t, s, t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				atLeast := committed.Load()
				result, err := ix.Search(context.WithoutCancel(ctx), everyone, assay.Query{Text: "needle", Limit: 5})
				if err != nil {
					t.Error(err)
					return
				}
				if result.Index.Sequence < atLeast {
					t.Errorf("a search saw sequence %d after %d was committed", result.Index.Sequence, atLeast)
				}
				if result.Total != 2 || result.Hits[0].Version != result.Hits[1].Version {
					t.Errorf("a search saw half a change: %+v", result)
				}
			}
		})
	}
	for i := range rounds(150) {
		committed.Store(s.Put(pair(i + 1)...))
		for j := range i % 3 {
			committed.Store(s.Put(NewEntry("c", fmt.Sprint("other", i%40, j), "", "something else")))
		}
		if i%10 == 0 {
			if err := ix.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	readers.Wait()
}

// testOpenBesideFlush opens the index, as other processes do, while its writer
// replaces the files.
func testOpenBesideFlush(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := NewSource("a")
	s.Put(pair(0)...)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				ix := open(t, s, dir)
				result, err := ix.Search(context.WithoutCancel(ctx), everyone, assay.Query{Text: "needle", Limit: 5})
				if err != nil || result.Total != 2 || result.Hits[0].Version != result.Hits[1].Version {
					t.Errorf("%v: %+v", err, result)
				}
				if err := ix.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ix := open(t, s, dir)
	for i := range rounds(40) {
		s.Put(pair(i + 1)...)
		if err := ix.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	readers.Wait()
}
