package index

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A blockList finds the blocks of a list of postings and decodes them.
type blockList struct {
	count  int
	chunks uint32 // in the segment
	table  []byte // skip table; empty for a single short block
	data   []byte // encoded blocks and the padding
}

// open splits the list into skip table and blocks and checks that the skip table is complete.
func (p postings) open() (blockList, error) {
	if p.count < 0 || p.count > int(p.chunks) {
		return blockList{}, damaged("number of postings")
	}
	list := blockList{count: p.count, chunks: p.chunks, data: p.bytes}
	if p.count < blockSize {
		return list, nil
	}
	table := list.blocks() * skipRow
	if table+padding > len(p.bytes) {
		return blockList{}, damaged("skip table")
	}
	list.table, list.data = p.bytes[:table], p.bytes[table:]
	return list, nil
}

// blocks returns the number of blocks.
func (l *blockList) blocks() int { return (l.count + blockSize - 1) / blockSize }

// size returns the number of postings in block i.
func (l *blockList) size(i int) int { return min(blockSize, l.count-i*blockSize) }

// last returns the last chunk of block i. For a single short block it returns the last chunk of the
// segment.
func (l *blockList) last(i int) uint32 {
	if len(l.table) == 0 {
		return l.chunks - 1
	}
	return binary.LittleEndian.Uint32(l.table[i*skipRow:])
}

// before returns the last chunk of the block before block i, or -1 for the first block.
func (l *blockList) before(i int) int64 {
	if i == 0 {
		return -1
	}
	return int64(l.last(i - 1))
}

// find returns the first block, starting at i, whose last chunk is at least chunk, or the number of
// blocks if there is none. It gallops: nearby blocks are tried first.
func (l *blockList) find(chunk uint32, i int) int {
	n, step := l.blocks(), 1
	if i >= n || l.last(i) >= chunk {
		return i
	}
	for i+step < n && l.last(i+step) < chunk {
		i += step
		step *= 2
	}
	low, high := i+1, min(i+step, n) // the block is in low..high
	for low < high {
		middle := (low + high) / 2
		if l.last(middle) < chunk {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// A block holds the decoded postings of one block.
type block struct {
	n       int                         // at least 1
	chunks  [blockSize]uint32           // the first n ascend and are below the segment's count
	tfs     []byte                      // packed frequencies, each less 1, and the padding
	tfWidth uint                        // in bits, at most 32
	short   [4*blockSize + padding]byte // backs tfs for a short block
}

// tf returns the frequency of posting i, which is less than n.
func (b *block) tf(i int) uint32 {
	bit := uint(i) * b.tfWidth
	return 1 + uint32(binary.LittleEndian.Uint64(b.tfs[bit>>3:])>>(bit&7)&(1<<(b.tfWidth&63)-1))
}

// search returns the number of postings before chunk. It has no branches, because they would be
// unpredictable.
func (b *block) search(chunk uint32) int {
	i := uint32(0)
	for step := uint32(blockSize / 2); step > 0; step /= 2 {
		_, before := bits.Sub32(b.chunks[(i+step-1)%blockSize], chunk, 0)
		i += step & -before
	}
	_, before := bits.Sub32(b.chunks[i%blockSize], chunk, 0)
	return min(int(i+before), b.n)
}

// read decodes block i.
func (l *blockList) read(i int, b *block) error {
	if len(l.table) == 0 {
		return l.readShort(l.data, -1, l.count, b)
	}
	before := l.before(i)
	row := l.table[i*skipRow:][:skipRow]
	last, start := u32(row, 0), u32(row, 1)
	gapWidth, tfWidth := uint(row[8]), uint(row[9])
	n := l.size(i)
	if last >= l.chunks || int64(last) < before+int64(n) || uint64(start) > uint64(len(l.data)-padding) {
		return damaged("skip table")
	}
	data := l.data[start:]
	if n < blockSize {
		return l.readShort(data[:len(data)-padding], before, n, b)
	}
	gaps, tfs := blockSize/8*gapWidth, blockSize/8*tfWidth
	if gapWidth > 32 || tfWidth > 32 || gaps+tfs+padding > uint(len(data)) {
		return damaged("block of postings")
	}
	b.n = blockSize
	b.tfs, b.tfWidth = data[gaps:][:tfs+padding], tfWidth
	// Gaps are not negative and add up to the difference, so all chunks in between are in order.
	if sum := unpackChunks(&b.chunks, data[:gaps+padding], gapWidth, uint64(before+1)); sum != uint64(last)+1 {
		return damaged("block of postings")
	}
	return nil
}

// readShort decodes n postings that follow the chunk before. They must take up all of data.
func (l *blockList) readShort(data []byte, before int64, n int, b *block) error {
	chunk := uint64(before + 1)
	b.n, b.tfs, b.tfWidth = n, b.short[:], 32
	d := decoder{rest: data}
	for j := range n {
		gap, more := d.uint(), uint64(0)
		if gap&1 != 0 {
			more = d.uint() + 1
		}
		chunk += gap >> 1
		if d.failed || chunk >= uint64(l.chunks) || more >= 1<<32-1 {
			return damaged("short block of postings")
		}
		b.chunks[j] = uint32(chunk)
		binary.LittleEndian.PutUint32(b.short[4*j:], uint32(more))
		chunk++
	}
	if len(d.rest) > 0 {
		return damaged("short block of postings")
	}
	for j := n; j < blockSize; j++ {
		b.chunks[j] = math.MaxUint32
	}
	return nil
}

// unpackChunks reads 128 gaps of width bits, at most 32, and turns them into chunks. The first
// chunk is next plus the first gap. unpackChunks returns the last chunk plus 1, without overflow. b
// holds 16 x width bytes and the padding.
//
// Eight numbers take width bytes, so each group of eight starts at a byte. Several numbers are
// taken from each eight-byte word: 8 if they have at most 8 bits, or 2 if they have at most 28
// bits, since a pair starts within the first seven bits. Reading them one by one makes text
// searches a tenth slower. Reading 4 of at most 16 bits from a word saves less than a hundredth.
func unpackChunks(chunks *[blockSize]uint32, b []byte, width uint, next uint64) uint64 {
	width &= 63
	switch {
	case width > 24:
		return unpackWide(chunks, b, width, next)
	case width > 8:
		return next + uint64(unpack24(chunks, b, width, uint32(next)))
	default:
		return next + uint64(unpack8(chunks, b, width, uint32(next)))
	}
}

// unpackWide reads gaps of any width.
func unpackWide(chunks *[blockSize]uint32, b []byte, width uint, next uint64) uint64 {
	for i := range chunks {
		bit := uint(i) * width
		next += binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7) & (1<<(width&63) - 1)
		chunks[i] = uint32(next)
		next++
	}
	return next
}

// unpack8 reads gaps of at most 8 bits and returns the distance from first to the chunk after the
// last.
func unpack8(chunks *[blockSize]uint32, b []byte, width uint, first uint32) uint32 {
	width &= 63
	mask := uint32(1)<<width - 1
	next := first
	for i := 0; i <= blockSize-8; i += 8 {
		v := binary.LittleEndian.Uint64(b)
		b = b[width:]
		c := (*[8]uint32)(chunks[i:])
		c[0] = next + uint32(v)&mask
		v >>= width
		c[1] = c[0] + 1 + uint32(v)&mask
		v >>= width
		c[2] = c[1] + 1 + uint32(v)&mask
		v >>= width
		c[3] = c[2] + 1 + uint32(v)&mask
		v >>= width
		c[4] = c[3] + 1 + uint32(v)&mask
		v >>= width
		c[5] = c[4] + 1 + uint32(v)&mask
		v >>= width
		c[6] = c[5] + 1 + uint32(v)&mask
		v >>= width
		c[7] = c[6] + 1 + uint32(v)&mask
		next = c[7] + 1
	}
	return next - first
}

// unpack24 reads gaps of at most 24 bits and returns the distance from first to the chunk after the
// last.
func unpack24(chunks *[blockSize]uint32, b []byte, width uint, first uint32) uint32 {
	mask := uint32(1)<<(width&63) - 1
	next := first
	for i := 0; i < blockSize; i += 2 {
		bit := uint(i) * width
		v := binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7)
		chunks[i] = next + uint32(v)&mask
		chunks[i+1] = chunks[i] + 1 + uint32(v>>(width&63))&mask
		next = chunks[i+1] + 1
	}
	return next - first
}
