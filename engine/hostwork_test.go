package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// TestHostReload checks that calls in progress keep their engine, that later ones have the new
// configuration, and that the rules for sessions hold at once.
func TestHostReload(t *testing.T) {
	t.Parallel()
	config := HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}, AllowLocal: true}
	h := openHost(t, config, "acme")
	local := mustSession(t, h, identity.Local("acme"))
	staff := mustSession(t, h, roleGrant("acme", staff, identity.Reader))
	c, err := staff.enter(t.Context(), "Runs")
	if err != nil {
		t.Fatal(err)
	}
	old := c.engine
	config.AllowLocal, config.Strategy = false, "corrective"
	if err := h.Reload(config); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Runs(t.Context(), 0); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("a session without a credential, which is not allowed any more: %v", err)
	}
	if _, err := old.Runs(t.Context(), assay.Local(), 0); err != nil {
		t.Errorf("a call in progress: %v", err)
	}
	next, err := staff.enter(t.Context(), "Runs")
	if err != nil {
		t.Fatal(err)
	}
	if next.engine == old || next.engine.config.Strategy != "corrective" {
		t.Errorf("the next call has the old engine, or its configuration: %q", next.engine.config.Strategy)
	}
	c.done()
	if _, err := old.Runs(t.Context(), assay.Local(), 0); err == nil {
		t.Error("the old engine is open when nothing uses it")
	}
	next.done()
	config.Recheck = func(context.Context, identity.Grant) error { return assay.ErrUnauthenticated }
	if err := h.Reload(config); err != nil {
		t.Fatal(err)
	}
	if _, err := staff.Runs(t.Context(), 0); !errors.Is(err, assay.ErrUnauthenticated) {
		t.Errorf("a session that the new Recheck refuses: %v", err)
	}
	config.Strategy = "none such"
	if err := h.Reload(config); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a configuration that is not valid: %v", err)
	}
}

// TestHousekeep checks that deadlines and retention are followed for tenants that no one uses, and
// that their engines are closed again.
func TestHousekeep(t *testing.T) {
	t.Parallel()
	now := time.Now()
	config := HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true, Now: func() time.Time { return now }}, AllowLocal: true}
	h := openHost(t, config, "acme", "globex")
	admin := mustSession(t, h, identity.Local("acme"))
	if _, err := admin.Answer(t.Context(), Request{Question: someQuestion}); err != nil {
		t.Fatal(err)
	}
	if err := admin.SetRetention(t.Context(), store.RetainRuns, 1, "test"); err != nil {
		t.Fatal(err)
	}
	suspended := store.Act{Actor: assay.Local(), Reason: "test"}
	if err := h.store.SuspendTenant(t.Context(), "globex", suspended); err != nil {
		t.Fatal(err)
	}
	runs := func() int {
		t.Helper()
		list, err := admin.Runs(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	keep := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		if err := h.Housekeep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if keep(0); runs() != 1 {
		t.Error("a run of today is removed")
	}
	if keep(48 * time.Hour); runs() != 0 {
		t.Error("an old run is kept")
	}
	keep(h.config.Idle + settle)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.engines) != 0 {
		t.Errorf("%d engines are open that nothing uses", len(h.engines))
	}
}

// TestHousekeepingProcess checks that one process keeps house.
func TestHousekeepingProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := openHost(t, HostConfig{Config: Config{Dir: dir, NoBackground: true}, AllowLocal: true})
	other, err := Open(t.Context(), Config{Dir: dir, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.tenant.Lock(t.Context(), housekeepingLock)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := h.Housekeep(t.Context()); err != nil {
		t.Errorf("while another process does it: %v", err)
	}
}

// TestHostCheck checks a host whose index is opened in the background.
func TestHostCheck(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}})
	var names []string
	for _, c := range h.Check(t.Context()) {
		names = append(names, c.Name)
		if c.Err != nil && c.Name != "index" {
			t.Errorf("%s: %v", c.Name, c.Err)
		}
	}
	if !slices.Equal(names, []string{"store", "writable", "index"}) {
		t.Errorf("the checks are %q", names)
	}
	h.warming.work.Wait()
	for _, c := range h.Check(t.Context()) {
		if c.Err != nil {
			t.Errorf("%s, after the index was opened: %v", c.Name, c.Err)
		}
	}
}

func TestSourcesOf(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	allow := SourcesOf([]string{"web", "folder"}, []string{"env:TOKEN"}, []string{folder})
	for _, test := range []struct {
		name string
		n    NewSource
		want bool
	}{
		{"a kind", NewSource{Kind: "web", Target: "https://example.com"}, true},
		{"another kind", NewSource{Kind: "git", Target: "https://example.com"}, false},
		{"a credential", NewSource{Kind: "web", Target: "https://example.com", Credentials: map[string]string{"token": "env:TOKEN"}}, true},
		{"another credential", NewSource{Kind: "web", Target: "https://example.com", Credentials: map[string]string{"token": "file:/etc/shadow"}}, false},
		{"a folder", NewSource{Kind: "folder", Target: folder}, true},
		{"another folder", NewSource{Kind: "folder", Target: "/etc"}, false},
		{"a path of another kind", NewSource{Kind: "web", Target: "/etc"}, false},
	} {
		if got := allow("acme", test.n); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
