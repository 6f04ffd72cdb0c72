package index

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	"github.com/assay-rag/assay/internal/entity"
)

// testDocument returns a document with its chunks, possibly none.
func testDocument(i int) (*assay.Document, []assay.Chunk) {
	uri := fmt.Sprintf("d%02d", i)
	d := &assay.Document{
		ID: assay.DocumentID("c", uri), Collection: fmt.Sprint("c", i%2), Title: "Title of " + uri,
		Text: strings.Repeat("some words about os.Open ", i%4+1),
		Metadata: assay.Metadata{
			"s": assay.StringValue(uri), "n": assay.NumberValue(float64(i) - 3.5), "b": assay.BooleanValue(i%2 == 0),
			"t": assay.TimeValue(time.Unix(int64(i)*1e9-1e10, 7)), "l": assay.ListValue("x", uri),
			"language": assay.StringValue([]string{"en", "de"}[i%2]),
		},
		ACL: assay.ACL{Restricted: i%3 == 0, Allow: []string{"user:ann"}[:i%2]},
	}
	if i%5 == 0 {
		d.Metadata = nil
	}
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, "test")
	var chunks []assay.Chunk
	for n := range i % 4 {
		chunks = append(chunks, assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, n), End: len(d.Text) - n, Headings: []string{"Part", uri}[:n%3]})
	}
	return d, chunks
}

// buildSegment returns a segment in memory of the documents with the given numbers.
func buildSegment(t testing.TB, numbers ...int) *segment {
	t.Helper()
	b := newBuilder()
	for _, i := range numbers {
		d, chunks := testDocument(i)
		if err := b.add(d, chunks, analysis.NewAnalyzer(language(d))); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.cut(new(fileSink))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// contents returns all data in the live rows of some views.
func contents(views ...*view) ([]string, error) {
	var lines []string
	var failed error
	for _, v := range views {
		s := v.segment
		name := func(row uint32) string {
			n, err := s.documentOf(row)
			failed = errors.Join(failed, err)
			return fmt.Sprintf("%x/%x", s.document(n)[:idBytes], id(s.ids, row))
		}
		live := func(row uint32) bool { return !v.deleted.has(row) }
		for n := range uint32(s.documentCount) {
			first, end := s.rowsOf(n)
			for row := first; row < end; row++ {
				if live(row) {
					lines = append(lines, fmt.Sprintf("%x %s %d %v", s.document(n)[idBytes:2*idBytes], name(row), s.length(row), slices.Contains(s.blank, row)))
				}
			}
		}
		terms := s.dictionary.terms()
		for terms.next() {
			failed = errors.Join(failed, terms.postings().each(func(p posting) {
				if live(p.chunk) {
					lines = append(lines, fmt.Sprint(terms.term(), " ", name(p.chunk), p.tf))
				}
			}))
			_, err := s.dictionary.lookup(terms.term())
			failed = errors.Join(failed, err)
		}
		failed = errors.Join(failed, terms.err(), entityContents(v, func(row uint32, line string) { lines = append(lines, line+name(row)) }))
		for _, c := range v.sidecars {
			for i := range c.vectors.rows() {
				if row := c.vectors.chunkOf(i); live(row) && !c.replaced.has(row) {
					lines = append(lines, fmt.Sprintf("%s %s %.2f", c.vectors.model(), name(row), c.vectors.values(i, nil)))
				}
			}
		}
		for _, f := range []assay.Filter{
			{Op: assay.OpGreaterThan, Key: "n", Value: assay.NumberValue(3)}, {Op: assay.OpListContains, Key: "l", Value: assay.StringValue("x")},
			{Op: assay.OpEquals, Key: "b", Value: assay.BooleanValue(true)}, {Op: assay.OpLessThan, Key: "t", Value: assay.TimeValue(time.Unix(0, 0))},
		} {
			set, err := s.filters.keep(f)
			if failed = errors.Join(failed, err); err != nil {
				continue
			}
			set.each(func(row uint32) {
				if live(row) {
					lines = append(lines, fmt.Sprint(f, name(row)))
				}
			})
		}
		seen, err := v.visibleTo(assay.Local().Access())
		if failed = errors.Join(failed, err); err == nil {
			lines = append(lines, seen.languages...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), failed
}

// entityContents calls f with the entities that each live row of a view names, in both directions.
func entityContents(v *view, f func(row uint32, line string)) error {
	s := v.segment
	var keys []string
	var failed error
	entities := s.entities.terms()
	for entities.next() {
		keys = append(keys, entities.term())
		failed = errors.Join(failed, entities.postings().each(func(p posting) {
			if !v.deleted.has(p.chunk) {
				f(p.chunk, fmt.Sprintf("%s (%v) is named in ", entities.term(), p.tf == titled))
			}
		}))
	}
	for row := range uint32(s.rows) {
		list, err := s.mentions.of(row, nil)
		failed = errors.Join(failed, err)
		for _, m := range list {
			if !v.deleted.has(row) {
				f(row, fmt.Sprintf("%s (%v) is named in ", keys[m.entity], m.title))
				f(row, fmt.Sprintf("%s (%v) is named by ", keys[m.entity], m.title))
			}
		}
	}
	return errors.Join(failed, entities.err())
}

func wantContents(t *testing.T, want []string, views ...*view) {
	t.Helper()
	got, err := contents(views...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// withVectors returns v with vectors of a model for the rows for which take is true.
func withVectors(t *testing.T, v *view, model string, add float32, take func(row uint32) bool) *view {
	t.Helper()
	c, err := makeSidecar(new(fileSink), v.segment, model, 3, []float32{0, 0, 0}, func(w *vectorsWriter) error {
		for row := range uint32(v.segment.rows) {
			if take(row) {
				if err := w.add(row, []float32{float32(row) + add, 1, -1}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.addSidecar(c)
}

// evenDocuments returns the rows of the documents with even numbers, or with odd ones if odd is 1.
func evenDocuments(s *segment, odd uint32) bitset {
	set := newBitset(s.rows)
	for n := range uint32(s.documentCount) {
		if n%2 == odd {
			set.setRange(s.rowsOf(n))
		}
	}
	return set
}

// TestMerge checks that merging two complementary halves of a segment restores its content,
// including vectors.
func TestMerge(t *testing.T) {
	t.Parallel()
	whole := wholeView(buildSegment(t, upTo(20)...))
	whole = withVectors(t, whole, "m", 0, func(row uint32) bool { return row%3 != 0 })
	whole = withVectors(t, whole, "m", 0.5, func(row uint32) bool { return row%5 == 0 }) // replaces some
	whole = withVectors(t, whole, "other", 0, func(row uint32) bool { return row == 7 })
	want, err := contents(whole)
	if err != nil || len(want) < 100 {
		t.Fatalf("%d lines, %v", len(want), err)
	}
	for name, views := range map[string][]*view{
		"alone":  {whole},
		"halves": {whole.without(evenDocuments(whole.segment, 0)), whole.without(evenDocuments(whole.segment, 1))},
	} {
		m, err := merge(t.Context(), views, new(fileSink))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			wantContents(t, want, m.view)
			if m.view.segment.total != whole.segment.total || m.view.segment.rows != whole.segment.rows {
				t.Errorf("%d rows of length %d, want %d of %d", m.view.segment.rows, m.view.segment.total, whole.segment.rows, whole.segment.total)
			}
			if len(m.view.sidecars) != 2 {
				t.Errorf("%d sidecars, want one for each model", len(m.view.sidecars))
			}
		})
	}
	all := newBitset(whole.segment.rows)
	all.fill(whole.segment.rows)
	m, err := merge(t.Context(), []*view{whole.without(all)}, new(fileSink))
	if err != nil || m.view != nil {
		t.Errorf("merging what is all deleted gives %+v, %v", m, err)
	}
}

// TestMergeLate checks that deletions and vectors that arrive during a merge are applied to the
// merged segment.
func TestMergeLate(t *testing.T) {
	t.Parallel()
	a, b, other := wholeView(buildSegment(t, upTo(12)...)), wholeView(buildSegment(t, 12, 13, 14, 15)), wholeView(buildSegment(t, 16, 17, 18, 19))
	a = withVectors(t, a, "m", 0, func(row uint32) bool { return row%2 == 0 })
	b = b.without(evenDocuments(b.segment, 0))
	m, err := merge(t.Context(), []*view{a, b}, new(fileSink))
	if err != nil {
		t.Fatal(err)
	}
	everything := newBitset(b.segment.rows)
	everything.fill(b.segment.rows)
	late := withVectors(t, a, "m", 0.25, func(row uint32) bool { return row > 5 }).without(evenDocuments(a.segment, 1))
	rejoined, err := late.joinSmall(t.Context(), "m", new(fileSink))
	if err != nil {
		t.Fatal(err)
	}
	for name, now := range map[string][]*view{
		"nothing":           {other, a, b},
		"deleted":           {a.without(evenDocuments(a.segment, 0)), other, b},
		"all of one":        {other, a.without(evenDocuments(a.segment, 0))},
		"vectors":           {other, withVectors(t, b, "m", 7, func(row uint32) bool { return row > 1 }), late},
		"joined vectors":    {other, b, rejoined},
		"no vectors":        {other, a.withoutModels(func(string) bool { return true }), b},
		"another model":     {other, withVectors(t, a, "new", 1, func(uint32) bool { return true }), b},
		"all of everything": {other},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := contents(now...)
			if err != nil {
				t.Fatal(err)
			}
			views, err := m.in(t.Context(), now, new(fileSink))
			if err != nil {
				t.Fatal(err)
			}
			wantContents(t, want, views...)
		})
	}
}

// TestToMerge checks that few segments are left, in whatever sizes documents arrive, and that a
// chunk is not merged often.
func TestToMerge(t *testing.T) {
	t.Parallel()
	const smallRows = 2048
	settle := func(sizes []int) (left []int, rewritten int) {
		var views []*view
		for _, n := range sizes {
			views = append(views, &view{segment: &segment{rows: n}, live: n})
		}
		for group := toMerge(views, smallRows); group != nil; group = toMerge(views, smallRows) {
			sum := 0
			for _, g := range group {
				sum += g.live
				views = slices.DeleteFunc(views, func(v *view) bool { return v == g })
			}
			rewritten += sum
			views = append(views, &view{segment: &segment{rows: sum}, live: sum})
		}
		for _, v := range views {
			left = append(left, v.live)
		}
		return left, rewritten
	}
	bulk := slices.Repeat([]int{20_000}, 10)
	if left, rewritten := settle(append(bulk, 3000)); len(left) != 1 || rewritten > 2*203_000 {
		t.Errorf("a first ingest leaves %v after rewriting %d chunks", left, rewritten)
	}
	var sizes []int
	most, total := 0, 0
	for range 20_000 {
		var rewritten int
		sizes, rewritten = settle(append(sizes, 2))
		most, total = max(most, len(sizes)), total+rewritten
	}
	if most > 8 || total > 40*1000*1000 {
		t.Errorf("40,000 chunks by two: up to %d segments, %d chunks rewritten", most, total)
	}
	half := &view{segment: &segment{rows: 1000}, live: 499}
	if got := toMerge([]*view{half}, smallRows); len(got) != 1 {
		t.Errorf("a segment of which half is deleted is not rewritten: %v", got)
	}
	if got := toMerge([]*view{{segment: &segment{rows: maxMergedRows}, live: maxMergedRows}, {segment: &segment{rows: maxMergedRows}, live: maxMergedRows}}, smallRows); got != nil {
		t.Errorf("segments of the greatest size are merged")
	}
}

// TestScore checks the score against its formula, computed here from the texts.
func TestScore(t *testing.T) {
	t.Parallel()
	titles := []string{"red fox", "a dog", ""}
	bodies := []string{"the fox is quick and the fox is red", "dogs chase a fox", "nothing of that here, only long and boring words"}
	builder := newBuilder()
	a := analysis.NewAnalyzer("")
	var tf []map[string]float64
	var lengths []float64
	sum := 0.0
	order := make(map[string]int)
	for i := range bodies {
		d := assay.Document{ID: assay.DocumentID("c", fmt.Sprint(i)), Version: assay.DocumentVersion("", nil, ""), Title: titles[i], Text: bodies[i]}
		order[d.ID] = i
		if err := builder.add(&d, []assay.Chunk{{ID: assay.ChunkID(d.ID, d.Version, 0), End: len(d.Text)}}, a); err != nil {
			t.Fatal(err)
		}
		counts := make(map[string]float64)
		length := 0.0
		for weight, text := range map[float64]string{3: titles[i], 1: bodies[i]} {
			for _, token := range analysis.Tokens(text, "") {
				counts[token.Term] += weight
				length += weight
			}
		}
		tf, lengths, sum = append(tf, counts), append(lengths, length), sum+length
	}
	segment, err := builder.cut(new(fileSink))
	if err != nil {
		t.Fatal(err)
	}
	s := newSnapshot(1, nil, []*view{wholeView(segment)})
	result, err := s.search(t.Context(), assay.Local().Access(), assay.Query{Text: "red fox", Limit: 10})
	if err != nil || len(result.Hits) != 2 {
		t.Fatalf("%v: %+v", err, result)
	}
	for _, h := range result.Hits {
		want := 0.0
		i := order[h.Document]
		for term, holding := range map[string]float64{"red": 1, "fox": 2} {
			idf := math.Log(1 + (3-holding+0.5)/(holding+0.5))
			n := tf[i][term]
			want += idf * n / (n + 0.9*(1-0.4+0.4*lengths[i]/(sum/3)))
		}
		if math.Abs(h.BM25-want) > 1e-8 {
			t.Errorf("document %d has the score %v, want %v", i, h.BM25, want)
		}
	}
}

// TestIDs checks that IDs must be 32 lower-case hexadecimal digits, and that documents with other
// IDs are not indexed.
func TestIDs(t *testing.T) {
	t.Parallel()
	good := assay.DocumentID("c", "x")
	if raw, ok := parseID(good); !ok || hex.EncodeToString(raw[:]) != good {
		t.Errorf("parseID(%s) = %x, %v", good, raw, ok)
	}
	for _, bad := range []string{"", "x", good[:31], good + "0", strings.ToUpper("A" + good[1:]), "g" + good[1:], strings.Repeat("é", 16)} {
		if _, ok := parseID(bad); ok {
			t.Errorf("parseID(%q) is an ID", bad)
		}
		for _, ids := range [][3]string{{bad, good, good}, {good, bad, good}, {good, good, bad}} {
			d := &assay.Document{ID: ids[0], Version: ids[1], Text: "x"}
			err := newBuilder().add(d, []assay.Chunk{{ID: ids[2], End: 1}}, analysis.NewAnalyzer(""))
			if !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("document with the IDs %q: %v, want ErrInvalid", ids, err)
			}
		}
	}
}

// fileOf returns a copy of the bytes of a segment's file.
func fileOf(s *segment) []byte { return slices.Clone(s.file.bytes) }

// TestSegmentDamaged checks that every flipped bit and every truncation of a file is detected.
func TestSegmentDamaged(t *testing.T) {
	t.Parallel()
	good := buildSegment(t, upTo(20)...)
	for n := 0; n < len(good.file.bytes); n += 1 + n/8 {
		if _, err := openSegment(&file{bytes: good.file.bytes[:n]}); err == nil {
			t.Errorf("a file cut to %d of %d bytes opens", n, len(good.file.bytes))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		flipped := fileOf(good)
		bit := r.IntN(8 * len(flipped))
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := openSegment(&file{bytes: flipped}); err == nil {
			t.Errorf("a file with bit %d flipped opens", bit)
		}
	}
}

// TestFrame checks that a frame returns the sections as written, each aligned for mapping.
func TestFrame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		var want [][]byte
		for range r.IntN(5) {
			section := make([]byte, r.IntN(200_000)>>r.IntN(18))
			for i := range section {
				section[i] = byte(r.Uint32())
			}
			want = append(want, section)
		}
		f, err := new(fileSink).make("", func(w io.Writer) error {
			frame := newFrameWriter(w, segmentFile)
			for _, section := range want {
				frame.section()
				for part := range slices.Chunk(section, 1+r.IntN(70_000)) {
					if _, err := frame.Write(part); err != nil {
						return err
					}
				}
			}
			return frame.finish()
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := unframe(f.bytes, segmentFile, len(want))
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%d sections are not what was written: %v", len(want), err)
		}
		if _, err := unframe(f.bytes, vectorsFile, len(want)); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("a file of another kind: %v", err)
		}
	}
	full := errors.New("the disk is full")
	if _, err := new(fileSink).make("", func(io.Writer) error {
		frame := newFrameWriter(failingWriter{full}, segmentFile)
		_, _ = frame.section().Write(make([]byte, 1<<20))
		return frame.finish()
	}); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestBitset(t *testing.T) {
	t.Parallel()
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
		if s.count() != len(want) {
			t.Fatalf("count %d of %v", s.count(), want)
		}
		others := newBitset(n)
		copy(others, s)
		s.complement(n)
		if s.andNot(others); s.count() != n-len(want) {
			t.Fatalf("%d of %d are not in a set of %d", s.count(), n, len(want))
		}
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
	t.Parallel()
	for cause, want := range map[error]error{syscall.ENOSPC: assay.ErrFull, syscall.EROFS: assay.ErrReadOnly, fs.ErrPermission: assay.ErrReadOnly} {
		if err := writeError(&fs.PathError{Op: "write", Path: "x", Err: cause}); !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("writeError(%v) = %v, want %v", cause, err, want)
		}
	}
}

// FuzzManifest checks that any manifest with a correct checksum opens or returns an error.
func FuzzManifest(f *testing.F) {
	d := newFolder(f.TempDir())
	to := &fileSink{folder: d}
	b := newBuilder()
	document, chunks := testDocument(7)
	if err := b.add(document, chunks, analysis.NewAnalyzer("")); err != nil {
		f.Fatal(err)
	}
	s, err := b.cut(to)
	if err != nil {
		f.Fatal(err)
	}
	snap := newSnapshot(3, nil, []*view{wholeView(s)})
	if _, err := d.save(snap, "source"); err != nil {
		f.Fatal(err)
	}
	f.Add(fmt.Appendf(nil, `{"source":"source","analysis":%d,"entities":%d,"sequence":3,"segments":[{"file":"%s","checksum":%d,"deleted":"AQMN"}]}`, analysis.Version, entity.Version, s.file.name, checksum(s.file.bytes)))
	f.Add(fmt.Appendf(nil, `{"analysis":%d,"entities":%d,"segments":[{"file":"%s","checksum":%d,"vectors":[{"file":"x.vectors","replaced":"AAAA"}]}]}`, analysis.Version, entity.Version, s.file.name, checksum(s.file.bytes)))
	f.Add([]byte(`{"segments":[{"file":"../x.segment"}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame, err := new(fileSink).make("", func(w io.Writer) error {
			frame := newFrameWriter(w, manifestFile)
			_, _ = frame.section().Write(payload)
			return frame.finish()
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseManifest(frame.bytes)
		if err != nil {
			return
		}
		got, err := m.open(d, m.Source)
		if err != nil {
			return
		}
		defer got.release()
		if got.sequence != m.Sequence {
			t.Errorf("sequence %d, want %d", got.sequence, m.Sequence)
		}
		_, err = got.search(context.Background(), assay.Local().Access(), assay.Query{Text: "words", Limit: 3})
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Error(err)
		}
	})
}
