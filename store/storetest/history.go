package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A history is a naive model of content with vectors that the store is compared with.
type history struct {
	t         *testing.T
	h         Harness
	w         store.Writer
	rng       *rand.Rand
	documents map[string]*historyDocument         // by ID
	vectors   map[string]map[string]historyVector // by model and hash
	hashes    map[string]bool                     // that ever existed
	dropped   map[string]int64                    // the sequence at which a model was last dropped
	sequence  int64
	seed      int
}

type historyDocument struct {
	versions map[string]store.Entry // current and kept ones
	current  string                 // "": deleted
	sequence int64
}

type historyVector struct {
	values   []float32
	sequence int64
}

// testVectorsHistory takes random steps and after each compares everything that can be read about
// vectors. The vocabulary is small, so that passages are often equal.
func testVectorsHistory(t *testing.T, h Harness) {
	x := &history{
		t: t, h: h, w: openWriter(t, openTenant(t, h, "acme")), rng: rand.New(rand.NewPCG(3, 1)),
		documents: map[string]*historyDocument{}, vectors: map[string]map[string]historyVector{}, hashes: map[string]bool{}, dropped: map[string]int64{},
	}
	steps := []struct {
		weight int
		take   func()
	}{
		{10, x.put}, {2, x.delete}, {1, x.prune}, {10, x.putVectors}, {1, x.dropModel},
	}
	for step := range usually(50, 200) {
		n := x.rng.IntN(24)
		for _, s := range steps {
			if n -= s.weight; n < 0 {
				s.take()
				break
			}
		}
		x.sweep()
		for _, model := range []string{"a", "b"} {
			for _, after := range []int64{0, x.rng.Int64N(x.sequence + 1)} {
				x.check(model, after)
			}
		}
		var models []string
		for _, model := range slices.Sorted(maps.Keys(x.vectors)) {
			if len(x.vectors[model]) > 0 {
				models = append(models, model)
			}
		}
		wantModels(t, x.w, models...)
		if t.Failed() {
			t.Fatalf("after %d steps", step+1)
		}
	}
}

func (x *history) put() {
	var entries []store.Entry
	for _, i := range x.rng.Perm(5)[:1+x.rng.IntN(3)] {
		var text strings.Builder
		for range x.rng.IntN(4) {
			fmt.Fprintf(&text, "words %d\n", x.rng.IntN(6))
		}
		e := Entry("c", fmt.Sprint("/", i), text.String())
		e.Document.Title = fmt.Sprint("Title ", x.rng.IntN(2))
		d := x.documents[e.Document.ID]
		if d != nil && d.current == e.Document.Version && d.versions[d.current].Document.Title == e.Document.Title {
			continue // changes nothing
		}
		entries = append(entries, e)
	}
	x.sequence = mustPut(x.t, x.w, entries...)
	for _, e := range entries {
		d := x.documents[e.Document.ID]
		if d == nil {
			d = &historyDocument{versions: map[string]store.Entry{}}
			x.documents[e.Document.ID] = d
		}
		d.current, d.sequence = e.Document.Version, x.sequence
		d.versions[d.current] = e
		for _, p := range searched(e) {
			x.hashes[p.Hash()] = true
		}
	}
}

func (x *history) delete() {
	id := assay.DocumentID("c", fmt.Sprint("/", x.rng.IntN(5)))
	x.sequence = mustDelete(x.t, x.w, id)
	if d := x.documents[id]; d != nil && d.current != "" {
		d.current, d.sequence = "", x.sequence
	}
}

func (x *history) prune() {
	x.h.Advance(day)
	dropped := 0
	for _, d := range x.documents {
		for version := range d.versions {
			if version != d.current {
				delete(d.versions, version)
				dropped++
			}
		}
	}
	wantPrune(x.t, x.w, dropped)
}

func (x *history) putVectors() {
	model := []string{"a", "b"}[x.rng.IntN(2)]
	all := slices.Sorted(maps.Keys(x.hashes))
	var batch []store.Vector
	for _, i := range x.rng.Perm(len(all))[:x.rng.IntN(len(all)+1)/2] {
		x.seed++
		values := []float32{float32(x.seed), 1}
		if old, ok := x.vectors[model][all[i]]; ok && x.rng.IntN(2) == 0 {
			values = old.values
		}
		batch = append(batch, store.Vector{Hash: all[i], Values: values})
	}
	x.sequence = mustPutVectors(x.t, x.w, model, batch...)
	if x.vectors[model] == nil {
		x.vectors[model] = map[string]historyVector{}
	}
	for _, v := range batch {
		if old, ok := x.vectors[model][v.Hash]; !ok || old.values[0] != v.Values[0] {
			x.vectors[model][v.Hash] = historyVector{v.Values, x.sequence}
		}
	}
}

func (x *history) dropModel() {
	model := []string{"a", "b"}[x.rng.IntN(2)]
	if err := x.w.DropModel(x.t.Context(), model); err != nil {
		x.t.Fatal(err)
	}
	x.sequence = sequence(x.t, x.w)
	if len(x.vectors[model]) > 0 {
		x.dropped[model] = x.sequence
	}
	delete(x.vectors, model)
}

// sweep removes the vectors of passages that no version has.
func (x *history) sweep() {
	held := map[string]bool{}
	for _, d := range x.documents {
		for _, e := range d.versions {
			for _, p := range searched(e) {
				held[p.Hash()] = true
			}
		}
	}
	for _, all := range x.vectors {
		maps.DeleteFunc(all, func(hash string, _ historyVector) bool { return !held[hash] })
	}
}

// check compares the results for a model after a sequence.
func (x *history) check(model string, after int64) {
	x.t.Helper()
	want, missing := map[string][]float32{}, map[string]bool{}
	coverage := store.Coverage{}
	place := map[string]int64{} // chunks of changed documents → sequence
	for _, d := range x.documents {
		if d.current == "" {
			continue
		}
		for _, p := range searched(d.versions[d.current]) {
			v, ok := x.vectors[model][p.Hash()]
			coverage.Chunks++
			if ok {
				coverage.Embedded++
			}
			if d.sequence > after {
				place[p.Chunk.ID] = d.sequence
			}
			switch {
			case ok && (d.sequence > after || v.sequence > after):
				want[p.Chunk.ID] = v.values
			case !ok && d.sequence > after:
				missing[p.Hash()] = true
			}
		}
	}
	found := map[string]bool{}
	for _, p := range unembedded(x.t, x.w, model, after) {
		found[p.Hash()] = true
	}
	wantSame(x.t, fmt.Sprintf("Unembedded(%s, %d)", model, after), found, missing)
	wantCoverage(x.t, x.w, model, coverage.Embedded, coverage.Chunks)
	if 0 < after && after < x.dropped[model] {
		wantDropped(x.t, x.w, model, after)
		return
	}
	got := map[string][]float32{}
	last, changed := int64(0), true
	for _, v := range vectors(x.t, x.w, model, after) {
		if _, twice := got[v.Chunk]; twice {
			x.t.Errorf("Vectors(%s, %d) yields chunk %s twice", model, after, v.Chunk)
		}
		got[v.Chunk] = v.Values
		at, ok := place[v.Chunk]
		if ok && (!changed || at < last) {
			x.t.Errorf("Vectors(%s, %d) yields a chunk of change %d late", model, after, at)
		}
		last, changed = at, ok
	}
	wantSame(x.t, fmt.Sprintf("Vectors(%s, %d)", model, after), got, want)
}
