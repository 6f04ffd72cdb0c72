package engine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// openWithSources opens an engine that knows a service in memory.
func openWithSources(t *testing.T, dir string, m *sourcetest.Memory, env map[string]string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: dir, Sources: []source.Kind{m.Kind()}, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func search(t *testing.T, e *Engine, words string) []string {
	t.Helper()
	r, err := e.Search(t.Context(), assay.Local(), assay.Query{Text: words, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, h := range r.Hits {
		uris = append(uris, h.URI)
	}
	return uris
}

func TestSources(t *testing.T) {
	t.Parallel()
	m := &sourcetest.Memory{}
	e := openWithSources(t, t.TempDir(), m, nil)
	if err := e.AddSource(t.Context(), NewSource{Name: "wiki", Kind: "memory", Target: "memory://test", Options: map[string]string{"color": "blue"}}); err != nil {
		t.Fatal(err)
	}
	m.Put("a", "the quokka smiles")
	r, err := e.Sync(t.Context(), SyncRequest{Name: "wiki"})
	if err != nil || r.Added != 1 || r.Collection != "default" {
		t.Fatalf("Sync = %+v, %v", r, err)
	}
	if got := search(t, e, "quokka"); len(got) != 1 || got[0] != m.URI("a") {
		t.Errorf("Search = %v", got)
	}
	m.SetACL("a", "ann")
	if r, err := e.Sync(t.Context(), SyncRequest{Name: "wiki"}); err != nil || r.Updated != 1 {
		t.Fatalf("Sync = %+v, %v", r, err)
	}
	if got := search(t, e, "quokka"); len(got) != 0 {
		t.Errorf("Search for what another may see = %v", got)
	}
	states, err := e.Sources(t.Context())
	if err != nil || len(states) != 1 || states[0].Options["color"] != "blue" || states[0].LastSync.IsZero() {
		t.Errorf("Sources = %+v, %v", states, err)
	}
	if n, err := e.RemoveSource(t.Context(), "wiki", false); err != nil || n != 1 {
		t.Errorf("RemoveSource = %d, %v", n, err)
	}
	if some, err := e.HoldsDocuments(t.Context()); err != nil || some {
		t.Errorf("HoldsDocuments = %v, %v", some, err)
	}
	if _, err := e.Sync(t.Context(), SyncRequest{Name: "wiki"}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Sync of a removed source = %v", err)
	}
}

func TestAddSourceInvalid(t *testing.T) {
	t.Parallel()
	m := &sourcetest.Memory{NeedsToken: true}
	e := openWithSources(t, t.TempDir(), m, map[string]string{"MEMORY_TOKEN": "t"})
	good := NewSource{Name: "wiki", Kind: "memory", Target: "memory://test"}
	for name, change := range map[string]func(*NewSource){
		"kind":                 func(n *NewSource) { n.Kind = "none" },
		"name":                 func(n *NewSource) { n.Name = "a/b" },
		"name of files":        func(n *NewSource) { n.Name = "file" },
		"target":               func(n *NewSource) { n.Target = "x" },
		"option":               func(n *NewSource) { n.Options = map[string]string{"size": "1"} },
		"credential":           func(n *NewSource) { n.Credentials = map[string]string{"key": "env:X"} },
		"credential in place":  func(n *NewSource) { n.Credentials = map[string]string{"token": "hunter2-hunter2"} },
		"credential not there": func(n *NewSource) { n.Credentials = map[string]string{"token": "file:/does/not/exist"} },
	} {
		n := good
		change(&n)
		err := e.AddSource(t.Context(), n)
		if !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: AddSource = %v, want assay.ErrInvalid", name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains the credential: %v", name, err)
		}
	}
	if err := e.AddSource(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if err := e.AddSource(t.Context(), good); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("AddSource again = %v", err)
	}
}

// TestCredentialsAreNotStored checks every file of the data directory after a sync whose service
// repeats the credential in its error.
func TestCredentialsAreNotStored(t *testing.T) {
	t.Parallel()
	const value = "tok-9f8e7d6c5b4a"
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &sourcetest.Memory{NeedsToken: true}
	e := openWithSources(t, dir, m, map[string]string{"TOKEN": value})
	m.Put("a", "words")
	for name, from := range map[string]string{"one": "env:TOKEN", "two": "file:" + file} {
		n := NewSource{Name: name, Collection: name, Kind: "memory", Target: "memory://test", Credentials: map[string]string{"token": from}}
		if err := e.AddSource(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Sync(t.Context(), SyncRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	m.Refuse()
	_, err := e.Sync(t.Context(), SyncRequest{Name: "one"})
	if !errors.Is(err, source.ErrCredentials) || strings.Contains(err.Error(), value) {
		t.Errorf("Sync = %v, want source.ErrCredentials without the credential", err)
	}
	states, err := e.Sources(t.Context())
	if err != nil || states[0].LastError == "" {
		t.Errorf("Sources = %+v, %v", states, err)
	}
	e.Close()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(value)) {
			t.Errorf("%s contains the credential", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSyncLocked(t *testing.T) {
	t.Parallel()
	m := &sourcetest.Memory{}
	e := openWithSources(t, t.TempDir(), m, nil)
	if err := e.AddSource(t.Context(), NewSource{Name: "wiki", Kind: "memory", Target: "memory://test"}); err != nil {
		t.Fatal(err)
	}
	m.Put("a", "words")
	m.BeforeFetch = func(string) error {
		if _, err := e.Sync(t.Context(), SyncRequest{Name: "wiki"}); !errors.Is(err, assay.ErrLocked) {
			t.Errorf("Sync during a sync = %v, want assay.ErrLocked", err)
		}
		// A sync does not keep others from writing.
		_, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}})
		return err
	}
	if _, err := e.Sync(context.WithoutCancel(t.Context()), SyncRequest{Name: "wiki"}); err != nil {
		t.Error(err)
	}
}

// TestFailedItems checks that items of a source that cannot be parsed are listed for those who may see
// them.
func TestFailedItems(t *testing.T) {
	t.Parallel()
	m := &sourcetest.Memory{}
	e := openWithSources(t, t.TempDir(), m, nil)
	if err := e.AddSource(t.Context(), NewSource{Name: "wiki", Kind: "memory", Target: "memory://test", Collection: "c"}); err != nil {
		t.Fatal(err)
	}
	failed := func(collection string) int {
		t.Helper()
		if _, err := e.Sync(t.Context(), SyncRequest{Name: "wiki"}); err != nil {
			t.Fatal(err)
		}
		list, err := e.FailedDocuments(t.Context(), assay.Local(), collection)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	m.Put("z", "\x00\x01")
	if n := failed("c"); n != 1 {
		t.Errorf("%d failed documents, want 1", n)
	}
	if n := failed("other"); n != 0 {
		t.Errorf("%d failed documents of another collection", n)
	}
	m.SetACL("z", "ann")
	if n := failed("c"); n != 0 {
		t.Errorf("%d failed documents that only another may see", n)
	}
	m.Put("z", "zebras")
	if n := failed("c"); n != 0 {
		t.Errorf("%d failed documents after the change", n)
	}
}
