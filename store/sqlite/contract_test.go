package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
	"github.com/assay-rag/assay/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t) })
}

// A harness is a store in its own directory, with a manual clock.
type harness struct {
	*Store
	clock    *clock
	edited   bool // behind the store's back
	tampered bool // by Tamper
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "data ü?#%20&x=1"), WithClock(c.Now))
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{Store: s, clock: c}
	t.Cleanup(func() { h.checkAudit(t) })
	return h
}

// checkAudit compares every tenant and the system with its audit log: there must be no difference
// unless a test edited the databases.
func (h *harness) checkAudit(t *testing.T) {
	if t.Failed() || h.edited && !h.tampered {
		return
	}
	ctx := context.Background()
	names, err := h.Tenants(ctx)
	if err != nil {
		return // the test removed the directory
	}
	var all []store.Finding
	for _, name := range names {
		tenant, err := h.Tenant(ctx, name)
		if err != nil {
			continue // damaged by the test
		}
		all = append(all, findings(t, tenant.Audit())...)
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	}
	if h.tampered && len(all) == 0 {
		t.Error("the audit log was compared after tampering: no difference")
	}
	if !h.tampered && len(all) > 0 {
		t.Errorf("compared with the audit log: %v", all)
	}
}

// findings returns the differences from an audit log.
func findings(t *testing.T, a store.Audit) []store.Finding {
	t.Helper()
	var all []store.Finding
	err := a.Check(context.Background(), func(f store.Finding) error {
		all = append(all, f)
		return nil
	})
	if err != nil {
		t.Errorf("Check: %v", err)
	}
	return all
}

func (h *harness) Advance(d time.Duration) { h.clock.Advance(d) }

// A clock advances by a microsecond each time it is read.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { return c.Advance(time.Microsecond) }

func (c *clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// Tamper implements storetest.Tamperer.
func (h *harness) Tamper(tenant, run string, ordinal int, with storetest.Tampering) error {
	const record = ` WHERE ordinal = ?2 AND run = (SELECT number FROM runs WHERE id = ?1)`
	const value = ` WHERE instr(data, ?1 || ?2)` // the tests' long texts contain their run and ordinal
	statement := map[storetest.Tampering]string{
		storetest.TamperHeader:   `UPDATE log SET header = replace(header, '"kind":"plan"', '"kind":"read"') WHERE sequence = (SELECT sequence FROM records` + record + `)`,
		storetest.TamperPayload:  `UPDATE records SET payload = replace(payload, '"output"', '"input"')` + record,
		storetest.TamperSalt:     `UPDATE records SET salt = randomblob(length(salt))` + record,
		storetest.TamperLeaf:     `UPDATE log SET leaf = randomblob(length(leaf)) WHERE sequence = (SELECT sequence FROM records` + record + `)`,
		storetest.TamperValue:    `UPDATE long_values SET data = data || '!'` + value,
		storetest.TamperNoValue:  `DELETE FROM long_values` + value,
		storetest.TamperOrdinal:  `UPDATE records SET ordinal = 4` + record,
		storetest.TamperPath:     `UPDATE records SET path = 'elsewhere'` + record,
		storetest.TamperSequence: `UPDATE records SET sequence = sequence + 1000` + record,
		storetest.TamperDelete:   `DELETE FROM records` + record,
	}[with]
	if statement == "" {
		return errors.New("no such tampering")
	}
	h.tampered = true
	n, err := h.edit(tenant, runsName, statement, run, ordinal)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows altered, want 1", n)
	}
	return err
}

// edit runs a statement directly on a database file, bypassing the store, as the sqlite3 shell
// would.
func (h *harness) edit(tenant, database, statement string, args ...any) (int64, error) {
	h.edited = true
	pool, err := openPool(filepath.Join(h.Dir(), tenantsName, tenant, database), modeWrite, false, time.Second)
	if err != nil {
		return 0, err
	}
	pool.SetMaxOpenConns(1)
	_, err = pool.Exec("PRAGMA foreign_keys = OFF")
	var r sql.Result
	if err == nil {
		r, err = pool.Exec(statement, args...)
	}
	if err = errors.Join(err, pool.Close()); err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// created opens a tenant and creates it if it does not exist.
func created(s interface {
	tenant(ctx context.Context, name string) (*Tenant, error)
	CreateTenant(ctx context.Context, name string, act store.Act) error
}, ctx context.Context, name string) (*Tenant, error) {
	t, err := s.tenant(ctx, name)
	if !errors.Is(err, assay.ErrNotFound) {
		return t, err
	}
	if err := s.CreateTenant(ctx, name, store.Act{}); err != nil && !errors.Is(err, assay.ErrInvalid) {
		return nil, err
	}
	return s.tenant(ctx, name)
}

// alterContent changes a tenant's content bypassing the store.
func alterContent(t *testing.T, tenant *Tenant, query string, args ...any) {
	t.Helper()
	alter(t, tenant.content, query, args...)
}

func alter(t *testing.T, d *database, query string, args ...any) {
	t.Helper()
	u, err := openUpdater(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	err = u.Update(t.Context(), func(x relational.Tx) error { _, err := x.Exec(t.Context(), query, args...); return err })
	if err := errors.Join(err, u.Close()); err != nil {
		t.Fatal(err)
	}
}
