package relational

import (
	"reflect"
	"testing"

	"github.com/assay-rag/assay"
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
