package sqlite

import (
	"bytes"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/storetest"
)

// TestDamagedOriginal checks that an altered original is not read and is found by the audit, that putting
// the document again repairs it, and that no bytes of it stay in the files after it was dropped.
func TestDamagedOriginal(t *testing.T) {
	ctx, tenant := t.Context(), openTestTenant(t)
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := storetest.Entry("c", "/a", "some text")
	e.Original = assay.Original{Media: "application/pdf", Data: []byte("%PDF the bytes of the file")}
	if _, err := w.Put(ctx, e); err != nil {
		t.Fatal(err)
	}
	findings := func() int {
		t.Helper()
		n := 0
		if err := tenant.Audit().Check(ctx, func(store.Finding) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := findings(); n != 0 {
		t.Errorf("%d findings before any damage", n)
	}
	for _, damage := range []string{
		`UPDATE originals SET data = x'00'`, `UPDATE versions SET original = NULL`, `UPDATE versions SET media = 'text/html'`,
		`UPDATE versions SET original = NULL, media = ''`,
	} {
		tamper := func(query string, args ...any) {
			t.Helper()
			alterContent(t, tenant, query, args...)
		}
		tamper(damage)
		if n := findings(); n == 0 {
			t.Errorf("%s: no finding", damage)
		}
		if o, err := w.Original(ctx, e.Document.ID, e.Document.Version); err == nil && o.Media != "text/html" {
			t.Errorf("%s: it is read", damage)
		}
		if damage == `UPDATE originals SET data = x'00'` {
			if _, err := w.Put(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		tamper(`UPDATE versions SET original = (SELECT number FROM originals), media = 'application/pdf'`)
		if o, err := w.Original(ctx, e.Document.ID, e.Document.Version); err != nil || !bytes.Equal(o.Data, e.Original.Data) {
			t.Errorf("%s: after the repair: %q, %v", damage, o.Data, err)
		}
	}
}
