package index

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// What the passages of a segment name is kept both ways. From an entity to the
// chunks that name it leads a dictionary of entities' keys, as of terms, whose
// postings have 2 instead of a frequency where the entity is a title that the chunk
// stands under, else 1. From a chunk to its entities leads the section of mentions, for
// each row:
//
//	varint  number of entities
//	for each, ascending: varint of twice its distance to the one before (the first:
//	        to -1) less 1, plus 1 where it is a title
//
// An entity is its number in the order of the dictionary. A second section has for
// each 16 rows uint64, where the first of them begins.
const mentionBlock = 16

// What the postings of entities have for a frequency.
const (
	named  = 1
	titled = 2
)

// A mentionWriter writes the sections of mentions, row by row.
type mentionWriter struct {
	frame  *frameWriter
	rows   int
	size   uint64
	starts []byte
	row    []byte
}

// A mention is an entity that a row names.
type mention struct {
	entity uint32
	title  bool
}

// add adds the next row's entities, which it sorts; none comes twice.
func (w *mentionWriter) add(list []mention) {
	if w.rows%mentionBlock == 0 {
		w.starts = binary.LittleEndian.AppendUint64(w.starts, w.size)
	}
	w.rows++
	if !slices.IsSortedFunc(list, byEntity) {
		slices.SortFunc(list, byEntity)
	}
	w.row = binary.AppendUvarint(w.row[:0], uint64(len(list)))
	before := int64(-1)
	for _, n := range list {
		head := uint64(int64(n.entity)-before-1) << 1
		if n.title {
			head++
		}
		w.row = binary.AppendUvarint(w.row, head)
		before = int64(n.entity)
	}
	w.size += uint64(len(w.row))
	_, _ = w.frame.Write(w.row) // finish returns the error
}

func byEntity(a, b mention) int { return cmp.Compare(a.entity, b.entity) }

// mentions reads what a mentionWriter wrote.
type mentions struct {
	rows     int
	entities int
	bytes    []byte
	starts   []byte
}

func openMentions(bytes, starts []byte, rows, entities int) (mentions, error) {
	if len(starts) != (rows+mentionBlock-1)/mentionBlock*8 {
		return mentions{}, damaged("table of mentions")
	}
	return mentions{rows: rows, entities: entities, bytes: bytes, starts: starts}, nil
}

// of appends the entities of a row to list.
func (n *mentions) of(row uint32, list []mention) ([]mention, error) {
	if int64(row) >= int64(n.rows) {
		return list, damaged("row of mentions")
	}
	r, err := n.from(row / mentionBlock)
	if err != nil {
		return list, err
	}
	for range row % mentionBlock {
		if _, err := r.next(nil, true); err != nil {
			return list, err
		}
	}
	return r.next(list, false)
}

// from returns a reader of the rows from a block on.
func (n *mentions) from(block uint32) (*mentionReader, error) {
	start := uint64(0)
	if int(block) < len(n.starts)/8 {
		start = binary.LittleEndian.Uint64(n.starts[8*block:])
	}
	if start > uint64(len(n.bytes)) {
		return nil, damaged("table of mentions")
	}
	return &mentionReader{rest: decoder{rest: n.bytes[start:]}, entities: n.entities}, nil
}

// A mentionReader reads the entities of one row after the other.
type mentionReader struct {
	rest     decoder
	entities int
}

// next appends the next row's entities to list, or passes over them.
func (r *mentionReader) next(list []mention, skip bool) ([]mention, error) {
	count := r.rest.uint()
	if r.rest.failed || count > uint64(len(r.rest.rest)) {
		return list, damaged("mentions of a row")
	}
	entity := uint64(0) // the first that may come
	for range count {
		head := r.rest.uint()
		entity += head >> 1
		if r.rest.failed || entity >= uint64(r.entities) {
			return list, damaged("mentions of a row")
		}
		if !skip {
			list = append(list, mention{uint32(entity), head&1 != 0})
		}
		entity++
	}
	return list, nil
}
