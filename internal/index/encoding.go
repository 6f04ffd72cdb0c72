package index

import (
	"encoding/binary"
	"fmt"

	"github.com/assay-rag/assay"
)

func damaged(what string) error { return fmt.Errorf("segment: %s: %w", what, assay.ErrDamaged) }

// u32 returns the i-th uint32 of a row.
func u32(row []byte, i int) uint32 { return binary.LittleEndian.Uint32(row[4*i:]) }

// A decoder reads varints and strings from bytes. After the first value that is missing or invalid,
// failed is true and all reads return zero values.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) uint() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		n := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes(d.uint())) }

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
