package sqlite

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/storetest"
)

// TestMigrateHashes brings content of layout 3, whose chunks had no hashes, to
// the last layout: current, kept and long texts, of which one is damaged.
func TestMigrateHashes(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "content.db")
	exec := layoutFile(t, path, 3)
	exec(`INSERT INTO store VALUES (1, 'word', 5)`)
	exec(`INSERT INTO collections VALUES (1, 'c', 0)`)
	entries := []store.Entry{
		storetest.Entry("c", "/a", "one\ntwo\n"),
		storetest.Entry("c", "/long", strings.ReplaceAll(manyLines(6), "line", strings.Repeat("wörds ", 300))),
		storetest.Entry("c", "/empty", ""),
		storetest.Entry("c", "/damaged", "lost\n"),
		storetest.Entry("c", "/kept", "deleted\n"),
	}
	for i, e := range entries {
		var r entryRow
		if err := encodeEntry(&e, &r); err != nil {
			t.Fatal(err)
		}
		n := i + 1
		exec(`INSERT INTO documents (number, id, collection, uri, version, sequence) VALUES (?, ?, 1, ?, ?, ?)`,
			n, e.Document.ID, e.Document.URI, n, n)
		exec(`INSERT INTO versions VALUES (?, ?, ?, ?, '{}', '{}', 0, '', '', NULL)`, n, n, e.Document.Version, e.Document.Title)
		for _, p := range r.pieces {
			exec(`INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?)`, n, p.start, p.line, p.page, p.text, p.anchors)
		}
		for _, h := range r.chunks {
			exec(`INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				n, h.Ordinal, h.id, string(h.Kind), h.Start, h.End, h.headings, h.parent, h.Tokens)
		}
	}
	exec(`DELETE FROM pieces WHERE version = 4`)
	exec(`UPDATE documents SET version = NULL WHERE number = 5`)

	d, err := openDatabase(ctx, path, contentSchema, modeWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	got := map[string]string{}
	err = d.view(ctx, func(s snapshot) error {
		return s.each(ctx, `SELECT id, hash FROM chunks`, nil, func(scan func(...any) error) error {
			var id, hash []byte
			err := scan(&id, &hash)
			got[hex.EncodeToString(id)] = hex.EncodeToString(hash)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, e := range entries {
		for _, c := range e.Chunks {
			p := assay.Passage{Chunk: c, Text: e.Document.Text[c.Start:c.End], Title: e.Document.Title}
			if want[c.ID] = p.Hash(); c.Kind == assay.ChunkSection || e.Document.URI == "/damaged" {
				want[c.ID] = ""
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes differ (-want +got):\n%s", diff)
	}
	n := 0
	for p, err := range (content{d}).Unembedded(ctx, "m", 0) {
		if err != nil || p.Hash() != want[p.Chunk.ID] {
			t.Fatalf("Unembedded yields %v, %v", p.Chunk, err)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d passages are to be embedded, want 8", n)
	}
}

// TestVectorDamaged reads vectors that were altered.
func TestVectorDamaged(t *testing.T) {
	for _, alter := range []string{`UPDATE vectors SET data = x'00000000' WHERE number = 2`, `UPDATE vectors SET data = x''`, `UPDATE vectors SET data = x'010203'`} {
		tenant := openTestTenant(t)
		w, err := tenant.Writer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		e := storetest.Entry("c", "/a", "one\ntwo\n")
		if _, err := w.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if _, err := w.PutVectors(t.Context(), "m", crashVectors(e)...); err != nil {
			t.Fatal(err)
		}
		if err := w.(*writer).u.update(t.Context(), func(c tx) error {
			_, err := c.exec(t.Context(), alter)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range w.Vectors(t.Context(), "m", 0) {
			last = err
		}
		wantKind(t, alter, last, assay.ErrDamaged, `vectors of "m"`)
	}
}

// manyLines is a text of n different lines.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// TestDropModelMany drops more vectors than are removed at a time.
func TestDropModelMany(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := storetest.Entry("c", "/a", manyLines(dropBatch+dropBatch/2))
	if _, err := w.Put(ctx, e); err != nil {
		t.Fatal(err)
	}
	n, err := w.PutVectors(ctx, "m", crashVectors(e)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.DropModel(ctx, "m"); err != nil {
		t.Fatal(err)
	}
	models, err := w.Models(ctx)
	if err != nil || len(models) != 0 {
		t.Errorf("Models = %v, %v, want none", models, err)
	}
	if got, err := w.Sequence(ctx); err != nil || got != n+2 {
		t.Errorf("Sequence = %d, %v, want two more than %d", got, err, n)
	}
	var left int
	if err := tenant.content.row(ctx, `SELECT count(*) FROM vectors`, nil, &left); err != nil || left != 0 {
		t.Errorf("%d vectors are left, %v", left, err)
	}
}
