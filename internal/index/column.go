package index

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/assay-rag/assay"
)

// A columnID identifies a column. The columns of a segment ascend by class, key and kind.
type columnID struct {
	class columnClass
	key   string // metadata key
	kind  columnKind
}

func (a columnID) compare(b columnID) int {
	if n := int(a.class) - int(b.class); n != 0 {
		return n
	}
	if n := strings.Compare(a.key, b.key); n != 0 {
		return n
	}
	return int(a.kind) - int(b.kind)
}

// A columnClass is the kind of property that a column holds.
type columnClass byte

const (
	aclColumns        columnClass = iota // booleanKind: true for public chunks; stringKind: names on ACLs
	collectionColumns                    // stringKind
	languageColumns                      // stringKind: the language the document was analysed as
	metadataColumns                      // by key
)

// A columnKind is the type of the values in a column. A list has a memberKind value for each
// distinct member. Its listKind value is the sequence of the numbers of its members in that column,
// each in memberBytes bytes.
type columnKind byte

const (
	stringKind columnKind = iota
	numberKind
	booleanKind
	timeKind
	memberKind
	listKind
	columnKinds
)

// ranged reports whether the column supports range queries. A chunk has at most one value in such a
// column.
func (id columnID) ranged() bool {
	return id.class == metadataColumns && (id.kind == stringKind || id.kind == numberKind || id.kind == timeKind)
}

// valueKinds lists the kinds of metadata values in the order of their bits in a kindSet.
var valueKinds = []assay.ValueKind{assay.KindString, assay.KindNumber, assay.KindBoolean, assay.KindTime, assay.KindList}

// columnKindOf returns the kind of the column for values of the given kind.
func columnKindOf(kind assay.ValueKind) columnKind {
	switch kind {
	case assay.KindNumber:
		return numberKind
	case assay.KindBoolean:
		return booleanKind
	case assay.KindTime:
		return timeKind
	case assay.KindList:
		return listKind
	}
	return stringKind
}

// A kindSet is a set of value kinds. Bit i is valueKinds[i].
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

// appendValue appends a value of any kind except list, so that the bytes compare as the values do.
// A string is stored unchanged. A number is the bits of its float64, big-endian, with the sign bit
// flipped if it is positive and all bits flipped if it is negative. A boolean is 0 or 1. A time is
// its seconds since 1970 plus 2^63 and its nanoseconds, big-endian in 8 and 4 bytes.
func appendValue(b []byte, v assay.Value) []byte {
	switch v.Kind {
	case assay.KindString:
		return append(b, v.String...)
	case assay.KindNumber:
		n := math.Float64bits(v.Number + 0) // turns -0 into 0, which it equals
		if n>>63 == 0 {
			n |= 1 << 63
		} else {
			n = ^n
		}
		return binary.BigEndian.AppendUint64(b, n)
	case assay.KindBoolean:
		if v.Boolean {
			return append(b, 1)
		}
		return append(b, 0)
	case assay.KindTime:
		b = binary.BigEndian.AppendUint64(b, uint64(v.Time.Unix())^1<<63)
		return binary.BigEndian.AppendUint32(b, uint32(v.Time.Nanosecond()))
	}
	return b
}

// memberBytes returns the number of bytes for each member in a list's value, big-endian, given the
// number of distinct members.
func memberBytes(members int) int {
	size := 1
	for n := members - 1; n > 0xff; n >>= 8 {
		size++
	}
	return size
}

func appendMember(b []byte, member uint32, size int) []byte {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(member>>(8*i)))
	}
	return b
}

func memberNumber(b []byte) uint64 {
	n := uint64(0)
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// blockValues is the number of values in a block. A block can be found without reading the values
// before it.
const blockValues = 16

// A filterEncoder writes the filters of a segment. The layout is little-endian:
//
//	columns
//	uint64s  offset of the head of each column
//	uint32   number of columns
//	uint32   number of chunks in the segment
//
// A column holds the values of one property of one kind, such as the numbers under the metadata key
// "year", and for each value the set of chunks that have it. Columns ascend by columnID. A column's
// head is at its end, so that the column can be written value by value:
//
//	values   strings, ascending by bytes, as appendValue writes them
//	sets     the set of each value, in the same order (see chunkSet)
//	blocks   for each 16 values two uint64: the offsets of the first value and of its set
//	anchors  for each anchor two uint64: a number of values, and the offset of its set in
//	sets     the anchors' sets: the chunks that have one of that many first values
//	head     the target of the directory's offset:
//	         byte     class
//	         string   key; empty except for metadata
//	         byte     kind
//	         varints  number of values, and size in bytes of each of the parts before
//	         set      all chunks that have a value
//
// The sets in a column of strings, numbers or times are disjoint, because a document has one value
// for a key. So the chunks with a value in a range are the difference of the sets of two anchors,
// corrected by a few values near them, regardless of the number of values in the range.
//
// The encoder keeps the sets of one column in memory, but not its values.
type filterEncoder struct {
	chunks    uint32
	out       io.Writer
	size      uint64 // bytes written
	err       error  // first error of out
	directory []byte

	// The current column, whose values begin at start.
	id     columnID
	start  uint64
	count  int
	last   []byte // last value
	entry  []byte // its encoded form
	sets   []byte
	blocks []byte
}

func (e *filterEncoder) put(b []byte) {
	e.size += uint64(len(b))
	if e.err == nil {
		_, e.err = e.out.Write(b)
	}
}

// begin starts a column. IDs must ascend.
func (e *filterEncoder) begin(id columnID) {
	e.id, e.start, e.count = id, e.size, 0
	e.sets, e.blocks = e.sets[:0], e.blocks[:0]
}

// add appends a value and the runs of its chunks, of which there is at least one. It returns
// ErrDamaged if the values do not ascend, or the error of the output.
func (e *filterEncoder) add(value []byte, runs []chunkRun) error {
	if e.count > 0 && bytes.Compare(e.last, value) >= 0 {
		return damaged("values of key " + e.id.key)
	}
	e.last = append(e.last[:0], value...)
	if e.count%blockValues == 0 {
		e.blocks = binary.LittleEndian.AppendUint64(e.blocks, e.size-e.start)
		e.blocks = binary.LittleEndian.AppendUint64(e.blocks, uint64(len(e.sets)))
	}
	e.entry = append(binary.AppendUvarint(e.entry[:0], uint64(len(value))), value...)
	e.put(e.entry)
	e.sets = appendChunkSet(e.sets, runs)
	e.count++
	return e.err
}

// end finishes the column. A column without values is not written.
func (e *filterEncoder) end() error {
	if e.count == 0 {
		return e.err
	}
	values := e.size - e.start
	anchors, anchorSets, all, err := e.anchors()
	if err != nil {
		return err
	}
	head := append([]byte{byte(e.id.class)}, appendString(nil, e.id.key)...)
	head = append(head, byte(e.id.kind))
	head = binary.AppendUvarint(head, uint64(e.count))
	head = binary.AppendUvarint(head, values)
	for _, part := range [][]byte{e.sets, e.blocks, anchors, anchorSets} {
		e.put(part)
		head = binary.AppendUvarint(head, uint64(len(part)))
	}
	e.directory = binary.LittleEndian.AppendUint64(e.directory, e.size)
	e.put(appendRoaring(head, all))
	return e.err
}

// finish writes the directory that follows the columns.
func (e *filterEncoder) finish() error {
	count := len(e.directory) / 8
	e.directory = binary.LittleEndian.AppendUint32(e.directory, uint32(count))
	e.put(binary.LittleEndian.AppendUint32(e.directory, e.chunks))
	return e.err
}

// An anchor is placed as soon as the sets since the previous anchor have max(anchorBytes, size of
// all sets / anchorShare) bytes. The minimum is what can be read in a few microseconds. The
// fraction bounds the space, because an anchor takes up to one bit for each chunk. Measured on
// 200,000 documents of one chunk, each with its own time: a range takes 10 to 20 microseconds and 6
// bytes a document.
const (
	anchorShare = 48
	anchorBytes = 4096
)

// anchors returns the anchors of the added values and the union of all their sets.
func (e *filterEncoder) anchors() (rows, sets []byte, all *roaring.Bitmap, err error) {
	step := max(anchorBytes, len(e.sets)/anchorShare)
	union, size := newUnion(e.chunks), 0
	d := decoder{rest: e.sets}
	for n := range e.count {
		if size >= step && e.id.ranged() {
			rows = binary.LittleEndian.AppendUint64(rows, uint64(n))
			rows = binary.LittleEndian.AppendUint64(rows, uint64(len(sets)))
			sets = appendRoaring(sets, roaring.FromDense(union.words, true))
			size = 0
		}
		set := d.chunkSet()
		if err := union.add(set); err != nil {
			return nil, nil, nil, err
		}
		size += len(set.bytes)
	}
	return rows, sets, roaring.FromDense(union.words, true), nil
}
