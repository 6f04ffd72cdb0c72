package index

import (
	"encoding/binary"
	"math/bits"
)

// A posting records that a chunk of the segment holds a term. tf is the sum over the fields of the
// term's frequency times the field's weight, and is at least 1.
type posting struct{ chunk, tf uint32 }

// The postings of one term in one segment ascend by chunk and are cut into blocks of 128. The last
// block may be shorter. Most lists are shorter than one block. Such a list consists of varints
// only, for each posting:
//
//	varint  2 x gap, plus 1 if tf > 1; gap: distance to the previous chunk (for
//	        the first: to chunk -1), less 1
//	varint  if tf > 1: tf - 2
//
// A longer list is little-endian and starts with a skip table, so that a cursor can skip blocks
// without decoding them. The table has a row of skipRow bytes for each block:
//
//	 0  uint32  the block's last chunk
//	 4  uint32  offset of its data from the end of the table
//	 8  uint8   width of a gap in bits, at most 32
//	 9  uint8   width of a tf in bits, at most 32
//	10  boundPoints x (uint8 tf, uint16 length): see bound.go
//
// The data of the blocks follow. A full block has 128 gaps of the given width, bit-packed from the
// lowest bit of the first byte, and then 128 values of tf - 1. A short last block has varints as
// above, and its widths are 0. Eight zero bytes end the list, so that a reader may load eight bytes
// wherever a number starts.
const (
	blockSize = 128
	skipRow   = 10 + 3*boundPoints
	padding   = 8
)

// appendPostings appends a list, which must not be empty and must ascend by chunk, to b. lengths[c]
// is the weighted length of chunk c.
func appendPostings(b []byte, list []posting, lengths []uint32) []byte {
	if len(list) < blockSize {
		return appendShort(b, list, -1)
	}
	table := len(b)
	b = append(b, make([]byte, (len(list)+blockSize-1)/blockSize*skipRow)...)
	data := len(b)
	before := int64(-1)
	for row := table; len(list) > 0; row += skipRow {
		block := list[:min(blockSize, len(list))]
		list = list[len(block):]
		start := len(b) - data
		var gapWidth, tfWidth uint
		if len(block) == blockSize {
			b, gapWidth, tfWidth = appendBlock(b, block, before)
		} else {
			b = appendShort(b, block, before)
		}
		last := block[len(block)-1].chunk
		before = int64(last)
		binary.LittleEndian.PutUint32(b[row:], last)
		binary.LittleEndian.PutUint32(b[row+4:], uint32(start))
		b[row+8], b[row+9] = byte(gapWidth), byte(tfWidth)
		putBound(b[row+10:row+skipRow], block, lengths)
	}
	return append(b, make([]byte, padding)...)
}

// appendShort appends postings that follow the chunk before as varints.
func appendShort(b []byte, list []posting, before int64) []byte {
	for _, p := range list {
		gap := 2 * uint64(int64(p.chunk)-before-1)
		if p.tf == 1 {
			b = binary.AppendUvarint(b, gap)
		} else {
			b = binary.AppendUvarint(b, gap+1)
			b = binary.AppendUvarint(b, uint64(p.tf)-2)
		}
		before = int64(p.chunk)
	}
	return b
}

// appendBlock appends a full block that follows the chunk before.
func appendBlock(b []byte, block []posting, before int64) (out []byte, gapWidth, tfWidth uint) {
	var gaps, tfs [blockSize]uint32
	var allGaps, allTFs uint32
	for i, p := range block {
		gaps[i] = uint32(int64(p.chunk) - before - 1)
		tfs[i] = p.tf - 1
		allGaps |= gaps[i]
		allTFs |= tfs[i]
		before = int64(p.chunk)
	}
	gapWidth, tfWidth = uint(bits.Len32(allGaps)), uint(bits.Len32(allTFs))
	return appendPacked(appendPacked(b, &gaps, gapWidth), &tfs, tfWidth), gapWidth, tfWidth
}

// appendPacked appends 128 numbers less than 1<<width, in 16 x width bytes.
func appendPacked(b []byte, numbers *[blockSize]uint32, width uint) []byte {
	var word uint64
	var filled uint
	for _, n := range numbers {
		word |= uint64(n) << filled
		filled += width
		for ; filled >= 8; filled -= 8 {
			b = append(b, byte(word))
			word >>= 8
		}
	}
	return b
}

// postings holds the encoded postings of one term in one segment. The zero value is empty.
type postings struct {
	count  int    // number of postings
	bytes  []byte // written by appendPostings
	chunks uint32 // in the segment
}

// each calls f for all postings in order.
func (p postings) each(f func(posting)) error {
	list, err := p.open()
	if err != nil {
		return err
	}
	var block block
	for i := range list.blocks() {
		if err := list.read(i, &block); err != nil {
			return err
		}
		for j, chunk := range block.chunks[:block.n] {
			f(posting{chunk: chunk, tf: block.tf(j)})
		}
	}
	return nil
}

// addTo adds the chunks of all postings to set, which must have the size of the segment.
func (p postings) addTo(set bitset) error {
	list, err := p.open()
	if err != nil {
		return err
	}
	var block block
	for i := range list.blocks() {
		if err := list.read(i, &block); err != nil {
			return err
		}
		for _, chunk := range block.chunks[:block.n] {
			set.set(chunk)
		}
	}
	return nil
}

// countIn returns the number of postings whose chunk is in set. set must have the size of the
// segment and the given number of members. A nil set means all chunks. Blocks whose chunks are all
// in set, or all outside it, are not decoded if that is evident from the skip table.
func (p postings) countIn(set bitset, members int) (int, error) {
	if set == nil || members >= int(p.chunks) {
		return p.count, nil
	}
	if members == 0 || p.count == 0 {
		return 0, nil
	}
	list, err := p.open()
	if err != nil {
		return 0, err
	}
	n := 0
	var block block
	var member, hole uint32 // the next ones at or after the block
	for i := 0; i < list.blocks(); i++ {
		first, last := uint32(list.before(i)+1), list.last(i)
		var ok bool
		if member, ok = set.next(max(member, first)); !ok {
			break
		}
		if member > last {
			i = list.find(member, i+1) - 1
			continue
		}
		if hole = set.nextHole(max(hole, first)); hole > last && list.table != nil {
			n += list.size(i)
			continue
		}
		if err := list.read(i, &block); err != nil {
			return 0, err
		}
		for _, chunk := range block.chunks[:block.n] {
			n += int(set[chunk/64] >> (chunk & 63) & 1)
		}
	}
	return n, nil
}

// among calls f(i), in order, for each chunks[i] that has a posting. chunks must ascend. Blocks
// between them are not decoded.
func (p postings) among(chunks []uint32, f func(i int)) error {
	if len(chunks) == 0 || p.count == 0 {
		return nil
	}
	list, err := p.open()
	if err != nil {
		return err
	}
	var block block
	read := -1
	for i, at := 0, 0; i < len(chunks); i++ {
		if at = list.find(chunks[i], at); at == list.blocks() {
			return nil
		}
		if at != read {
			if err := list.read(at, &block); err != nil {
				return err
			}
			read = at
		}
		if j := block.search(chunks[i]); j < block.n && block.chunks[j] == chunks[i] {
			f(i)
		}
	}
	return nil
}
