package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// A filteredDocument is a document as the filters see it.
type filteredDocument struct {
	first, end           uint32
	metadata             assay.Metadata
	acl                  assay.ACL
	collection, language string
}

// randomDocuments returns documents whose values are often equal, of several kinds under one key,
// and at the limits of their kinds.
func randomDocuments(r *rand.Rand, count int) []filteredDocument {
	docs := make([]filteredDocument, count)
	next := uint32(0)
	for i := range docs {
		chunks := uint32(r.IntN(3))
		if r.IntN(10) == 0 {
			chunks = uint32(r.IntN(300))
		}
		docs[i] = filteredDocument{
			first:      next,
			end:        next + chunks,
			metadata:   assay.Metadata{},
			acl:        randomACL(r),
			collection: fmt.Sprint("c", r.IntN(3)),
			language:   []string{"", "de", "en"}[r.IntN(3)],
		}
		next += chunks
		for _, key := range []string{"kind", "unique", "mixed", "", "m\x00"} {
			if r.IntN(5) > 0 {
				docs[i].metadata[key] = randomValue(r, key)
			}
		}
	}
	return docs
}

func randomACL(r *rand.Rand) assay.ACL {
	names := []string{"user:ann", "user:bob", "group:law", "group:law\nx", "*"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	acl, err := assay.RestrictTo(names[:r.IntN(3)]...)
	if err != nil {
		panic(err)
	}
	acl.Restricted = r.IntN(3) > 0
	return acl
}

func randomValue(r *rand.Rand, key string) assay.Value {
	words := []string{"", "a", "ab", "abc", "b", "\xff", "\xff\xff", "ä", "a\x00", "Abc", strings.Repeat("long", 50)}
	word := func() string {
		if key == "unique" {
			return words[r.IntN(len(words))] + fmt.Sprint(r.IntN(3000))
		}
		return words[r.IntN(len(words))]
	}
	kind := r.IntN(5)
	if key == "kind" {
		kind = 0
	}
	switch kind {
	case 0:
		return assay.StringValue(word())
	case 1:
		numbers := []float64{0, -1, 1, 1.5, -1.5, 1e300, -1e300, 5e-324, -5e-324, 1 << 53}
		n := numbers[r.IntN(len(numbers))]
		if key == "unique" {
			n = float64(r.IntN(5000)) / 7
		}
		if n == 0 && r.IntN(2) == 0 {
			n *= -1
		}
		return assay.NumberValue(n)
	case 2:
		return assay.BooleanValue(r.IntN(2) == 0)
	case 3:
		t := time.Date(1970, 1, 1, 0, 0, r.IntN(3)-1, r.IntN(3), time.UTC)
		switch r.IntN(8) {
		case 0:
			t = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
		case 1:
			t = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		}
		if key == "unique" {
			t = t.Add(time.Duration(r.IntN(5000)) * time.Hour)
		}
		return assay.Value{Kind: assay.KindTime, Time: t.In(time.FixedZone("", r.IntN(3)*3600))}
	default:
		var list []string
		for range r.IntN(4) {
			list = append(list, word())
		}
		return assay.ListValue(list...)
	}
}

// randomFilter returns a filter that Check accepts, usually with values that documents have.
func randomFilter(r *rand.Rand, docs []filteredDocument, depth int) assay.Filter {
	ops := []assay.FilterOp{assay.OpEquals, assay.OpNotEquals, assay.OpGreaterThan, assay.OpGreaterThanOrEquals,
		assay.OpLessThan, assay.OpLessThanOrEquals, assay.OpIn, assay.OpNotIn, assay.OpStartsWith,
		assay.OpStringContains, assay.OpListContains, assay.OpAndAll, assay.OpOrAll, assay.OpNot}
	if depth == 0 {
		ops = ops[:11]
	}
	for {
		f := assay.Filter{Op: ops[r.IntN(len(ops))]}
		switch f.Op {
		case assay.OpNot:
			f.Filters = []assay.Filter{randomFilter(r, docs, depth-1)}
		case assay.OpAndAll, assay.OpOrAll:
			for range 1 + r.IntN(3) {
				f.Filters = append(f.Filters, randomFilter(r, docs, depth-1))
			}
		default:
			f.Key = []string{"kind", "unique", "mixed", "m\x00", "gone"}[r.IntN(5)]
			f.Value = randomValue(r, f.Key)
			if m := docs[r.IntN(len(docs))].metadata; r.IntN(3) > 0 && m[f.Key].Kind != "" {
				f.Value = m[f.Key]
			}
			switch f.Op {
			case assay.OpIn, assay.OpNotIn:
				if f.Value.Kind == assay.KindString {
					f.Value = assay.ListValue(f.Value.String, "a", "")
				}
			case assay.OpStartsWith, assay.OpStringContains:
				if s := f.Value.String; s != "" {
					f.Value.String = s[:r.IntN(len(s)+1)]
				}
			}
		}
		if f.Check(nil) == nil {
			return f
		}
	}
}

// encodeFilters returns the filters of the documents.
func encodeFilters(t testing.TB, docs []filteredDocument) filters {
	t.Helper()
	w := newFilterWriter()
	for _, d := range docs {
		if err := w.add(d.first, d.end, d.metadata, d.acl, d.collection, d.language); err != nil {
			t.Fatal(err)
		}
	}
	return finishFilters(t, w, docs)
}

func finishFilters(t testing.TB, w *filterWriter, docs []filteredDocument) filters {
	t.Helper()
	chunks := uint32(0)
	if len(docs) > 0 {
		chunks = docs[len(docs)-1].end
	}
	var b bytes.Buffer
	if err := w.writeTo(&b, chunks); err != nil {
		t.Fatal(err)
	}
	f, err := openFilters(b.Bytes(), chunks)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// chunksOf returns the chunks of the documents for which keep is true.
func chunksOf(docs []filteredDocument, keep func(d filteredDocument) bool) bitset {
	want := newBitset(int(docs[len(docs)-1].end))
	for _, d := range docs {
		if keep(d) {
			want.setRange(d.first, d.end)
		}
	}
	return want
}

// mergedFilters splits documents into segments, drops some documents, and merges the rest. It
// returns the remaining documents and the merged filters.
func mergedFilters(t *testing.T, r *rand.Rand, docs []filteredDocument) ([]filteredDocument, filters) {
	t.Helper()
	var kept []filteredDocument
	w := newFilterWriter()
	next := uint32(0)
	for len(docs) > 0 {
		segment := slices.Clone(docs[:1+r.IntN(len(docs))])
		docs = docs[len(segment):]
		start := segment[0].first
		var newChunk []uint32
		for i := range segment {
			d := &segment[i]
			d.first, d.end = d.first-start, d.end-start
			chunks := d.end - d.first
			if r.IntN(4) == 0 {
				newChunk = append(newChunk, slices.Repeat([]uint32{dropped}, int(chunks))...)
				continue
			}
			moved := *d
			moved.first, moved.end = next, next+chunks
			kept = append(kept, moved)
			for range chunks {
				newChunk = append(newChunk, next)
				next++
			}
		}
		if err := w.addSegment(encodeFilters(t, segment), newChunk); err != nil {
			t.Fatal(err)
		}
	}
	return kept, finishFilters(t, w, kept)
}

func TestFiltersKeepWhatMatches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	compared, held := 0, 0
	rounds, filters := 12, 300
	if testing.Short() {
		rounds, filters = 6, 40
	}
	for round := range rounds {
		docs := randomDocuments(r, []int{1, 50, 1500}[round%3])
		f := encodeFilters(t, docs)
		if round%2 == 1 {
			docs, f = mergedFilters(t, r, docs)
		}
		if len(docs) == 0 {
			continue
		}
		for range filters {
			filter := randomFilter(r, docs, 3)
			got, err := f.keep(filter)
			if err != nil {
				t.Fatalf("keep(%v): %v", filter, err)
			}
			want := chunksOf(docs, func(d filteredDocument) bool {
				return filter.Match(d.metadata)
			})
			compared += len(docs)
			if want.count() > 0 {
				held++
			}
			if !slices.Equal(want, got) {
				t.Fatalf("keep(%v) keeps %d chunks, want %d", filter, got.count(), want.count())
			}
		}
	}
	if compared < 100_000 || held < rounds*filters/4 {
		t.Errorf("compared %d documents with filters, of which %d kept something", compared, held)
	}
}

// TestRangesOfManyValues checks ranges of keys that have enough values for anchors.
func TestRangesOfManyValues(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	docs := make([]filteredDocument, 12_000)
	next := uint32(0)
	for i := range docs {
		end := next + 1 + r.Uint32N(2)
		if r.IntN(1000) == 0 {
			end += 200
		}
		n := r.IntN(1 << 20)
		docs[i] = filteredDocument{first: next, end: end, metadata: assay.Metadata{
			"number": assay.NumberValue(float64(n-1<<19) / 3),
			"ninety": assay.NumberValue(float64(n % 90)),
			"string": assay.StringValue(fmt.Sprintf("%x", n)),
			"time":   assay.TimeValue(time.Unix(int64(i), int64(n))), // in chunk order
		}}
		if r.IntN(4) == 0 {
			delete(docs[i].metadata, []string{"number", "string", "time"}[r.IntN(3)])
		}
		next = end
	}
	f := encodeFilters(t, docs)
	for key, kind := range map[string]columnKind{"number": numberKind, "ninety": numberKind, "string": stringKind, "time": timeKind} {
		if c, err := f.column(columnID{metadataColumns, key, kind}); err != nil || len(c.anchors) < 5*16 {
			t.Fatalf("key %s has %d anchors, error %v", key, len(c.anchors)/16, err)
		}
		for range 30 {
			bound := docs[r.IntN(len(docs))].metadata[key]
			var filter assay.Filter
			switch {
			case bound.Kind == "":
				continue
			case kind == stringKind:
				prefix := assay.StringValue(bound.String[:r.IntN(len(bound.String)+1)])
				filter = assay.Filter{Op: assay.OpStartsWith, Key: key, Value: prefix}
			default:
				ops := []assay.FilterOp{assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals}
				filter = assay.Filter{Op: ops[r.IntN(4)], Key: key, Value: bound}
				if other := docs[r.IntN(len(docs))].metadata[key]; other.Kind != "" {
					filter = assay.And(filter, assay.Filter{Op: ops[r.IntN(4)], Key: key, Value: other})
				}
			}
			want := chunksOf(docs, func(d filteredDocument) bool { return filter.Match(d.metadata) })
			if got, err := f.keep(filter); err != nil || !slices.Equal(want, got) {
				t.Errorf("keep(%v) keeps %d chunks, %v, want %d", filter, got.count(), err, want.count())
			}
		}
	}
}

func TestMergedFiltersAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		docs, merged := mergedFilters(t, r, randomDocuments(r, 1000))
		want := encodeFilters(t, docs)
		if diff := cmp.Diff(want.bytes, merged.bytes); diff != "" {
			t.Fatalf("merged filters differ from those of the same documents:\n%s", diff)
		}
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	docs := randomDocuments(r, 500)
	f := encodeFilters(t, docs)
	for _, p := range []assay.Principal{
		{}, {User: "ann"}, {User: "bob", Groups: []string{"law"}}, {User: "x", Groups: []string{"law\nx"}}, {User: "eve\ngroup:law"},
		{User: "ann", Collections: []string{"c1"}}, {User: "bob", Collections: []string{"c0", "none", "c2"}}, {User: "bob", Collections: []string{}},
	} {
		want := chunksOf(docs, func(d filteredDocument) bool { return p.Access().Allows(d.collection, d.acl) })
		got, err := f.allowed(p.Access())
		if err != nil || !slices.Equal(want, got) {
			t.Errorf("allowed(%v) = %v, %v, want %v", p, got, err, want)
		}
	}
	for i := range docs {
		docs[i].acl = assay.ACL{}
	}
	if got, err := encodeFilters(t, docs).allowed(assay.Local().Access()); got != nil || err != nil {
		t.Errorf("allowed where nothing restricts = %v, %v, want nil, which is all", got, err)
	}
}

func TestInCollections(t *testing.T) {
	t.Parallel()
	docs := randomDocuments(rand.New(rand.NewPCG(7, 8)), 500)
	f := encodeFilters(t, docs)
	for _, names := range [][]string{{"c1"}, {"c2", "c0"}, {"gone"}, {"c1", "gone", "c1"}} {
		want := chunksOf(docs, func(d filteredDocument) bool { return slices.Contains(names, d.collection) })
		got, err := f.inCollections(names)
		if err != nil || !slices.Equal(want, got) {
			t.Errorf("inCollections(%q) = %v, %v, want %v", names, got, err, want)
		}
	}
	for _, names := range [][]string{nil, {"c0", "c1", "c2"}} {
		if got, err := f.inCollections(names); got != nil || err != nil {
			t.Errorf("inCollections(%q) = %v, %v, want nil, which is all", names, got, err)
		}
	}
}

func TestKindsAndLanguagesOfSeenChunks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	docs := randomDocuments(r, 60)
	f := encodeFilters(t, docs)
	for round := range 50 {
		seen := newBitset(int(f.chunks))
		kinds := map[string]map[assay.ValueKind]bool{}
		languages := map[string]bool{}
		for _, d := range docs {
			if d.first == d.end || round > 0 && r.IntN(30) > 0 {
				continue
			}
			seen.set(d.first + r.Uint32N(d.end-d.first))
			languages[d.language] = true
			for key, v := range d.metadata {
				if kinds[key] == nil {
					kinds[key] = map[assay.ValueKind]bool{}
				}
				kinds[key][v.Kind] = true
			}
		}
		if round == 0 {
			seen = nil
		}
		for _, key := range []string{"kind", "unique", "mixed", "", "m\x00", "gone"} {
			got, err := f.kinds(key, seen)
			if err != nil {
				t.Fatal(err)
			}
			list := got.list()
			slices.Sort(list)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds[key])), list); diff != "" {
				t.Errorf("kinds(%q): -want +got\n%s", key, diff)
			}
		}
		got, err := f.languages(seen)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(languages)), got); diff != "" {
			t.Errorf("languages: -want +got\n%s", diff)
		}
	}
}

func TestFiltersOfValuesWithoutKind(t *testing.T) {
	t.Parallel()
	err := newFilterWriter().add(0, 1, assay.Metadata{"broken": {}}, assay.ACL{}, "", "")
	if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), `"broken"`) {
		t.Errorf("add of a value of no kind = %v, want %v that names the key", err, assay.ErrInvalid)
	}
}

// FuzzFilters opens filters from damaged bytes with a valid checksum and runs all queries on them.
// They must return results or errors.
func FuzzFilters(f *testing.F) {
	const chunks = 3000
	r := rand.New(rand.NewPCG(13, 14))
	docs := randomDocuments(r, 40)
	for docs[len(docs)-1].end > chunks {
		docs = docs[:len(docs)-1]
	}
	docs = append(docs, filteredDocument{first: docs[len(docs)-1].end, end: chunks})
	whole := encodeFilters(f, docs).encoded()
	f.Add(whole, uint32(0), byte(0), uint32(len(whole)))
	for range 30 {
		f.Add(whole, r.Uint32N(uint32(len(whole))), byte(1+r.IntN(255)), r.Uint32N(uint32(len(whole)+1)))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint32, flip byte, cut uint32) {
		b = slices.Clone(b[:min(int64(cut), int64(len(b)))])
		if int64(at) < int64(len(b)) {
			b[at] ^= flip
		}
		if damaged, err := openFilters(b, chunks); err == nil {
			askEverything(t, damaged, docs)
		}
	})
}

// encoded returns the bytes that f was opened from.
func (f filters) encoded() []byte {
	b := slices.Concat(f.bytes, f.directory)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.columns()))
	return binary.LittleEndian.AppendUint32(b, f.chunks)
}

// askEverything checks that all results of f are valid chunks and that all errors wrap
// assay.ErrDamaged.
func askEverything(t *testing.T, f filters, docs []filteredDocument) {
	t.Helper()
	check := func(kept bitset, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("failed with %v, want %v", err, assay.ErrDamaged)
		}
		if i, ok := kept.next(f.chunks); ok {
			t.Errorf("kept chunk %d of %d", i, f.chunks)
		}
	}
	r := rand.New(rand.NewPCG(15, 16))
	for range 100 {
		check(f.keep(randomFilter(r, docs, 2)))
	}
	check(f.allowed(assay.Principal{User: "ann", Groups: []string{"law"}}.Access()))
	check(f.inCollections([]string{"c0", "c2"}))
	seen := newBitset(int(f.chunks))
	seen.set(17)
	for _, set := range []bitset{nil, seen} {
		_, err := f.languages(set)
		check(nil, err)
		for key := range docs[0].metadata {
			_, err := f.kinds(key, set)
			check(nil, err)
		}
	}
	w := newFilterWriter()
	newChunk := make([]uint32, f.chunks)
	for i := range newChunk {
		newChunk[i] = uint32(i / 2)
		if i%2 == 0 {
			newChunk[i] = dropped
		}
	}
	if err := w.addSegment(f, newChunk); err != nil {
		t.Fatal(err)
	}
	check(nil, w.writeTo(io.Discard, f.chunks/2))
}
