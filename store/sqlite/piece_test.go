package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// TestPieces reads documents whose texts were stored whole, before pieces were.
func TestPieces(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "content.db")
	before := contentSchema
	before.migrations = before.migrations[:1]
	d, err := openDatabase(ctx, path, before, modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	id := assay.ChunkID("d", "v", 0)
	anchors := []assay.Anchor{{Line: 3}, {Start: 9, Line: 8}}
	old := []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO collections VALUES (1, 'c', 0)`, nil},
		{`INSERT INTO documents VALUES (1, 'd', 1, '/d', 1, 1)`, nil},
		{`INSERT INTO versions VALUES (1, 1, 'v', 'T', '{}', '{"restricted":false}', 0, '', '', NULL)`, nil},
		{`INSERT INTO texts VALUES (1, 'one
two
three
', ?)`, []any{encodeAnchors(anchors)}},
		{`INSERT INTO chunks VALUES (1, 0, ?, 'prose', 4, 8, '[]', NULL, 1)`, []any{chunkKey(id)}},
	}
	pool, err := openPool(path, modeWrite, false, writerWait)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range old {
		if _, err := pool.ExecContext(ctx, s.sql, s.args...); err != nil {
			t.Fatalf("%s: %v", s.sql, err)
		}
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}

	d, err = openDatabase(ctx, path, contentSchema, modeWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	doc, err := content{d}.Document(ctx, "d")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(anchors, doc.Anchors); diff != "" || doc.Text != "one\ntwo\nthree\n" {
		t.Errorf("text %q, anchors differ (-want +got):\n%s", doc.Text, diff)
	}
	passages, err := content{d}.Passages(ctx, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	if p := passages[0]; p.Text != "two\n" || p.Line != 4 || p.URI != "/d" {
		t.Errorf("passage %+v, want line 4 of /d", p)
	}
}

// TestPiecesDamaged reads a text of which pieces were lost or altered.
func TestPiecesDamaged(t *testing.T) {
	for _, test := range []struct {
		name, alter string
		whole       bool // the document shows it, too; it does not say how long its text was
	}{
		{"the first is gone", `DELETE FROM pieces WHERE start = 0`, true},
		{"the last is gone", `DELETE FROM pieces WHERE start > 0`, false},
		{"all are gone", `DELETE FROM pieces`, true},
		{"the last has moved", `UPDATE pieces SET start = start + 1 WHERE start > 0`, true},
		{"the first is short", `UPDATE pieces SET text = 'x' WHERE start = 0`, true},
		{"the last is short", `UPDATE pieces SET text = 'x' WHERE start > 0`, false},
		{"anchors end early", `UPDATE pieces SET anchors = x'80'`, true},
		{"an anchor is at -1", `UPDATE pieces SET anchors = x'010101'`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := openTestTenant(t)
			w, err := tenant.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			e := benchEntry(1)
			e.Chunks = e.Chunks[:1]
			e.Chunks[0].End = len(e.Document.Text) // two pieces
			if _, err := w.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Passages(t.Context(), []string{e.Chunks[0].ID}); err != nil {
				t.Fatal(err)
			}
			if err := w.(*writer).u.update(t.Context(), func(c tx) error {
				_, err := c.exec(t.Context(), test.alter)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			_, err = w.Passages(t.Context(), []string{e.Chunks[0].ID})
			wantKind(t, "Passages", err, assay.ErrDamaged, e.Chunks[0].ID)
			if test.whole {
				_, err = w.Document(t.Context(), e.Document.ID)
				wantKind(t, "Document", err, assay.ErrDamaged, e.Document.ID)
			}
		})
	}
}
