package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// testSegment returns a segment of some documents with everything in it.
func testSegment(t testing.TB) *segment {
	t.Helper()
	b := newBuilder()
	a := analysis.NewAnalyzer("")
	for i := range 20 {
		id := fmt.Sprintf("d%02d", (i*7)%20)
		d := assay.Document{
			ID: id, Version: "v" + id, Collection: fmt.Sprint("c", i%2), Title: "Title of " + id,
			Text: strings.Repeat("some words about os.Open ", i%4+1),
			Metadata: assay.Metadata{
				"s": assay.StringValue(id), "n": assay.NumberValue(float64(i) - 3.5), "b": assay.BooleanValue(i%2 == 0),
				"t": assay.TimeValue(time.Unix(int64(i)*1e9-1e10, 7)), "l": assay.ListValue("x", id),
			},
			ACL: assay.ACL{Restricted: i%3 == 0, Allow: []string{"user:ann"}[:i%2]},
		}
		if i%5 == 0 {
			d.Metadata = nil
		}
		var chunks []assay.Chunk
		for n := range i % 4 {
			chunks = append(chunks, assay.Chunk{ID: assay.ChunkID(id, d.Version, n), Start: 0, End: len(d.Text) - n, Headings: []string{"Part", id}[:n%3]})
		}
		if err := b.add(&d, chunks, a); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.segment()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contents reads everything there is in a segment; nil when a list in it is
// damaged.
func contents(s *segment) []string {
	var lines []string
	for n := range uint32(s.documentCount) {
		first, end := s.chunksOf(n)
		lines = append(lines, fmt.Sprint(s.documentID(n), s.documentVersion(n), s.collections[s.collection(n)], s.acls[s.acl(n)], end-first))
		for c := first; c < end; c++ {
			lines = append(lines, fmt.Sprint(s.chunkID(c), s.documentID(s.chunkDocument(c)), s.fieldLengths(c)))
		}
		s.find(s.documentID(n))
	}
	ok := true
	for name, key := range s.keys {
		ok = key.each(s.documentCount, func(document uint32, raw []byte) {
			v := rawValue(raw)
			lines = append(lines, fmt.Sprint(name, s.documentID(document), v.Kind, v.Text()))
		}) && ok
	}
	for i := range s.termCount {
		text, p := s.term(i)
		ok = p.each(func(x posting) { lines = append(lines, fmt.Sprint(text, s.chunkID(x.chunk), x.tf)) }) && ok
		s.lookup(text)
	}
	if !ok {
		return nil
	}
	slices.Sort(lines)
	return lines
}

// Merging, deleting and building give the same contents as building what is left.
func TestMerge(t *testing.T) {
	s := testSegment(t)
	all := contents(s)
	merged, err := merge([]view{wholeView(s)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, contents(merged.segment)); diff != "" {
		t.Errorf("merged alone: -want +got\n%s", diff)
	}
	var odd, even []uint32
	for n := range uint32(s.documentCount) {
		if n%2 == 0 {
			even = append(even, n)
		} else {
			odd = append(odd, n)
		}
	}
	halves := []view{wholeView(s).without(even), wholeView(s).without(odd)}
	if merged, err = merge(halves); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, contents(merged.segment)); diff != "" {
		t.Errorf("two halves merged: -want +got\n%s", diff)
	}
	whole := newSnapshot(1, []view{wholeView(s)})
	parts := newSnapshot(1, halves)
	if whole.chunks != parts.chunks || whole.total != parts.total || merged.total != s.total {
		t.Errorf("sums differ: %+v, %+v, %+v", whole, parts, merged)
	}
}

// However documents arrive, few segments are left.
func TestMergeViews(t *testing.T) {
	a := analysis.NewAnalyzer("")
	var views []view
	most := 0
	for i := range 1000 {
		b := newBuilder()
		d := assay.Document{ID: fmt.Sprint(i), Text: "some words"}
		if err := b.add(&d, []assay.Chunk{{ID: fmt.Sprint(i), End: 10}}, a); err != nil {
			t.Fatal(err)
		}
		s, err := b.segment()
		if err != nil {
			t.Fatal(err)
		}
		if views, err = mergeViews(append(views, wholeView(s))); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(views))
	}
	if most > 28 { // 7 of each of four classes
		t.Errorf("up to %d segments", most)
	}
	if s := newSnapshot(1, views); s.chunks != 1000 {
		t.Errorf("%d chunks left of 1000", s.chunks)
	}
}

// The score is what its formula says, computed here from the texts.
func TestScore(t *testing.T) {
	a := analysis.NewAnalyzer("")
	titles := []string{"red fox", "a dog", ""}
	bodies := []string{"the fox is quick and the fox is red", "dogs chase a fox", "nothing of that here, only long and boring words"}
	builder := newBuilder()
	var tf []map[string]float64
	var lengths []float64
	sum := 0.0
	for i := range bodies {
		d := assay.Document{ID: fmt.Sprint(i), Title: titles[i], Text: bodies[i]}
		if err := builder.add(&d, []assay.Chunk{{ID: fmt.Sprint(i), End: len(d.Text)}}, a); err != nil {
			t.Fatal(err)
		}
		counts := make(map[string]float64)
		length := 0.0
		for f, text := range map[int]string{titleField: titles[i], bodyField: bodies[i]} {
			for _, token := range analysis.Tokens(text, "") {
				counts[token.Term] += fieldWeights[f]
				length += fieldWeights[f]
			}
		}
		tf, lengths, sum = append(tf, counts), append(lengths, length), sum+length
	}
	segment, err := builder.segment()
	if err != nil {
		t.Fatal(err)
	}
	s := newSnapshot(1, []view{wholeView(segment)})
	result, err := s.search(t.Context(), assay.Local().Access(), assay.Query{Text: "red fox", Limit: 10})
	if err != nil || len(result.Hits) != 2 {
		t.Fatalf("%v: %+v", err, result)
	}
	for i, h := range result.Hits {
		want := 0.0
		for term, holding := range map[string]float64{"red": 1, "fox": 2} {
			idf := math.Log(1 + (3-holding+0.5)/(holding+0.5))
			n := tf[i][term]
			want += idf * n / (n + 0.9*(1-0.4+0.4*lengths[i]/(sum/3)))
		}
		if math.Abs(h.BM25-want) > 1e-12 {
			t.Errorf("hit %d has the score %v, want %v", i, h.BM25, want)
		}
	}
}

// Every flipped bit and every cut of a file is seen.
func TestOpenSegmentDamaged(t *testing.T) {
	file := testSegment(t).bytes
	for n := 0; n < len(file); n += 1 + n/8 {
		if _, err := openSegment(file[:n]); err == nil {
			t.Errorf("a file cut to %d of %d bytes opens", n, len(file))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		flipped := slices.Clone(file)
		bit := r.IntN(8 * len(file))
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := openSegment(flipped); err == nil {
			t.Errorf("a file with bit %d flipped opens", bit)
		}
	}
}

// A file whose checksum is right but whose content is not gives an error or
// some content, never a panic.
func FuzzSegment(f *testing.F) {
	file := testSegment(f).bytes
	f.Add(0, uint32(0), file)
	f.Add(headerBytes+8, uint32(1<<31), file)
	f.Add(len(file)-20, uint32(0xffffffff), file)
	f.Fuzz(func(t *testing.T, at int, flip uint32, data []byte) {
		if len(data) < headerBytes {
			return
		}
		file := slices.Clone(data)
		copy(file, newFrame(segmentFile)[:headerBytes])
		if at >= headerBytes && at+4 <= len(file) {
			binary.LittleEndian.PutUint32(file[at:], binary.LittleEndian.Uint32(file[at:])^flip)
		}
		s, err := openSegment(seal(file))
		if err != nil {
			return
		}
		contents(s)
		snapshot := newSnapshot(1, []view{wholeView(s)})
		q := assay.Query{Text: "title os.Open", Limit: 5, Filter: assay.Filter{Op: assay.OpNotEquals, Key: "s", Value: assay.StringValue("x")}}
		_, _ = snapshot.search(t.Context(), assay.Local().Access(), q)
		if s.documentCount < 100 {
			_, _ = merge([]view{wholeView(s)})
		}
	})
}

func FuzzManifest(f *testing.F) {
	s := testSegment(f)
	snap := newSnapshot(3, []view{wholeView(s).without([]uint32{1, 5, 19})})
	dir := f.TempDir()
	if _, err := snap.save(dir, "source", nil); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"source":"source","analysis":1,"sequence":3,"segments":[{"file":"` + s.fileName() + `","deleted":"AQMN"}]}`))
	f.Add([]byte(`{"segments":[{"file":"../x.segment"}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := readManifest(seal(append(newFrame(manifestFile), payload...)))
		if err != nil {
			return
		}
		if snap, _, err := m.open(dir, m.Source); err == nil && snap.sequence != m.Sequence {
			t.Errorf("sequence %d, want %d", snap.sequence, m.Sequence)
		}
	})
}

func TestBitset(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		n := 1 + r.IntN(300)
		s, want := newBitset(n), make(map[uint32]bool)
		start, end := uint32(r.IntN(n)), uint32(r.IntN(n+1))
		s.setRange(start, end)
		for i := start; i < end; i++ {
			want[i] = true
		}
		one := uint32(r.IntN(n))
		s.set(one)
		want[one] = true
		s.complement(n)
		s.each(func(i uint32) {
			if int(i) >= n || want[i] {
				t.Fatalf("%d of %d is in the complement of %v", i, n, want)
			}
			want[i] = true
		})
		if len(want) != n {
			t.Fatalf("%d of %d are in the set or its complement", len(want), n)
		}
	}
}

func TestWriteError(t *testing.T) {
	for cause, want := range map[error]error{syscall.ENOSPC: assay.ErrFull, syscall.EROFS: assay.ErrReadOnly, fs.ErrPermission: assay.ErrReadOnly} {
		if err := writeError(&fs.PathError{Op: "write", Path: "x", Err: cause}); !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("writeError(%v) = %v, want %v", cause, err, want)
		}
	}
}
