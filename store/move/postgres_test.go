package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/move"
	"github.com/assay-rag/assay/store/postgres"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/store/storetest"
)

func openPostgres(t testing.TB, address string, opts ...postgres.Option) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), address, append(opts, postgres.WithFolder(t.TempDir()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPostgres moves tenants to PostgreSQL and back, alone and all, and uses them on each side.
func TestPostgres(t *testing.T) {
	ctx := t.Context()
	from := open(t, t.TempDir())
	world(t, from, "acme", 40)
	world(t, from, "other", 5)
	key := newKey(t, from, "acme")
	want := mustMove(t, from, open(t, t.TempDir()), move.Options{Tenant: "acme", Searches: 5})

	one := openPostgres(t, pgtest.Database(t))
	there := mustMove(t, from, one, move.Options{Tenant: "acme", Searches: 5})
	if diff := cmp.Diff(want, there); diff != "" {
		t.Errorf("moved to PostgreSQL (-to a directory +to it):\n%s", diff)
	}
	wantKey(t, one, key, "active")
	wantVerified(t, one)
	back := open(t, t.TempDir())
	if diff := cmp.Diff(want, mustMove(t, one, back, move.Options{Tenant: "acme", Searches: 5})); diff != "" {
		t.Errorf("moved back (-first +second):\n%s", diff)
	}
	wantKey(t, back, key, "active")
	goesOn(t, one, "acme")
	goesOn(t, back, "acme")
	wantVerified(t, one)
	wantSound(t, back)
	if _, err := move.Move(ctx, from, one, move.Options{Tenant: "acme"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("moved twice: %v", err)
	}
	if _, err := move.Move(ctx, from, one, move.Options{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("all to a database in use: %v", err)
	}

	if err := from.SuspendTenant(ctx, "other", store.Act{}); err != nil {
		t.Fatal(err)
	}
	all := mustMove(t, from, open(t, t.TempDir()), move.Options{})
	second := openPostgres(t, pgtest.Database(t))
	if diff := cmp.Diff(all, mustMove(t, from, second, move.Options{})); diff != "" {
		t.Errorf("all moved to PostgreSQL (-to a directory +to it):\n%s", diff)
	}
	third, fourth := openPostgres(t, pgtest.Database(t)), open(t, t.TempDir())
	if diff := cmp.Diff(all, mustMove(t, second, third, move.Options{})); diff != "" {
		t.Errorf("all moved between databases (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(all, mustMove(t, third, fourth, move.Options{})); diff != "" {
		t.Errorf("all moved back (-first +third):\n%s", diff)
	}
	if _, err := third.Tenant(ctx, "other"); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("the suspended tenant: %v", err)
	}
	if err := third.ResumeTenant(ctx, "other", store.Act{}); err != nil {
		t.Error(err)
	}
	wantKey(t, third, key, "active")
	goesOn(t, third, "other")
	wantVerified(t, third)
	wantSound(t, fourth)
}

// wantVerified verifies every log of a store.
func wantVerified(t testing.TB, s store.Store) {
	t.Helper()
	ctx := context.Background()
	names, err := s.Tenants(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tenant, err := s.InspectTenant(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		wantVerifiedLog(t, name, tenant.Audit())
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	}
	sys, err := s.System(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantVerifiedLog(t, "the system", sys.Audit())
	if err := sys.Close(); err != nil {
		t.Error(err)
	}
}

// TestPostgresInUse refuses a tenant of PostgreSQL that is in use.
func TestPostgresInUse(t *testing.T) {
	ctx := t.Context()
	from, to := openPostgres(t, pgtest.Database(t)), open(t, t.TempDir())
	world(t, from, "acme", 5)
	withTenant(t, from, "acme", func(tenant store.Tenant) {
		w, err := tenant.Writer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := move.Move(ctx, from, to, move.Options{Tenant: "acme"}); !errors.Is(err, assay.ErrLocked) {
			t.Errorf("with a writer: %v", err)
		}
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: "active", Question: "?"})
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := move.Move(ctx, from, to, move.Options{Tenant: "acme"}); !errors.Is(err, assay.ErrLeased) {
			t.Errorf("with a run: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		mustMove(t, from, to, move.Options{Tenant: "acme", Searches: 2})
	})
	wantSound(t, to)
}

// TestPostgresEverything moves each state that the tests of the contract leave to PostgreSQL and back.
func TestPostgresEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a database for each test of the contract")
	}
	pgtest.Database(t) // it skips without a server
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		h := harness{open(t, filepath.Join(t.TempDir(), "first"), sqlite.WithClock(c.Now)), c}
		address := pgtest.Database(t)
		t.Cleanup(func() {
			if t.Failed() || t.Skipped() {
				return
			}
			c.advance(time.Hour)
			second := openPostgres(t, address, postgres.WithClock(c.Now))
			third := open(t, filepath.Join(t.TempDir(), "third"), sqlite.WithClock(c.Now))
			sys, err := h.System(context.Background())
			if err != nil || sys.Close() != nil {
				t.Fatal(err)
			}
			there := mustMove(t, h.Store, second, move.Options{})
			if diff := cmp.Diff(there, mustMove(t, second, third, move.Options{})); diff != "" {
				t.Errorf("moved on (-first +second):\n%s", diff)
			}
		})
		return h
	})
}

// TestPostgresKilled kills moves to PostgreSQL, and from it, at their steps.
func TestPostgresKilled(t *testing.T) {
	source := open(t, t.TempDir())
	world(t, source, "acme", 30)
	world(t, source, "other", 5)
	for _, tenant := range []string{"acme", ""} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			want := mustMove(t, source, open(t, t.TempDir()), move.Options{Tenant: tenant, Searches: 2})
			stride := 19
			switch {
			case os.Getenv("ASSAY_LONG") != "":
				stride = 3
			case testing.Short():
				stride = 47
			}
			for step := 1; ; step += stride {
				address := pgtest.Database(t)
				to := openPostgres(t, address)
				out, err := child(source.Dir(), address, tenant, step).CombinedOutput()
				if err == nil {
					break
				}
				if text := strings.TrimSpace(string(out)); !strings.HasPrefix(text, "begun") {
					t.Fatalf("step %d: %v: %s", step, err, out)
				}
				names, err := to.Tenants(t.Context())
				if err != nil || len(names) > 0 {
					t.Fatalf("step %d: the target has %v, %v", step, names, err)
				}
				wantVerified(t, to)
				if diff := cmp.Diff(want, eventually(t, source, to, move.Options{Tenant: tenant, Searches: 2})); diff != "" {
					t.Errorf("moved after a kill (-undisturbed +now):\n%s", diff)
				}
				back := filepath.Join(t.TempDir(), fmt.Sprint(step))
				out, err = child(address, back, tenant, step).CombinedOutput()
				if err == nil {
					t.Fatalf("step %d: a move back was not killed: %s", step, out)
				}
				eventually(t, to, open(t, back), move.Options{Tenant: tenant})
				goesOn(t, to, "acme")
				wantVerified(t, to)
				if t.Failed() {
					t.Fatalf("killed at step %d", step)
				}
			}
		})
	}
	wantSound(t, source)
}

// eventually moves once the server has noticed that the process which held its locks is dead.
func eventually(t *testing.T, from, to store.Store, o move.Options) move.Report {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		r, err := move.Move(t.Context(), from, to, o)
		if err == nil {
			return r
		}
		if !errors.Is(err, assay.ErrLocked) || time.Now().After(deadline) {
			t.Fatalf("Move: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
