package index_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

func small(t testing.TB, source index.Source, dir string) *index.Searcher {
	t.Helper()
	ix := opened(t, index.OpenSmall, source, dir)
	t.Cleanup(func() { _ = ix.Close() })
	return ix
}

func find(t testing.TB, ix index.Index, text string) index.Result {
	t.Helper()
	result, err := ix.Search(t.Context(), assay.Local().Access(), assay.Query{Text: text, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func flushAndSettle(t testing.TB, ix *index.Searcher) {
	t.Helper()
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func putMany(s *indextest.Source, from, to int) {
	for i := from; i < to; i++ {
		s.Put(indextest.NewEntry("c", fmt.Sprint("d", i), "A title", fmt.Sprintf("needle number%d and more words", i), "another chunk"))
	}
}

// TestSettle checks that after Settle few segments are left, and files that the manifest does not
// name are removed.
func TestSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	putMany(s, 0, 300)
	flushAndSettle(t, ix)
	for i := 300; i < 330; i++ {
		putMany(s, i, i+1)
		s.Delete(assay.DocumentID("c", fmt.Sprint("d", i-300)))
		flushAndSettle(t, ix)
	}
	named, err := index.ManifestFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(named) > 5 || len(there) != len(named) {
		t.Errorf("the manifest names %v, there are %v", named, there)
	}
	if got := find(t, ix, "needle"); got.Total != 300 || got.Chunks != 600 {
		t.Errorf("%d found of %d, want 300 of 600", got.Total, got.Chunks)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Settle after Close: %v", err)
	}
}

// TestBuildersShare checks that the memory of the builders is bounded for any number of processors:
// each of four builders cuts its segments at a fourth of the limit.
func TestBuildersShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	ix.BeforePublish(func() error { return errors.New("not now") })
	putMany(s, 0, 300)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ix.WaitForMerge()
	_ = ix.Settle(t.Context())          // the error "not now"
	const limit, document = 300 / 4, 20 // in postings
	if n, err := index.LargestSegment(dir); err != nil || n > limit+document {
		t.Errorf("a segment has %d postings (%v), want at most %d and a document's", n, err, limit)
	}
}

// TestMergeAfterLookAtManifest checks that segments are still merged after a search has read the
// manifest of a concurrent Flush and found it outdated.
func TestMergeAfterLookAtManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	putMany(s, 0, 300)
	ix.BeforePublish(func() error { return errors.New("not yet") })
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ix.WaitForMerge()
	ix.BeforePublish(nil)
	_ = ix.Settle(t.Context()) // the error "not yet"
	if err := ix.FindBehind(); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if named, err := index.ManifestFiles(dir); err != nil || len(named) > 5 {
		t.Errorf("the manifest names %v, %v", named, err)
	}
}

// TestLettingGoBlocksNobody checks that searches do not wait while unused files are unmapped and
// removed.
func TestLettingGoBlocksNobody(t *testing.T) {
	t.Parallel()
	s := indextest.NewSource("a")
	ix := small(t, s, t.TempDir())
	putMany(s, 0, 10)
	flushAndSettle(t, ix)
	if err := ix.ReplaceWhileFilesAreLetGo(); err != nil {
		t.Fatal(err)
	}
	if got := find(t, ix, "needle"); got.Total != 10 {
		t.Errorf("%d found, want 10", got.Total)
	}
}

// TestMergeFails checks that the error of a failed merge is reported, and that the merge is tried
// again after the next Flush.
func TestMergeFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	full := errors.New("the disk is full")
	ix.BeforePublish(func() error { return full })
	putMany(s, 0, 300)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); !errors.Is(err, full) {
		t.Errorf("Settle after a failed merge: %v", err)
	}
	putMany(s, 300, 301)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ix.WaitForMerge()
	putMany(s, 301, 302)
	if err := ix.Flush(t.Context()); !errors.Is(err, full) {
		t.Errorf("Flush after a failed merge: %v", err)
	}
	if got := find(t, ix, "needle"); got.Total != 302 {
		t.Errorf("%d found, want 302", got.Total)
	}
	ix.WaitForMerge()
	ix.BeforePublish(nil)
	_ = ix.Settle(t.Context()) // for the Flush before
	flushAndSettle(t, ix)
	if named, err := index.ManifestFiles(dir); err != nil || len(named) > 5 {
		t.Errorf("after all the manifest names %v, %v", named, err)
	}
}

// TestMergeGivenUp checks that Settle abandons the merge when its context ends, and that Close does
// too.
func TestMergeGivenUp(t *testing.T) {
	t.Parallel()
	s := indextest.NewSource("a")
	ix := small(t, s, t.TempDir())
	putMany(s, 0, 300)
	ctx, cancel := context.WithCancel(t.Context())
	ix.BeforePublish(func() error { cancel(); return nil })
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := ix.Settle(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Settle: %v", err)
	}
	if got := find(t, ix, "needle"); got.Total != 300 {
		t.Errorf("%d found, want 300", got.Total)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestChangesDuringMerge checks that searches, updates and Flush proceed during a merge, and that
// documents deleted meanwhile are gone afterwards, both in memory and on disk.
func TestChangesDuringMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	putMany(s, 0, 200)
	reached, goOn := make(chan struct{}), make(chan struct{})
	ix.BeforePublish(func() error {
		reached <- struct{}{}
		<-goOn
		return nil
	})
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-reached
	s.Delete(assay.DocumentID("c", "d0"), assay.DocumentID("c", "d1"))
	putMany(s, 2, 4) // replaced by equal documents
	putMany(s, 200, 210)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Delete(assay.DocumentID("c", "d5")) // in memory only
	before := find(t, ix, "needle number7 number5")
	if before.Total != 207 {
		t.Errorf("%d found while merging, want 207", before.Total)
	}
	ix.BeforePublish(nil)
	close(goOn)
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, find(t, ix, "needle number7 number5")); diff != "" {
		t.Errorf("after the merge: -before +after\n%s", diff)
	}
	read := s.Read()
	again := small(t, s, dir)
	if diff := cmp.Diff(before, find(t, again, "needle number7 number5")); diff != "" {
		t.Errorf("reopened: -before +after\n%s", diff)
	}
	if n := s.Read() - read; n != 1 { // the delete after the last Flush
		t.Errorf("reopening read %d changes, want 1", n)
	}
}

// TestReaderAdopts checks that a process that only reads adopts the writer's files instead of
// reading the source, and never writes.
func TestReaderAdopts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	writer := small(t, s, dir)
	putMany(s, 0, 10)
	flushAndSettle(t, writer)
	reader := small(t, s, dir)
	find(t, reader, "needle")
	for i := range 10 {
		putMany(s, 10*i+10, 10*i+20)
		flushAndSettle(t, writer)
		read := s.Read()
		if got := find(t, reader, "needle"); got.Total != 10*i+20 {
			t.Errorf("the reader finds %d, want %d", got.Total, 10*i+20)
		}
		if n := s.Read() - read; n != 0 {
			t.Errorf("the reader read %d changes that the writer had written", n)
		}
	}
	// The reader reads unflushed changes from the source. A process that only reads has no merges
	// to wait for.
	putMany(s, 500, 502)
	if got := find(t, reader, "needle number501"); got.Hits[0].Document != assay.DocumentID("c", "d501") {
		t.Errorf("the reader finds %+v", got.Hits[0])
	}
	if err := reader.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	// A reader that becomes the writer continues from the existing files.
	putMany(s, 600, 601)
	flushAndSettle(t, reader)
	read := s.Read()
	if got := find(t, writer, "needle"); got.Total != 113 || s.Read() != read {
		t.Errorf("the former writer finds %d after reading %d changes, want 113 after none", got.Total, s.Read()-read)
	}
}

// TestFolderDeleted checks that the folder may be deleted at any time, even under an open index,
// and that the next Flush writes everything again.
func TestFolderDeleted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "index")
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	for i := range 4 {
		putMany(s, 100*i, 100*i+100)
		s.Delete(assay.DocumentID("c", fmt.Sprint("d", 100*i)))
		flushAndSettle(t, ix)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := ix.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	flushAndSettle(t, ix) // although nothing has changed
	want := find(t, ix, "needle number7")
	if want.Total != 396 {
		t.Errorf("%d found, want 396", want.Total)
	}
	read := s.Read()
	again := small(t, s, dir)
	if diff := cmp.Diff(want, find(t, again, "needle number7")); diff != "" || s.Read() != read {
		t.Errorf("reopened, after %d reads: -want +got\n%s", s.Read()-read, diff)
	}
}

// TestCloseUnmaps checks that Close unmaps all files, including those that a search was using.
func TestCloseUnmaps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("mappings are listed in /proc")
	}
	dir := t.TempDir()
	s := indextest.NewSource("a")
	ix := small(t, s, dir)
	for i := range 5 {
		putMany(s, 100*i, 100*i+100)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		find(t, ix, "needle")
	}
	if mappings(t, dir) == 0 {
		t.Error("no file is mapped")
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if n := mappings(t, dir); n != 0 {
		t.Errorf("%d files are mapped after Close", n)
	}
}

// mappings returns how many files of a folder this process has mapped.
func mappings(t *testing.T, dir string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), dir)
}
