package sqlite

import (
	"reflect"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/storetest"
)

// FuzzDecodeStructure checks that any bytes either fail to decode, or decode to a structure that is
// encoded to bytes of the same meaning.
func FuzzDecodeStructure(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(encodeStructure(&assay.Structure{
		Blocks:     []assay.Block{{Kind: assay.BlockHeading, End: 9, Level: 1, Label: "A label"}},
		Tables:     []assay.Table{{Start: 1, End: 5, Cells: []assay.Cell{{Start: 1, End: 2, Header: true}}}},
		Boxes:      []assay.Box{{Page: 1, X1: 2.5, Y1: 3}},
		Pages:      []assay.Page{{Number: 1, Outcome: assay.PageText}},
		Provenance: []assay.Provenance{{End: 9, Kind: assay.ProvenanceDescribed, Model: "m"}},
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeStructure(data)
		if err != nil {
			return
		}
		again, err := decodeStructure(encodeStructure(&s))
		if encodeStructure(&s) == nil {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if a, b := encodeStructure(&s), encodeStructure(&again); !reflect.DeepEqual(a, b) {
			t.Errorf("encoded to %x, then to %x", a, b)
		}
	})
}

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
	err = w.(*writer).update(ctx, "tamper", func(x tx) error {
		_, err := x.exec(ctx, `UPDATE structures SET data = x'00'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
