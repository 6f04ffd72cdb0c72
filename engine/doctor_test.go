package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	damage := func(change func(dir string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			e := openDir(t, dir)
			ingestPaths(t, e, "testdata/handbook")
			ask(t, e, someQuestion)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		check   string // name of the check
		kind    error  // nil: OK
		want    string // substring of the detail
	}{
		{"well", damage(func(string) error { return nil }), "runs", nil, "1 of 1 run with a sound journal"},
		{"documents", damage(func(string) error { return nil }), "documents", nil, "3, in "},
		{"no directory", func(t *testing.T, dir string) { os.Remove(dir) }, "data directory", assay.ErrNotFound, "does not exist"},
		{"empty directory", func(*testing.T, string) {}, "data directory", nil, "is empty"},
		{"another program's", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "data directory", assay.ErrForeign, "notes.txt"},
		{"half deleted", damage(func(dir string) error {
			return os.Remove(filepath.Join(dir, "tenants/default/content.db"))
		}), "databases", assay.ErrDamaged, "content.db is missing"},
		{"a damaged page", func(t *testing.T, dir string) {
			e := openDir(t, dir)
			ingestPaths(t, e, "testdata/handbook")
			ask(t, e, someQuestion)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "tenants/default/runs.db")
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(whole[len(whole)-4096:])
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "databases", assay.ErrDamaged, "runs.db"},
		{"no index", damage(func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, "tenants/default/index"))
		}), "index", nil, "the next search reads the rest"},
		{"a torn index", damage(func(dir string) error {
			return os.Truncate(filepath.Join(dir, "tenants/default/index/MANIFEST"), 10)
		}), "index", nil, "cannot be used"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, dir)
			c := checkNamed(t, Doctor(t.Context(), Config{Dir: dir}), test.check)
			if c.OK != (test.kind == nil) || !errors.Is(c.Err, test.kind) || !strings.Contains(c.Detail, test.want) {
				t.Errorf("check %s = %+v, want %v with %q", test.check, c, test.kind, test.want)
			}
		})
	}
}

func checkNamed(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check is named %s: %+v", name, checks)
	return Check{}
}

// TestDoctorAtWork checks that Doctor reports resumable runs and the active writer.
func TestDoctorAtWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	ctx, cancel := context.WithCancel(t.Context())
	watch(t, e, func(context.Context, assay.Query) error { cancel(); return nil })
	if _, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion}); err == nil {
		t.Fatal("the run was not interrupted")
	}
	w, err := e.tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	checks := Doctor(t.Context(), Config{Dir: dir})
	if c := checkNamed(t, checks, "runs"); !c.OK || !strings.Contains(c.Detail, "1 interrupted, can be resumed") {
		t.Errorf("runs: %+v", c)
	}
	if c := checkNamed(t, checks, "writer"); !c.OK || !strings.Contains(c.Detail, "this process") {
		t.Errorf("writer: %+v", c)
	}
}
