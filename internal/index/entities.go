package index

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// mentionBlock is the number of rows in a block of mentions.
//
// A segment stores which passages name which entities in both directions. A dictionary of entity
// keys, in the format of the dictionary of terms, maps an entity to the chunks that name it.
// Instead of a frequency, its postings have 2 if the entity is a title that the chunk stands under,
// else 1. The section of mentions maps a chunk to its entities. It has for each row:
//
//	varint  number of entities
//	for each, ascending: varint of twice its distance to the one before (for the first:
//	        to -1) less 1, plus 1 if it is a title
//
// An entity is identified by its number in the order of the dictionary. A second section has for
// each block of 16 rows a uint64, the offset of its first row.
const mentionBlock = 16

// Values that the postings of entities have in place of a frequency.
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

// add adds the next row's entities, which must be distinct. It sorts list.
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

// mentions reads the output of a mentionWriter.
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

// from returns a reader that starts at the first row of a block.
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

// A mentionReader reads the entities of one row after another.
type mentionReader struct {
	rest     decoder
	entities int
}

// next appends the next row's entities to list, or skips them.
func (r *mentionReader) next(list []mention, skip bool) ([]mention, error) {
	count := r.rest.uint()
	if r.rest.failed || count > uint64(len(r.rest.rest)) {
		return list, damaged("mentions of a row")
	}
	entity := uint64(0) // smallest possible next entity
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
