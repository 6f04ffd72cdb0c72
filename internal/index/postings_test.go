package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

// A postingsShape describes the random lists of a test.
type postingsShape struct {
	chunks uint32
	count  int
	maxTF  uint32
}

// shapes returns shapes with sizes around the boundaries of blocks, for sparse and dense lists with
// small and large frequencies.
func shapes() []postingsShape {
	var list []postingsShape
	for _, count := range []int{1, 2, 127, 128, 129, 255, 256, 257, 1000, 1024} {
		for _, gap := range []uint32{1, 2, 7, 100} {
			for _, maxTF := range []uint32{1, 2, 9, 300, 1<<32 - 1} {
				list = append(list, postingsShape{chunks: uint32(count) * gap, count: count, maxTF: maxTF})
			}
		}
	}
	return append(list, postingsShape{chunks: 1 << 20, count: 5, maxTF: 3}, postingsShape{chunks: 1 << 20, count: 128, maxTF: 3})
}

// randomPostings returns a list of the given shape, mostly with small frequencies.
func randomPostings(random *rand.Rand, shape postingsShape) []posting {
	var list []posting
	for c, left := uint32(0), shape.count; left > 0; c++ {
		if random.Uint32N(shape.chunks-c) < uint32(left) {
			list = append(list, posting{chunk: c, tf: 1 + random.Uint32N(1+random.Uint32N(shape.maxTF))})
			left--
		}
	}
	return list
}

// writePostings encodes a list for chunks of length 100.
func writePostings(list []posting, chunks uint32) postings {
	return written(list, slices.Repeat([]uint32{100}, int(chunks)))
}

func readPostings(p postings) (list []posting, err error) {
	err = p.each(func(x posting) { list = append(list, x) })
	return list, err
}

func TestPostings(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, shape := range shapes() {
		t.Run(fmt.Sprintf("%+v", shape), func(t *testing.T) {
			want := randomPostings(random, shape)
			p := writePostings(want, shape.chunks)
			got, err := readPostings(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(posting{})); diff != "" {
				t.Errorf("postings come back different (-want +got):\n%s", diff)
			}
			sets := []int{40, 1, 2, 1000, int(shape.chunks)} // one member in this many chunks
			for _, one := range sets[:rounds(1, len(sets), len(sets))] {
				checkSets(t, p, want, randomSet(random, int(shape.chunks), one))
			}
		})
	}
}

// randomSet returns a set of about n/one numbers less than n.
func randomSet(random *rand.Rand, n, one int) bitset {
	set := newBitset(n)
	if one == 1 {
		set.fill(n)
		return set
	}
	for range max(1, n/one) {
		set.set(random.Uint32N(uint32(n)))
	}
	return set
}

// checkSets compares countIn and among with their definitions.
func checkSets(t *testing.T, p postings, list []posting, set bitset) {
	t.Helper()
	var chunks []uint32
	set.each(func(c uint32) { chunks = append(chunks, c) })
	held := newBitset(int(p.chunks))
	want := 0
	for _, x := range list {
		held.set(x.chunk)
		if set.has(x.chunk) {
			want++
		}
	}
	if all := newBitset(int(p.chunks)); p.addTo(all) != nil || !cmp.Equal(all, held) {
		t.Error("addTo adds other chunks than each gives")
	}
	if got, err := p.countIn(set, len(chunks)); err != nil || got != want {
		t.Errorf("countIn of %d members = %d, %v, want %d", len(chunks), got, err, want)
	}
	var wantAmong, gotAmong []int
	for i, c := range chunks {
		if held.has(c) {
			wantAmong = append(wantAmong, i)
		}
	}
	if err := p.among(chunks, func(i int) { gotAmong = append(gotAmong, i) }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(wantAmong, gotAmong); diff != "" {
		t.Errorf("among %d chunks (-want +got):\n%s", len(chunks), diff)
	}
}

// TestWidePostings checks gaps of every width, in lists without a segment.
func TestWidePostings(t *testing.T) {
	t.Parallel()
	for width := range 33 {
		var gaps, tfs [blockSize]uint32
		want := make([]posting, blockSize)
		random := rand.New(rand.NewPCG(3, uint64(width)))
		chunk := uint64(0)
		for i := range want {
			if i%40 == 17 || width < 20 { // few enough that the sum fits
				gaps[i] = uint32(random.Uint64N(1 << width))
			}
			if i == 17 {
				gaps[i] = uint32(1<<width-1) >> 2 << 1
			}
			if chunk += uint64(gaps[i]); chunk > 1<<32-1000 {
				chunk -= uint64(gaps[i])
				gaps[i] = 0
			}
			tfs[i] = uint32(random.Uint64N(1 << width))
			want[i] = posting{chunk: uint32(chunk), tf: tfs[i] + 1}
			chunk++
		}
		data := appendPacked(appendPacked(nil, &gaps, uint(width)), &tfs, uint(width))
		var b block
		b.tfs, b.tfWidth = append(data[16*width:], make([]byte, padding)...), uint(width)
		if got := unpackChunks(&b.chunks, append(data[:16*width:16*width], make([]byte, padding)...), uint(width), 0); got != chunk {
			t.Errorf("width %d: chunks end before %d, want %d", width, got, chunk)
		}
		for i, w := range want {
			if got := (posting{chunk: b.chunks[i], tf: b.tf(i)}); got != w {
				t.Fatalf("width %d: posting %d is %v, want %v", width, i, got, w)
			}
		}
	}
}

func TestPostingsOfNothing(t *testing.T) {
	t.Parallel()
	var p postings
	set := newBitset(10)
	set.fill(10)
	if n, err := p.countIn(set, 10); n != 0 || err != nil {
		t.Errorf("countIn = %d, %v, want 0", n, err)
	}
	if list, err := readPostings(p); len(list) != 0 || err != nil {
		t.Errorf("each gave %v, %v, want nothing", list, err)
	}
	if err := p.among([]uint32{1, 2}, func(int) { t.Error("among found a chunk") }); err != nil {
		t.Error(err)
	}
}

// FuzzPostings reads arbitrary bytes. All ways of reading must return an error or postings that
// ascend and are in the segment.
func FuzzPostings(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 2))
	for _, count := range []int{1, 5, 128, 300, 1000} {
		list := randomPostings(random, postingsShape{chunks: 5000, count: count, maxTF: 9})
		f.Add(writePostings(list, 5000).bytes, count, uint32(5000), uint32(40), byte(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, count int, chunks, at uint32, flip byte) {
		if len(b) > 0 {
			b = slices.Clone(b)
			b[int(at)%len(b)] ^= flip
		}
		if chunks > 1<<20 {
			return // only slow
		}
		p := postings{count: count, bytes: b, chunks: chunks}
		list, err := readPostings(p)
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", err)
		}
		if err == nil && len(list) != count {
			t.Errorf("each gave %d postings of %d", len(list), count)
		}
		for i, x := range list {
			if x.chunk >= chunks || i > 0 && x.chunk <= list[i-1].chunk {
				t.Fatalf("chunk %d of %d after %v", x.chunk, chunks, list[:i])
			}
		}
		set := newBitset(int(chunks))
		for c := uint32(0); c < chunks; c += 1 + c/3 {
			set.set(c)
		}
		var members []uint32
		set.each(func(c uint32) { members = append(members, c) })
		n, countErr := p.countIn(set, len(members))
		among := 0
		amongErr := p.among(members, func(int) { among++ })
		if err == nil && (countErr != nil || amongErr != nil || n != among) {
			t.Errorf("countIn = %d, %v, among = %d, %v of postings that can be read", n, countErr, among, amongErr)
		}
	})
}
