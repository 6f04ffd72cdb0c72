package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// childDelete deletes the tenant "crash" and prints a line before and after.
func childDelete(ctx context.Context, dir string) error {
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Println("deleting")
	if err := s.DeleteTenant(ctx, "crash", false, store.Act{Reason: "crash test"}); err != nil {
		return err
	}
	fmt.Println("deleted")
	return nil
}

// TestKillDelete kills processes that delete a tenant. Afterwards the tenant is complete or gone,
// and if it is gone, the next use of it removes the rest of its data and its keys.
func TestKillDelete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTenant(t.Context(), "other", store.Act{}); err != nil {
		t.Fatal(err)
	}
	rounds := max(12, 2*crashRounds())
	whole, gone := 0, 0
	var longest time.Duration
	for round := range rounds {
		identity := fillCrash(t, s)
		cmd := childCommand("delete", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if round < 2 { // measures a whole deletion
			began := time.Now()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		} else {
			early := rand.Float64() // most of the time is spent after the deletion has begun
			timer := time.AfterFunc(time.Duration(early*early*float64(longest)), func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			timer.Stop()
		}
		if wholeOrGone(t, s, identity) {
			whole++
			if err := s.DeleteTenant(t.Context(), "crash", true, store.Act{}); err != nil {
				t.Fatal(err)
			}
		} else {
			gone++
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d rounds: %d tenants were complete, %d gone", rounds, whole, gone)
}

// fillCrash creates the tenant "crash" with documents, a run and a key, and returns its identity.
func fillCrash(t *testing.T, s *Store) string {
	t.Helper()
	ctx := t.Context()
	tenant, err := created(s, ctx, "crash")
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Put(ctx, crashEntry(1, 0), crashEntry(2, 0))
	l, runErr := tenant.Runs().Create(ctx, assay.Run{ID: "run", Principal: assay.Local(), Question: "q"})
	if err := errors.Join(err, runErr); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(), w.Close(), tenant.Close()); err != nil {
		t.Fatal(err)
	}
	err = s.withSystem(ctx, func(sys store.System) error {
		item := store.RegistryItem{Kind: store.KeyKind, Name: "key", Value: json.RawMessage(`{"tenant":"crash"}`)}
		return sys.Registry().Set(ctx, item, store.Act{Kind: "key.created"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return tenant.identity
}

// wholeOrGone reports whether the tenant "crash" is complete. If not, it checks that nothing of it
// is left.
func wholeOrGone(t *testing.T, s *Store, identity string) bool {
	t.Helper()
	ctx := t.Context()
	tenant, err := s.tenant(ctx, "crash")
	if err == nil {
		defer tenant.Close()
		n := 0
		for _, err := range tenant.Content().Documents(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if _, err := tenant.Runs().Run(ctx, "run"); err != nil || n != 2 {
			t.Errorf("the tenant has %d documents and the run %v", n, err)
		}
		checkIntegrity(t, tenant)
		return true
	}
	if !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("opening the tenant: %v", err)
	}
	folders, err := os.ReadDir(filepath.Join(s.dir, tenantsName))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.Name() != "other" {
			t.Errorf("the folder %s is left", f.Name())
		}
	}
	tombstones := 0
	err = s.withSystem(ctx, func(sys store.System) error {
		if _, err := sys.Registry().Item(ctx, store.KeyKind, "key"); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("its key: %v", err)
		}
		size, err := sys.Audit().Size(ctx)
		for e, entryErr := range sys.Audit().Entries(ctx, 0, size) {
			if entryErr != nil {
				return entryErr
			}
			if header := string(e.Header); strings.Contains(header, "tenant.deleted") && strings.Contains(header, identity) {
				tombstones++
			}
		}
		return err
	})
	if err != nil || tombstones != 1 {
		t.Errorf("the log has %d tombstones, %v; want 1", tombstones, err)
	}
	return false
}

// TestInterruptedCreation undoes the last steps of one creation, and leaves the first of another,
// as a crash would.
func TestInterruptedCreation(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	tenant, err := created(h.Store, ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := tenant.Close(); err != nil {
		t.Fatal(err)
	}
	info := store.TenantInfo{Name: "acme", Identity: tenant.identity}
	if err := os.Rename(h.folder("acme"), h.unplaced(info)); err != nil { // before the folder was renamed
		t.Fatal(err)
	}
	unused := h.unplaced(store.TenantInfo{Name: "b", Identity: "WORD"}) // before the entry was stored
	if err := os.Mkdir(unused, 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := h.tenant(ctx, "acme")
	if err != nil || again.identity != tenant.identity {
		t.Fatalf("opening it again: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unused); err == nil {
		t.Error("the folder of a creation that was interrupted early is left")
	}
	_, err = h.Tenant(ctx, "b")
	if !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Tenant(b): %v", err)
	}
}

// TestForeignFolder exchanges a tenant's folder for that of another.
func TestForeignFolder(t *testing.T) {
	h := newHarness(t)
	for _, name := range []string{"a", "b"} {
		tenant, err := created(h.Store, t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := tenant.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(h.folder("b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.folder("a"), h.folder("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Tenant(t.Context(), "b"); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a tenant with the folder of another: %v", err)
	}
	if _, err := h.Tenant(t.Context(), "a"); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a tenant without its folder: %v", err)
	}
	if err := h.DeleteTenant(t.Context(), "a", false, store.Act{}); err != nil {
		t.Errorf("deleting a tenant without its folder: %v", err)
	}
}

// TestAdoptedFolder opens a tenant whose folder was copied from another data directory.
func TestAdoptedFolder(t *testing.T) {
	from, to := newHarness(t), newHarness(t)
	tenant, err := created(from.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := tenant.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to.folder("acme"), os.DirFS(from.folder("acme"))); err != nil {
		t.Fatal(err)
	}
	adopted, err := to.tenant(t.Context(), "acme")
	if err != nil || adopted.identity != tenant.identity {
		t.Fatalf("opening the copy: %v", err)
	}
	if err := adopted.Close(); err != nil {
		t.Fatal(err)
	}
}
