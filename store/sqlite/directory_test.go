package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/storetest"
)

// files maps paths below a directory to contents. A path that ends in a slash is a folder.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range f {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readFiles(t *testing.T, dir string) files {
	t.Helper()
	f := files{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			f[name+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(path)
		f[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOpenRefuses opens folders that are not data directories, or not complete ones, and checks
// that they stay unchanged.
func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		files files
		kind  error
		names string
	}{
		{"someone's notes", files{"notes.txt": "x"}, assay.ErrForeign, "notes.txt"},
		{"a hidden file", files{".git/": ""}, assay.ErrForeign, ".git"},
		{"another program's marker", files{markerName: `{"program":"other","format":1}`}, assay.ErrForeign, "other"},
		{"another program's tenants", files{"tenants/a/data.txt": "x"}, assay.ErrForeign, "tenants"},
		{"a marker that says nothing", files{markerName: `{}`, "tenants/": ""}, assay.ErrForeign, markerName},
		{"a newer format", files{markerName: `{"program":"assay","format":99,"more":true}`, "tenants/": ""}, assay.ErrNewer, "99"},
		{"an empty marker", files{markerName: ``, "tenants/": ""}, assay.ErrDamaged, markerName},
		{"a marker without a format", files{markerName: `{"program":"assay"}`, "tenants/": ""}, assay.ErrDamaged, "format"},
		{"no tenants", files{markerName: `{"program":"assay","format":1}`}, assay.ErrDamaged, tenantsName},
		{"a file for tenants", files{markerName: `{"program":"assay","format":1}`, "tenants": "x"}, assay.ErrDamaged, tenantsName},
		{"no marker", files{"tenants/a/content.db": "x"}, assay.ErrDamaged, markerName},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.files.write(t, dir)
			before := readFiles(t, dir)
			_, err := Open(t.Context(), dir)
			wantKind(t, "Open", err, test.kind, dir, test.names)
			if diff := cmp.Diff(before, readFiles(t, dir)); diff != "" {
				t.Errorf("Open changed the folder (-before +after):\n%s", diff)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), file)
	wantKind(t, "Open of a file", err, assay.ErrInvalid, file)
	_, err = Open(t.Context(), "")
	wantKind(t, "Open of nothing", err, assay.ErrInvalid)
}

// TestOpenCreates opens folders that can become data directories.
func TestOpenCreates(t *testing.T) {
	for name, before := range map[string]files{
		"empty":               {},
		"missing":             nil,
		"an unended creation": {"tenants/": "", unfinished + "123": `{"pro`},
	} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		if before != nil {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before.write(t, dir)
		for range 2 {
			s, err := Open(t.Context(), dir)
			if err != nil {
				t.Fatalf("Open of a folder that is %s: %v", name, err)
			}
			tenant, err := created(s, t.Context(), "acme")
			if err != nil {
				t.Fatalf("Tenant in a folder that was %s: %v", name, err)
			}
			if err := tenant.Close(); err != nil {
				t.Error(err)
			}
			names, err := s.Tenants(t.Context())
			if diff := cmp.Diff([]string{"acme"}, names); diff != "" || err != nil {
				t.Errorf("Tenants = %v, %v", names, err)
			}
		}
	}
}

// TestOpenTogether creates one data directory and tenant from many goroutines.
func TestOpenTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			s, err := Open(t.Context(), dir)
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			tenant, err := created(s, t.Context(), "acme")
			if err != nil {
				t.Errorf("Tenant: %v", err)
				return
			}
			l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: fmt.Sprint(i)})
			if err != nil {
				t.Errorf("Create: %v", err)
				return
			}
			if err := errors.Join(l.Close(), tenant.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := created(s, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	if list, err := tenant.Runs().List(t.Context(), 0); err != nil || len(list) != 12 {
		t.Errorf("%d runs, %v, want 12", len(list), err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, tenantsName))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder of tenants holds %v, %v, want one", entries, err)
	}
}

func TestTenantNames(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"", ".", "..", "a/b", "../a", `a\b`, "/a", "A", "ä", ".a", "a.", "a b", "a\x00", "con", "nul", "com1", "a:b", "a\n", "*", strings.Repeat("a", 65),
	} {
		_, err := created(s, t.Context(), name)
		wantKind(t, fmt.Sprintf("Tenant(%q)", name), err, assay.ErrInvalid)
	}
	for _, name := range []string{"a", "0", "acme-2_x.y", "a..b", strings.Repeat("a", 64)} {
		tenant, err := created(s, t.Context(), name)
		if err != nil {
			t.Errorf("Tenant(%q): %v", name, err)
			continue
		}
		if want := filepath.Join(s.Dir(), tenantsName, name); tenant.dir != want {
			t.Errorf("Dir = %s, want %s", tenant.dir, want)
		}
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTenantRefuses damages a tenant in many ways and checks the errors.
func TestTenantRefuses(t *testing.T) {
	edit := func(name, statement string) func(*testing.T, *harness, string) {
		return func(t *testing.T, h *harness, _ string) {
			if _, err := h.edit("acme", name, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, content string) func(*testing.T, *harness, string) {
		return func(t *testing.T, _ *harness, dir string) { files{name: content}.write(t, dir) }
	}
	remove := func(names ...string) func(*testing.T, *harness, string) {
		return func(t *testing.T, _ *harness, dir string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(*testing.T, *harness, string)
		kind  error
		names string
	}{
		{"no content", remove(contentName), assay.ErrDamaged, contentName},
		{"no runs", remove(runsName), assay.ErrDamaged, runsName},
		{"nothing", remove(contentName, runsName), assay.ErrDamaged, contentName},
		{"empty content", write(contentName, ""), assay.ErrDamaged, contentName},
		{"empty runs", write(runsName, ""), assay.ErrDamaged, runsName},
		{"no database", write(runsName, strings.Repeat("not a database ", 100)), assay.ErrDamaged, runsName},
		{"another program's database", edit(contentName, "PRAGMA application_id = 7"), assay.ErrForeign, contentName},
		{"a newer layout", edit(runsName, "PRAGMA user_version = 1000"), assay.ErrNewer, runsName},
		{"another tenant's runs", edit(runsName, "UPDATE store SET tenant = 'other'"), assay.ErrDamaged, "do not belong together"},
		{"no first row", edit(contentName, "DELETE FROM store"), assay.ErrDamaged, contentName},
		{"runs in place of content", func(t *testing.T, _ *harness, dir string) {
			if err := os.Rename(filepath.Join(dir, runsName), filepath.Join(dir, contentName)); err != nil {
				t.Fatal(err)
			}
		}, assay.ErrDamaged, runsName},
		{"content and runs exchanged", func(t *testing.T, _ *harness, dir string) {
			a, b, c := filepath.Join(dir, contentName), filepath.Join(dir, runsName), filepath.Join(dir, "c")
			if err := errors.Join(os.Rename(a, c), os.Rename(b, a), os.Rename(c, b)); err != nil {
				t.Fatal(err)
			}
		}, assay.ErrForeign, contentName},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			tenant, err := created(h.Store, t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			if err := tenant.Close(); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, h, tenant.dir)
			before := readFiles(t, h.Dir())
			_, err = created(h.Store, t.Context(), "acme")
			wantKind(t, "Tenant", err, test.kind, test.names)
			if diff := cmp.Diff(before, readFiles(t, h.Dir())); diff != "" {
				t.Errorf("opening it changed it (-before +after):\n%s", diff)
			}
		})
	}
}

// TestCorruption overwrites pages in the middle of a database.
func TestCorruption(t *testing.T) {
	h := newHarness(t)
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := w.Put(t.Context(), crashEntry(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), tenant.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tenant.dir, contentName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	found, step := 0, 5*page
	if testing.Short() {
		step *= 3
	}
	for at := page; at+page <= len(whole); at += step {
		broken := append([]byte(nil), whole...)
		for i := range page {
			broken[at+i] = byte(i)
		}
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkTenant(t, h); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("page %d overwritten: Check: %v, want an error of kind %q", at/page, err, assay.ErrDamaged)
		}
		err := readAll(t, h)
		if err == nil {
			continue // nothing read here needs the page, for example a page of an index
		}
		if found++; !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("page %d overwritten: %v, want an error of kind %q", at/page, err, assay.ErrDamaged)
		}
	}
	if found == 0 {
		t.Error("no damage was found")
	}
	if err := os.WriteFile(path, whole[:len(whole)/2/page*page], 0o600); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "half a file", readAll(t, h), assay.ErrDamaged)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkTenant(t, h); err != nil {
		t.Errorf("Check of what is whole: %v", err)
	}
}

// checkTenant opens the tenant and checks it.
func checkTenant(t *testing.T, h *harness) error {
	t.Helper()
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		return err
	}
	defer tenant.Close()
	return tenant.Check(t.Context())
}

// readAll opens the tenant and reads all its content.
func readAll(t *testing.T, h *harness) error {
	t.Helper()
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		return err
	}
	defer tenant.Close()
	for change, err := range tenant.Content().Changes(t.Context(), 0) {
		if err != nil {
			return err
		}
		if _, err := tenant.Content().Document(t.Context(), change.ID); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
	}
	return nil
}

// TestReadOnlyDirectory opens data directories as a user who may only read them, one closed
// properly and one whose writer was killed.
func TestReadOnlyDirectory(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "assay-readonly-") // t.TempDir is not accessible to other users
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			defer chmodAll(t, dir, 0o700, 0o600)
			fillReadOnly(t, filepath.Join(dir, "data"), killed)
			chmodAll(t, dir, 0o555, 0o444)
			cmd := childCommand("readonly", filepath.Join(dir, "data"))
			becomeOther(t, cmd)
			out, err := cmd.Output()
			if want := "[\"only\\n\"], 1 records, 1 runs\n"; err != nil || string(out) != want {
				t.Errorf("the reader said %q, %v, want %q", out, err, want)
			}
		})
	}
}

// fillReadOnly fills a data directory. If killed is set, the writer's logs stay beside the
// databases.
func fillReadOnly(t *testing.T, dir string, killed bool) {
	t.Helper()
	from := dir
	if killed {
		from = filepath.Join(t.TempDir(), "data")
	}
	s, err := Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := created(s, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Put(t.Context(), storetest.Entry("c", "/a", "only\n")); err != nil {
		t.Fatal(err)
	}
	l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), crashRecord(0)); err != nil {
		t.Fatal(err)
	}
	if killed { // the files are now those that a killed process leaves
		readFiles(t, from).write(t, dir)
	}
	if err := errors.Join(l.Close(), w.Close(), tenant.Close()); err != nil {
		t.Fatal(err)
	}
}

func chmodAll(t *testing.T, dir string, folder, file fs.FileMode) {
	t.Helper()
	if err := os.Chmod(dir, folder|0o700); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, folder)
		}
		return os.Chmod(path, file)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoSystem checks the error of a system that there is none of and that cannot be created.
func TestNoSystem(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.System(t.Context()); !errors.Is(err, assay.ErrNotFound) || !errors.Is(err, assay.ErrReadOnly) {
		t.Errorf("System: %v", err)
	}
}
