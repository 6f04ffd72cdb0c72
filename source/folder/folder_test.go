package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		dir := t.TempDir()
		path := func(name string) string { return filepath.Join(dir, name+".txt") }
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		modified := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		return sourcetest.World{
			Kind: Kind(), Config: source.Config{Target: dir},
			Put: func(name, text string) {
				must(os.WriteFile(path(name), []byte(text), 0o600))
				modified = modified.Add(time.Second)
				must(os.Chtimes(path(name), modified, modified))
			},
			Delete: func(name string) { must(os.Remove(path(name))) },
			URI:    func(name string) string { return source.URI(path(name)) },
			SetACL: func(name, user string) {
				must(os.WriteFile(path(name)+".metadata.json", []byte(`{"acl":["user:`+user+`"]}`), 0o600))
			},
			Vanish: func(name string) { must(os.Remove(path(name))) },
		}
	})
}

func openFolder(t *testing.T, dir string) source.Source {
	t.Helper()
	opened := time.Now() // time stands still, so that what is written from now on stays young
	options, err := Kind().Complete(map[string]string{"exclude": "*.log\ndrafts/"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(t.Context(), source.Config{Target: dir, Options: options, Now: func() time.Time { return opened }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openFolder(t, dir)
	for name, text := range map[string]string{
		"a.md": "a", "a.log": "x", "drafts/b.md": "x", ".hidden.md": "x", "bad.md": "x", "bad.md.metadata.json": "{",
		"c.md": "c", "c.md.metadata.json": `{"author":"Ann","source":"elsewhere"}`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for item, err := range s.Sweep(t.Context()) {
		if skip, ok := source.AsSkip(err); ok {
			got[filepath.Base(skip.URI)] = string(skip.Reason)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if item.Version != "" {
			t.Errorf("%s was written just now and has the version %q, want none", item.URI, item.Version)
		}
		got[item.Name] = item.Metadata[assay.MetaAuthor].String
	}
	want := map[string]string{"a.md": "", "bad.md": string(source.BadSidecar), "c.md": "Ann"}
	if len(got) != len(want) || got["bad.md"] != want["bad.md"] || got["c.md"] != "Ann" {
		t.Errorf("Sweep = %v, want %v", got, want)
	}
}

// TestMissing checks that a folder that is gone is an error, so that nothing is deleted.
func TestMissing(t *testing.T) {
	t.Parallel()
	for _, err := range openFolder(t, filepath.Join(t.TempDir(), "none")).Sweep(t.Context()) {
		if _, ok := source.AsSkip(err); ok || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Sweep yields %v, want an error", err)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	w := openFolder(t, t.TempDir()).(source.Watcher)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := w.Watch(ctx, cancel); err != nil {
		t.Errorf("Watch = %v, want nil", err)
	}
}
