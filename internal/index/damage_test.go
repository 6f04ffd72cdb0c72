package index_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// churned returns a source after random changes, and the folder of its index, flushed in several
// steps by an index with small limits.
func churned(t testing.TB, seed uint64, documents int) (*indextest.Source, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "index")
	s := indextest.NewSource("a")
	random := rand.New(rand.NewPCG(seed, seed))
	ix := opened(t, index.OpenSmall, s, dir)
	for range 6 {
		for range 8 {
			indextest.Churn(s, random, documents)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// A damage returns the damaged content of a file. A nil result means that the file is deleted.
type damage func(random *rand.Rand, file []byte) []byte

var damages = map[string]damage{
	"gone":  func(*rand.Rand, []byte) []byte { return nil },
	"empty": func(*rand.Rand, []byte) []byte { return []byte{} },
	"cut":   func(random *rand.Rand, file []byte) []byte { return file[:random.IntN(len(file))] },
	"flipped": func(random *rand.Rand, file []byte) []byte {
		file[random.IntN(len(file))] ^= 1 << random.IntN(8)
		return file
	},
	"zeros": func(random *rand.Rand, file []byte) []byte { // a page that never reached the disk
		start := random.IntN(len(file))
		clear(file[start:min(len(file), start+4096)])
		return file
	},
	"longer": func(_ *rand.Rand, file []byte) []byte { return append(file, file[:min(len(file), 64)]...) },
	"twice":  func(_ *rand.Rand, file []byte) []byte { return append(file, file...) },
}

var kinds = slices.Sorted(maps.Keys(damages))

func (d damage) do(t testing.TB, random *rand.Rand, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if file = d(random, file); file == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "index")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func filesIn(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// unnamed returns the files in dir that its manifest does not name.
func unnamed(t testing.TB, dir string) []string {
	t.Helper()
	named, err := index.ManifestFiles(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if name := e.Name(); name != "MANIFEST" && !slices.Contains(named, name) && !strings.HasSuffix(name, ".lock") {
			list = append(list, name)
		}
	}
	return list
}

// TestDamagedFiles checks that the index answers correctly after damage to several files at once,
// and that the next Flush repairs it.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	rounds := indextest.Rounds(8, 40, 4000)
	s, dir := churned(t, 1, 30)
	names := filesIn(t, dir)
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 9))
		broken := copied(t, dir)
		var did []string
		for range 1 + random.IntN(3) {
			name, kind := names[random.IntN(len(names))], kinds[random.IntN(len(kinds))]
			if _, err := os.Stat(filepath.Join(broken, name)); err != nil {
				continue
			}
			did = append(did, name+" "+kind)
			if info, err := os.Stat(filepath.Join(broken, name)); err == nil && info.Size() > 0 {
				damages[kind].do(t, random, filepath.Join(broken, name))
			}
		}
		ix := opened(t, index.OpenSmall, s, broken)
		indextest.Check(t, ix, s, seed, 3)
		if err := ix.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := ix.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		read, readVectors := s.Read(), s.ReadVectors()
		again := opened(t, index.OpenSmall, s, broken)
		indextest.Check(t, again, s, seed, 3)
		if again.Lost() != nil || s.Read() != read || s.ReadVectors() != readVectors {
			t.Errorf("after Flush: lost %v; read %d documents and %d vectors again", again.Lost(), s.Read()-read, s.ReadVectors()-readVectors)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, did)
		}
		if err := os.RemoveAll(broken); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostVectors checks that lost vectors are read again from the source, but documents are not.
func TestLostVectors(t *testing.T) {
	t.Parallel()
	s, dir := churned(t, 2, 30)
	random := rand.New(rand.NewPCG(2, 2))
	files := slices.DeleteFunc(filesIn(t, dir), func(name string) bool { return !strings.HasSuffix(name, ".vectors") })
	if len(files) < 2 {
		t.Fatalf("%d files of vectors, want several", len(files))
	}
	for _, name := range files {
		for _, kind := range kinds {
			broken := copied(t, dir)
			damages[kind].do(t, random, filepath.Join(broken, name))
			read, readVectors := s.Read(), s.ReadVectors()
			ix := opened(t, index.OpenSmall, s, broken)
			indextest.Check(t, ix, s, 3, 5)
			if s.Read() != read || s.ReadVectors() == readVectors {
				t.Errorf("%s %s: read %d documents and %d vectors again, want no documents and some vectors", name, kind, s.Read()-read, s.ReadVectors()-readVectors)
			}
			if err := ix.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if err := ix.Close(); err != nil {
				t.Error(err)
			}
			read, readVectors = s.Read(), s.ReadVectors()
			indextest.Check(t, opened(t, index.OpenSmall, s, broken), s, 4, 5)
			if s.Read() != read || s.ReadVectors() != readVectors {
				t.Errorf("%s %s, flushed: read %d documents and %d vectors again", name, kind, s.Read()-read, s.ReadVectors()-readVectors)
			}
		}
	}
}

// TestOlderSourceMidway checks that an index is rebuilt if its source has lost its last commits, as
// an older copy of the source has.
func TestOlderSourceMidway(t *testing.T) {
	t.Parallel()
	s, dir := churned(t, 4, 30)
	older := indextest.NewSource("a")
	older.Restore(s)
	random := rand.New(rand.NewPCG(4, 4))
	ix := opened(t, index.OpenSmall, s, dir)
	for range 10 {
		indextest.Churn(s, random, 30)
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	reopened := opened(t, index.OpenSmall, older, dir)
	if !errors.Is(reopened.Lost(), assay.ErrForeign) {
		t.Errorf("Lost() = %v, want ErrForeign", reopened.Lost())
	}
	indextest.Check(t, reopened, older, 4, 5)
	if err := reopened.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	indextest.Check(t, opened(t, index.OpenSmall, older, dir), older, 5, 5)
}
