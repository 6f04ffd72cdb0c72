package index

import (
	"encoding/binary"
	"iter"
)

// A container is a part of a serialised roaring bitmap. It has the chunks that share their upper 16
// bits. The roaring library that builds the bitmaps does not validate serialised bytes, and parts
// of it are assembly. The code here checks everything it reads, so a damaged file cannot cause
// reads or writes out of bounds. It can also add containers to a bitset, which the library cannot.
type container struct {
	base uint32 // smallest chunk that the container can have
	form containerForm
	data []byte
}

type containerForm int

const (
	arrayForm containerForm = iota // uint16s, the lower 16 bits of the members, ascending
	bitsForm                       // one bit for each possible member
	runsForm                       // uint16s, first member of a run and number of members after it
)

// Constants of the portable format of roaring bitmaps.
const (
	roaringCookie     = 12346
	roaringRunsCookie = 12347 // in the lower 16 bits: some containers are in runsForm
	offsetsThreshold  = 4     // with runs, a table of offsets exists from this many containers
	maxArrayMembers   = 4096
	bitsFormWords     = 1024
)

// containers yields the containers of a serialised bitmap in ascending order. If the bitmap is
// malformed, the sequence ends with an error. The content of the containers is not checked.
func containers(b []byte) iter.Seq2[container, error] {
	return func(yield func(container, error) bool) {
		headers, isRun, d := roaringHeaders(b)
		last := int64(-1)
		for i := range len(headers) / 4 {
			header := u32(headers, i)
			c := container{base: header << 16}
			members := uint64(header>>16) + 1
			switch {
			case isRun != nil && isRun[i/8]&(1<<(i%8)) != 0:
				c.form = runsForm
				if count := d.bytes(2); count != nil {
					c.data = d.bytes(4 * uint64(binary.LittleEndian.Uint16(count)))
				}
			case members > maxArrayMembers:
				c.form, c.data = bitsForm, d.bytes(8*bitsFormWords)
			default:
				c.form, c.data = arrayForm, d.bytes(2*members)
			}
			if d.failed || int64(c.base) <= last {
				yield(container{}, errChunkSet)
				return
			}
			last = int64(c.base)
			if !yield(c, nil) {
				return
			}
		}
		if d.failed || len(d.rest) > 0 {
			yield(container{}, errChunkSet)
		}
	}
}

// roaringHeaders returns three parts of a bitmap: four bytes for each container, its upper 16 bits
// and its cardinality less one; one bit for each container that is in runsForm (nil: none); and a
// decoder of the containers.
func roaringHeaders(b []byte) (headers, isRun []byte, d decoder) {
	d = decoder{rest: b}
	head := d.bytes(4)
	if head == nil {
		return nil, nil, d
	}
	cookie := u32(head, 0)
	count, hasOffsets := cookie>>16+1, true
	switch {
	case cookie&0xffff == roaringRunsCookie:
		isRun = d.bytes((uint64(count) + 7) / 8)
		hasOffsets = count >= offsetsThreshold
	case cookie == roaringCookie:
		if head = d.bytes(4); head == nil {
			return nil, nil, d
		}
		count = u32(head, 0)
	default:
		d.failed = true
		return nil, nil, d
	}
	headers = d.bytes(4 * uint64(count))
	if hasOffsets {
		d.bytes(4 * uint64(count))
	}
	return headers, isRun, d
}
