package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/backup"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// newStore returns a store with the tenants, each with a document and a run that cites it.
func newStore(t *testing.T, tenants ...string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tenants {
		tenant := open(t, s, name)
		put(t, tenant, name+" keeps its receipts for ten years.")
		ask(t, tenant, "run-of-"+name)
		if err := tenant.SetSetting(t.Context(), "encoder", []byte(`{"tenant":"`+name+`"}`)); err != nil {
			t.Fatal(err)
		}
		close(t, tenant)
	}
	return s
}

func open(t *testing.T, s *sqlite.Store, name string) store.Tenant {
	t.Helper()
	if err := s.CreateTenant(t.Context(), name, store.Act{}); err != nil && !errors.Is(err, assay.ErrInvalid) {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

func close(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// put replaces the only document of a tenant.
func put(t *testing.T, tenant store.Tenant, text string) assay.Document {
	t.Helper()
	d, err := writeDocument(t.Context(), tenant, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func writeDocument(ctx context.Context, tenant store.Tenant, text string) (assay.Document, error) {
	d := assay.Document{ID: assay.DocumentID("c", "a.txt"), Collection: "c", URI: "a.txt", Title: "a", Text: text, Version: assay.DocumentVersion("a", nil, text)}
	w, err := tenant.Writer(ctx)
	if err != nil {
		return d, err
	}
	_, err = w.Put(ctx, store.Entry{Document: d})
	return d, errors.Join(err, w.Close())
}

// ask stores a run that cites the current version of the document.
func ask(t *testing.T, tenant store.Tenant, id string) {
	t.Helper()
	if err := askOnce(t.Context(), tenant, id); err != nil {
		t.Fatal(err)
	}
}

func askOnce(ctx context.Context, tenant store.Tenant, id string) error {
	d, err := tenant.Content().Document(ctx, assay.DocumentID("c", "a.txt"))
	if err != nil {
		return err
	}
	lease, err := tenant.Runs().Create(ctx, assay.Run{ID: id, Principal: assay.Local(), Question: "How long?"})
	if err != nil {
		return err
	}
	_, err = lease.Append(ctx, assay.Record{Path: "search", Kind: assay.StepSearch, Input: []byte(`{"q":"` + strings.Repeat("long ", 100) + `"}`), Output: []byte(`{}`)})
	if err == nil {
		err = lease.Finish(ctx, assay.RunDone, &assay.Answer{Run: id, Status: assay.Answered, Citations: []assay.Citation{{
			Origin: assay.FromDocuments, Document: d.ID, Version: d.Version, Quote: d.Text,
		}}}, "")
	}
	return errors.Join(err, lease.Close())
}

// checkRestored checks that a tenant is whole: its pages, its log without a gap, and each answer's
// citation in the cited version. It returns the number of runs.
func checkRestored(t *testing.T, dir, name string) int {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant := open(t, s, name)
	defer close(t, tenant)
	if err := tenant.Check(t.Context()); err != nil {
		t.Error(err)
	}
	size, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for e, err := range tenant.Audit().Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Header), `"content.changed"`) {
			changes++
		}
	}
	sequence, err := tenant.Content().Sequence(t.Context())
	if err != nil || int(sequence) != changes {
		t.Errorf("%d changes of content, %d of them in the log, %v", sequence, changes, err)
	}
	runs, err := tenant.Runs().List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if _, err := tenant.Runs().Records(t.Context(), r.ID); err != nil {
			t.Error(err)
		}
		if r.Live {
			t.Errorf("run %s is live", r.ID)
		}
		if r.Answer == nil {
			continue
		}
		c := r.Answer.Citations[0]
		d, err := tenant.Content().Version(t.Context(), c.Document, c.Version)
		if err != nil || d.Text != c.Quote {
			t.Errorf("run %s cites %q, the version has %q, %v", r.ID, c.Quote, d.Text, err)
		}
	}
	return len(runs)
}

func TestRestore(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		options backup.Options
		tenants []string
		system  bool
	}{
		{"everything", backup.Options{}, []string{"a", "b"}, true},
		{"one tenant", backup.Options{Tenant: "b"}, []string{"b"}, false},
		{"encrypted", backup.Options{Recipients: []age.Recipient{key.Recipient()}}, []string{"a", "b"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t, "a", "b")
			dir, data := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "new", "data")
			made, err := backup.Make(t.Context(), s, dir, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := backup.Verify(t.Context(), dir, nil); err != nil || got.Checksum != made.Checksum {
				t.Errorf("verify: %v", err)
			}
			if made.System != test.system {
				t.Errorf("system %v, want %v", made.System, test.system)
			}
			if made.Encrypted {
				if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{}); !errors.Is(err, assay.ErrInvalid) {
					t.Errorf("without an identity: %v", err)
				}
				other, _ := age.GenerateX25519Identity()
				if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{Identities: []age.Identity{other}}); !errors.Is(err, assay.ErrInvalid) {
					t.Errorf("with another identity: %v", err)
				}
				wantNoText(t, dir, "receipts")
			}
			if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{Identities: []age.Identity{key}}); err != nil {
				t.Fatal(err)
			}
			for _, name := range test.tenants {
				if n := checkRestored(t, data, name); n != 1 {
					t.Errorf("tenant %s has %d runs", name, n)
				}
			}
			restored, err := sqlite.Open(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			if names, err := restored.Tenants(t.Context()); err != nil || fmt.Sprint(names) != fmt.Sprint(test.tenants) {
				t.Errorf("%v, %v", names, err)
			}
			tenant := open(t, restored, "b")
			if v, err := tenant.Setting(t.Context(), "encoder"); err != nil || string(v) != `{"tenant":"b"}` {
				t.Errorf("setting %q, %v", v, err)
			}
			close(t, tenant)
			wantPrivate(t, data)
			wantPrivate(t, dir)
			wantAlone(t, filepath.Dir(dir), "backup")
			wantAlone(t, filepath.Dir(data), "data")
			wantAlone(t, filepath.Dir(s.Dir()), "data")
			if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{Identities: []age.Identity{key}}); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("restored over a data directory: %v", err)
			}
			if _, err := backup.Make(t.Context(), s, dir, test.options); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("backed up over a backup: %v", err)
			}
		})
	}
}

// wantPrivate checks that only the owner may read the files.
func wantPrivate(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// wantAlone checks that a folder holds one name.
func wantAlone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v, %v; want %s alone", dir, entries, err, name)
	}
}

// wantNoText checks that no file has the text.
func wantNoText(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s has %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAltered changes single bytes of a backup, in each file and all over it, cuts and removes files.
// Restore refuses each, and creates nothing.
func TestAltered(t *testing.T) {
	t.Parallel()
	s := newStore(t, "a")
	dir := filepath.Join(t.TempDir(), "backup")
	m, err := backup.Make(t.Context(), s, dir, backup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"manifest.json"}
	for _, f := range m.Files {
		files = append(files, filepath.FromSlash(f.Path))
	}
	refused := 0
	try := func(what, file string) {
		t.Helper()
		data := filepath.Join(t.TempDir(), "data")
		_, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{})
		bad := errors.Is(err, assay.ErrDamaged) || file == "manifest.json" && (errors.Is(err, assay.ErrForeign) || errors.Is(err, assay.ErrNewer))
		if !bad {
			t.Errorf("%s of %s: %v", what, file, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(data)); err != nil || len(entries) > 0 {
			t.Errorf("%s of %s: it left %v, %v", what, file, entries, err)
		}
		refused++
	}
	for _, file := range files {
		path := filepath.Join(dir, file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(data []byte) {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for at := 0; at < len(whole); at += max(1, len(whole)/40) {
			altered := append([]byte(nil), whole...)
			altered[at] ^= 1
			write(altered)
			try(fmt.Sprintf("byte %d", at), file)
		}
		write(whole[:len(whole)-1])
		try("the end", file)
		write(append(append([]byte(nil), whole...), 'x'))
		try("more", file)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		try("the lack", file)
		write(whole)
	}
	if _, err := backup.Verify(t.Context(), dir, nil); err != nil {
		t.Errorf("the backup itself: %v", err)
	}
	t.Logf("%d alterations refused", refused)
}

// TestMakeFails checks the errors of Make, which leave nothing behind.
func TestMakeFails(t *testing.T) {
	t.Parallel()
	s := newStore(t, "a")
	parent := t.TempDir()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx     context.Context
		dir     string
		options backup.Options
		want    error
	}{
		{t.Context(), filepath.Join(parent, "x"), backup.Options{Tenant: "nobody"}, assay.ErrNotFound},
		{t.Context(), filepath.Join(parent, "x"), backup.Options{Tenant: "../a"}, assay.ErrInvalid},
		{t.Context(), filepath.Join(s.Dir(), "x"), backup.Options{}, assay.ErrInvalid},
		{t.Context(), "", backup.Options{}, assay.ErrInvalid},
		{canceled, filepath.Join(parent, "x"), backup.Options{}, context.Canceled},
	} {
		if _, err := backup.Make(test.ctx, s, test.dir, test.options); !errors.Is(err, test.want) {
			t.Errorf("%q, %q: %v, want %v", test.dir, test.options.Tenant, err, test.want)
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	if _, err := backup.ReadManifest(t.TempDir()); !errors.Is(err, assay.ErrForeign) {
		t.Errorf("an empty folder as a backup: %v", err)
	}
}

// TestMeanwhile makes backups while documents are replaced, versions dropped, runs finished and
// deleted. Each backup is whole: its runs cite versions that it has, and each change of content is in
// its log once.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	// The clock is ahead by a day more with each reading, so that Prune drops every replaced version.
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); now = now.Add(25 * time.Hour); return now }
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "data"), sqlite.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	first := open(t, s, "a")
	put(t, first, "Version 0.")
	close(t, first)
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() { writeAndPrune(t, ctx, s) })
	busy.Go(func() { askAndDelete(t, ctx, s) })
	backups, runs := 30, 0
	if testing.Short() {
		backups = 8
	}
	for i := range backups {
		dir, data := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
		if _, err := backup.Make(t.Context(), s, dir, backup.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{}); err != nil {
			t.Fatalf("backup %d: %v", i, err)
		}
		runs += checkRestored(t, data, "a")
	}
	stop()
	busy.Wait()
	t.Logf("%d backups with %d runs in all", backups, runs)
}

func writeAndPrune(t *testing.T, ctx context.Context, s *sqlite.Store) {
	tenant := open(t, s, "a")
	defer close(t, tenant)
	for i := 1; ctx.Err() == nil; i++ {
		if _, err := writeDocument(context.WithoutCancel(ctx), tenant, fmt.Sprintf("Version %d.", i)); err != nil {
			t.Error(err)
			return
		}
		w, err := tenant.Writer(context.WithoutCancel(ctx))
		if err == nil {
			_, err = w.Prune(context.WithoutCancel(ctx))
			err = errors.Join(err, w.Close())
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

func askAndDelete(t *testing.T, ctx context.Context, s *sqlite.Store) {
	tenant := open(t, s, "a")
	defer close(t, tenant)
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprint("run", i)
		err := askOnce(context.WithoutCancel(ctx), tenant, id)
		if err == nil && i >= 5 {
			err = tenant.Runs().Delete(context.WithoutCancel(ctx), fmt.Sprint("run", i-5), store.Act{Kind: store.KindRunDeleted})
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}
