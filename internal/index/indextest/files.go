package indextest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A sample is a source whose index, in a folder, has been flushed in several steps, including
// deletes and vectors, and the results of searches in the index.
type sample struct {
	source *Source
	want   []index.Result
	c      contract
}

func newSample(t *testing.T, c contract, identity, dir string) sample {
	t.Helper()
	w := newWorld(7, 40)
	s := sample{source: NewSource(identity), c: c}
	ix := c.open(t, s.source, dir)
	defer ix.Close()
	for round := range 4 {
		for range 12 {
			s.source.Put(w.entry())
		}
		s.source.Delete(w.id())
		m := models[round%2]
		s.source.PutVectors(m.name, w.vectors(s.source, m.dimensions, 2))
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, ix)
	s.want = s.ask(t, ix)
	for i, r := range s.want {
		if len(r.Hits) == 0 {
			t.Fatalf("the sample finds nothing for question %d", i)
		}
	}
	return s
}

var sampleQuery = assay.Query{Text: "alpha beta os.Open gamma 日本"}

// ask runs the sample's queries. Hits by vector are sorted by chunk ID, because chunks that are
// about equally near may swap places.
func (s sample) ask(t *testing.T, ix index.Index) []index.Result {
	t.Helper()
	results := []index.Result{search(t, ix, sampleQuery)}
	for i, m := range models {
		v := index.Vector{Model: m.name, Metric: index.Cosine, Values: newWorld(uint64(i), 1).vector(m.dimensions)}
		result := nearest(t, ix, assay.Query{}, v)
		slices.SortFunc(result.Hits, func(a, b index.Hit) int { return cmp.Compare(a.Chunk, b.Chunk) })
		results = append(results, result)
	}
	return results
}

// wantSame opens dir and checks that the answers are the same as before. It then flushes what was
// lost and checks again, this time without reading the source.
func (s sample) wantSame(t *testing.T, c contract, dir string) {
	t.Helper()
	for range 2 {
		ix := c.open(t, s.source, dir)
		s.wantAnswers(t, ix)
		if err := ix.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		settle(t, ix)
		s.wantAnswers(t, ix)
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	}
	read, readVectors := s.source.Read(), s.source.ReadVectors()
	ix := c.open(t, s.source, dir)
	defer ix.Close()
	s.wantAnswers(t, ix)
	if read != s.source.Read() || readVectors != s.source.ReadVectors() {
		t.Errorf("read %d documents and %d vectors again after a flush", s.source.Read()-read, s.source.ReadVectors()-readVectors)
	}
}

func (s sample) wantAnswers(t *testing.T, ix index.Index) {
	t.Helper()
	if diff := gocmp.Diff(s.want, s.ask(t, ix), s.c.scores()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func testDamagedFiles(t *testing.T, c contract) {
	dir := t.TempDir()
	s := newSample(t, c, "a", dir)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v; want several", len(files), err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		damages := map[string][]byte{"gone": nil, "empty": {}, "cut": data[:len(data)-1], "half": data[:len(data)/2], "longer": append(append([]byte{}, data...), 0), "foreign": []byte("SQLite format 3\x00 and more of another program's bytes")}
		for range rounds(6) {
			flipped := append([]byte{}, data...)
			at := random.IntN(len(data))
			flipped[at] ^= 1 << random.IntN(8)
			damages[fmt.Sprint("flipped at ", at)] = flipped
		}
		for name, damage := range damages {
			t.Run(fmt.Sprint("file ", i, " ", name), func(t *testing.T) {
				broken := copyDir(t, dir)
				path := filepath.Join(broken, file.Name())
				var err error
				if damage == nil {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, damage, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				s.wantSame(t, c, broken)
			})
		}
	}
	t.Run("files exchanged", func(t *testing.T) {
		broken := copyDir(t, dir)
		first, second := filepath.Join(broken, files[0].Name()), filepath.Join(broken, files[1].Name())
		for _, step := range [][2]string{{first, first + "x"}, {second, first}, {first + "x", second}} {
			if err := os.Rename(step[0], step[1]); err != nil {
				t.Fatal(err)
			}
		}
		s.wantSame(t, c, broken)
	})
}

// testForeignFiles checks that the index of another source is not used even if the sequence numbers
// agree.
func testForeignFiles(t *testing.T, c contract) {
	dir := t.TempDir()
	other := newSample(t, c, "other", dir)
	s := NewSource("a")
	w := newWorld(8, 40)
	for sequence(t, s) < sequence(t, other.source) {
		e := w.entry()
		e.Document.ACL = assay.ACL{Restricted: true}
		s.Put(e)
	}
	for i, got := range other.ask(t, c.open(t, s, dir)) {
		if got.Total != 0 || got.Chunks != 0 {
			t.Errorf("another source's index shows %d of %d chunks that nobody may see for question %d", got.Total, got.Chunks, i)
		}
	}
}

func sequence(t *testing.T, s *Source) int64 {
	t.Helper()
	n, err := s.Sequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// testOlderSource checks that an index is not used if it is ahead of its source, which is then
// another source or an older copy. This holds both when the index is opened and while it is open.
func testOlderSource(t *testing.T, c contract) {
	dir := t.TempDir()
	_ = newSample(t, c, "a", dir)
	older := NewSource("a")
	older.Put(NewEntry("c", "1", "", "alpha"))
	wantDocuments(t, older, search(t, c.open(t, older, dir), sampleQuery), "1")

	s := NewSource("a")
	s.Put(NewEntry("c", "1", "", "alpha"))
	s.Put(NewEntry("c", "2", "", "alpha"))
	ix := c.open(t, s, t.TempDir())
	search(t, ix, sampleQuery)
	s.Restore(older)
	wantDocuments(t, s, search(t, ix, sampleQuery), "1")
}

// testNoFolder checks that Flush creates a missing folder and that the folder is not needed before.
func testNoFolder(t *testing.T, c contract) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	s := sample{source: NewSource("a"), c: c}
	s.source.Put(NewEntry("c", "1", "", "alpha"))
	ix := c.open(t, s.source, dir)
	s.want = s.ask(t, ix)
	wantDocuments(t, s.source, s.want[0], "1")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a reader made the folder: %v", err)
	}
	s.wantSame(t, c, dir)
}

// testFolderDeleted checks that the folder may be deleted at any time: an open index continues to
// work, and the next Flush writes everything again.
func testFolderDeleted(t *testing.T, c contract) {
	dir := t.TempDir()
	s := newSample(t, c, "a", dir)
	writer, reader := c.open(t, s.source, dir), c.open(t, s.source, dir)
	for range 3 {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		s.wantAnswers(t, writer)
		s.wantAnswers(t, reader)
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, writer)
		s.wantAnswers(t, writer)
		read, readVectors := s.source.Read(), s.source.ReadVectors()
		again := c.open(t, s.source, dir)
		s.wantAnswers(t, again)
		if read != s.source.Read() || readVectors != s.source.ReadVectors() {
			t.Errorf("read %d documents and %d vectors again after a flush", s.source.Read()-read, s.source.ReadVectors()-readVectors)
		}
		s.source.Skip()
		for i := range s.want {
			s.want[i].Sequence++
		}
	}
}
