package relational

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
)

// encodeAnchors packs anchors as signed varints: for each anchor, the differences of Start, Line
// and Page from those of the previous one.
func encodeAnchors(anchors []assay.Anchor) []byte {
	b := make([]byte, 0, 4*len(anchors))
	var last assay.Anchor
	for _, a := range anchors {
		b = binary.AppendVarint(b, int64(a.Start-last.Start))
		b = binary.AppendVarint(b, int64(a.Line-last.Line))
		b = binary.AppendVarint(b, int64(a.Page-last.Page))
		last = a
	}
	return b
}

// decodeAnchors is the inverse of encodeAnchors. It appends to anchors.
func decodeAnchors(anchors []assay.Anchor, b []byte) ([]assay.Anchor, error) {
	err := eachAnchor(b, func(a assay.Anchor) bool {
		anchors = append(anchors, a)
		return true
	})
	return anchors, err
}

// eachAnchor calls fn for each anchor of b, until it returns false.
func eachAnchor(b []byte, fn func(assay.Anchor) bool) error {
	var last assay.Anchor
	for len(b) > 0 {
		for _, field := range [...]*int{&last.Start, &last.Line, &last.Page} {
			delta, n := binary.Varint(b)
			if n <= 0 {
				return damaged("anchors end in the middle")
			}
			*field += int(delta)
			b = b[n:]
		}
		if !fn(last) {
			return nil
		}
	}
	return nil
}

// encodeTime formats t so that it can be sorted and parsed to the same instant. The zero time is
// the empty string.
func encodeTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func decodeTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, damaged("time %q", s)
	}
	return t, nil
}

// decodeJSON decodes a column written by this package.
func decodeJSON(column, value string, into any) error {
	if err := json.Unmarshal([]byte(value), into); err != nil {
		return damaged("%s is not what was stored: %v", column, err)
	}
	return nil
}

// chunkKey returns the stored form of a chunk ID, or nil if it is not a chunk ID.
func chunkKey(id string) []byte {
	key, err := hex.DecodeString(id)
	if err != nil || len(key) != 16 || hex.EncodeToString(key) != id {
		return nil
	}
	return key
}
