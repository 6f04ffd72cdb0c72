package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/storetest"
)

// TestVectorDamaged reads altered vectors.
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
		alterContent(t, tenant, alter)
		var last error
		for _, err := range w.Vectors(t.Context(), "m", 0) {
			last = err
		}
		wantKind(t, alter, last, assay.ErrDamaged, `vectors of "m"`)
	}
}

// manyLines returns a text of n different lines.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// TestDropModelMany drops more vectors than DropModel removes at a time.
func TestDropModelMany(t *testing.T) {
	tenant, ctx := openTestTenant(t), t.Context()
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := storetest.Entry("c", "/a", manyLines(15_000))
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
	if err := tenant.content.Row(ctx, `SELECT count(*) FROM vectors`, nil, &left); err != nil || left != 0 {
		t.Errorf("%d vectors are left, %v", left, err)
	}
}
