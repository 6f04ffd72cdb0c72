package index_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestFlushSourceFails checks that a Flush during which the source fails leaves no partial state,
// and that the next Flush succeeds.
func TestFlushSourceFails(t *testing.T) {
	t.Parallel()
	s, dir := churned(t, 3, 60)
	random := rand.New(rand.NewPCG(3, 3))
	ix := opened(t, index.OpenSmall, s, dir)
	broken := errors.New("the disk is on fire")
	for round := range indextest.Rounds(6, 20, 200) {
		before := ix.Sequence()
		for range 20 {
			indextest.Churn(s, random, 60)
		}
		if round%2 == 0 {
			s.FailAfter(round, broken)
		} else {
			s.FailVectorsAfter(round, broken)
		}
		if err := ix.Flush(t.Context()); err != nil && !errors.Is(err, broken) {
			t.Fatal(err)
		} else if err != nil && round%2 == 0 && ix.Sequence() != before { // otherwise the text is known, as after a search
			t.Errorf("round %d: version %v after a failed Flush, want %v", round, ix.Sequence(), before)
		}
		s.FailAfter(-1, nil)
		s.FailVectorsAfter(-1, nil)
		indextest.Check(t, opened(t, index.OpenSmall, s, dir), s, uint64(round), 2)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		indextest.Check(t, ix, s, uint64(round), 2)
		if err := ix.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if leaked := unnamed(t, dir); len(leaked) > 0 {
			t.Fatalf("round %d: files that the manifest does not name: %v", round, leaked)
		}
	}
}

// TestFlushBesideMerges checks that concurrent flushes and merges do not remove each other's files.
func TestFlushBesideMerges(t *testing.T) {
	t.Parallel()
	rounds := indextest.Rounds(30, 150, 5000)
	s, dir := churned(t, 5, 40)
	random := rand.New(rand.NewPCG(5, 5))
	ix := opened(t, index.OpenSmall, s, dir)
	for range rounds {
		indextest.Churn(s, random, 40)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	indextest.Check(t, ix, s, 1, 10)
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	indextest.Check(t, ix, s, 2, 10)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if leaked := unnamed(t, dir); len(leaked) > 0 {
		t.Errorf("files that the manifest does not name: %v", leaked)
	}
	read, readVectors := s.Read(), s.ReadVectors()
	again := opened(t, index.OpenSmall, s, dir)
	if again.Lost() != nil {
		t.Errorf("lost: %v", again.Lost())
	}
	indextest.Check(t, again, s, 3, 10)
	if s.Read() != read || s.ReadVectors() != readVectors {
		t.Errorf("read %d documents and %d vectors again", s.Read()-read, s.ReadVectors()-readVectors)
	}
}

// TestFlushSweeps checks that the first Flush removes the leftovers of a crash even if nothing has
// changed.
func TestFlushSweeps(t *testing.T) {
	t.Parallel()
	s, dir := churned(t, 6, 10)
	for _, name := range []string{"0123456789abcdef01234567.segment", "0123456789abcdef01234567.vectors", "0123456789abcdef01234567.segment.tmp", "MANIFEST.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half a file"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ix := opened(t, index.OpenSmall, s, dir)
	indextest.Check(t, ix, s, 1, 5)
	if left := unnamed(t, dir); len(left) != 4 {
		t.Errorf("a search removed files: %v are left", left)
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := unnamed(t, dir); len(left) > 0 {
		t.Errorf("after a Flush there are still %v", left)
	}
}
