package indextest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// pair returns two documents that are always put together with the same counter. A search must see
// both in the same state. Their texts are equal, so that they also get their vector at the same
// time.
func pair(counter int) []Entry {
	text := fmt.Sprintf("needle n%d", counter)
	a, b := NewEntry("c", "first", "", text), NewEntry("c", "second", "", text)
	b.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"*"}}
	return []Entry{a, b}
}

func putPair(s *Source, counter int) int64 {
	p := pair(counter)
	s.Put(p...)
	return s.PutVectors(near.Model, map[string][]float32{p[0].Chunks[0].ID: angled(float64(counter % 90))})
}

// A watcher searches an index repeatedly for the pair.
type watcher struct {
	index     index.Index
	committed *atomic.Int64 // last committed sequence
	vectors   bool          // search vectors instead of texts
	levels    Levels
}

// look searches once. The result must be of one state, and that must not be older than what was
// committed when look began. The pair may lack its vectors, and without ReadYourWrites it may be
// missing because it changed again.
func (w watcher) look(ctx context.Context) error {
	atLeast := w.committed.Load()
	var result index.Result
	var err error
	if w.vectors {
		result, err = w.index.Nearest(ctx, everyone, assay.Query{Limit: 5}, near)
	} else {
		result, err = w.index.Search(ctx, everyone, assay.Query{Text: "needle", Limit: 5})
	}
	switch {
	case err != nil:
		return err
	case result.Sequence < atLeast:
		return fmt.Errorf("a search saw sequence %d after %d was committed", result.Sequence, atLeast)
	case result.Total == 0 && (w.vectors || !w.levels.ReadYourWrites):
		return nil
	case result.Total != 2 || len(result.Hits) != 2 || result.Hits[0].Version != result.Hits[1].Version:
		return fmt.Errorf("a search saw half a change: %+v", result)
	case w.vectors && math.Abs(result.Hits[0].Similarity-result.Hits[1].Similarity) > 1e-3:
		return fmt.Errorf("a search saw half the vectors: %+v", result)
	case !w.vectors && result.Terms[0].Chunks != 2:
		return fmt.Errorf("a search counted half a change: %+v", result)
	}
	return nil
}

// watch runs the watchers until stop is called. stop waits for searches in progress.
func watch(t *testing.T, watchers ...func() watcher) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, start := range watchers {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := start().look(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// testReadersBesideWriter checks that searches in the writer and in a reader of the same folder see
// a single state, at least as new as the last commit before them, while documents change and the
// index is flushed and merged.
func testReadersBesideWriter(t *testing.T, c contract) {
	s := NewSource("a")
	dir := t.TempDir()
	var committed atomic.Int64
	committed.Store(putPair(s, 0))
	writer, reader := c.open(t, s, dir), c.open(t, s, dir)
	var watchers []func() watcher
	for _, ix := range []index.Index{writer, reader} {
		for _, vectors := range []bool{false, true} {
			watchers = append(watchers, func() watcher { return watcher{ix, &committed, vectors, c.levels} })
		}
	}
	stop := watch(t, watchers...)
	for i := range rounds(60) {
		committed.Store(putPair(s, i+1))
		for j := range i % 3 {
			e := NewEntry("c", fmt.Sprint("other", i%40, j), "", fmt.Sprint("something else ", i))
			s.Put(e)
			s.PutVectors("other", map[string][]float32{e.Chunks[0].ID: {1, float32(i)}})
		}
		if i%5 == 0 {
			if err := writer.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if i%20 == 0 {
			settle(t, writer)
		}
	}
	stop()
	m := c.newModel(s)
	for _, ix := range []index.Index{writer, reader} {
		q := assay.Query{Text: "needle else", Limit: 200}
		got, err := ix.Search(t.Context(), everyone, q)
		checkSearch(t, m.search(everyone, q), q, got, err)
		got, err = ix.Nearest(t.Context(), everyone, q, near)
		checkNearest(t, m.nearest(everyone, q, near), q, near, got, err)
	}
}

// testOpenBesideFlush checks that other processes can open the index while its writer replaces the
// files.
func testOpenBesideFlush(t *testing.T, c contract) {
	dir := t.TempDir()
	s := NewSource("a")
	var committed atomic.Int64
	putPair(s, 0)
	var opened sync.Map // the watchers' indexes, to be closed
	start := func(vectors bool) func() watcher {
		return func() watcher {
			if before, ok := opened.Load(vectors); ok {
				if err := before.(index.Index).Close(); err != nil {
					t.Error(err)
				}
			}
			ix := c.open(t, s, dir)
			opened.Store(vectors, ix)
			return watcher{ix, &committed, vectors, c.levels}
		}
	}
	stop := watch(t, start(false), start(true))
	ix := c.open(t, s, dir)
	for i := range rounds(20) {
		putPair(s, i+1)
		s.Put(NewEntry("c", fmt.Sprint("other", i), "", fmt.Sprint("something else ", i)))
		if err := ix.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	settle(t, ix)
	stop()
}

// testReaderFollowsWriter checks that a reader reads flushed changes from the files instead of the
// source, and that removed files do not disturb it.
func testReaderFollowsWriter(t *testing.T, c contract) {
	dir := t.TempDir()
	s := NewSource("a")
	writer, reader := c.open(t, s, dir), c.open(t, s, dir)
	w := newWorld(9, 50)
	m := c.newModel(s)
	for range rounds(20) {
		s.Put(w.entries(5)...)
		s.Delete(w.id())
		for _, model := range models {
			s.PutVectors(model.name, w.vectors(s, model.dimensions, 6))
		}
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, writer)
		files := listing(t, dir)
		read, readVectors := s.Read(), s.ReadVectors()
		q, v := assay.Query{Text: w.text(4), Limit: 20}, w.vectorQuery()
		got, err := reader.Search(t.Context(), everyone, q)
		checkSearch(t, m.search(everyone, q), q, got, err)
		got, err = reader.Nearest(t.Context(), everyone, q, v)
		checkNearest(t, m.nearest(everyone, q, v), q, v, got, err)
		if s.Read() != read || s.ReadVectors() != readVectors {
			t.Fatalf("the reader read %d documents and %d vectors that the writer had flushed", s.Read()-read, s.ReadVectors()-readVectors)
		}
		s.Put(w.entries(2)...)
		got, err = reader.Search(t.Context(), everyone, q)
		checkSearch(t, m.search(everyone, q), q, got, err)
		settle(t, reader)
		if diff := cmp.Diff(files, listing(t, dir)); diff != "" {
			t.Fatalf("the reader changed files: -before +after\n%s", diff)
		}
	}
}

// listing returns the files in a folder with their modification times.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = fmt.Sprint(info.Size(), " ", info.ModTime())
	}
	return files
}

// testCloseBesideSearches checks that a search during Close returns a correct answer or an error.
func testCloseBesideSearches(t *testing.T, c contract) {
	s := NewSource("a")
	dir := t.TempDir()
	putPair(s, 1)
	w := newWorld(12, 100)
	s.Put(w.entries(100)...)
	for _, m := range models {
		s.PutVectors(m.name, w.vectors(s, m.dimensions, 2))
	}
	for range rounds(10) {
		ix := c.open(t, s, dir)
		var none atomic.Int64
		look := func(vectors bool) func() {
			return func() {
				for w := (watcher{ix, &none, vectors, c.levels}); ; {
					if err := w.look(t.Context()); err != nil {
						if !errors.Is(err, fs.ErrClosed) {
							t.Errorf("a search beside Close: %v", err)
						}
						return
					}
				}
			}
		}
		var group sync.WaitGroup
		for _, f := range []func(){look(false), look(true), look(true)} {
			group.Go(f)
		}
		group.Go(func() {
			if err := ix.Flush(t.Context()); err != nil && !errors.Is(err, fs.ErrClosed) {
				t.Errorf("Flush beside Close: %v", err)
			}
		})
		time.Sleep(rand.N(3 * time.Millisecond))
		if err := ix.Close(); err != nil {
			t.Errorf("Close beside searches: %v", err)
		}
		group.Wait()
	}
}

// testSettle checks that merging changes no answer.
func testSettle(t *testing.T, c contract) {
	dir := t.TempDir()
	s := NewSource("a")
	ix := c.open(t, s, dir)
	w := newWorld(11, 200)
	m := c.newModel(s)
	steps := 30
	if !c.levels.ReadYourWrites {
		steps = Rounds(6, 30, 30) // of an index that is flushed before each search
	}
	for range steps {
		s.Put(w.entries(6)...)
		s.Delete(w.id(), w.id())
		vectors := models[w.IntN(len(models))]
		s.PutVectors(vectors.name, w.vectors(s, vectors.dimensions, 10))
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := assay.Query{Text: w.text(5), Limit: 1000}
		want := search(t, ix, q)
		settle(t, ix)
		again := c.open(t, s, dir)
		for _, ix := range []index.Index{ix, again} {
			if diff := cmp.Diff(want, search(t, ix, q), c.scores()); diff != "" {
				t.Errorf("merging changed what Search finds: -before +after\n%s", diff)
			}
			v := w.vectorQuery()
			got, err := ix.Nearest(t.Context(), everyone, q, v)
			checkNearest(t, m.nearest(everyone, q, v), q, v, got, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
