package opensearch

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

var everyone = assay.Local().Access()

func needle(uri string, n int) indextest.Entry {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint("needle ", uri, i)
	}
	return indextest.NewEntry("c", uri, "", texts...)
}

// wantNeedles checks the number of chunks that a search finds.
func wantNeedles(t *testing.T, x *Index, want int) {
	t.Helper()
	result, err := x.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if result.Chunks != want || want > 0 && result.Terms[0].Chunks != want {
		t.Errorf("%d chunks, terms %+v, want %d", result.Chunks, result.Terms, want)
	}
}

func flush(t *testing.T, x *Index) {
	t.Helper()
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// rowCount returns the number of rows of the tenant's index, counted or not.
func rowCount(t *testing.T, x *Index) int {
	t.Helper()
	var answer struct{ Count int }
	body := object{"query": not(termQuery("kind", kindState))}
	if err := x.cluster.do(t.Context(), http.MethodPost, "/"+x.alias+"/_count", body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Count
}

// TestInterrupted checks that the rows of a flush that failed midway are never found, and are removed
// by the next flush.
func TestInterrupted(t *testing.T) {
	s := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), s)
	s.Put(needle("old", 3))
	flush(t, x)
	wantNeedles(t, x, 3)
	s.Put(needle("many", 2*bulkRows), needle("next", 1))
	broken := errors.New("the disk is on fire")
	s.FailAfter(1, broken)
	if err := x.Flush(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("error %v, want %v", err, broken)
	}
	s.FailAfter(-1, nil)
	if err := x.cluster.do(t.Context(), http.MethodPost, "/"+x.alias+"/_refresh", nil, nil); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, x); n <= 3 {
		t.Fatalf("the flush wrote no rows before it failed")
	}
	wantNeedles(t, x, 3)
	flush(t, x)
	wantNeedles(t, x, 3+2*bulkRows+1)
	if n := rowCount(t, x); n != 3+2*bulkRows+1 {
		t.Errorf("%d rows are left, want %d", n, 3+2*bulkRows+1)
	}
}

// TestSecondWriter checks that of two writers the first to commit wins, and that nothing of the other
// is found, although it goes on writing.
func TestSecondWriter(t *testing.T) {
	cluster, tenant := connect(t, nil), t.TempDir()
	a, b := indextest.NewSource("a"), indextest.NewSource("a")
	first, second := cluster.open(t, tenant, a), cluster.open(t, tenant, b)
	a.Put(needle("old", 1))
	b.Restore(a)
	flush(t, first)
	a.Put(needle("old", 2), needle("more", 1))
	b.Restore(a)
	b.Put(needle("more", 4))
	a.Block()
	done := make(chan error)
	go func() { done <- first.Flush(t.Context()) }()
	<-a.Blocked()
	flush(t, second)
	a.Unblock()
	if err := <-done; !errors.Is(err, assay.ErrLocked) {
		t.Errorf("the slower writer: error %v, want ErrLocked", err)
	}
	wantNeedles(t, second, 6)
	if err := cluster.do(t.Context(), http.MethodPost, "/"+second.alias+"/_refresh", nil, nil); err != nil {
		t.Fatal(err)
	}
	wantNeedles(t, second, 6)
	b.Put(needle("new", 1))
	flush(t, second)
	wantNeedles(t, second, 7)
}

// TestPurge checks that rows which no longer count are deleted once no search can read them.
func TestPurge(t *testing.T) {
	s := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), s)
	s.Put(needle("kept", 2), needle("replaced", 5), needle("deleted", 5))
	s.PutVectors("m", map[string][]float32{needle("kept", 2).Chunks[0].ID: {1, 0}, needle("deleted", 5).Chunks[0].ID: {0, 1}})
	flush(t, x)
	s.Put(needle("replaced", 1))
	s.Delete(needle("deleted", 5).Document.ID)
	s.PutVectors("m", map[string][]float32{needle("kept", 2).Chunks[0].ID: {0, 1}})
	flush(t, x)
	wantNeedles(t, x, 3)
	if n := rowCount(t, x); n <= 5 {
		t.Errorf("%d rows are left while a search may read them", n)
	}
	x.grace = 0
	flush(t, x)
	x.grace = defaultGrace
	wantNeedles(t, x, 3)
	if n := rowCount(t, x); n != 4 { // three chunks and a vector
		t.Errorf("%d rows are left, want 4", n)
	}
	if st := x.lastKnown(); len(st.Replaced) != 0 {
		t.Errorf("the state still lists %+v", st.Replaced)
	}
}

// TestRebuild checks that searches find everything while new indexes are built beside the old one,
// that the old ones are removed, and that a rebuild which failed changes nothing.
func TestRebuild(t *testing.T) {
	s := indextest.NewSource("a")
	cluster, tenant := connect(t, nil), t.TempDir()
	writer, reader := cluster.open(t, tenant, s), cluster.open(t, tenant, s)
	const chunks = 50
	e := needle("all", chunks)
	s.Put(e)
	vectors := make(map[string][]float32)
	for i, c := range e.Chunks {
		vectors[c.ID] = []float32{1, float32(i)}
	}
	s.PutVectors("m", vectors)
	flush(t, writer)
	stop := make(chan struct{})
	var group sync.WaitGroup
	searches := 0
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			result, err := reader.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: chunks})
			near, nearErr := reader.Nearest(t.Context(), everyone, assay.Query{Limit: chunks}, index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 1}})
			if err != nil || nearErr != nil || len(result.Hits) != chunks || len(near.Hits) != chunks {
				t.Errorf("a search during a rebuild: %d and %d hits, %v, %v", len(result.Hits), len(near.Hits), err, nearErr)
				return
			}
			searches++
		}
	})
	for range 3 {
		before := writer.lastKnown().index
		if err := writer.Rebuild(t.Context()); err != nil {
			t.Error(err)
		}
		names, err := writer.cluster.indexes(t.Context(), writer.alias)
		if err != nil || len(names) != 1 || names[0] == before {
			t.Errorf("the indexes are %v, %v, want a new one", names, err)
		}
	}
	broken := errors.New("the disk is on fire")
	before := writer.lastKnown().index
	s.FailAfter(0, broken)
	if err := writer.Rebuild(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	s.FailAfter(-1, nil)
	close(stop)
	group.Wait()
	if searches == 0 {
		t.Error("no search ran")
	}
	flush(t, writer)
	if after := writer.lastKnown().index; after != before {
		t.Errorf("after the failure the index is %s, want %s", after, before)
	}
}

// TestContinueBuild checks that the first flush continues where an interrupted one stopped.
func TestContinueBuild(t *testing.T) {
	s := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), s)
	var entries []indextest.Entry
	for i := range commitDocuments {
		entries = append(entries, needle(fmt.Sprint(i), 1))
	}
	s.Put(entries...)
	s.Put(needle("last", 1))
	s.FailAfter(commitDocuments+1, errors.New("broken"))
	s.Put(needle("very last", 1))
	if err := x.Flush(t.Context()); err == nil {
		t.Fatal("no error")
	}
	wantNeedles(t, x, 0)
	s.FailAfter(-1, nil)
	read := s.Read()
	flush(t, x)
	if n := s.Read() - read; n != 2 {
		t.Errorf("read %d documents to continue, want 2", n)
	}
	wantNeedles(t, x, commitDocuments+2)
}

// TestTooManyChanges checks that a search fails if too many documents changed since the last flush to
// exclude them.
func TestTooManyChanges(t *testing.T) {
	s := indextest.NewSource("a")
	x := connect(t, nil).open(t, t.TempDir(), s)
	s.Put(needle("old", 1))
	flush(t, x)
	var entries []indextest.Entry
	for i := range maxPending {
		entries = append(entries, indextest.NewEntry("c", fmt.Sprint(i), ""))
	}
	s.Put(entries...)
	wantNeedles(t, x, 1)
	s.Put(needle("one more", 1))
	if _, err := x.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 1}); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}
