package indextest

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// checkSimilarities compares the similarities and vectors of all chunks in the source with the
// model. It includes chunks that access may not see and chunks that do not exist, in no particular
// order, one of them twice.
func checkSimilarities(t testing.TB, ix index.Index, m *model, access assay.Access, v index.Vector) {
	t.Helper()
	want := map[string]found{}
	for _, f := range m.nearest(access, assay.Query{Limit: 1}, v).found {
		want[f.chunk] = f
	}
	chunks := []string{"", "no chunk", strings.Repeat("0", 32), strings.Repeat("f", 32)}
	for _, id := range slices.Sorted(maps.Keys(m.source.latest)) {
		for _, c := range m.source.latest[id].Chunks {
			chunks = append(chunks, c.ID)
		}
	}
	slices.Reverse(chunks)
	chunks = append(chunks, chunks[0])
	got, err := ix.Similarities(t.Context(), access, v, chunks)
	if err != nil || len(got) != len(chunks) {
		t.Errorf("Similarities of %d chunks: %d, error %v", len(chunks), len(got), err)
		return
	}
	vectors, err := ix.Vectors(t.Context(), access, v.Model, chunks)
	if err != nil || len(vectors) != len(chunks) {
		t.Errorf("Vectors of %d chunks: %d, error %v", len(chunks), len(vectors), err)
		return
	}
	for i, id := range chunks {
		f, known := want[id]
		if known != (vectors[i] != nil) {
			t.Errorf("chunk %q: vector known %v, want %v", id, vectors[i] != nil, known)
		} else if known {
			if s, tolerance := similarity(v, vectors[i]); !(math.Abs(s-f.score) <= f.tolerance+tolerance) {
				t.Errorf("chunk %q has a vector of similarity %v, want %v within %v", id, s, f.score, f.tolerance)
			}
		}
		switch {
		case known != (got[i] != nil):
			t.Errorf("chunk %q: similarity known %v, want %v", id, got[i] != nil, known)
		case known && !(math.Abs(*got[i]-f.score) <= f.tolerance):
			t.Errorf("chunk %q has the similarity %v, want %v within %v", id, *got[i], f.score, f.tolerance)
		}
	}
}

// testSimilarities checks that Similarities returns the similarities of Nearest and Vectors the
// stored vectors, in the order of the given chunks. Invisible chunks are treated like chunks
// without a vector.
func testSimilarities(t *testing.T, c contract) {
	s := NewSource("a")
	seen, secret, later, section := about("seen"), restricted("secret", "user:ann"), about("later"), NewEntry("c", "long", "", "a part", "a section")
	section.Chunks[1].Kind = assay.ChunkSection
	putNear(s, seen, 30)
	putNear(s, secret, 20)
	s.Put(later, section)
	s.PutVectors(near.Model, map[string][]float32{section.Chunks[0].ID: angled(60), section.Chunks[1].ID: angled(0)})
	ix := c.open(t, s, t.TempDir())
	ask := []string{later.Chunks[0].ID, secret.Chunks[0].ID, seen.Chunks[0].ID, section.Chunks[1].ID, section.Chunks[0].ID, "none"}
	similarities := func(access assay.Access, v index.Vector) []float64 {
		t.Helper()
		list, err := ix.Similarities(t.Context(), access, v, ask)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(list))
		for i, x := range list {
			got[i] = -1
			if x != nil {
				got[i] = *x
			}
		}
		return got
	}
	cos := func(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }
	for _, flushed := range []bool{false, true} {
		if flushed {
			if err := ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			settle(t, ix)
		}
		for name, test := range map[string]struct {
			access assay.Access
			want   []float64 // -1: unknown
		}{
			"everyone": {everyone, []float64{-1, -1, cos(30), -1, cos(60), -1}},
			"ann":      {assay.Principal{User: "ann"}.Access(), []float64{-1, cos(20), cos(30), -1, cos(60), -1}},
			"nobody":   {assay.Access{}, []float64{-1, -1, -1, -1, -1, -1}},
		} {
			if diff := cmp.Diff(test.want, similarities(test.access, near), approximately); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
	other := index.Vector{Model: "other", Metric: index.Cosine, Values: []float32{1}}
	if diff := cmp.Diff([]float64{-1, -1, -1, -1, -1, -1}, similarities(everyone, other)); diff != "" {
		t.Errorf("a model without vectors: -want +got\n%s", diff)
	}
	for name, v := range map[string]index.Vector{
		"dimensions": {Model: near.Model, Metric: index.Cosine, Values: []float32{1}},
		"zero":       {Model: near.Model, Metric: index.Cosine, Values: make([]float32, 8)},
		"metric":     {Model: near.Model, Metric: "manhattan", Values: near.Values},
	} {
		if _, err := ix.Similarities(t.Context(), everyone, v, ask); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	s.PutVectors(near.Model, map[string][]float32{later.Chunks[0].ID: angled(10), seen.Chunks[0].ID: angled(80)})
	s.Delete(section.Document.ID)
	want := []float64{cos(10), -1, cos(80), -1, -1, -1}
	if diff := cmp.Diff(want, similarities(everyone, near), approximately); diff != "" {
		t.Errorf("after vectors came and a document went: -want +got\n%s", diff)
	}
}
