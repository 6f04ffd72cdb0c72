package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// randomRuns returns runs of chunks that neither touch nor overlap. They are few or many, short or
// long, close together or far apart.
func randomRuns(r *rand.Rand, chunks uint32) []chunkRun {
	var runs []chunkRun
	gap, length := 1+r.Uint32N(1<<r.IntN(14)), 1+r.Uint32N(1<<r.IntN(12))
	limit := 1 + r.IntN(1<<r.IntN(17))
	for next := r.Uint32N(chunks); next < chunks && len(runs) < limit; {
		end := min(chunks, next+1+r.Uint32N(length))
		runs = append(runs, chunkRun{next, end})
		next = end + 1 + r.Uint32N(gap)
	}
	return runs
}

func bitsetOf(runs []chunkRun, chunks uint32) bitset {
	set := newBitset(int(chunks))
	for _, r := range runs {
		set.setRange(r.start, r.end)
	}
	return set
}

func TestChunkSets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	inRuns := 0
	forms := map[containerForm]int{}
	for range 300 {
		chunks := 1 + r.Uint32N(1<<r.IntN(19))
		runs := randomRuns(r, chunks)
		want := bitsetOf(runs, chunks)
		stored := append(appendChunkSet(nil, runs), 1)
		d := decoder{rest: stored}
		set := d.chunkSet()
		if d.failed || len(d.rest) != 1 {
			t.Fatalf("set of %d runs: reading it left %d bytes, want 1", len(runs), len(d.rest))
		}
		if !set.roaring {
			inRuns++
		} else {
			for c := range containers(set.bytes) {
				forms[c.form]++
			}
		}

		var walked []chunkRun
		scratch := newUnion(chunks)
		if err := scratch.walk(set, func(start, end uint32) { walked = appendRun(walked, start, end) }); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(runs, walked, cmp.AllowUnexported(chunkRun{})) || scratch.words.count() > 0 {
			t.Errorf("walking %v gives %v and leaves %d chunks", runs, walked, scratch.words.count())
		}

		others := randomRuns(r, chunks)
		other := bitsetOf(others, chunks)
		alone, union, difference := newUnion(chunks), newUnion(chunks), newDifference(chunks)
		for _, run := range others {
			union.addRun(run.start, run.end)
			difference.addRun(run.start, run.end)
		}
		if err := errors.Join(alone.add(set), union.add(set), difference.add(set)); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if alone.words[i] != want[i] || union.words[i] != want[i]|other[i] || difference.words[i] != want[i]^other[i] {
				t.Errorf("word %d of %v and %v: alone %x, union %x, difference %x", i, runs, others, alone.words[i], union.words[i], difference.words[i])
				break
			}
		}
	}
	if inRuns == 0 || len(forms) != 3 {
		t.Errorf("tested %d sets in runs, and containers of the forms %v, want all", inRuns, forms)
	}
}

// TestForgedSets checks sets that no writer produces but that have a valid checksum. They must not
// cause reads or writes out of bounds.
func TestForgedSets(t *testing.T) {
	t.Parallel()
	u16 := func(numbers ...uint16) []byte {
		var b []byte
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint16(b, n)
		}
		return b
	}
	join := func(parts ...[]byte) []byte {
		var b []byte
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	arrays := func(count uint16, rest ...uint16) []byte {
		return u16(append([]uint16{roaringCookie, 0, count, 0}, rest...)...)
	}
	ofRuns := func(members uint16, runs ...uint16) []byte {
		return join(u16(roaringRunsCookie, 0), []byte{1}, u16(0, members-1, uint16(len(runs)/2)), u16(runs...))
	}
	for name, b := range map[string][]byte{
		"nothing":                 nil,
		"another cookie":          u16(1, 0, 0, 0),
		"no count":                u16(roaringCookie, 0),
		"more containers":         arrays(2, 0, 0, 0, 0, 1),
		"far more containers":     u16(roaringCookie, 0, 0xffff, 0xffff),
		"bytes after it":          arrays(1, 0, 0, 0, 0, 1, 1),
		"too large a member":      arrays(1, 0, 0, 0, 0, 6000),
		"too large a container":   arrays(1, 1, 0, 0, 0, 0),
		"containers out of order": arrays(2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1),
		"a run past the end":      ofRuns(3, 4999, 2),
		"a run past 16 bits":      ofRuns(0xffff, 1, 0xffff),
	} {
		if err := newUnion(5000).add(chunkSet{roaring: true, bytes: b}); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: adding it = %v, want %v", name, err, assay.ErrDamaged)
		}
	}
	for name, b := range map[string][]byte{
		"a chunk too far": binary.AppendUvarint(nil, 5000<<1),
		"a run too far":   append(binary.AppendUvarint(nil, 4999<<1|1), 0),
		"too long a run":  binary.AppendUvarint([]byte{1}, 1<<64-3),
		"a second run":    append(binary.AppendUvarint(nil, 4999<<1), 0),
		"a cut run":       {1},
		"a cut varint":    {0x80},
	} {
		if err := newUnion(5000).add(chunkSet{bytes: b}); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: adding it = %v, want %v", name, err, assay.ErrDamaged)
		}
	}
}

// FuzzChunkSet reads sets from arbitrary bytes and checks that the readers fail or agree.
func FuzzChunkSet(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	const chunks = 70_000
	for range 20 {
		runs := randomRuns(r, chunks)
		f.Add(appendChunkSet(nil, runs[:min(len(runs), 5000)]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{rest: b}
		set := d.chunkSet()
		if d.failed {
			return
		}
		if err := checkChunkSet(set, chunks); err != nil {
			t.Error(err)
		}
	})
}

// checkChunkSet returns an error if the readers of a set disagree.
func checkChunkSet(set chunkSet, chunks uint32) error {
	union, scratch := newUnion(chunks), newUnion(chunks)
	walked := newBitset(int(chunks))
	addErr := union.add(set)
	walkErr := scratch.walk(set, func(start, end uint32) { walked.setRange(start, end) })
	if i, ok := union.set().next(chunks); ok {
		return fmt.Errorf("chunk %d of %d", i, chunks)
	}
	if (addErr == nil) != (walkErr == nil) {
		return fmt.Errorf("add: %w, walk: %w", addErr, walkErr)
	}
	if addErr == nil && !slices.Equal(walked, union.set()) {
		return fmt.Errorf("%d chunks walked, %d added", walked.count(), union.set().count())
	}
	return nil
}
