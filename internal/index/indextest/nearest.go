package indextest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// near is the query vector of most tests here. putNear puts chunks whose distance to it grows with
// the given angle.
var near = index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 0, 0, 0, 0, 0, 0, 0}}

// approximately compares similarities of the same vector in two indexes. The last digits may depend
// on the vectors that it was encoded with.
var approximately = cmpopts.EquateApprox(1e-3, 1e-3)

// angled returns the vector at the given angle to near, in degrees.
func angled(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0, 0, 0, 0, 0}
}

// putNear puts a document of one chunk and, in a second change, its vector.
func putNear(s *Source, e Entry, degrees float64) {
	s.Put(e)
	s.PutVectors(near.Model, map[string][]float32{e.Chunks[0].ID: angled(degrees)})
}

func about(uri string) Entry { return NewEntry("c", uri, "", "something of "+uri) }

// testNearestOrder checks the three metrics in typical numbers of dimensions, including odd ones.
func testNearestOrder(t *testing.T, c contract) {
	for _, dimensions := range []int{1, 2, 7, 24, 64, 65, 384, 1024} {
		w := newWorld(uint64(dimensions), 1)
		s := NewSource("a")
		var entries []Entry
		vectors := make(map[string][]float32)
		for i := range exactUpTo {
			e := about(fmt.Sprint(i))
			vectors[e.Chunks[0].ID] = w.vector(dimensions)
			entries = append(entries, e)
		}
		s.Put(entries...)
		s.PutVectors("m", vectors)
		ix, m := c.open(t, s, t.TempDir()), c.newModel(s)
		for _, flushed := range []bool{false, true} {
			if flushed {
				if err := ix.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, metric := range []index.Metric{index.Cosine, index.Dot, index.L2} {
				for _, limit := range []int{1, 10, exactUpTo, 1000} {
					v := index.Vector{Model: "m", Metric: metric, Values: w.vector(dimensions)}
					v.Values[0] += 0.01
					q := assay.Query{Text: "not used", Limit: limit}
					got, err := ix.Nearest(t.Context(), everyone, q, v)
					checkNearest(t, m.nearest(everyone, q, v), q, v, got, err)
				}
			}
		}
	}
}

// testNearestTies checks that equal vectors are ordered by chunk ID and that chunks without a
// vector are not returned.
func testNearestTies(t *testing.T, c contract) {
	s := NewSource("a")
	var ids []string
	for i := range 40 {
		e := about(fmt.Sprint(i))
		if i%4 == 0 {
			s.Put(e)
			continue
		}
		putNear(s, e, 30)
		ids = append(ids, e.Chunks[0].ID)
	}
	slices.Sort(ids)
	ix := c.open(t, s, t.TempDir())
	for _, limit := range []int{1, 7, 30, 100} {
		result := nearest(t, ix, assay.Query{Limit: limit}, near)
		var got []string
		for _, h := range result.Hits {
			got = append(got, h.Chunk)
			if math.Abs(h.Similarity-math.Cos(math.Pi/6)) > 0.02 || h.BM25 != 0 || len(h.Matched) != 0 {
				t.Errorf("hit %+v, want a similarity of about 0.866 and nothing of a text search", h)
			}
		}
		if diff := cmp.Diff(ids[:min(limit, 30)], got); diff != "" {
			t.Errorf("limit %d: -want +got\n%s", limit, diff)
		}
		if result.Total != 30 || result.Chunks != 40 || result.Index.Coverage != 0.75 || result.Index.Model != near.Model {
			t.Errorf("Total %d of %d, version %+v, want 30 of 40, model %s, coverage 0.75", result.Total, result.Chunks, result.Index, near.Model)
		}
	}
}

func testNearestInvalid(t *testing.T, c contract) {
	s := NewSource("a")
	putNear(s, about("1"), 10)
	ix := c.open(t, s, t.TempDir())
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	with := func(change func(*index.Vector)) index.Vector {
		v := near
		v.Values = slices.Clone(v.Values)
		change(&v)
		return v
	}
	ok := assay.Query{Limit: 1}
	unknownKey := assay.Filter{Op: assay.OpEquals, Key: "yaer", Value: assay.NumberValue(1)}
	for name, test := range map[string]struct {
		q     assay.Query
		v     index.Vector
		names []string
	}{
		"too few dimensions":  {ok, with(func(v *index.Vector) { v.Values = v.Values[:7] }), []string{"7", "8"}},
		"too many dimensions": {ok, with(func(v *index.Vector) { v.Values = append(v.Values, 1) }), []string{"9", "8"}},
		"no dimensions":       {ok, with(func(v *index.Vector) { v.Values = nil }), nil},
		"not a number":        {ok, with(func(v *index.Vector) { v.Values[3] = nan }), nil},
		"infinite":            {ok, with(func(v *index.Vector) { v.Values[7] = inf }), nil},
		"zero":                {ok, with(func(v *index.Vector) { clear(v.Values) }), nil},
		"unknown metric":      {ok, with(func(v *index.Vector) { v.Metric = "manhattan" }), []string{"manhattan"}},
		"no metric":           {ok, with(func(v *index.Vector) { v.Metric = "" }), nil},
		"limit 0":             {assay.Query{}, near, nil},
		"unknown key":         {assay.Query{Limit: 1, Filter: unknownKey}, near, []string{"yaer", "number"}},
	} {
		_, err := ix.Nearest(t.Context(), everyone, test.q, test.v)
		if !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
			continue
		}
		for _, part := range test.names {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not name %s", name, err, part)
			}
		}
	}
	for _, metric := range []index.Metric{index.Dot, index.L2} {
		v := with(func(v *index.Vector) { v.Metric = metric; clear(v.Values) })
		if result := nearest(t, ix, ok, v); len(result.Hits) != 1 {
			t.Errorf("a zero vector under %s: %+v, want a hit", metric, result)
		}
	}
	if result := searchAs(t, ix, everyone, assay.Query{Text: "something"}); result.Total != 1 {
		t.Errorf("after the errors %d found, want 1", result.Total)
	}
}

// testNearestUnknownModel checks that a model without vectors is not an error for any query, and
// neither is a source that never has vectors.
func testNearestUnknownModel(t *testing.T, c contract) {
	s := NewSource("a")
	ix := c.open(t, s, t.TempDir())
	check := func(v index.Vector, chunks int) {
		t.Helper()
		if result := nearest(t, ix, assay.Query{}, v); len(result.Hits) != 0 || result.Total != 0 || result.Chunks != chunks || result.Index.Coverage != 0 {
			t.Errorf("%+v, want no hits of %d chunks", result, chunks)
		}
	}
	check(near, 0)
	s.Put(about("1"))
	check(near, 1)
	putNear(s, about("2"), 10)
	check(index.Vector{Model: "other", Metric: index.Cosine, Values: []float32{1, 2}}, 2)

	texts := c.open(t, onlyText{s}, t.TempDir())
	result := nearest(t, texts, assay.Query{}, near)
	if len(result.Hits) != 0 || result.Chunks != 2 {
		t.Errorf("a source of texts only: %+v, want no hits of 2 chunks", result)
	}
}

// onlyText is a source without vectors.
type onlyText struct{ index.Source }

// testNearestLate checks vectors that arrive after the text, one by one, and are removed with their
// document.
func testNearestLate(t *testing.T, c contract) {
	s := NewSource("a")
	dir := t.TempDir()
	writer, reader := c.open(t, s, dir), c.open(t, s, dir)
	want := func(coverage float64, uris ...string) {
		t.Helper()
		for _, ix := range []index.Index{writer, reader} {
			result := nearest(t, ix, assay.Query{}, near)
			wantDocuments(t, s, result, uris...)
			if math.Abs(result.Index.Coverage-coverage) > 1e-9 || result.Sequence != sequence(t, s) {
				t.Errorf("version %+v, want sequence %d and coverage %v", result.Index, sequence(t, s), coverage)
			}
		}
	}
	flush := func() {
		t.Helper()
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, writer)
	}
	one, two, three := about("1"), about("2"), about("3")
	s.Put(one, two, three)
	want(0)
	flush()
	s.PutVectors("m", map[string][]float32{two.Chunks[0].ID: angled(20)})
	want(1./3, "2")
	s.PutVectors("m", map[string][]float32{one.Chunks[0].ID: angled(10)})
	want(2./3, "1", "2")
	flush()
	want(2./3, "1", "2")
	s.PutVectors("m", map[string][]float32{three.Chunks[0].ID: angled(5)})
	want(1, "3", "1", "2")

	// A newer vector of the same chunk replaces the old one.
	s.PutVectors("m", map[string][]float32{two.Chunks[0].ID: angled(1)})
	want(1, "2", "3", "1")
	flush()
	want(1, "2", "3", "1")
	s.PutVectors("m", map[string][]float32{two.Chunks[0].ID: angled(80)})
	want(1, "3", "1", "2")
	s.Delete(three.Document.ID)
	want(1, "1", "2")
	flush()
	want(1, "1", "2")

	// A document that is put again with the same text gets its vector back. A document with another
	// text has no vector, and gets the old one back when its old text returns.
	one.Document.Metadata = assay.Metadata{"year": assay.NumberValue(2024)}
	one = one.identified()
	s.Put(one)
	want(1, "1", "2")
	s.Put(NewEntry("c", "1", "", "something else"))
	want(0.5, "2")
	flush()
	s.Put(one, three)
	want(1, "3", "1", "2")
	s.Delete(one.Document.ID, two.Document.ID, three.Document.ID)
	want(0)
	flush()
	want(0)
}

// testNearestDropModel checks that a model whose vectors are all dropped is treated as unknown, and
// may return with other vectors.
func testNearestDropModel(t *testing.T, c contract) {
	s := NewSource("a")
	dir := t.TempDir()
	ix := c.open(t, s, dir)
	one := about("1")
	putNear(s, one, 10)
	wantDocuments(t, s, nearest(t, ix, assay.Query{}, near), "1")
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.DropModel(near.Model)
	for _, ix := range []index.Index{ix, c.open(t, s, dir)} {
		if result := nearest(t, ix, assay.Query{}, near); len(result.Hits) != 0 || result.Index.Coverage != 0 {
			t.Errorf("after the model was dropped: %+v", result)
		}
	}
	s.PutVectors(near.Model, map[string][]float32{one.Chunks[0].ID: angled(20)})
	for _, ix := range []index.Index{ix, c.open(t, s, dir)} {
		wantDocuments(t, s, nearest(t, ix, assay.Query{}, near), "1")
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	// No search runs between the drop of the old vectors and the new ones.
	two := about("2")
	s.Put(two)
	s.DropModel(near.Model)
	s.PutVectors(near.Model, map[string][]float32{two.Chunks[0].ID: angled(30)})
	for _, ix := range []index.Index{ix, c.open(t, s, dir)} {
		wantDocuments(t, s, nearest(t, ix, assay.Query{}, near), "2")
	}
	s.DropModel(near.Model)
	s.PutVectors(near.Model, map[string][]float32{one.Chunks[0].ID: {0, 1}})
	short := index.Vector{Model: near.Model, Metric: index.Cosine, Values: []float32{0, 1}}
	for _, ix := range []index.Index{ix, c.open(t, s, dir)} {
		wantDocuments(t, s, nearest(t, ix, assay.Query{}, short), "1")
		if _, err := ix.Nearest(t.Context(), everyone, assay.Query{Limit: 1}, near); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("a vector of the dimensions before: %v, want ErrInvalid", err)
		}
	}
}

// testNearestShared checks that chunks with the same text share a vector, and that section chunks
// are not searched.
func testNearestShared(t *testing.T, c contract) {
	s := NewSource("a")
	first, second := NewEntry("c", "first", "", "the same", "a section"), NewEntry("c", "second", "", "the same")
	first.Chunks[1].Kind = assay.ChunkSection
	s.Put(first)
	s.PutVectors("m", map[string][]float32{first.Chunks[0].ID: angled(10), first.Chunks[1].ID: angled(0)})
	ix := c.open(t, s, t.TempDir())
	result := nearest(t, ix, assay.Query{}, near)
	wantDocuments(t, s, result, "first")
	if result.Chunks != 1 || result.Total != 1 || result.Index.Coverage != 1 {
		t.Errorf("%+v, want one chunk, for a section is not searched", result)
	}
	s.Put(second)
	if result := nearest(t, ix, assay.Query{}, near); result.Total != 2 || result.Index.Coverage != 1 {
		t.Errorf("%+v, want two chunks of one vector", result)
	}
}

// testNearestAccess checks that access, collections and filters are applied before scoring, and
// that invisible chunks do not influence the result.
func testNearestAccess(t *testing.T, c contract) {
	s := NewSource("a")
	year := func(e Entry, n float64) Entry {
		e.Document.Metadata = assay.Metadata{"year": assay.NumberValue(n)}
		return e
	}
	elsewhere := NewEntry("d", "elsewhere", "", "something elsewhere")
	putNear(s, year(about("old"), 1999), 40)
	putNear(s, year(about("new"), 2024), 60)
	putNear(s, year(elsewhere, 2024), 50)
	s.Put(about("unknown"))
	ix := c.open(t, s, t.TempDir())
	before := nearest(t, ix, assay.Query{}, near)
	wantDocuments(t, s, before, "old", "elsewhere", "new")
	asked := searchAs(t, ix, everyone, assay.Query{Text: "something"})

	for i := range 30 {
		secret := restricted(fmt.Sprint("secret", i), "user:ann")
		secret.Document.Metadata = assay.Metadata{"codename": assay.StringValue("x"), "year": assay.StringValue("secret")}
		putNear(s, secret, float64(i))
		unknown := restricted(fmt.Sprint("unknown", i), "group:legal")
		s.Put(unknown)
	}
	for _, flushed := range []bool{false, true} {
		if flushed {
			if err := ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			settle(t, ix)
		}
		ignore := cmpopts.IgnoreFields(index.Result{}, "Sequence") // similarities are equal to the last bit
		if diff := cmp.Diff(before, nearest(t, ix, assay.Query{}, near), ignore, c.scores()); diff != "" {
			t.Errorf("documents that may not be seen change the result: -without +with\n%s", diff)
		}
		if diff := cmp.Diff(asked, searchAs(t, ix, everyone, assay.Query{Text: "something"}), ignore, c.scores()); diff != "" {
			t.Errorf("documents that may not be seen change the result of Search: -without +with\n%s", diff)
		}
		equals := func(key string, v assay.Value) assay.Query {
			return assay.Query{Limit: 100, Filter: assay.Filter{Op: assay.OpEquals, Key: key, Value: v}}
		}
		wantDocuments(t, s, nearest(t, ix, equals("year", assay.NumberValue(2024)), near), "elsewhere", "new")
		wantDocuments(t, s, nearest(t, ix, assay.Query{Collections: []string{"c", "none"}}, near), "old", "new")
		wantDocuments(t, s, nearest(t, ix, assay.Query{Collections: []string{"none"}}, near))
		for _, q := range []assay.Query{equals("codename", assay.StringValue("x")), equals("year", assay.StringValue("secret"))} {
			if _, err := ix.Nearest(t.Context(), everyone, q, near); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("filter %s of documents that may not be seen: error %v, want ErrInvalid", q.Filter, err)
			}
		}
		ann := assay.Principal{User: "ann"}.Access()
		result := nearestAs(t, ix, ann, equals("codename", assay.StringValue("x")), near)
		if result.Total != 30 || result.Chunks != 34 || math.Abs(result.Index.Coverage-33./34) > 1e-9 || s.uri(result.Hits[0].Document) != "secret0" {
			t.Errorf("ann sees %d of %d chunks, %+v; want 30 of 34", result.Total, result.Chunks, result.Index)
		}
		nobody, err := ix.Nearest(t.Context(), assay.Access{}, equals("codename", assay.StringValue("x")), near)
		if err != nil || len(nobody.Hits) != 0 || nobody.Total != 0 || nobody.Chunks != 0 || nobody.Index.Coverage != 0 {
			t.Errorf("the zero access: %v, %+v, want nothing", err, nobody)
		}
	}
}

// testNearestReopen checks that a flushed index opens without reading the vectors from the source.
func testNearestReopen(t *testing.T, c contract) {
	dir := t.TempDir()
	s := NewSource("a")
	ix := c.open(t, s, dir)
	w := newWorld(3, 30)
	s.Put(w.entries(30)...)
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		s.PutVectors(m.name, w.vectors(s, m.dimensions, 2))
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, ix)
	var queries []index.Vector
	var want []index.Result
	for range 5 {
		v := w.vectorQuery()
		queries, want = append(queries, v), append(want, nearest(t, ix, assay.Query{}, v))
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	read, readVectors := s.Read(), s.ReadVectors()
	again := c.open(t, s, dir)
	for i, v := range queries {
		if diff := cmp.Diff(want[i], nearest(t, again, assay.Query{}, v), c.scores()); diff != "" {
			t.Errorf("after reopening: -want +got\n%s", diff)
		}
	}
	if s.Read() != read || s.ReadVectors() != readVectors {
		t.Errorf("reopening read %d documents and %d vectors again", s.Read()-read, s.ReadVectors()-readVectors)
	}
	e := about("one more")
	putNear(s, e, 0)
	wantDocuments(t, s, nearest(t, again, assay.Query{}, near), "one more")
	if n := s.ReadVectors() - readVectors; n != 1 {
		t.Errorf("catching up with one vector read %d", n)
	}
}

// testNearestSourceFails checks that if the source fails midway, the new vectors are not searched,
// the texts are, and the next search tries again. Vectors of different lengths are reported as
// damage.
func testNearestSourceFails(t *testing.T, c contract) {
	s := NewSource("a")
	putNear(s, about("1"), 10)
	ix := c.open(t, s, t.TempDir())
	wantDocuments(t, s, nearest(t, ix, assay.Query{}, near), "1")
	two, three := about("2"), about("3")
	s.Put(two, three)
	s.PutVectors("m", map[string][]float32{two.Chunks[0].ID: angled(20), three.Chunks[0].ID: angled(30)})
	broken := errors.New("the disk is on fire")
	for _, after := range []int{0, 1} {
		s.FailVectorsAfter(after, broken)
		if _, err := ix.Nearest(t.Context(), everyone, assay.Query{Limit: 9}, near); !errors.Is(err, broken) {
			t.Errorf("the source failed after %d vectors: %v", after, err)
		}
		if result := search(t, ix, assay.Query{Text: "something"}); result.Total != 3 {
			t.Errorf("%d texts found while the vectors cannot be read, want 3", result.Total)
		}
	}
	s.FailVectorsAfter(-1, nil)
	wantDocuments(t, s, nearest(t, ix, assay.Query{}, near), "1", "2", "3")
	s.PutVectors("m", map[string][]float32{two.Chunks[0].ID: {1, 2, 3}})
	if _, err := ix.Nearest(t.Context(), everyone, assay.Query{Limit: 9}, near); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("vectors of 8 and 3 dimensions: %v, want ErrDamaged", err)
	}
}
