package sqlite

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// TestMovedTables checks that a move copies every table with every column, by its primary key, and
// after those that it refers to.
func TestMovedTables(t *testing.T) {
	tenant := openCrash(t, filepath.Join(t.TempDir(), "data"))
	for _, part := range []struct {
		d      *database
		tables []relational.Table
	}{{tenant.content, relational.ContentTables()}, {tenant.runs, relational.RunsTables()}} {
		var names []string
		for _, table := range part.tables {
			checkMovedTable(t, part.d, table, names)
			names = append(names, table.Name)
		}
		have := rowsOf(t, part.d, `SELECT name, '' FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
		slices.Sort(names)
		if diff := cmp.Diff(have, names); diff != "" {
			t.Errorf("tables of %s (-schema +moved):\n%s", part.d.Name(), diff)
		}
	}
	if err := tenant.Close(); err != nil {
		t.Error(err)
	}
}

func checkMovedTable(t *testing.T, d *database, table relational.Table, before []string) {
	t.Helper()
	columns := rowsOf(t, d, `SELECT name, '' FROM pragma_table_info(?) ORDER BY name`, table.Name)
	if diff := cmp.Diff(columns, slices.Sorted(slices.Values(table.Columns))); diff != "" {
		t.Errorf("columns of %s (-schema +moved):\n%s", table.Name, diff)
	}
	key := rowsOf(t, d, `SELECT name, '' FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`, table.Name)
	if slices.Sort(key); !slices.Equal(key, slices.Sorted(slices.Values(table.Key))) {
		t.Errorf("key of %s: %v, want %v", table.Name, table.Key, key)
	}
	for _, parent := range rowsOf(t, d, `SELECT "table", '' FROM pragma_foreign_key_list(?)`, table.Name) {
		if !slices.Contains(before, parent) {
			t.Errorf("%s is copied before %s, to which it refers", table.Name, parent)
		}
	}
	counted := rowsOf(t, d, `SELECT name, '' FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'`, table.Name)
	if table.Counted != (len(counted) > 0) {
		t.Errorf("%s: Counted is %t", table.Name, table.Counted)
	}
}

// rowsOf returns the first of two columns of each row.
func rowsOf(t *testing.T, d *database, query string, args ...any) (all []string) {
	t.Helper()
	err := d.View(t.Context(), func(r relational.Reader) error {
		return r.Each(t.Context(), query, args, func(scan func(...any) error) error {
			var one, other string
			err := scan(&one, &other)
			all = append(all, one)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestStagedTwice stages a tenant twice at once, and once more after the first was given up.
func TestStagedTwice(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	info := store.TenantInfo{Name: "acme", State: store.TenantActive, Identity: "word"}
	first, err := s.Mover().Stage(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mover().Stage(t.Context(), info); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("staged at once: %v", err)
	}
	if err := s.CreateTenant(t.Context(), "other", store.Act{}); err != nil { // it leaves the staged one
		t.Error(err)
	}
	if _, err := first.OpenTenant(t.Context()); err != nil {
		t.Error(err)
	}
	if err := first.Discard(); err != nil {
		t.Error(err)
	}
	again, err := s.Mover().Stage(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Discard(); err != nil {
		t.Error(err)
	}
}
