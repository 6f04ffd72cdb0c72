package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// layouts are the migrations of the test schema.
var layouts = []string{
	`CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);`,
	`ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = 'two';`,
	`CREATE TABLE b (z INTEGER) STRICT; INSERT INTO b SELECT x + 2 FROM a;`,
}

func testSchema(version int) schema {
	return schema{applicationID: 0x41535954, migrations: layouts[:version]}
}

// TestMigrate migrates a database from each layout to the last one.
func TestMigrate(t *testing.T) {
	ctx := t.Context()
	for from := 1; from <= len(layouts); from++ {
		path := filepath.Join(t.TempDir(), "test.db")
		d, err := openDatabase(ctx, path, testSchema(from), modeCreate)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if from < len(layouts) {
			_, err = openDatabase(ctx, path, testSchema(len(layouts)), modeImmutable)
			wantKind(t, "opening an older layout to read", err, assay.ErrReadOnly, path)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d, err := openDatabase(ctx, path, testSchema(len(layouts)), modeWrite)
				if err != nil {
					t.Errorf("from layout %d: %v", from, err)
					return
				}
				var y string
				var z, version int
				if err := d.Row(ctx, `SELECT y, z FROM a, b`, nil, &y, &z); err != nil || y != "two" || z != 3 {
					t.Errorf("from layout %d: y = %q, z = %d, %v", from, y, z, err)
				}
				if err := d.Row(ctx, `PRAGMA user_version`, nil, &version); err != nil || version != len(layouts) {
					t.Errorf("from layout %d: user_version = %d, %v", from, version, err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if from > 1 {
			_, err = openDatabase(ctx, path, testSchema(1), modeWrite)
			wantKind(t, "opening a newer layout", err, assay.ErrNewer, path)
		}
	}
}

// TestMigrateFails checks that a failing migration leaves the previous layout.
func TestMigrateFails(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "test.db")
	d, err := openDatabase(ctx, path, testSchema(1), modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	bad := schema{applicationID: testSchema(1).applicationID, migrations: []string{layouts[0], layouts[1], `UPDATE a SET x = 9; SELECT nonsense`}}
	if _, err := openDatabase(ctx, path, bad, modeWrite); err == nil {
		t.Error("a step that is wrong went through")
	}
	d, err = openDatabase(ctx, path, testSchema(1), modeWrite)
	if err != nil {
		t.Fatalf("the layout before: %v", err)
	}
	var x int
	if err := d.Row(ctx, `SELECT x FROM a`, nil, &x); err != nil || x != 1 {
		t.Errorf("x = %d, %v, want it as it was", x, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestUpdateWaits checks that a change waits for changes on other connections and that its context
// ends the wait.
func TestUpdateWaits(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	a, err := openUpdater(ctx, tenant.runs)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openUpdater(ctx, tenant.runs)
	if err != nil {
		t.Fatal(err)
	}
	bump := func(u *updater) error {
		return u.Update(ctx, func(x relational.Tx) error {
			_, err := x.Exec(ctx, `UPDATE store SET sequence = sequence + 1`)
			return err
		})
	}
	var wg sync.WaitGroup
	for _, u := range []*updater{a, a, b, b} {
		wg.Go(func() {
			for range 25 {
				if err := bump(u); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var n int
	if err := tenant.runs.Row(ctx, `SELECT sequence FROM store`, nil, &n); err != nil || n != 100 {
		t.Errorf("%d changes, %v, want 100", n, err)
	}
	err = a.Update(ctx, func(relational.Tx) error {
		short, cancel := context.WithCancel(ctx)
		cancel()
		if err := b.begin(short); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("begin with a cancelled context: %v", err)
		}
		return nil
	})
	if err := errors.Join(err, a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
