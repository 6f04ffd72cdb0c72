package index_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

const manifestName = "MANIFEST"

// flushed returns a source and the folder of its index.
func flushed(t *testing.T) (*indextest.Source, string) {
	t.Helper()
	dir := t.TempDir()
	s := indextest.NewSource("a")
	s.Put(indextest.NewEntry("c", "1", "A title", "some words"))
	ix, err := index.Open(t.Context(), dir, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// TestLost checks that Lost returns the reason why an existing index is not used.
func TestLost(t *testing.T) {
	t.Parallel()
	rewrite := func(change func(file []byte)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			change(file)
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, manifest string)
		want   error // nil: the index is used or missing
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"no manifest", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"flipped", rewrite(func(file []byte) { file[len(file)-3] ^= 4 }), assay.ErrDamaged},
		{"newer", rewrite(func(file []byte) { binary.LittleEndian.PutUint32(file[8:], 99) }), assay.ErrNewer},
		{"another program's", rewrite(func(file []byte) { copy(file, "SQLite format 3") }), assay.ErrForeign},
		{"no segment", func(t *testing.T, path string) {
			segments, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.segment"))
			if len(segments) != 1 {
				t.Fatalf("segments %v, want one", segments)
			}
			if err := os.Remove(segments[0]); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := flushed(t)
			tt.damage(t, filepath.Join(dir, manifestName))
			ix, err := index.Open(t.Context(), dir, s)
			if err != nil {
				t.Fatal(err)
			}
			if lost := ix.Lost(); !errors.Is(lost, tt.want) || (tt.want == nil) != (lost == nil) {
				t.Errorf("Lost() = %v, want %v", lost, tt.want)
			}
		})
	}
	t.Run("older", func(t *testing.T) { // an older format is not damage
		s, dir := flushed(t)
		rewrite(func(file []byte) { binary.LittleEndian.PutUint32(file[8:], 1) })(t, filepath.Join(dir, manifestName))
		ix, err := index.Open(t.Context(), dir, s)
		if err != nil || ix.Lost() == nil || errors.Is(ix.Lost(), assay.ErrDamaged) {
			t.Errorf("Lost() = %v (%v), want an error that is not ErrDamaged", ix.Lost(), err)
		}
	})
	t.Run("another source's", func(t *testing.T) {
		_, dir := flushed(t)
		other := indextest.NewSource("b")
		other.Skip()
		ix, err := index.Open(t.Context(), dir, other)
		if err != nil || !errors.Is(ix.Lost(), assay.ErrForeign) {
			t.Errorf("Lost() = %v (%v), want ErrForeign", ix.Lost(), err)
		}
	})
}

// TestFlushRemoves checks that Flush removes index files that the manifest does not name, and
// leaves other files alone.
func TestFlushRemoves(t *testing.T) {
	t.Parallel()
	s, dir := flushed(t)
	for _, name := range []string{"stale.segment", "MANIFEST.123.tmp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ix, err := index.Open(t.Context(), dir, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(indextest.NewEntry("c", "1", "A title", "other words"))
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	segments := 0
	for _, path := range got {
		switch name := filepath.Base(path); {
		case name == manifestName, name == "notes.txt":
		case strings.HasSuffix(name, ".segment") && name != "stale.segment":
			segments++
		default:
			t.Errorf("%s is still there", name)
		}
	}
	if segments != 1 || len(got) != 3 {
		t.Errorf("files %v, want the manifest, one segment and notes.txt", got)
	}
}

// TestFlushFails checks that a Flush that cannot write returns the reason, and that the index
// remains usable in memory.
func TestFlushFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := indextest.NewSource("a")
	s.Put(indextest.NewEntry("c", "1", "", "needle"))
	ix, err := index.Open(t.Context(), filepath.Join(file, "index"), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.Flush(t.Context()); err == nil {
		t.Error("Flush into a file gives no error")
	}
	result, err := ix.Search(t.Context(), assay.Local().Access(), assay.Query{Text: "needle", Limit: 1})
	if err != nil || result.Total != 1 {
		t.Errorf("after the failure: %v, %+v", err, result)
	}
}

// TestLongQuestion checks that a question of a megabyte is answered normally.
func TestLongQuestion(t *testing.T) {
	t.Parallel()
	s, dir := flushed(t)
	ix, err := index.Open(t.Context(), dir, s)
	if err != nil {
		t.Fatal(err)
	}
	var question strings.Builder
	for i := 0; question.Len() < 1<<20; i++ {
		fmt.Fprintf(&question, "w%d words ", i)
	}
	result, err := ix.Search(t.Context(), assay.Local().Access(), assay.Query{Text: question.String(), Limit: 3})
	if err != nil || result.Total != 1 || result.Terms[1].Stem != "word" {
		t.Errorf("%v: %d found, %d terms", err, result.Total, len(result.Terms))
	}
}
