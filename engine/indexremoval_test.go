package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// TestDeleteTenantIndex checks that the shared index of a deleted tenant is removed, later if it cannot be
// removed at once, and that of a tenant that is not deleted never.
func TestDeleteTenantIndex(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	identity := func(name string) string {
		t.Helper()
		tenant, err := s.Tenant(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		word, err := tenant.Content().Identity(ctx)
		if err = errors.Join(err, tenant.Close()); err != nil {
			t.Fatal(err)
		}
		return word
	}
	for _, name := range []string{"acme", "globex"} {
		if err := s.CreateTenant(ctx, name, store.Act{}); err != nil {
			t.Fatal(err)
		}
	}
	acme, globex := identity("acme"), identity("globex")
	var removed []string
	down := errors.New("the cluster is down")
	failure := down
	remove := func(_ context.Context, identity string) error {
		if failure == nil {
			removed = append(removed, identity)
		}
		return failure
	}

	open, err := s.Tenant(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := open.Lock(ctx, "busy")
	if err != nil {
		t.Fatal(err)
	}
	if err := DeleteTenant(ctx, s, remove, "acme", false, store.Act{}); !errors.Is(err, assay.ErrLocked) || errors.Is(err, ErrIndexRemains) {
		t.Errorf("delete a tenant in use: %v, want ErrLocked", err)
	}
	if err := errors.Join(lock.Close(), open.Close()); err != nil {
		t.Fatal(err)
	}
	failure = nil
	if err := RemoveIndexes(ctx, s, remove); err != nil || len(removed) > 0 {
		t.Fatalf("removed %v, %v; no tenant is deleted", removed, err)
	}

	failure = down
	if err := DeleteTenant(ctx, s, remove, "acme", false, store.Act{}); !errors.Is(err, ErrIndexRemains) || !errors.Is(err, down) {
		t.Errorf("delete while the cluster is down: %v, want ErrIndexRemains and its cause", err)
	}
	if tenants, err := s.Tenants(ctx); err != nil || slices.Contains(tenants, "acme") {
		t.Errorf("tenants %v, %v; want no acme", tenants, err)
	}
	if err := s.CreateTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	if again := identity("acme"); again == acme {
		t.Errorf("the new tenant has the identity %s of the deleted one", again)
	}
	h, err := OpenHost(ctx, HostConfig{Config: Config{Store: s, NoBackground: true, RemoveIndex: remove}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Housekeep(ctx); !errors.Is(err, down) {
		t.Errorf("housekeeping while the cluster is down: %v", err)
	}
	failure = nil
	for range 2 {
		if err := h.Housekeep(ctx); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(removed, []string{acme}) {
		t.Errorf("removed %v, want %s once", removed, acme)
	}
	if err := DeleteTenant(ctx, s, remove, "globex", false, store.Act{}); err != nil || !slices.Equal(removed, []string{acme, globex}) {
		t.Errorf("removed %v, %v; want both", removed, err)
	}
	if err := DeleteTenant(ctx, s, remove, "globex", false, store.Act{}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("delete again: %v, want ErrNotFound", err)
	}
}
