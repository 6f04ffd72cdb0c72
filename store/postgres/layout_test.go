package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
)

// TestConcurrentStarters opens an empty database many times at once. All get the same store.
func TestConcurrentStarters(t *testing.T) {
	address := pgtest.Database(t)
	const starters = 6
	stores := make([]*Store, starters)
	var wg sync.WaitGroup
	for i := range starters {
		wg.Go(func() {
			var err error
			stores[i], err = Open(t.Context(), address, WithFolder(t.TempDir()))
			if err == nil {
				var tenant store.Tenant
				if tenant, err = stores[i].Tenant(t.Context(), store.DefaultTenant); err == nil {
					err = tenant.Close()
				}
			}
			if err != nil {
				t.Errorf("starter %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s == nil {
			continue
		}
		if s.identity != stores[0].identity {
			t.Errorf("the stores %s and %s were created", s.identity, stores[0].identity)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLayouts(t *testing.T) {
	server := pgtest.Server(t)
	for _, test := range []struct {
		name      string
		statement string
		want      error
	}{
		{"a newer layout", `UPDATE assay_system.layout SET version = 99`, assay.ErrNewer},
		{"a newer layout of a tenant", `UPDATE assay_system.schemas SET content = 99 WHERE number > 0`, assay.ErrNewer},
		{"another program", `UPDATE assay_system.layout SET program = 'essay'`, assay.ErrForeign},
		{"no layout", `DROP TABLE assay_system.layout`, assay.ErrForeign},
		{"another schema of this name", `DROP SCHEMA assay_system CASCADE; CREATE SCHEMA assay_system; CREATE TABLE assay_system.mine (n int)`, assay.ErrForeign},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := pgtest.DatabaseOn(t, server)
			s := mustOpen(t, address, WithFolder(t.TempDir()))
			if err := s.CreateTenant(t.Context(), "acme", store.Act{}); err != nil {
				t.Fatal(err)
			}
			admin(t, address, strings.Split(test.statement, "; ")...)
			_, err := Open(t.Context(), address, WithFolder(t.TempDir()))
			if !errors.Is(err, test.want) {
				t.Errorf("Open = %v, want an error of kind %q", err, test.want)
			}
		})
	}
}

// TestDefinitions checks that the audit reports tables, policies and rights that are not the program's.
func TestDefinitions(t *testing.T) {
	address := pgtest.Database(t)
	s := mustOpen(t, address, WithFolder(t.TempDir()))
	acme := filled(t, s, "acme")
	if found := findings(t, acme.Audit()); len(found) > 0 {
		t.Fatalf("before: %v", found)
	}
	for _, test := range []struct{ do, undo, want string }{
		{`ALTER TABLE %s.runs DISABLE ROW LEVEL SECURITY`, `ALTER TABLE %s.runs ENABLE ROW LEVEL SECURITY`, "table runs"},
		{`ALTER TABLE %s.runs NO FORCE ROW LEVEL SECURITY`, `ALTER TABLE %s.runs FORCE ROW LEVEL SECURITY`, "table runs"},
		{`CREATE POLICY open ON %s.runs USING (true)`, `DROP POLICY open ON %s.runs`, "policy runs.open"},
		{`GRANT UPDATE ON %s.log TO ` + appRole, `REVOKE UPDATE ON %s.log FROM ` + appRole, "table log"},
		{`ALTER TABLE %s.records DISABLE TRIGGER ALL`, `ALTER TABLE %s.records ENABLE TRIGGER ALL`, "internal triggers of records"},
		{`DROP INDEX %s.runs_created`, `CREATE INDEX runs_created ON %s.runs (created)`, "index runs_created"},
		{`ALTER TABLE %s.runs ADD more int`, `ALTER TABLE %s.runs DROP more`, "column runs.more"},
	} {
		schema := acme.schema(runsPart)
		admin(t, address, fmt.Sprintf(test.do, schema))
		found := fmt.Sprint(findings(t, acme.Audit()))
		if !strings.Contains(found, test.want) {
			t.Errorf("after %s: %s", test.do, found)
		}
		admin(t, address, fmt.Sprintf(test.undo, schema))
	}
	if found := findings(t, acme.Audit()); len(found) > 0 {
		t.Errorf("after all was undone: %v", found)
	}
}

// TestScrub checks that removed text is in no file of the table, and that a reader of an older state is
// noticed.
func TestScrub(t *testing.T) {
	s := mustOpen(t, pgtest.Database(t), WithFolder(t.TempDir()))
	acme := filled(t, s, "acme")
	ctx := context.Background()
	if err := acme.Runs().Erase(ctx, "run", store.Act{}); err != nil {
		t.Fatal(err)
	}
	if err := acme.Scrub(ctx, true); err != nil {
		t.Fatal(err)
	}
	var dead int64
	if err := acme.runs.Row(ctx, `SELECT COUNT(*) FROM runs WHERE question = ''`, nil, &dead); err != nil || dead != 1 {
		t.Errorf("after Scrub: %d erased runs, %v", dead, err)
	}
	if err := acme.Check(ctx); err != nil {
		t.Errorf("Check after Scrub: %v", err)
	}
}
