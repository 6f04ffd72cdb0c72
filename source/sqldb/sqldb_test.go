package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
)

// A database is an empty table of a database that tests can write.
type database struct {
	t      *testing.T
	db     *sql.DB
	target string
	mark   func(n int) string // the n-th parameter
	clock  int
}

func (d *database) exec(statement string, args ...any) {
	d.t.Helper()
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", d.mark(n), 1)
	}
	if _, err := d.db.ExecContext(context.Background(), statement, args...); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

func newSQLite(t *testing.T) *database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a b.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &database{t: t, db: db, target: "sqlite:" + file, mark: func(n int) string { return fmt.Sprintf("$%d", n) }}
}

// newPostgres returns a database of its own on the server of scripts/postgres.
func newPostgres(t *testing.T) *database {
	t.Helper()
	address := pgtest.Database(t)
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	return &database{t: t, db: db, target: address, mark: func(n int) string { return fmt.Sprintf("$%d", n) }}
}

// world returns a world whose items are rows of the table articles.
func (d *database) world(options map[string]string) sourcetest.World {
	d.exec(`CREATE TABLE articles (id TEXT PRIMARY KEY, title TEXT, body TEXT, changed INTEGER, readers TEXT, hidden INTEGER)`)
	all := map[string]string{"query": "SELECT * FROM articles WHERE hidden = 0;", "text": "body", "title": "title", "acl": "readers"}
	for key, value := range options {
		all[key] = value
	}
	d.exec(`INSERT INTO articles VALUES (?, ?, ?, 1, '*', 1)`, "secret", "Secret", "hidden words")
	address := d.target
	if u, err := url.Parse(d.target); err == nil && u.Host != "" {
		address = u.Scheme + "://" + u.Host + u.Path
	}
	return sourcetest.World{
		Kind: Kind(), Config: source.Config{Target: d.target, Options: all},
		Put: func(name, text string) {
			d.clock++
			d.exec(`DELETE FROM articles WHERE id = ?`, name)
			d.exec(`INSERT INTO articles VALUES (?, ?, ?, ?, '*', 0)`, name, "Title of "+name, text, d.clock)
		},
		Delete: func(name string) { d.exec(`DELETE FROM articles WHERE id = ?`, name) },
		URI:    func(name string) string { return address + "#" + name },
		SetACL: func(name, user string) { d.exec(`UPDATE articles SET readers = ? WHERE id = ?`, "user:"+user, name) },
		Vanish: func(name string) { d.exec(`DELETE FROM articles WHERE id = ?`, name) },
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *database{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("updated", func(t *testing.T) {
				sourcetest.Run(t, func(t *testing.T) sourcetest.World { return open(t).world(map[string]string{"updated": "changed"}) })
			})
			t.Run("hash", func(t *testing.T) {
				sourcetest.Run(t, func(t *testing.T) sourcetest.World { return open(t).world(nil) })
			})
		})
	}
}

// TestTypes checks the types of columns: identities, times, numbers and arrays.
func TestTypes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open   func(*testing.T) *database
		create string
		insert string
	}{
		"sqlite": {newSQLite, `CREATE TABLE a (id INTEGER PRIMARY KEY, body TEXT, extra TEXT, at TIMESTAMP, price REAL, ok BOOLEAN, readers TEXT)`,
			`INSERT INTO a VALUES (7, 'the body', 'the extra', '2025-02-03 04:05:06', 1.5, true, '["group:hr"]')`},
		"postgres": {newPostgres, `CREATE TABLE a (id BIGINT PRIMARY KEY, body TEXT, extra VARCHAR(20), at TIMESTAMPTZ, price DOUBLE PRECISION, ok BOOLEAN, readers TEXT[])`,
			`INSERT INTO a VALUES (7, 'the body', 'the extra', '2025-02-03 04:05:06Z', 1.5, true, '{"group:hr"}')`},
		"postgres uuid": {newPostgres, `CREATE TABLE a (id UUID PRIMARY KEY, body TEXT, extra TEXT, at TIMESTAMP, price DOUBLE PRECISION, ok BOOLEAN, readers TEXT)`,
			`INSERT INTO a VALUES ('8d7e0d5c-6a3f-4ef2-9a01-2b3c4d5e6f70', 'the body', 'the extra', '2025-02-03 04:05:06', 1.5, true, 'group:hr')`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := test.open(t)
			d.exec(test.create)
			d.exec(test.insert)
			s := openTable(t, d.target, map[string]string{"query": "SELECT * FROM a", "text": "body, extra", "updated": "at",
				"metadata": "price,ok", "acl": "readers", "uri": "https://example.com/{id}"})
			n := 0
			for item, err := range s.Sweep(t.Context()) {
				n++
				if err != nil {
					t.Fatal(err)
				}
				want := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
				if !item.Metadata[assay.MetaModified].Time.Equal(want) || item.Version == "" {
					t.Errorf("modified %v, version %q", item.Metadata[assay.MetaModified], item.Version)
				}
				if item.Metadata["price"].Number != 1.5 || item.Metadata["ok"].Text() == "" {
					t.Errorf("metadata %v", item.Metadata)
				}
				if strings.Join(item.ACL.Allow, " ") != "group:hr" || !item.ACL.Restricted {
					t.Errorf("ACL %v", item.ACL)
				}
				content, err := s.Fetch(t.Context(), item)
				if err != nil || string(content.Data) != "## body\n\nthe body\n\n## extra\n\nthe extra\n\n" {
					t.Errorf("Fetch = %q, %v", content.Data, err)
				}
			}
			if n != 1 {
				t.Errorf("%d items, want 1", n)
			}
		})
	}
}

func openTable(t *testing.T, target string, options map[string]string) source.Source {
	t.Helper()
	all, err := Kind().Complete(options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(t.Context(), source.Config{Target: target, Options: all, Now: sourcetest.NewClock().Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRows(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	d.exec(`CREATE TABLE a (id TEXT, body TEXT, readers TEXT)`)
	for _, row := range [][]any{{"a", "x", "user:ann, group:hr"}, {"b", "x", nil}, {"c", "x", ""}, {"d", "x", "ann"}, {nil, "x", "*"}} {
		d.exec(`INSERT INTO a VALUES (?, ?, ?)`, row...)
	}
	s := openTable(t, d.target, map[string]string{"query": "SELECT * FROM a", "text": "body", "acl": "readers"})
	var got []string
	for item, err := range s.Sweep(t.Context()) {
		if skip, ok := source.AsSkip(err); ok {
			got = append(got, string(skip.Reason))
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(item.ACL.Restricted, item.ACL.Allow))
	}
	want := "unsupported|true [group:hr user:ann]|unknown_acl|true []|unknown_acl"
	if strings.Join(got, "|") != want {
		t.Errorf("Sweep = %s, want %s", strings.Join(got, "|"), want)
	}
	d.exec(`INSERT INTO a VALUES ('a', 'again', '*')`)
	var last error
	for _, err := range s.Sweep(t.Context()) {
		last = err
	}
	if !errors.Is(last, assay.ErrInvalid) {
		t.Errorf("Sweep of rows with the same identity = %v", last)
	}
}

// TestReadOnly checks that a query cannot change the database.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *database{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.exec(`CREATE TABLE a (id TEXT, body TEXT)`)
			d.exec(`INSERT INTO a VALUES ('a', 'x')`)
			s := openTable(t, d.target, map[string]string{"query": "SELECT * FROM a", "text": "body"}).(*table)
			if _, err := s.db.ExecContext(t.Context(), `DELETE FROM a`); err == nil {
				t.Error("the source can delete rows")
			}
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	s := openTable(t, "sqlite:"+filepath.Join(t.TempDir(), "none.db"), map[string]string{"query": "SELECT 1 AS id, 2 AS b", "text": "b"})
	for _, err := range s.Sweep(t.Context()) {
		if _, skipped := source.AsSkip(err); skipped || err == nil {
			t.Errorf("Sweep of a missing file = %v", err)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	good := map[string]string{"query": "SELECT 1", "text": "a"}
	for name, test := range map[string]struct {
		target string
		change map[string]string
	}{
		"password": {"postgres://u:hunter2@h/db", nil},
		"query":    {"postgres://u@h/db?password=hunter2", nil},
		"ssl":      {"postgres://u@h/db?sslPassword=hunter2", nil},
		"server":   {"sqlserver://u@h?database=d&pwd=hunter2", nil},
		"scheme":   {"oracle://h/db", nil},
		"no host":  {"postgres:///", nil},
		"no query": {"sqlite:/x", map[string]string{"query": ""}},
		"no text":  {"sqlite:/x", map[string]string{"text": " , "}},
		"column":   {"sqlite:/x", map[string]string{"id": `id"; DROP TABLE a; --`}},
		"uri":      {"sqlite:/x", map[string]string{"uri": "https://example.com/"}},
	} {
		options := map[string]string{}
		for _, m := range []map[string]string{good, test.change} {
			for k, v := range m {
				options[k] = v
			}
		}
		all, err := Kind().Complete(options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Kind().Open(t.Context(), source.Config{Target: test.target, Options: all})
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Open = %v", name, err)
		}
	}
}

// TestDialects checks the statements for servers that no test runs.
func TestDialects(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"mysql://reader@db.example.com/shop":                    "mysql://db.example.com/shop `a`, `b` ?",
		"sqlserver://reader@db.example.com:1433/shop":           "sqlserver://db.example.com:1433/shop [a], [b] @p1",
		"postgres://reader@db.example.com/shop?sslmode=require": `postgres://db.example.com/shop "a", "b" $1`,
	} {
		db, d, err := connect(target, "password", nil)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		db.Close()
		if got := strings.Join([]string{d.address, d.list([]string{"a", "b"}), d.parameter}, " "); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}
