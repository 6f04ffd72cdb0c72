package indextest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
)

// sample is a source whose index, in dir, has been flushed in several steps,
// with deletes among them, and what it answers.
func sample(t *testing.T, open Opener, identity, dir string) (*Source, index.Result) {
	t.Helper()
	w := world{rand.New(rand.NewPCG(7, 7))}
	s := NewSource(identity)
	ix := open(t, s, dir)
	for range 4 {
		for range 12 {
			s.Put(w.entry(40))
		}
		s.Delete(w.entry(40).Document.ID)
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	defer ix.Close()
	return s, search(t, ix, sampleQuery)
}

var sampleQuery = assay.Query{Text: "alpha beta os.Open gamma 日本"}

// wantSame opens dir and checks that it answers as before, and so after what it
// lost was flushed again.
func wantSame(t *testing.T, open Opener, s *Source, dir string, want index.Result) {
	t.Helper()
	for range 2 {
		ix := open(t, s, dir)
		if diff := cmp.Diff(want, search(t, ix, sampleQuery)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	}
	read := s.Read()
	ix := open(t, s, dir)
	defer ix.Close()
	if diff := cmp.Diff(want, search(t, ix, sampleQuery)); diff != "" || s.Read() != read {
		t.Errorf("read %d documents again after a flush; -want +got\n%s", s.Read()-read, diff)
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

func testDamagedFiles(t *testing.T, open Opener) {
	dir := t.TempDir()
	s, want := sample(t, open, "a", dir)
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
				wantSame(t, open, s, broken, want)
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
		wantSame(t, open, s, broken, want)
	})
}

// The index of another source is not believed, though the sequences agree.
func testForeignFiles(t *testing.T, open Opener) {
	dir := t.TempDir()
	other, _ := sample(t, open, "other", dir)
	_, want := sample(t, open, "a", t.TempDir())
	s := NewSource("a")
	w := world{rand.New(rand.NewPCG(8, 8))}
	for range 48 {
		e := w.entry(40)
		e.Document.ACL = assay.ACL{Restricted: true}
		s.Put(e)
	}
	for i := range 4 {
		s.Delete(fmt.Sprint("none ", i))
	}
	if got, want := sequence(t, s), sequence(t, other); got != want {
		t.Fatalf("sequences %d and %d, want the same", got, want)
	}
	ix := open(t, s, dir)
	if got := search(t, ix, sampleQuery); got.Total != 0 {
		t.Errorf("another source's index shows %d chunks that nobody may see", got.Total)
	}
	if want.Total == 0 {
		t.Fatal("the sample finds nothing")
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

// A source that is behind its index is another one, or an older copy: what the
// index holds is not believed, neither when it is opened nor while it is open.
func testOlderSource(t *testing.T, open Opener) {
	dir := t.TempDir()
	_, _ = sample(t, open, "a", dir)
	older := NewSource("a")
	older.Put(NewEntry("c", "1", "", "alpha"))
	wantDocuments(t, older, search(t, open(t, older, dir), sampleQuery), "1")

	s := NewSource("a")
	s.Put(NewEntry("c", "1", "", "alpha"))
	s.Put(NewEntry("c", "2", "", "alpha"))
	ix := open(t, s, t.TempDir())
	search(t, ix, sampleQuery)
	s.Restore(older)
	wantDocuments(t, s, search(t, ix, sampleQuery), "1")
}

// A folder that does not exist is made by Flush and not needed before.
func testNoFolder(t *testing.T, open Opener) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	s := NewSource("a")
	s.Put(NewEntry("c", "1", "", "alpha"))
	ix := open(t, s, dir)
	want := search(t, ix, sampleQuery)
	wantDocuments(t, s, want, "1")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a reader made the folder: %v", err)
	}
	wantSame(t, open, s, dir, want)
}
