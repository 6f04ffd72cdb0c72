package move_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver of the stores, for alterations behind their backs

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/move"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/store/storetest"
)

// A clock advances by a microsecond each time it is read.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { return c.advance(time.Microsecond) }

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func open(t testing.TB, dir string, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A harness is a store for the contract, which is moved when the test of the contract has ended.
type harness struct {
	*sqlite.Store
	clock *clock
}

func (h harness) Advance(d time.Duration) { h.clock.advance(d) }

// TestMoveEverything moves each state that the tests of the contract leave to a second store and from
// there to a third, and compares what was moved.
func TestMoveEverything(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		h := harness{open(t, filepath.Join(t.TempDir(), "first"), sqlite.WithClock(c.Now)), c}
		t.Cleanup(func() {
			if t.Failed() || t.Skipped() {
				return
			}
			c.advance(time.Hour) // leases of other machines end
			second := open(t, filepath.Join(t.TempDir(), "second"), sqlite.WithClock(c.Now))
			third := open(t, filepath.Join(t.TempDir(), "third"), sqlite.WithClock(c.Now))
			sys, err := h.System(context.Background()) // a store that was never used has none
			if err != nil || sys.Close() != nil {
				t.Fatal(err)
			}
			there := mustMove(t, h.Store, second, move.Options{Searches: 5})
			again := mustMove(t, second, third, move.Options{})
			for i := range there.Tenants {
				there.Tenants[i].Searches = 0
			}
			if diff := cmp.Diff(there, again); diff != "" {
				t.Errorf("moved on (-first +second):\n%s", diff)
			}
		})
		return h
	})
}

func mustMove(t testing.TB, from, to store.Store, o move.Options) move.Report {
	t.Helper()
	r, err := move.Move(context.Background(), from, to, o)
	if err != nil {
		t.Fatalf("Move: %v", err)
	}
	return r
}

// world fills a tenant with a little of everything, and returns the key with which its log is signed.
func world(t testing.TB, s store.Store, name string, documents int) audit.Key {
	t.Helper()
	ctx := context.Background()
	if err := s.CreateTenant(ctx, name, store.Act{}); err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range documents {
		e := storetest.Entry("notes", fmt.Sprintf("/%05d", i), strings.Repeat(fmt.Sprintf("note %d of %s says %x\n", i, name, i*7919), 20))
		if i%3 == 0 {
			e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
		}
		_, err := w.Put(ctx, e)
		var vectors []store.Vector
		for _, c := range e.Chunks {
			if c.Kind != assay.ChunkSection {
				p := assay.Passage{Chunk: c, Title: e.Document.Title, Text: e.Document.Text[c.Start:c.End]}
				vectors = append(vectors, store.Vector{Hash: p.Hash(), Values: []float32{1, float32(i % 13), float32(i)}})
			}
		}
		if err == nil {
			_, err = w.PutVectors(ctx, "m", vectors...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: fmt.Sprintf("run-%d", i), Question: "What does the note say?", Principal: assay.Local()})
		if err != nil {
			t.Fatal(err)
		}
		for j := range 5 {
			rec := assay.Record{Path: fmt.Sprint(j), Kind: assay.StepSearch, Input: json.RawMessage(`{"text":"note"}`), Output: json.RawMessage(fmt.Sprintf("%q", strings.Repeat("found ", 60)))}
			if _, err := l.Append(ctx, rec); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(l.Finish(ctx, assay.RunDone, &assay.Answer{Status: assay.Answered}, ""), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	k, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&audit.Authority{Audit: tenant.Audit(), Registry: tenant.Registry(), Actor: assay.Local(), Key: k}).Checkpoint(ctx)
	err = errors.Join(err, tenant.SetSetting(ctx, "limits", []byte(`{"a":1}`)), w.Close(), tenant.Close())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// withTenant calls fn with a tenant.
func withTenant(t testing.TB, s store.Store, name string, fn func(store.Tenant)) {
	t.Helper()
	tenant, err := s.Tenant(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	fn(tenant)
	if err := tenant.Close(); err != nil {
		t.Error(err)
	}
}

// TestMoveTenant moves one tenant of two. Its proofs and checkpoints verify in the target, its keys are
// valid there unless they were revoked, and both stores are used on.
func TestMoveTenant(t *testing.T) {
	ctx := t.Context()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	key := world(t, from, "acme", 40)
	world(t, from, "other", 3)
	world(t, to, "there", 2)
	var proof []byte
	var signed audit.Signed
	withTenant(t, from, "acme", func(tenant store.Tenant) {
		var err error
		if signed, err = (&audit.Authority{Audit: tenant.Audit(), Registry: tenant.Registry(), Actor: assay.Local(), Key: key}).Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		p, err := audit.Prove(ctx, tenant.Audit(), "run-1", signed, false)
		if err == nil {
			proof, err = p.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	live, revoked := newKey(t, from, "acme"), newKey(t, from, "acme")
	newKey(t, from, "other")
	withKeys(t, from, func(k *identity.Keys) error { return k.Revoke(ctx, assay.Local(), revoked, "lost") })

	r := mustMove(t, from, to, move.Options{Tenant: "acme", Searches: 10, Actor: assay.Local(), Reason: "test"})
	if got := r.Tenants[0]; got.Searches < 15 || got.Settings != 1 || got.Log.Size < signed.Size || got.Log.Checkpoints == 0 || r.Keys != 2 {
		t.Errorf("report: %+v", r)
	}
	withTenant(t, to, "acme", func(tenant store.Tenant) {
		v, err := audit.NewVerifier(key.Public(signed.Origin))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.CheckProof(proof, v); err != nil {
			t.Errorf("the old proof: %v", err)
		}
		report, err := audit.VerifyStore(ctx, tenant.Audit(), [][]byte{signed.Note}, []string{key.Public(signed.Origin)})
		if err != nil || len(report.Findings) > 0 || report.Covered() != signed.Size {
			t.Errorf("the old checkpoint in the target: %+v, %v", report, err)
		}
		if _, err := audit.Prove(ctx, tenant.Audit(), "run-1", signed, false); err != nil {
			t.Errorf("a new proof under the old checkpoint: %v", err)
		}
	})
	wantKey(t, to, live, "active")
	wantKey(t, to, revoked, "revoked")
	for name, s := range map[string]*sqlite.Store{"source": from, "target": to} {
		names, err := s.Tenants(ctx)
		if want := map[string]string{"source": "[acme other]", "target": "[acme there]"}[name]; err != nil || fmt.Sprint(names) != want {
			t.Errorf("tenants of the %s: %v, %v", name, names, err)
		}
		goesOn(t, s, "acme")
		wantSound(t, s)
	}
	if _, err := move.Move(ctx, from, to, move.Options{Tenant: "acme"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("moved twice: %v", err)
	}
	if _, err := move.Move(ctx, from, to, move.Options{Tenant: store.DefaultTenant}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("no default tenant: %v", err)
	}
	if _, err := move.Move(ctx, from, to, move.Options{Tenant: "nobody"}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("no tenant: %v", err)
	}
	if _, err := move.Move(ctx, from, to, move.Options{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("everything to a store in use: %v", err)
	}
	wantSound(t, to)
}

// wantKey checks that a key of the tenant acme has a state and that its secret was moved.
func wantKey(t *testing.T, s store.Store, id, state string) {
	t.Helper()
	withKeys(t, s, func(k *identity.Keys) error {
		got, err := k.Key(t.Context(), id)
		if got.State(time.Now()) != state || got.Tenant != "acme" {
			t.Errorf("the key is %s, want %s: %+v", got.State(time.Now()), state, got)
		}
		return err
	})
	sys, err := s.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item, err := sys.Registry().Item(t.Context(), store.KeyKind, id)
	if err = errors.Join(err, sys.Close()); err != nil || !strings.Contains(string(item.Value), `"hash"`) {
		t.Errorf("the item of the key: %s, %v", item.Value, err)
	}
}

func withKeys(t *testing.T, s store.Store, fn func(*identity.Keys) error) {
	t.Helper()
	sys, err := s.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fn(identity.NewKeys(sys, nil)), sys.Close()); err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T, s store.Store, tenant string) (id string) {
	t.Helper()
	role, err := identity.ParseRole("reader")
	if err != nil {
		t.Fatal(err)
	}
	withKeys(t, s, func(keys *identity.Keys) error {
		made, _, err := keys.Create(t.Context(), assay.Local(), identity.KeySpec{Tenant: tenant, User: "ann", Roles: []identity.RoleIn{role}})
		id = made.ID
		return err
	})
	return id
}

// goesOn changes a tenant in every way that takes a new number.
func goesOn(t *testing.T, s store.Store, name string) {
	t.Helper()
	ctx := t.Context()
	withTenant(t, s, name, func(tenant store.Tenant) {
		w, err := tenant.Writer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Put(ctx, storetest.Entry("notes", "/new", "a new note\n"), storetest.Entry("notes", "/00001", "changed\n"))
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		before, err := tenant.Audit().Size(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tenant.Runs().Create(ctx, assay.Run{ID: "new-run", Question: "?", Principal: assay.Local()})
		if err == nil {
			err = l.Close()
		}
		after, sizeErr := tenant.Audit().Size(ctx)
		if err = errors.Join(err, sizeErr); err != nil || after <= before {
			t.Fatalf("the log grew from %d to %d: %v", before, after, err)
		}
	})
}

func wantVerifiedLog(t testing.TB, what string, a store.Audit) {
	t.Helper()
	r, err := audit.VerifyStore(context.Background(), a, nil, nil)
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("%s: %v, %v", what, r.Findings, err)
	}
}

// wantSound verifies every log of a store, and that nothing else is in its folder.
func wantSound(t testing.TB, s *sqlite.Store) {
	t.Helper()
	wantVerified(t, s)
	entries, err := os.ReadDir(filepath.Join(s.Dir(), "tenants"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestMoveAll moves a whole store with the log of the store itself, and suspended tenants as such.
func TestMoveAll(t *testing.T) {
	ctx := t.Context()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	world(t, from, "acme", 5)
	world(t, from, "other", 3)
	key := newKey(t, from, "acme")
	if err := from.SuspendTenant(ctx, "other", store.Act{}); err != nil {
		t.Fatal(err)
	}
	r := mustMove(t, from, to, move.Options{Searches: 3})
	if len(r.Tenants) != 2 || r.System == nil || r.System.Size == 0 {
		t.Fatalf("report: %+v", r)
	}
	wantKey(t, to, key, "active")
	if _, err := to.Tenant(ctx, "other"); !errors.Is(err, assay.ErrStopped) {
		t.Errorf("the suspended tenant: %v", err)
	}
	if err := to.ResumeTenant(ctx, "other", store.Act{}); err != nil {
		t.Error(err)
	}
	goesOn(t, to, "acme")
	goesOn(t, to, "other")
	wantSound(t, to)
	wantSound(t, from)
}

// TestMoveInUse refuses tenants that are in use, and lets nothing change while it copies.
func TestMoveInUse(t *testing.T) {
	ctx := t.Context()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
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
		tries, refused := 0, 0
		o := move.Options{Tenant: "acme", Searches: 2, Progress: func(_, doing string, _ int64) {
			if tries++; doing == "finishing" || tries%9 != 0 {
				return
			}
			if _, err := tenant.Writer(ctx); !errors.Is(err, assay.ErrLocked) {
				t.Errorf("%s: a writer: %v", doing, err)
			}
			late, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if l, err := tenant.Runs().Create(late, assay.Run{ID: "late", Question: "?"}); err == nil {
				t.Errorf("%s: a run was created", doing)
				_ = l.Close()
			}
			refused++
		}}
		mustMove(t, from, to, o)
		if refused == 0 {
			t.Error("nothing was tried meanwhile")
		}
	})
	if _, err := to.Tenant(ctx, "acme"); err != nil {
		t.Error(err)
	}
	wantSound(t, to)
}

// TestMoveCancelled ends a move at each of its steps. The target is then as it was.
func TestMoveCancelled(t *testing.T) {
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	world(t, from, "acme", 5)
	for step := 1; ; step++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		o := move.Options{Tenant: "acme", Searches: 1, Progress: func(string, string, int64) {
			if n++; n == step {
				cancel()
			}
		}}
		_, err := move.Move(ctx, from, to, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: %v", step, err)
		}
		names, err := to.Tenants(t.Context())
		if err != nil || len(names) > 0 {
			t.Fatalf("step %d: the target has %v, %v", step, names, err)
		}
		wantSound(t, to)
	}
	wantSound(t, to)
	wantSound(t, from)
}

// TestMoveTampered alters a store behind its back. It is not moved.
func TestMoveTampered(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes under the race detector; without -short it runs")
	}
	for name, alteration := range map[string]struct{ database, statement string }{
		"header":    {"runs.db", `UPDATE log SET header = replace(header, '"kind":"search"', '"kind":"read"') WHERE sequence = (SELECT MAX(sequence) FROM records)`},
		"leaf":      {"runs.db", `UPDATE log SET leaf = randomblob(32) WHERE sequence = 3`},
		"tree":      {"runs.db", `UPDATE tree SET hash = randomblob(32) WHERE position = 5`},
		"payload":   {"runs.db", `UPDATE records SET payload = replace(payload, 'note', 'hint')`},
		"no record": {"runs.db", `DELETE FROM records WHERE ordinal = 4`},
		"no leaf":   {"runs.db", `PRAGMA foreign_keys = OFF; DELETE FROM log WHERE sequence = (SELECT MAX(sequence) FROM log)`},
		"value":     {"runs.db", `UPDATE long_values SET data = data || '!'`},
		"answer":    {"runs.db", `UPDATE runs SET answer = NULL`},
		"registry":  {"runs.db", `DELETE FROM registry`},
		"text":      {"content.db", `UPDATE pieces SET text = replace(text, 'note', 'hint')`},
		"acl":       {"content.db", `UPDATE versions SET acl = '{}'`},
		"document":  {"content.db", `UPDATE documents SET version = NULL WHERE number = 2`},
		"sequence":  {"content.db", `DELETE FROM sqlite_sequence WHERE name = 'waiting_acts'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := open(t, t.TempDir()), open(t, t.TempDir())
			world(t, from, "acme", 6)
			alter(t, filepath.Join(from.Dir(), "tenants", "acme", alteration.database), alteration.statement)
			_, err := move.Move(t.Context(), from, to, move.Options{Tenant: "acme"})
			if !errors.Is(err, assay.ErrDamaged) {
				t.Errorf("Move = %v", err)
			}
			if names, err := to.Tenants(t.Context()); err != nil || len(names) > 0 {
				t.Errorf("the target has %v, %v", names, err)
			}
			wantSound(t, to)
		})
	}
}

// alter runs a statement on a database file, as the sqlite3 shell would.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
