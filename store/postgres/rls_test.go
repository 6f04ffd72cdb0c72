package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
	"github.com/assay-rag/assay/store/storetest"
)

// TestRowLevelSecurity works in the schemas of a tenant without its setting, or with that of another
// tenant. There is not one row to be read, counted, changed or removed, and none can be added. With the
// setting there are.
func TestRowLevelSecurity(t *testing.T) {
	s := mustOpen(t, pgtest.Database(t), WithFolder(t.TempDir()))
	acme, other := filled(t, s, "acme"), filled(t, s, "other")
	for _, d := range []*database{acme.content, acme.runs, s.system} {
		for what, identity := range map[string]string{noSetting: "", "the setting of another tenant": other.identity, "the setting of the system": s.identity} {
			if identity == d.identity {
				continue
			}
			wrong := s.database(d.tenancy, d.part)
			wrong.enter = []any{d.enter[0], identity}
			if n := rowsOf(t, wrong); n != 0 {
				t.Errorf("%s of %s with %s: %d rows can be read", d.part, d.identity, what, n)
			}
			changeNothing(t, wrong, what)
		}
		if n := rowsOf(t, d); n == 0 {
			t.Errorf("%s with its own setting: no rows", d.schema(d.part))
		}
	}
}

const noSetting = "no setting"

// filled creates a tenant with a document and a run.
func filled(t *testing.T, s *Store, name string) *Tenant {
	t.Helper()
	ctx := t.Context()
	if err := s.CreateTenant(ctx, name, store.Act{}); err != nil {
		t.Fatal(err)
	}
	tenant, err := s.open(ctx, name, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Put(ctx, storetest.Entry("c", "/secret", "the words of "+name+"\n"))
	l, createErr := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "of " + name})
	if err = errors.Join(err, createErr, w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, assay.Record{Path: "step", Kind: assay.StepPlan}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return tenant
}

// rowsOf counts the rows of all tables with policies.
func rowsOf(t *testing.T, d *database) (all int64) {
	t.Helper()
	err := d.View(t.Context(), func(r relational.Reader) error {
		names, err := d.tables(t.Context(), r)
		for _, name := range names {
			if name == "layout" || name == "schemas" {
				continue
			}
			var n int64
			if err = errors.Join(err, r.Row(t.Context(), `SELECT COUNT(*) FROM "`+name+`"`, nil, &n)); n > 0 {
				all += n
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// changeNothing tries to change every table.
func changeNothing(t *testing.T, d *database, what string) {
	t.Helper()
	ctx := t.Context()
	var names []string
	err := d.View(ctx, func(r relational.Reader) (err error) {
		names, err = d.tables(ctx, r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := d.Updater(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		statements := []string{`UPDATE %[1]s SET %[2]s = %[2]s`, `DELETE FROM %[1]s`, `INSERT INTO %[1]s DEFAULT VALUES`}
		if what == noSetting { // the others take rights, whatever the setting is
			statements = append(statements, `TRUNCATE %[1]s`, `ALTER TABLE %[1]s DISABLE ROW LEVEL SECURITY`,
				`DROP POLICY tenant ON %[1]s`, `CREATE TABLE mine AS SELECT * FROM %[1]s`)
		}
		for _, statement := range statements {
			if (name == "layout" || name == "schemas") && strings.HasPrefix(statement, "DROP POLICY") {
				continue // they have none
			}
			var column string
			var n int64
			err := u.Update(ctx, func(x relational.Tx) error {
				err := x.Row(ctx, `SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = CAST(? AS regclass) AND attnum = 1`, []any{name}, &column)
				if err == nil {
					n, err = x.Exec(ctx, fmt.Sprintf(statement, name, column))
				}
				return err
			})
			if n > 0 {
				t.Errorf("%s of %s with %s changed %d rows", statement, name, what, n)
			}
			if err == nil && !strings.HasPrefix(statement, "UPDATE") && !strings.HasPrefix(statement, "DELETE") {
				t.Errorf("%s of %s with %s succeeds", statement, name, what)
			}
			if err != nil && !errors.Is(err, assay.ErrReadOnly) {
				t.Errorf("%s of %s with %s: %v", statement, name, what, err)
			}
		}
	}
}

// TestLeafStays checks that the program itself cannot change a leaf of an audit log.
func TestLeafStays(t *testing.T) {
	s := mustOpen(t, pgtest.Database(t), WithFolder(t.TempDir()))
	acme := filled(t, s, "acme")
	u, err := acme.runs.Updater(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`UPDATE log SET header = ''`, `DELETE FROM log`, `UPDATE tree SET hash = ''`, `DELETE FROM tree`, `SET LOCAL row_security = off; SELECT 1`} {
		err := u.Update(t.Context(), func(x relational.Tx) error { _, err := x.Exec(t.Context(), statement); return err })
		if err == nil {
			t.Errorf("%s succeeds", statement)
		}
	}
}

// TestLogins opens a database as users with less rights than the superuser of the tests.
func TestLogins(t *testing.T) {
	server := pgtest.Server(t)
	ctx := context.Background()
	address := pgtest.DatabaseOn(t, server)
	login := func(name string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(name)
		return u.String()
	}
	name := strings.TrimPrefix(mustParse(t, address).Path, "/")
	for _, role := range []string{"plain", "creator", "app"} {
		admin(t, server, "CREATE ROLE "+name+"_"+role+" LOGIN")
		t.Cleanup(func() { admin(t, address, "DROP OWNED BY "+name+"_"+role, "DROP ROLE "+name+"_"+role) })
	}

	_, err := Open(ctx, login(name+"_plain"), WithFolder(t.TempDir()))
	if !errors.Is(err, assay.ErrReadOnly) {
		t.Errorf("an unprepared database opened by a plain user: %v", err)
	}
	mustOpen(t, address, WithFolder(t.TempDir()))
	_, err = Open(ctx, login(name+"_plain"), WithFolder(t.TempDir()))
	if !errors.Is(err, assay.ErrReadOnly) {
		t.Errorf("a prepared database opened by a user without the role: %v", err)
	}

	admin(t, server, "GRANT "+appRole+" TO "+name+"_app", "GRANT "+appRole+", "+ownerRole+" TO "+name+"_creator")
	creator := mustOpen(t, login(name+"_creator"), WithFolder(t.TempDir()))
	if err := creator.CreateTenant(ctx, "acme", store.Act{}); err != nil {
		t.Errorf("a user with both roles creates a tenant: %v", err)
	}
	app := mustOpen(t, login(name+"_app"), WithFolder(t.TempDir()))
	tenant, err := app.Tenant(ctx, "acme")
	if err != nil {
		t.Fatalf("a user with the application's role: %v", err)
	}
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Put(ctx, storetest.Entry("c", "/a", "words\n")); err != nil {
		t.Errorf("Put of such a user: %v", err)
	}
	if found := findings(t, tenant.Audit()); len(found) > 0 {
		t.Errorf("its audit: %v", found)
	}
	if err := errors.Join(w.Close(), tenant.Close()); err != nil {
		t.Error(err)
	}
	if err := app.CreateTenant(ctx, "new", store.Act{}); !errors.Is(err, assay.ErrReadOnly) {
		t.Errorf("such a user creates a tenant: %v", err)
	}
	if err := app.DeleteTenant(ctx, "acme", true, store.Act{}); !errors.Is(err, assay.ErrReadOnly) {
		t.Errorf("such a user deletes a tenant: %v", err)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestPasswordIsNotPrinted checks that no error of Open has the password of its address.
func TestPasswordIsNotPrinted(t *testing.T) {
	const secret = "pa55word"
	for _, address := range []string{
		"postgres://user:" + secret + "@127.0.0.1:1/db?connect_timeout=1",
		"postgres://user:" + secret + "@[/db", "postgres://user:" + secret + "@host:port/db", "host=h password=" + secret + " port=x",
		"postgres://user:" + secret + "@127.0.0.1/db?sslmode=" + secret,
	} {
		_, err := Open(t.Context(), address, WithFolder(t.TempDir()))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%s) = %v", address, err)
		}
	}
}
