package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// Layout 2 kept no ACL of a deleted document. Where its migration cannot be
// certain of it, nobody may see what was read from the document.
func TestMigrateACL(t *testing.T) {
	const (
		open  = `{}`
		legal = `{"restricted":true,"allow":["group:legal"]}`
	)
	restricted := assay.ACL{Restricted: true, Allow: []string{"group:legal"}}
	tests := []struct {
		name    string
		version any      // number of the document's current version; nil: deleted
		acls    []string // of the versions, from number 1 on
		drop    int      // the version that was pruned; 0: none
		want    *assay.ACL
	}{
		{"current", 2, []string{open, legal}, 0, &restricted},
		{"current, one was pruned", 2, []string{open, legal}, 1, &restricted},
		{"deleted", nil, []string{legal}, 0, &restricted},
		{"deleted, for everybody", nil, []string{open}, 0, &assay.ACL{}},
		{"deleted, two versions that agree", nil, []string{legal, legal}, 0, &restricted},
		{"deleted, two versions that do not", nil, []string{legal, open}, 0, nil},
		{"deleted, the last was pruned", nil, []string{open, legal}, 2, nil},
		{"deleted, one before the last may have come back", nil, []string{legal, open}, 1, nil},
		{"deleted and pruned", nil, []string{open}, 1, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, path := t.Context(), filepath.Join(t.TempDir(), "content.db")
			exec := layoutFile(t, path, 2)
			exec(`INSERT INTO collections VALUES (1, 'c', 0)`)
			exec(`INSERT INTO documents VALUES (1, 'd', 1, '/d', ?, 1)`, test.version)
			for i, acl := range test.acls {
				exec(`INSERT INTO versions (document, version, title, metadata, acl, source_size, source_modified, source_hash)
					VALUES (1, ?, 'T', '{}', ?, 0, '', '')`, i+1, acl)
			}
			exec(`DELETE FROM versions WHERE number = ?`, test.drop)

			d, err := openDatabase(ctx, path, contentSchema, modeWrite)
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			got, err := content{d}.ACL(ctx, "d")
			if test.want == nil {
				wantKind(t, "ACL", err, assay.ErrNotFound, "document d")
				return
			}
			if diff := cmp.Diff(*test.want, got); diff != "" || err != nil {
				t.Errorf("ACL: %v, differs (-want +got):\n%s", err, diff)
			}
		})
	}
}

// layoutFile makes a content.db of an older layout and returns what fills it.
func layoutFile(t *testing.T, path string, layout int) (exec func(query string, args ...any)) {
	t.Helper()
	before := contentSchema
	before.migrations = before.migrations[:layout]
	d, err := openDatabase(t.Context(), path, before, modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	return func(query string, args ...any) {
		t.Helper()
		pool, err := openPool(path, modeWrite, false, writerWait)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := pool.ExecContext(context.WithoutCancel(t.Context()), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// An ACL that was altered into something else lets nobody see the document.
func TestACLDamaged(t *testing.T) {
	tenant := openTestTenant(t)
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := benchEntry(1)
	if _, err := w.Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	for _, alter := range []string{`UPDATE versions SET acl = '{"restricted"'`, `UPDATE versions SET acl = '[]'`} {
		if err := w.(*writer).u.update(t.Context(), func(c tx) error {
			_, err := c.exec(t.Context(), alter)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, err = w.ACL(t.Context(), e.Document.ID)
		wantKind(t, "ACL", err, assay.ErrDamaged, e.Document.ID)
	}
}
