package sqlite

import (
	"reflect"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/storetest"
)

// TestDamagedStructure checks that an altered structure is not read, and that putting the document
// again repairs it.
func TestDamagedStructure(t *testing.T) {
	ctx, tenant := t.Context(), openTestTenant(t)
	w, err := tenant.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := storetest.Entry("c", "/a", "some text")
	e.Document.Structure.Blocks = []assay.Block{{Kind: assay.BlockParagraph, End: 9}}
	if _, err := w.Put(ctx, e); err != nil {
		t.Fatal(err)
	}
	alterContent(t, tenant, `UPDATE structures SET data = x'00'`)
	_, err = w.Document(ctx, e.Document.ID)
	wantKind(t, "Document", err, assay.ErrDamaged, "structure")
	if _, err := w.Put(ctx, e); err != nil {
		t.Fatal(err)
	}
	d, err := w.Document(ctx, e.Document.ID)
	if err != nil || !reflect.DeepEqual(d.Structure, e.Document.Structure) {
		t.Errorf("after a repair: %+v, %v", d.Structure, err)
	}
}
