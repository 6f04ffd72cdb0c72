package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/storetest"
)

func TestContract(t *testing.T) {
	server := pgtest.Server(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, server) })
}

// admin runs statements as the superuser of the tests.
func admin(t testing.TB, address string, statements ...string) {
	t.Helper()
	if err := adminDo(address, statements...); err != nil {
		t.Fatal(err)
	}
}

func adminDo(address string, statements ...string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if err == nil {
			_, err = conn.Exec(ctx, s)
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// A harness is a store in its own database, with a manual clock.
type harness struct {
	*Store
	address  string
	clock    *clock
	tampered bool
}

func newHarness(t *testing.T, server string) *harness {
	t.Helper()
	c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	h := &harness{clock: c, address: pgtest.DatabaseOn(t, server)}
	h.Store = mustOpen(t, h.address, WithClock(c.Now), WithFolder(t.TempDir()))
	t.Cleanup(func() { h.checkAudit(t) })
	return h
}

// mustOpen opens a store that is closed when the test ends.
func mustOpen(t *testing.T, address string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(t.Context(), address, opts...)
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

// checkAudit compares every tenant and the system with its audit log: there must be no difference
// unless the test altered data.
func (h *harness) checkAudit(t *testing.T) {
	if t.Failed() {
		return
	}
	ctx := context.Background()
	names, err := h.Tenants(ctx)
	if err != nil {
		t.Error(err)
	}
	var all []store.Finding
	for _, name := range names {
		tenant, err := h.InspectTenant(ctx, name)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, findings(t, tenant.Audit())...)
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	}
	sys, err := h.System(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, findings(t, sys.Audit())...)
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

// Tamper implements storetest.Tamperer. It changes rows as a superuser, without constraints.
func (h *harness) Tamper(tenant, run string, ordinal int, with storetest.Tampering) error {
	record := fmt.Sprintf(` WHERE ordinal = %d AND run = (SELECT number FROM runs WHERE id = '%s')`, ordinal, run)
	value := fmt.Sprintf(` WHERE position('%s%d' IN data) > 0`, run, ordinal) // the tests' long texts contain their run and ordinal
	const random = `decode(repeat(md5(random()::text), 1), 'hex')`
	statement := map[storetest.Tampering]string{
		storetest.TamperHeader:   `UPDATE log SET header = replace(header, '"kind":"plan"', '"kind":"read"') WHERE sequence = (SELECT sequence FROM records` + record + `)`,
		storetest.TamperPayload:  `UPDATE records SET payload = replace(payload, '"output"', '"input"')` + record,
		storetest.TamperSalt:     `UPDATE records SET salt = substr(` + random + `, 1, length(salt))` + record,
		storetest.TamperLeaf:     `UPDATE log SET leaf = ` + random + ` || ` + random + ` WHERE sequence = (SELECT sequence FROM records` + record + `)`,
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
	opened, err := h.open(context.Background(), tenant, true)
	if err != nil {
		return err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, h.address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `SET session_replication_role = replica; SET search_path = `+opened.schema(runsPart))
	if err == nil {
		tag, execErr := conn.Exec(ctx, statement)
		if err = execErr; err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("%d rows altered, want 1", tag.RowsAffected())
		}
	}
	return errors.Join(err, opened.Close(), conn.Close(ctx))
}
