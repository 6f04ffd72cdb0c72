package sqlite

import (
	"testing"

	"github.com/assay-rag/assay"
)

// TestPiecesDamaged reads texts with lost or altered pieces.
func TestPiecesDamaged(t *testing.T) {
	for _, test := range []struct {
		name, alter string
		whole       bool // reading the whole document fails too; the length of its text is not stored
	}{
		{"the first is gone", `DELETE FROM pieces WHERE start = 0`, true},
		{"the last is gone", `DELETE FROM pieces WHERE start > 0`, false},
		{"all are gone", `DELETE FROM pieces`, true},
		{"the last has moved", `UPDATE pieces SET start = start + 1 WHERE start > 0`, true},
		{"the first is short", `UPDATE pieces SET text = 'x' WHERE start = 0`, true},
		{"the last is short", `UPDATE pieces SET text = 'x' WHERE start > 0`, false},
		{"anchors end early", `UPDATE pieces SET anchors = x'80'`, true},
		{"an anchor is at -1", `UPDATE pieces SET anchors = x'010101'`, true},
		{"a letter is another", `UPDATE pieces SET text = replace(text, 'e', 'a') WHERE start = 0`, true},
		{"a later letter is another", `UPDATE pieces SET text = replace(text, 'e', 'a') WHERE start > 0`, true},
		{"the line is another", `UPDATE pieces SET line = line + 1`, true},
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
			alterContent(t, tenant, test.alter)
			_, err = w.Passages(t.Context(), []string{e.Chunks[0].ID})
			wantKind(t, "Passages", err, assay.ErrDamaged, e.Chunks[0].ID)
			if test.whole {
				_, err = w.Document(t.Context(), e.Document.ID)
				wantKind(t, "Document", err, assay.ErrDamaged, e.Document.ID)
			}
		})
	}
}
