package index

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// A column is an opened column of a segment. The zero column has no values.
type column struct {
	id         columnID
	chunks     uint32 // in the segment
	count      int    // number of values
	all        chunkSet
	blocks     []byte
	values     []byte
	sets       []byte
	anchors    []byte
	anchorSets []byte
}

// decodeID reads the columnID at the start of a column's head.
func decodeID(d *decoder) (class columnClass, key []byte, kind columnKind) {
	class = columnClass(d.byte())
	key = d.bytes(d.uint())
	return class, key, columnKind(d.byte())
}

func (d *decoder) byte() byte {
	b := d.bytes(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// decodeColumn returns the column whose head begins at offset head of b.
func decodeColumn(b []byte, head uint64, chunks uint32) (column, error) {
	head = min(head, uint64(len(b)))
	d := decoder{rest: b[head:]}
	class, key, kind := decodeID(&d)
	c := column{id: columnID{class, string(key), kind}, chunks: chunks}
	count := d.uint()
	var sizes [5]uint64
	total := uint64(0)
	for i := range sizes {
		sizes[i] = d.uint()
		if sizes[i] > head-total {
			return column{}, damaged("column")
		}
		total += sizes[i]
	}
	c.all = d.chunkSet()
	if d.failed || kind >= columnKinds || count == 0 || count > sizes[0] || sizes[2] != (count+blockValues-1)/blockValues*16 {
		return column{}, damaged("column of key " + c.id.key)
	}
	c.count = int(count)
	d.rest = b[head-total : head]
	for i, part := range []*[]byte{&c.values, &c.sets, &c.blocks, &c.anchors, &c.anchorSets} {
		*part = d.bytes(sizes[i])
	}
	return c, nil
}

// A valueCursor points at a value of a column or past the last.
type valueCursor struct {
	column *column
	index  int // number of the value; the column's count at the end
	value  []byte
	set    chunkSet

	values, sets decoder // the data after the current value
}

// block returns decoders at the start of a block's values and sets.
func (c *column) block(n int) (values, sets decoder) {
	v, s := c.valuesOf(n), binary.LittleEndian.Uint64(c.blocks[16*n+8:])
	if v > uint64(len(c.values)) || s > uint64(len(c.sets)) {
		return decoder{failed: true}, decoder{failed: true}
	}
	return decoder{rest: c.values[v:]}, decoder{rest: c.sets[s:]}
}

// next moves to the next value, or to the end if there is none.
func (at *valueCursor) next() {
	if at.index++; at.index >= at.column.count {
		at.index = at.column.count
		return
	}
	at.value = at.values.bytes(at.values.uint())
	at.set = at.sets.chunkSet()
	if at.err() != nil {
		at.index = at.column.count
	}
}

func (at *valueCursor) ended() bool { return at.index >= at.column.count }

// err returns an error if the cursor ended because the data is damaged.
func (at *valueCursor) err() error {
	if at.values.failed || at.sets.failed {
		return damaged("values of key " + at.column.id.key)
	}
	return nil
}

// at returns a cursor at the value with the given number, from 0 to the column's count.
func (c *column) at(index int) valueCursor {
	if index >= c.count {
		return valueCursor{column: c, index: c.count}
	}
	at := valueCursor{column: c, index: index - 1}
	at.values, at.sets = c.block(index / blockValues)
	for range index % blockValues {
		at.values.bytes(at.values.uint())
		at.sets.chunkSet()
	}
	at.next()
	return at
}

// seek returns the number of the first value, starting at from, for which before is false. before
// must be true for a prefix of the values.
func (c *column) seek(from int, before func(value []byte) bool) (int, error) {
	blocks := (c.count + blockValues - 1) / blockValues
	reached := func(n int) bool {
		values, _ := c.block(n)
		return !before(values.bytes(values.uint()))
	}
	low, high := from/blockValues, blocks // the first reached block is in low..high
	if from > 0 {                         // it is probably close
		for step := 1; low+step < blocks; step *= 2 {
			if reached(low + step) {
				high = low + step
				break
			}
			low += step
		}
	}
	n := low + sort.Search(high-low, func(i int) bool { return reached(low + i) })
	if n == from/blockValues {
		return from, nil
	}
	values, _ := c.block(n - 1)
	index := (n - 1) * blockValues
	for end := min(index+blockValues, c.count); index < end; index++ {
		if !before(values.bytes(values.uint())) {
			break
		}
	}
	if values.failed {
		return 0, damaged("values of key " + c.id.key)
	}
	return max(index, from), nil
}

// find returns a cursor at a value, searching from the value with number from. If the value is
// missing, ok is false and the cursor is at its insertion point.
func (c *column) find(from int, value string) (at valueCursor, ok bool, err error) {
	index, err := c.seek(from, func(v []byte) bool { return string(v) < value })
	if err != nil {
		return at, false, err
	}
	at = c.at(index)
	return at, !at.ended() && string(at.value) == value, at.err()
}

// addContaining adds the chunks that have a value that contains part, which must not be empty. The
// values are adjacent in memory, so one scan over their bytes skips those without a match.
func (c *column) addContaining(u *chunkUnion, part []byte) error {
	at := c.at(0)
	for place := 0; ; {
		next := bytes.Index(c.values[place:], part)
		if next < 0 {
			return at.err()
		}
		place += next
		if n := at.index/blockValues + 1; 16*n < len(c.blocks) && c.valuesOf(n) <= uint64(place) {
			at = c.at(c.blockAt(place) * blockValues)
		}
		for n := 0; at.end() <= place && n < blockValues; n++ {
			at.next()
		}
		if at.ended() || at.end() <= place {
			return damaged("values of key " + c.id.key)
		}
		if bytes.Contains(at.value, part) { // the match may include the length prefix
			if err := u.add(at.set); err != nil {
				return err
			}
		}
		place = at.end()
	}
}

// end returns the offset of the end of the cursor's value in the column's values.
func (at *valueCursor) end() int { return len(at.column.values) - len(at.values.rest) }

// valuesOf returns the offset of a block's values.
func (c *column) valuesOf(block int) uint64 {
	return binary.LittleEndian.Uint64(c.blocks[16*block:])
}

// blockAt returns the block that holds the given offset in the column's values.
func (c *column) blockAt(place int) int {
	return max(1, sort.Search(len(c.blocks)/16, func(n int) bool {
		return c.valuesOf(n) > uint64(place)
	})) - 1
}

// An anchor is a number of values and the union of the sets of that many first values. The set is
// empty if the number is 0.
type anchor struct {
	values int
	set    chunkSet
}

// nearest returns the anchor closest to the given number of values.
func (c *column) nearest(values int) (anchor, error) {
	n := len(c.anchors) / 16
	place := func(i int) int {
		switch {
		case i < 0:
			return 0
		case i >= n:
			return c.count
		}
		return int(min(binary.LittleEndian.Uint64(c.anchors[16*i:]), uint64(c.count)))
	}
	i := sort.Search(n, func(i int) bool { return place(i) >= values })
	if values-place(i-1) < place(i)-values {
		i--
	}
	switch {
	case i < 0:
		return anchor{}, nil
	case i >= n:
		return anchor{values: c.count, set: c.all}, nil
	}
	d := decoder{}
	if offset := binary.LittleEndian.Uint64(c.anchors[16*i+8:]); offset <= uint64(len(c.anchorSets)) {
		d.rest = c.anchorSets[offset:]
	}
	set := d.chunkSet()
	if d.failed {
		return anchor{}, damaged("anchors of key " + c.id.key)
	}
	return anchor{values: place(i), set: set}, nil
}

// addRange adds the chunks that have one of the values low to high-1 of a ranged column to a
// symmetric difference. It adds the chunks of the first high values and those of the first low
// values, which cancel out. If reading the values one by one is less work, it does that.
func (c *column) addRange(u *chunkUnion, low, high int) error {
	if low >= high {
		return nil
	}
	start, err := c.nearest(low)
	if err != nil {
		return err
	}
	end, err := c.nearest(high)
	if err != nil {
		return err
	}
	if start.values == end.values || high-low <= distance(start.values, low)+distance(end.values, high) {
		return c.addValues(u, low, high)
	}
	if err := c.addFirst(u, start, low); err != nil {
		return err
	}
	return c.addFirst(u, end, high)
}

// addFirst adds the chunks that have one of the first values to a symmetric difference, starting
// from an anchor.
func (c *column) addFirst(u *chunkUnion, from anchor, values int) error {
	if from.values > 0 {
		if err := u.add(from.set); err != nil {
			return err
		}
	}
	return c.addValues(u, min(from.values, values), max(from.values, values))
}

func distance(a, b int) int { return max(a-b, b-a) }

// addValues adds the chunks that have one of the values low to high-1.
func (c *column) addValues(u *chunkUnion, low, high int) error {
	if low >= high {
		return nil
	}
	_, sets := c.block(low / blockValues)
	for range low % blockValues {
		sets.chunkSet()
	}
	for range high - low {
		if err := u.add(sets.chunkSet()); err != nil {
			return err
		}
	}
	if sets.failed {
		return damaged("values of key " + c.id.key)
	}
	return nil
}
