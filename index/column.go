package index

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// A column holds one metadata key's values by document: for each document that
// has the key, the difference of its number to the one before (the first: to
// -1), less one, as a varint; the value's kind, one byte; and the value: a
// string, 8 bytes of an IEEE number, a byte 0 or 1, the seconds of a time since
// 1970 as a signed varint and its nanoseconds as a varint, or a list of strings.
type column struct {
	kinds   kindSet
	entries int
	next    uint32 // the document after the last
	bytes   []byte
}

// valueKinds are the kinds of values by the number they are stored as.
var valueKinds = []assay.ValueKind{assay.KindString, assay.KindNumber, assay.KindBoolean, assay.KindTime, assay.KindList}

// A kindSet is a set of value kinds: bit i is valueKinds[i].
type kindSet uint8

func (s kindSet) list() []assay.ValueKind {
	var kinds []assay.ValueKind
	for i, k := range valueKinds {
		if s&(1<<i) != 0 {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// add appends a document's value. Documents come in their order. It returns
// false for a value without a kind.
func (c *column) add(document uint32, v assay.Value) bool {
	kind := slices.Index(valueKinds, v.Kind)
	if kind < 0 {
		return false
	}
	c.bytes = binary.AppendUvarint(c.bytes, uint64(document-c.next))
	c.bytes = append(c.bytes, byte(kind))
	switch v.Kind {
	case assay.KindString:
		c.bytes = appendString(c.bytes, v.String)
	case assay.KindNumber:
		c.bytes = binary.LittleEndian.AppendUint64(c.bytes, math.Float64bits(v.Number))
	case assay.KindBoolean:
		b := byte(0)
		if v.Boolean {
			b = 1
		}
		c.bytes = append(c.bytes, b)
	case assay.KindTime:
		c.bytes = binary.AppendVarint(c.bytes, v.Time.Unix())
		c.bytes = binary.AppendUvarint(c.bytes, uint64(v.Time.Nanosecond()))
	case assay.KindList:
		c.bytes = appendStrings(c.bytes, v.List)
	}
	c.kinds |= 1 << kind
	c.entries++
	c.next = document + 1
	return true
}

// addRaw appends a document's value as another column holds it.
func (c *column) addRaw(document uint32, raw []byte) {
	c.bytes = binary.AppendUvarint(c.bytes, uint64(document-c.next))
	c.bytes = append(c.bytes, raw...)
	c.kinds |= 1 << raw[0]
	c.entries++
	c.next = document + 1
}

// each calls f for every entry, by document, with its kind and value as they are
// stored: at least one byte, which is a number of valueKinds. It returns false
// when the bytes are no column of a segment with this many documents.
func (k keyInfo) each(documents int, f func(document uint32, raw []byte)) bool {
	d := decoder{rest: k.column}
	next := uint64(0)
	for range k.entries {
		document := next + d.uint()
		if d.failed || document >= uint64(documents) {
			return false
		}
		next = document + 1
		before := d.rest
		d.skipValue()
		if d.failed {
			return false
		}
		f(uint32(document), before[:len(before)-len(d.rest)])
	}
	return len(d.rest) == 0
}

// skipValue passes over a kind and its value.
func (d *decoder) skipValue() {
	kind := d.bytes(1)
	if kind == nil || int(kind[0]) >= len(valueKinds) {
		d.failed = true
		return
	}
	switch valueKinds[kind[0]] {
	case assay.KindString:
		d.bytes(d.uint())
	case assay.KindNumber:
		d.bytes(8)
	case assay.KindBoolean:
		d.uint()
	case assay.KindTime:
		d.uint()
		d.uint()
	case assay.KindList:
		for range d.count() {
			d.bytes(d.uint())
		}
	}
}

// rawValue decodes what keyInfo.each hands out.
func rawValue(raw []byte) assay.Value {
	d := decoder{rest: raw[1:]}
	switch valueKinds[raw[0]] {
	case assay.KindString:
		return assay.StringValue(d.string())
	case assay.KindNumber:
		return assay.NumberValue(d.float())
	case assay.KindBoolean:
		return assay.BooleanValue(d.uint() != 0)
	case assay.KindTime:
		seconds, size := binary.Varint(d.rest)
		d.bytes(uint64(size))
		return assay.TimeValue(time.Unix(seconds, int64(d.uint())))
	default:
		return assay.ListValue(d.strings()...)
	}
}
