package index

import (
	"encoding/binary"
	"iter"
)

// A container is a part of a serialised roaring bitmap: the chunks that agree in their
// upper 16 bits. The library that the bitmaps are combined with takes bytes as they
// are, in assembly too. What is read here is checked, so that no bytes of a file make it
// read or write where it must not; and unlike there containers can be added to words.
type container struct {
	base uint32 // the first chunk that could be in it
	form containerForm
	data []byte
}

type containerForm int

const (
	arrayForm containerForm = iota // uint16s, the members' lower 16 bits, ascending
	bitsForm                       // a bit for each possible member
	runsForm                       // uint16s, the first member of a run and how many follow it
)

// Of the portable format of roaring bitmaps.
const (
	roaringCookie     = 12346
	roaringRunsCookie = 12347 // in the lower 16 bits: some containers are in runsForm
	offsetsThreshold  = 4     // containers from which a bitmap with such has a table of offsets
	maxArrayMembers   = 4096
	bitsFormWords     = 1024
)

// containers yields the containers of a serialised bitmap, ascending, or ends with an
// error. What they hold has not been checked.
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

// roaringHeaders returns of each container four bytes, its upper 16 bits and its
// cardinality less one; which are in runsForm, a bit each (nil: none); and a decoder of
// the containers.
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
