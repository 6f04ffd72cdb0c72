package storetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var vectorTests = []contractTest{
	{"none", testNoVectors},
	{"values come back", testVectorValues},
	{"after a sequence", testVectorsAfter},
	{"put again", testVectorsAgain},
	{"a passage in several places", testVectorsShared},
	{"words that come back", testVectorsReturn},
	{"a title that changes", testVectorsTitle},
	{"delete and prune", testVectorsPrune},
	{"put refuses what is wrong", testVectorsInvalid},
	{"models are apart", testModels},
	{"a model is dropped", testDropModel},
	{"what is yet to embed", testUnembedded},
	{"what is yet to embed, page by page", testUnembeddedMany},
	{"reading stops, and sees one state", testVectorsSnapshot},
	{"tenants are apart", testVectorsIsolation},
	{"a cancelled context", testVectorsCancelled},
	{"a random history", testVectorsHistory},
}

// searched returns the passages of the entries' searchable chunks.
func searched(entries ...store.Entry) []assay.Passage {
	var all []assay.Passage
	for _, e := range entries {
		for _, c := range e.Chunks {
			if c.Kind != assay.ChunkSection {
				all = append(all, passagesOf(e, c)...)
			}
		}
	}
	return all
}

// embed returns a vector of each passage, computed from its words and the seed.
func embed(seed int, passages ...assay.Passage) []store.Vector {
	var all []store.Vector
	for _, p := range passages {
		hash := p.Hash()
		all = append(all, store.Vector{Hash: hash, Values: []float32{float32(seed), float32(hash[0]), float32(hash[31])}})
	}
	return all
}

// mustPutVectors stores vectors of a model and returns the sequence.
func mustPutVectors(t *testing.T, w store.Writer, model string, vectors ...store.Vector) int64 {
	t.Helper()
	n, err := w.PutVectors(t.Context(), model, vectors...)
	if err != nil {
		t.Fatalf("PutVectors: %v", err)
	}
	return n
}

// vectors reads a model's vectors after a sequence.
func vectors(t *testing.T, c store.Content, model string, after int64) []assay.ChunkVector {
	t.Helper()
	var all []assay.ChunkVector
	for v, err := range c.Vectors(t.Context(), model, after) {
		if err != nil {
			t.Fatalf("Vectors(%d): %v", after, err)
		}
		all = append(all, assay.ChunkVector{Chunk: v.Chunk, Values: append([]float32(nil), v.Values...)})
	}
	return all
}

// chunkVectors returns the expected result of Vectors for the entries if all vectors come from
// embed.
func chunkVectors(seed int, entries ...store.Entry) []assay.ChunkVector {
	var all []assay.ChunkVector
	for _, p := range searched(entries...) {
		all = append(all, assay.ChunkVector{Chunk: p.Chunk.ID, Values: embed(seed, p)[0].Values})
	}
	return all
}

// unembedded returns the passages that a model has not embedded yet.
func unembedded(t *testing.T, c store.Content, model string, after int64) []assay.Passage {
	t.Helper()
	var all []assay.Passage
	for p, err := range c.Unembedded(t.Context(), model, after) {
		if err != nil {
			t.Fatalf("Unembedded(%d): %v", after, err)
		}
		all = append(all, p)
	}
	return all
}

// wantCoverage reports an error unless the coverage is the given one.
func wantCoverage(t *testing.T, c store.Content, model string, embedded, chunks int) {
	t.Helper()
	got, err := c.Coverage(t.Context(), model)
	if want := (store.Coverage{Chunks: chunks, Embedded: embedded}); err != nil || got != want {
		t.Errorf("Coverage(%s) = %+v, %v, want %+v", model, got, err, want)
	}
}

func wantModels(t *testing.T, c store.Content, want ...string) {
	t.Helper()
	got, err := c.Models(t.Context())
	if err != nil {
		t.Fatalf("Models: %v", err)
	}
	wantSame(t, "Models", got, want)
}

func testNoVectors(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	wantModels(t, w)
	wantCoverage(t, w, "m", 0, 0)
	if n := mustPutVectors(t, w, "m"); n != 0 {
		t.Errorf("PutVectors of none = %d, want 0", n)
	}
	n := mustPut(t, w, Entry("c", "/a", "one\ntwo\n"))
	if got := mustPutVectors(t, w, "m"); got != n {
		t.Errorf("PutVectors of none = %d, want %d", got, n)
	}
	if err := w.DropModel(t.Context(), "m"); err != nil {
		t.Errorf("DropModel of none: %v", err)
	}
	wantModels(t, w)
	wantCoverage(t, w, "m", 0, 2)
	wantSame(t, "Vectors", vectors(t, w, "m", 0), []assay.ChunkVector(nil))
	if got := sequence(t, w); got != n {
		t.Errorf("Sequence = %d after nothing was put, want %d", got, n)
	}
}

func testVectorValues(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	e := Entry("c", "/a", "one\n")
	mustPut(t, w, e)
	values := make([]float32, 1024)
	for i := range values {
		values[i] = float32(math.Sin(float64(i)))
	}
	copy(values, []float32{0, float32(math.Copysign(0, -1)), 1, -1, 9e17, -math.SmallestNonzeroFloat32})
	n := mustPutVectors(t, w, "gte/ü 1024", store.Vector{Hash: searched(e)[0].Hash(), Values: values})
	for name, c := range map[string]store.Content{
		"the writer": w, "the tenant": tenant.Content(), "another handle": openTenant(t, h, "acme").Content(),
	} {
		if got := sequence(t, c); got != n {
			t.Errorf("%s: Sequence = %d after PutVectors returned %d", name, got, n)
		}
		wantModels(t, c, "gte/ü 1024")
		got := vectors(t, c, "gte/ü 1024", 0)
		wantSame(t, name+": Vectors", got, []assay.ChunkVector{{Chunk: e.Chunks[1].ID, Values: values}})
		if math.Signbit(float64(got[0].Values[0])) || !math.Signbit(float64(got[0].Values[1])) {
			t.Errorf("%s: a zero has lost its sign", name)
		}
		wantCoverage(t, c, "gte/ü 1024", 1, 1)
	}
}

func testVectorsAfter(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	a, b, c := Entry("c", "/a", "a1\na2\n"), Entry("c", "/b", "b1\n"), Entry("c", "/c", "c1\nc2\n")
	s1 := mustPut(t, w, a, b)
	s2 := mustPutVectors(t, w, "m", embed(1, searched(a)...)...)
	s3 := mustPut(t, w, c)
	s4 := mustPutVectors(t, w, "m", embed(1, searched(c, b)...)...)
	a.Document.ACL = assay.ACL{Restricted: true}
	s5 := mustPut(t, w, a)
	if !(s1 < s2 && s2 < s3 && s3 < s4 && s4 < s5) {
		t.Fatalf("sequences %d %d %d %d %d do not grow", s1, s2, s3, s4, s5)
	}
	for _, test := range []struct {
		after int64
		want  []assay.ChunkVector
	}{
		{0, chunkVectors(1, b, c, a)},
		{-1, chunkVectors(1, b, c, a)},
		{s1, chunkVectors(1, c, a, b)},
		{s2, chunkVectors(1, c, a, b)},
		{s4, chunkVectors(1, a)},
		{s5, nil},
		{s5 + 7, nil},
	} {
		wantSame(t, fmt.Sprintf("Vectors(%d)", test.after), vectors(t, w, "m", test.after), test.want)
	}
	got := map[string][]float32{} // vectors stored on their own have no defined order
	for _, v := range vectors(t, w, "m", s3) {
		got[v.Chunk] = v.Values
	}
	want := map[string][]float32{}
	for _, v := range chunkVectors(1, a, b, c) {
		want[v.Chunk] = v.Values
	}
	wantSame(t, "Vectors(s3)", got, want)
	wantSame(t, "Changes after the vectors of a", changes(t, w, s1), []assay.Change{change(s3, c), change(s5, a)})
	wantSame(t, "Changes after the last vectors", changes(t, w, s4), []assay.Change{change(s5, a)})
}

func testVectorsAgain(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	passages := searched(e)
	n := mustPutVectors(t, w, "m", embed(1, passages...)...)
	if got := mustPutVectors(t, w, "m", embed(1, passages...)...); got != n || sequence(t, w) != n {
		t.Errorf("PutVectors again = %d, want %d; Sequence = %d", got, n, sequence(t, w))
	}
	n2 := mustPutVectors(t, w, "m", embed(2, passages[0])...)
	if n2 <= n {
		t.Errorf("PutVectors of other values = %d after %d", n2, n)
	}
	wantSame(t, "Vectors after the first", vectors(t, w, "m", n), chunkVectors(2, e)[:1])
	wantSame(t, "Vectors", vectors(t, w, "m", 0), append(chunkVectors(2, e)[:1], chunkVectors(1, e)[1:]...))
	both := append(embed(3, passages[1]), embed(4, passages[1])...)
	mustPutVectors(t, w, "m", both...)
	wantSame(t, "Vectors after two of one passage", vectors(t, w, "m", n2), chunkVectors(4, e)[1:])
	wantCoverage(t, w, "m", 2, 2)
}

func testVectorsShared(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	a, b := Entry("c", "/a", "same\nsame\nother\n"), Entry("d", "/b", "same\n")
	b.Document.Title = a.Document.Title
	n := mustPut(t, w, a, b)
	mustPutVectors(t, w, "m", embed(1, searched(b)...)...)
	want := append(chunkVectors(1, a)[:2], chunkVectors(1, b)...)
	wantSame(t, "Vectors", vectors(t, w, "m", 0), want)
	got := vectors(t, w, "m", n)
	if len(got) != len(want) {
		t.Errorf("Vectors after the documents = %v, want %v in some order", got, want)
	}
	wantCoverage(t, w, "m", 3, 4)
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), searched(a)[2:])
}

func testVectorsReturn(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	v1 := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, v1)
	n := mustPutVectors(t, w, "m", embed(1, searched(v1)...)...)

	// The same words with new metadata, and additional words.
	v2 := Entry("c", "/a", "zero\none\ntwo\n")
	v2.Document.Metadata = assay.Metadata{"year": assay.NumberValue(2024)}
	n2 := mustPut(t, w, v2)
	wantSame(t, "Vectors of the new version", vectors(t, w, "m", n), chunkVectors(1, v2)[1:])
	wantSame(t, "Unembedded of the new version", unembedded(t, w, "m", 0), searched(v2)[:1])
	wantCoverage(t, w, "m", 2, 3)

	// The previous version is stored again and then deleted.
	n3 := mustPut(t, w, v1)
	wantSame(t, "Vectors of the old version", vectors(t, w, "m", n2), chunkVectors(1, v1))
	n4 := mustDelete(t, w, v1.Document.ID)
	wantSame(t, "Vectors after it was deleted", vectors(t, w, "m", n3), []assay.ChunkVector(nil))
	wantSame(t, "all Vectors after it was deleted", vectors(t, w, "m", 0), []assay.ChunkVector(nil))
	wantSame(t, "Unembedded after it was deleted", unembedded(t, w, "m", 0), []assay.Passage(nil))
	wantCoverage(t, w, "m", 0, 0)
	mustPut(t, w, v2)
	wantSame(t, "Vectors after it came back", vectors(t, w, "m", n4), chunkVectors(1, v2)[1:])
}

func testVectorsTitle(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	n := mustPutVectors(t, w, "m", embed(1, searched(e)...)...)
	retitled := e
	retitled.Document.Title = "Another"
	bare := retitled
	bare.Document.Text, bare.Document.Anchors, bare.Chunks = "", nil, nil
	n2 := mustPut(t, w, bare)
	wantSame(t, "Vectors", vectors(t, w, "m", n), []assay.ChunkVector(nil))
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), searched(retitled))
	n3 := mustPutVectors(t, w, "m", embed(1, searched(retitled)...)...)
	wantSame(t, "Vectors under the new title", vectors(t, w, "m", n2), chunkVectors(1, retitled))

	// Another document takes over the title and the words in one transaction.
	e.Document.Source.Hash = "new"
	other := Entry("c", "/b", "two\n")
	other.Document.Title = retitled.Document.Title
	n4 := mustPut(t, w, e, other)
	wantSame(t, "Vectors of the other document", vectors(t, w, "m", n3), chunkVectors(1, other))

	// The document is stored again under its second title, with words that a kept version has in
	// part.
	mustDelete(t, w, other.Document.ID)
	mustPut(t, w, Entry("c", "/a", "three\n"))
	mustPut(t, w, retitled)
	wantSame(t, "Vectors after it came back", vectors(t, w, "m", n4), chunkVectors(1, retitled)[1:])
	wantSame(t, "Unembedded after it came back", unembedded(t, w, "m", 0), searched(retitled)[:1])
}

func testVectorsPrune(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	v1, v2, b := Entry("c", "/a", "one\ntwo\n"), Entry("c", "/a", "two\n"), Entry("c", "/b", "b\n")
	mustPut(t, w, v1, b)
	mustPutVectors(t, w, "m", embed(1, searched(v1, b)...)...)
	mustPut(t, w, v2)
	n := mustDelete(t, w, b.Document.ID)
	h.Advance(day)
	wantPrune(t, w, 2)
	if got := sequence(t, w); got != n {
		t.Errorf("Sequence = %d after Prune, want %d", got, n)
	}
	wantSame(t, "Vectors after Prune", vectors(t, w, "m", 0), chunkVectors(1, v2))
	wantModels(t, w, "m")

	// A vector of a passage that was deleted meanwhile.
	if got := mustPutVectors(t, w, "m", embed(1, searched(b)...)...); got != n {
		t.Errorf("PutVectors of what is gone = %d, want %d", got, n)
	}
	mustPut(t, w, v1, b)
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), append(searched(v1)[:1], searched(b)...))
	wantSame(t, "Vectors", vectors(t, w, "m", 0), chunkVectors(1, v1)[1:])

	mustDelete(t, w, v1.Document.ID, b.Document.ID)
	h.Advance(day)
	wantPrune(t, w, 3)
	wantModels(t, w)
	mustPut(t, w, b)
	wide := store.Vector{Hash: searched(b)[0].Hash(), Values: []float32{1, 2, 3, 4, 5}}
	mustPutVectors(t, w, "m", wide)
	wantSame(t, "Vectors of another length", vectors(t, w, "m", 0), []assay.ChunkVector{{Chunk: b.Chunks[1].ID, Values: wide.Values}})
}

func testVectorsInvalid(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	passages := searched(e)
	good := embed(1, passages[0])
	n := mustPutVectors(t, w, "m", good...)
	hash := passages[1].Hash()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, v := range map[string]store.Vector{
		"fewer dimensions":          {Hash: hash, Values: []float32{1, 2}},
		"more dimensions":           {Hash: hash, Values: []float32{1, 2, 3, 4}},
		"no dimensions":             {Hash: hash},
		"a value that is none":      {Hash: hash, Values: []float32{1, nan, 3}},
		"an infinite value":         {Hash: hash, Values: []float32{1, 2, inf}},
		"a negative infinite one":   {Hash: hash, Values: []float32{-inf, 2, 3}},
		"values that are too large": {Hash: hash, Values: []float32{8e17, 8e17, 0}},
		"no hash":                   {Values: []float32{1, 2, 3}},
		"a hash that is too short":  {Hash: hash[:30], Values: []float32{1, 2, 3}},
		"a hash in upper case":      {Hash: "A" + strings.Repeat("0", 31), Values: []float32{1, 2, 3}},
	} {
		_, err := w.PutVectors(t.Context(), "m", v)
		wantErr(t, "PutVectors with "+name, err, assay.ErrInvalid)
		_, err = w.PutVectors(t.Context(), "m", embed(2, passages[0])[0], v)
		wantErr(t, "PutVectors with a good one and "+name, err, assay.ErrInvalid)
	}
	_, err := w.PutVectors(t.Context(), "other", store.Vector{Hash: hash, Values: make([]float32, assay.MaxDimensions+1)})
	wantErr(t, "PutVectors with too many dimensions", err, assay.ErrInvalid)
	_, err = w.PutVectors(t.Context(), "m", store.Vector{Hash: hash, Values: make([]float32, 512)})
	for _, part := range []string{`"m"`, "3", "512"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error %v does not name %s", err, part)
		}
	}
	_, err = w.PutVectors(t.Context(), "", good...)
	wantErr(t, "PutVectors of a model without a name", err, assay.ErrInvalid)
	_, err = w.PutVectors(t.Context(), "\xff", good...)
	wantErr(t, "PutVectors of a model whose name is not UTF-8", err, assay.ErrInvalid)
	wantSame(t, "Vectors", vectors(t, w, "m", 0), chunkVectors(1, e)[:1])
	wantModels(t, w, "m")
	if got := sequence(t, w); got != n {
		t.Errorf("Sequence = %d, want %d", got, n)
	}
}

func testModels(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	passages := searched(e)
	n := mustPutVectors(t, w, "z", embed(1, passages...)...)
	short := store.Vector{Hash: passages[1].Hash(), Values: []float32{7}}
	n2 := mustPutVectors(t, w, "a", short)
	wantModels(t, w, "a", "z")
	wantSame(t, "Vectors of a", vectors(t, w, "a", 0), []assay.ChunkVector{{Chunk: e.Chunks[2].ID, Values: short.Values}})
	wantSame(t, "Vectors of z", vectors(t, w, "z", 0), chunkVectors(1, e))
	wantSame(t, "Vectors of z after those of a", vectors(t, w, "z", n), []assay.ChunkVector(nil))
	wantSame(t, "Vectors of another", vectors(t, w, "A", 0), []assay.ChunkVector(nil))
	wantSame(t, "Unembedded of a", unembedded(t, w, "a", 0), passages[:1])
	wantSame(t, "Unembedded of z", unembedded(t, w, "z", 0), []assay.Passage(nil))
	wantCoverage(t, w, "a", 1, 2)
	wantCoverage(t, w, "z", 2, 2)
	if got := sequence(t, w); n2 <= n || got != n2 {
		t.Errorf("sequences %d, %d; Sequence = %d", n, n2, got)
	}
}

func testDropModel(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	passages := searched(e)
	mustPutVectors(t, w, "m", embed(1, passages...)...)
	n := mustPutVectors(t, w, "other", embed(2, passages...)...)
	for range 2 {
		if err := w.DropModel(t.Context(), "m"); err != nil {
			t.Fatalf("DropModel: %v", err)
		}
		wantModels(t, w, "other")
	}
	if got := sequence(t, w); got != n+1 {
		t.Errorf("Sequence = %d after a model was dropped, want %d", got, n+1)
	}
	wantSame(t, "Changes", changes(t, w, n), []assay.Change(nil))
	wantSame(t, "Vectors", vectors(t, w, "m", 0), []assay.ChunkVector(nil))
	wantSame(t, "Vectors of another", vectors(t, w, "other", 0), chunkVectors(2, e))
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), passages)
	wantDropped(t, w, "m", n)
	n2 := mustPutVectors(t, w, "m", store.Vector{Hash: passages[0].Hash(), Values: []float32{1, 2}})
	want := []assay.ChunkVector{{Chunk: e.Chunks[1].ID, Values: []float32{1, 2}}}
	wantSame(t, "Vectors of another length", vectors(t, w, "m", 0), want)
	wantDropped(t, w, "m", n)
	wantSame(t, "Vectors after they were dropped", vectors(t, w, "m", n+1), want)
	wantSame(t, "Vectors after the last", vectors(t, w, "m", n2), []assay.ChunkVector(nil))
	wantSame(t, "Vectors of another after", vectors(t, w, "other", n), []assay.ChunkVector(nil))
}

// wantDropped reports an error unless reading vectors after the sequence fails because some were
// dropped.
func wantDropped(t *testing.T, c store.Content, model string, after int64) {
	t.Helper()
	n := 0
	for v, err := range c.Vectors(t.Context(), model, after) {
		wantErr(t, fmt.Sprintf("Vectors(%s, %d) = %v", model, after, v), err, assay.ErrNotFound)
		n++
	}
	if n != 1 {
		t.Errorf("Vectors(%s, %d) yields %d times, want one error", model, after, n)
	}
}

func testUnembedded(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	full, a, b := fullEntry(t), Entry("c", "/a", "a1\na2\n"), Entry("c", "/b", "b1\n")
	mustPut(t, w, full)
	n := mustPut(t, w, a)
	mustPut(t, w, b)
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), searched(full, a, b))
	wantSame(t, "Unembedded after the second", unembedded(t, w, "m", n), searched(b))
	wantSame(t, "Unembedded after all", unembedded(t, w, "m", n+100), []assay.Passage(nil))
	mustPutVectors(t, w, "m", embed(1, searched(a)[1])...)
	left := append(append(searched(full), searched(a)[0]), searched(b)...)
	wantSame(t, "Unembedded after one was embedded", unembedded(t, w, "m", 0), left)

	// Documents are added, changed and deleted while the caller works.
	c, b2 := Entry("c", "/c", "c1\n"), Entry("c", "/b", "b2\n")
	var got []assay.Passage
	for p, err := range w.Unembedded(t.Context(), "m", n) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			mustPut(t, w, c)
			mustPut(t, w, b2)
		}
		mustPutVectors(t, w, "m", embed(1, p)...)
		got = append(got, p)
	}
	wantSame(t, "Unembedded while documents change", got, searched(b, c, b2))
}

func testUnembeddedMany(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	const documents, lines = 9, 130 // not a multiple of any page size
	var entries []store.Entry
	for i := range documents {
		var text strings.Builder
		for j := range lines {
			fmt.Fprintf(&text, "document %d, line %d\n", i, j)
		}
		entries = append(entries, Entry("c", fmt.Sprintf("/%d", i), text.String()))
	}
	mustPut(t, w, entries[:5]...)
	mustPut(t, w, entries[5:]...)
	all := searched(entries...)
	wantSame(t, "Unembedded", unembedded(t, w, "m", 0), all)

	var got []assay.Passage
	var batch []store.Vector
	for p, err := range w.Unembedded(t.Context(), "m", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
		if len(got)%3 == 0 { // the model embeds only some of the passages
			batch = append(batch, embed(1, p)...)
		}
		if len(batch) == 32 {
			mustPutVectors(t, w, "m", batch...)
			batch = batch[:0]
		}
	}
	mustPutVectors(t, w, "m", batch...)
	wantSame(t, "Unembedded while it is embedded", got, all)
	wantCoverage(t, w, "m", len(all)/3, len(all))
	var left []assay.Passage
	for i, p := range all {
		if i%3 != 2 {
			left = append(left, p)
		}
	}
	wantSame(t, "Unembedded of what is left", unembedded(t, w, "m", 0), left)
}

func testVectorsSnapshot(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	a, b := Entry("c", "/a", "one\ntwo\n"), Entry("c", "/b", "three\n")
	mustPut(t, w, a, b)
	mustPutVectors(t, w, "m", embed(1, searched(a, b)...)...)
	for range w.Vectors(t.Context(), "m", 0) {
		break
	}
	for range w.Unembedded(t.Context(), "other", 0) {
		break
	}
	var got []assay.ChunkVector
	for v, err := range tenant.Content().Vectors(t.Context(), "m", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, assay.ChunkVector{Chunk: v.Chunk, Values: append([]float32(nil), v.Values...)}); len(got) == 1 {
			mustPutVectors(t, w, "m", embed(2, searched(a, b)...)...)
			mustDelete(t, w, b.Document.ID)
		}
	}
	wantSame(t, "Vectors that were read while others came", got, chunkVectors(1, a, b))
	wantSame(t, "Vectors", vectors(t, w, "m", 0), chunkVectors(2, a))
}

func testVectorsIsolation(t *testing.T, h Harness) {
	wa, wb := openWriter(t, openTenant(t, h, "a")), openWriter(t, openTenant(t, h, "b"))
	e := Entry("c", "/a", "one\n")
	mustPut(t, wa, e)
	mustPutVectors(t, wa, "m", embed(1, searched(e)...)...)
	wantModels(t, wb)
	n := mustPut(t, wb, e)
	wantSame(t, "b's Vectors", vectors(t, wb, "m", 0), []assay.ChunkVector(nil))
	wantSame(t, "b's Unembedded", unembedded(t, wb, "m", 0), searched(e))
	wantCoverage(t, wb, "m", 0, 1)
	if err := wb.DropModel(t.Context(), "m"); err != nil {
		t.Errorf("b's DropModel: %v", err)
	}
	if got := sequence(t, wb); got != n {
		t.Errorf("b's sequence is %d, want %d", got, n)
	}
	wantSame(t, "a's Vectors", vectors(t, wa, "m", 0), chunkVectors(1, e))
}

func testVectorsCancelled(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	e := Entry("c", "/a", "one\ntwo\n")
	mustPut(t, w, e)
	n := mustPutVectors(t, w, "m", embed(1, searched(e)...)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range w.Vectors(ctx, "m", 0) {
		seen, last = seen+1, err
		cancel()
	}
	wantErr(t, "Vectors after its context ended", last, context.Canceled)
	if seen != 2 {
		t.Errorf("Vectors yielded %d times, want one vector and the error", seen)
	}
	for _, err := range w.Unembedded(ctx, "other", 0) {
		wantErr(t, "Unembedded", err, context.Canceled)
	}
	_, err := w.Models(ctx)
	wantErr(t, "Models", err, context.Canceled)
	_, err = w.Coverage(ctx, "m")
	wantErr(t, "Coverage", err, context.Canceled)
	_, err = w.PutVectors(ctx, "m", embed(2, searched(e)...)...)
	wantErr(t, "PutVectors", err, context.Canceled)
	wantErr(t, "DropModel", w.DropModel(ctx, "m"), context.Canceled)
	wantSame(t, "Vectors", vectors(t, w, "m", 0), chunkVectors(1, e))
	if got := sequence(t, w); got != n {
		t.Errorf("Sequence = %d, want %d", got, n)
	}
}
