package relational

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func FuzzDecodeAnchors(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeAnchors([]assay.Anchor{{Start: 0, Line: 1}, {Start: 70, Line: 3, Page: 2}, {Start: 9000, Line: 0, Page: 3}}))
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		anchors, err := decodeAnchors(nil, b)
		if err != nil {
			return
		}
		again, err := decodeAnchors(nil, encodeAnchors(anchors))
		if diff := cmp.Diff(anchors, again); diff != "" || err != nil {
			t.Errorf("encoded and decoded again, %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestTimes(t *testing.T) {
	for _, want := range []time.Time{
		{}, time.Unix(0, 0).UTC(), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		time.Date(1600, 1, 1, 0, 0, 0, 1, time.FixedZone("x", 3600)), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	} {
		got, err := decodeTime(encodeTime(want))
		if err != nil || !got.Equal(want) {
			t.Errorf("time %v came back as %v, %v", want, got, err)
		}
	}
	if _, err := decodeTime("yesterday"); err == nil {
		t.Error(`time "yesterday" was read`)
	}
}

func TestChunkKey(t *testing.T) {
	id := assay.ChunkID("d", "v", 3)
	if len(chunkKey(id)) != 16 {
		t.Errorf("chunkKey(%s) = %x", id, chunkKey(id))
	}
	for _, no := range []string{"", "x", id[1:], id + "00", "ABCDEF" + id[6:]} {
		if key := chunkKey(no); key != nil {
			t.Errorf("chunkKey(%q) = %x, want nil", no, key)
		}
	}
}
