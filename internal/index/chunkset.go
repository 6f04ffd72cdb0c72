package index

import (
	"encoding/binary"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// A chunkSet is a set of a segment's chunks in stored form. It starts with a varint: twice the
// number of bytes that follow, plus one if those are a roaring bitmap in its portable format
// (https://github.com/RoaringBitmap/RoaringFormatSpec).
//
// Otherwise the bytes are the set's runs of consecutive chunks. Each run starts with a varint:
// twice the number of chunks between the previous run (or chunk 0) and this one, plus one if the
// run has more than one chunk. In that case another varint follows, the length of the run less two.
// A document's chunks are one run, so the values of a key that is unique per document take about
// four bytes.
type chunkSet struct {
	roaring bool
	bytes   []byte
}

var errChunkSet = damaged("set of chunks")

// maxStoredRuns is the largest number of runs that are stored as runs. Reading a run takes about as
// long as reading four members of a roaring bitmap, whose header takes the space of four members.
const maxStoredRuns = 32

// A chunkRun is the non-empty range of chunks start to end-1.
type chunkRun struct{ start, end uint32 }

// appendRun adds the chunks start to end-1 to runs that all lie before start.
func appendRun(runs []chunkRun, start, end uint32) []chunkRun {
	if n := len(runs); n > 0 && runs[n-1].end == start {
		runs[n-1].end = end
		return runs
	}
	return append(runs, chunkRun{start, end})
}

// appendChunkSet appends the set of the given runs, which ascend and do not touch, to b.
func appendChunkSet(b []byte, runs []chunkRun) []byte {
	if len(runs) > maxStoredRuns {
		return appendRoaring(b, roaringOf(runs))
	}
	var packed [maxStoredRuns * 2 * binary.MaxVarintLen64]byte
	size, next := 0, uint32(0)
	for _, r := range runs {
		gap := uint64(r.start-next) << 1
		if length := r.end - r.start; length == 1 {
			size += binary.PutUvarint(packed[size:], gap)
		} else {
			size += binary.PutUvarint(packed[size:], gap|1)
			size += binary.PutUvarint(packed[size:], uint64(length-2))
		}
		next = r.end
	}
	b = binary.AppendUvarint(b, uint64(size)<<1)
	return append(b, packed[:size]...)
}

// runsGain is how many times smaller run containers must make a bitmap to be used. A smaller gain
// does not pay, because a run takes longer to read than 64 chunks that are one bit each.
const runsGain = 4

// appendRoaring appends a bitmap to b.
func appendRoaring(b []byte, bitmap *roaring.Bitmap) []byte {
	ofRuns := bitmap.Clone()
	ofRuns.RunOptimize()
	if runsGain*ofRuns.GetSerializedSizeInBytes() <= bitmap.GetSerializedSizeInBytes() {
		bitmap = ofRuns
	}
	b = binary.AppendUvarint(b, bitmap.GetSerializedSizeInBytes()<<1|1)
	w := sliceWriter(b)
	if _, err := bitmap.WriteTo(&w); err != nil {
		panic(err) // only the writer can fail, and it never does
	}
	return w
}

type sliceWriter []byte

func (w *sliceWriter) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}

// roaringOf returns the bitmap of ascending runs.
func roaringOf(runs []chunkRun) *roaring.Bitmap {
	bitmap := roaring.New()
	var few [256]uint32
	n := 0
	for _, r := range runs {
		if r.end-r.start >= uint32(len(few)) {
			bitmap.AddMany(few[:n])
			n = 0
			bitmap.AddRange(uint64(r.start), uint64(r.end))
			continue
		}
		for c := r.start; c < r.end; c++ {
			if n == len(few) {
				bitmap.AddMany(few[:])
				n = 0
			}
			few[n] = c
			n++
		}
	}
	bitmap.AddMany(few[:n])
	return bitmap
}

// chunkSet reads a set written by appendChunkSet or appendRoaring.
func (d *decoder) chunkSet() chunkSet {
	head := d.uint()
	return chunkSet{roaring: head&1 != 0, bytes: d.bytes(head >> 1)}
}

// eachRun calls f for each run of a set that is stored as runs.
func (s chunkSet) eachRun(chunks uint32, f func(start, end uint32)) error {
	d, next := decoder{rest: s.bytes}, uint32(0)
	for len(d.rest) > 0 {
		gap, length := d.uint(), uint64(1)
		if gap&1 != 0 {
			length = d.uint() + 2
		}
		room := uint64(chunks - next)
		if gap >>= 1; d.failed || gap >= room || length > room-gap {
			return errChunkSet
		}
		start := next + uint32(gap)
		next = start + uint32(length)
		f(start, next)
	}
	return nil
}

// A chunkUnion collects sets into a bitset with one bit for each chunk.
type chunkUnion struct {
	chunks uint32
	words  bitset
	// clear is all ones for a union. It is zero for a symmetric difference. The symmetric
	// difference of disjoint sets is their union, and adding a set a second time removes it.
	clear uint64
}

func newUnion(chunks uint32) *chunkUnion {
	return &chunkUnion{chunks: chunks, words: newBitset(int(chunks)), clear: ^uint64(0)}
}

func newDifference(chunks uint32) *chunkUnion {
	return &chunkUnion{chunks: chunks, words: newBitset(int(chunks))}
}

// set returns the collected set. The caller must not add to the union afterwards.
func (u *chunkUnion) set() bitset {
	if rest := u.chunks & 63; rest != 0 { // a forged set may have more chunks
		u.words[len(u.words)-1] &= 1<<rest - 1
	}
	return u.words
}

// unlessAll returns the collected set, or nil if it has all chunks.
func (u *chunkUnion) unlessAll() bitset {
	set := u.set()
	if set.count() == int(u.chunks) {
		return nil
	}
	return set
}

// put adds the chunks of one word.
func (u *chunkUnion) put(word int, mask uint64) {
	u.words[word] = u.words[word]&^(mask&u.clear) ^ mask
}

// addRun adds the chunks start to end-1.
func (u *chunkUnion) addRun(start, end uint32) {
	first, last := int(start>>6), int((end-1)>>6)
	low, high := ^uint64(0)<<(start&63), ^uint64(0)>>(63-(end-1)&63)
	if first == last {
		u.put(first, low&high)
		return
	}
	u.put(first, low)
	for w := first + 1; w < last; w++ {
		u.put(w, ^uint64(0))
	}
	u.put(last, high)
}

// add adds a stored set.
func (u *chunkUnion) add(s chunkSet) error {
	if !s.roaring {
		return s.eachRun(u.chunks, u.addRun)
	}
	for c, err := range containers(s.bytes) {
		if err != nil {
			return err
		}
		if err := u.addContainer(c); err != nil {
			return err
		}
	}
	return nil
}

// walk calls f for the runs of a stored set in ascending order. Runs may touch. The union must be
// empty and is empty again afterwards.
func (u *chunkUnion) walk(s chunkSet, f func(start, end uint32)) error {
	if !s.roaring {
		return s.eachRun(u.chunks, f)
	}
	if err := u.add(s); err != nil {
		return err
	}
	for i, word := range u.set() {
		for base := 64 * uint32(i); word != 0; {
			start := uint32(bits.TrailingZeros64(word))
			length := uint32(bits.TrailingZeros64(^(word >> start)))
			f(base+start, base+start+length)
			word &^= (1<<length - 1) << start
		}
	}
	clear(u.words)
	return nil
}

// addContainer adds a container, which may be invalid.
func (u *chunkUnion) addContainer(c container) error {
	if c.base >= u.chunks {
		return errChunkSet
	}
	words, clear, data := u.words[c.base>>6:], u.clear, c.data
	switch c.form {
	case arrayForm:
		for ; len(data) >= 2; data = data[2:] {
			low := binary.LittleEndian.Uint16(data)
			w, mask := int(low>>6), uint64(1)<<(low&63)
			if w >= len(words) {
				return errChunkSet
			}
			words[w] = words[w]&^(mask&clear) ^ mask
		}
	case bitsForm:
		for i := range words {
			if len(data) < 8 {
				break
			}
			mask := binary.LittleEndian.Uint64(data)
			words[i] = words[i]&^(mask&clear) ^ mask
			data = data[8:]
		}
	case runsForm:
		for ; len(data) >= 4; data = data[4:] {
			start := uint64(c.base) + uint64(binary.LittleEndian.Uint16(data))
			end := start + uint64(binary.LittleEndian.Uint16(data[2:])) + 1
			if end > uint64(u.chunks) {
				return errChunkSet
			}
			u.addRun(uint32(start), uint32(end))
		}
	}
	return nil
}
