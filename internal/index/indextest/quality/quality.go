// Package quality compares searches on an index with those on the index of package index, over
// labelled sets and with the vectors of the embedded encoder. [Run] measures each set by text, by
// vectors and by both as package retrieve fuses them by default.
//
// Two small sets are compared unless ASSAY_QUALITY names others, separated by commas, or is "all". 100
// questions of each are asked, 20 with -short, and all with ASSAY_LONG=1.
// Vectors are kept in the folder ASSAY_TEST_VECTORS, by default assay/vectors in the user's cache
// folder, so that a text is encoded once. An interrupted run continues where it stopped.
package quality

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// An Engine is an index that is compared.
type Engine struct {
	Name string

	// Open returns an index of all of the source. It is closed when the test ends.
	Open func(t *testing.T, source index.VectorSource) index.Index

	// SameText says that text searches give the same hits and scores as package index, bit for bit.
	SameText bool

	// Overlap is the least mean share of the ten nearest passages that a vector search finds.
	Overlap float64
}

// Run compares engines on the sets. It fails where an engine is worse, see worse.
func Run(t *testing.T, engines ...Engine) {
	e := Encoder(t)
	for _, set := range sets(t) {
		t.Run(set.Name, func(t *testing.T) { compare(t, set, e, engines) })
	}
}

// Encoder returns the embedded encoder with its cache on disk.
func Encoder(t testing.TB) llm.Embedder {
	t.Helper()
	dir := os.Getenv("ASSAY_TEST_VECTORS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "assay", "vectors")
	}
	e, err := retrieval.CachedEncoders{Encoders: embedded.Encoders{}, Dir: dir}.Open(t.Context(), embedded.Model)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := e.(interface{ Close() error }); ok {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return e
}

// together is the name of the set that consists of all others.
const together = "together"

// sets reads the sets that ASSAY_QUALITY names.
func sets(t *testing.T) []testset.Set {
	t.Helper()
	root := filepath.Join(indextest.Data(t), "retrieval")
	names := strings.Split(cmp.Or(os.Getenv("ASSAY_QUALITY"), "xquad-en,hotpotqa-train100"), ",")
	most := indextest.Rounds(20, 100, math.MaxInt) // questions of a set
	if slices.Equal(names, []string{"all"}) {
		names = nil
		files, err := filepath.Glob(filepath.Join(root, "*", "corpus.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			names = append(names, filepath.Base(filepath.Dir(f)))
		}
		names = append(names, together)
	}
	var list []testset.Set
	for _, name := range names {
		if name == together {
			list = append(list, join(list, most))
			continue
		}
		set, err := testset.ReadSet(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		set.Queries = choose(set.Queries, most)
		list = append(list, set)
	}
	return list
}

// choose returns n questions, chosen by a hash of their IDs, in their order.
func choose(queries []testset.Query, n int) []testset.Query {
	if len(queries) <= n {
		return queries
	}
	hash := func(q testset.Query) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(q.ID))) }
	var hashes []string
	for _, q := range queries {
		hashes = append(hashes, hash(q))
	}
	slices.Sort(hashes)
	var chosen []testset.Query
	for _, q := range queries {
		if hash(q) < hashes[n] {
			chosen = append(chosen, q)
		}
	}
	return chosen
}

// join returns a set with all passages of sets and n of their questions.
func join(list []testset.Set, n int) testset.Set {
	all := testset.Set{Name: together}
	for _, set := range list {
		in := func(id string) string { return set.Name + "/" + id }
		for _, p := range set.Passages {
			p.ID = in(p.ID)
			all.Passages = append(all.Passages, p)
		}
		for _, q := range set.Queries {
			relevant := make(map[string]int)
			for id, grade := range q.Relevant {
				relevant[in(id)] = grade
			}
			q.ID, q.Relevant = in(q.ID), relevant
			all.Queries = append(all.Queries, q)
		}
	}
	all.Queries = choose(all.Queries, n)
	return all
}

// compare measures a set on package index and on each engine.
func compare(t *testing.T, set testset.Set, e llm.Embedder, engines []Engine) {
	opened, err := retrieval.Open(t.Context(), set, retrieval.Parts{Embedder: e, Progress: eval.ProgressTo(t.Output())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	from, ok := opened.Content.(index.VectorSource)
	if !ok {
		t.Fatalf("%T is not an index.VectorSource", opened.Content)
	}
	m, err := newMeasurement(t.Context(), opened, from)
	if err != nil {
		t.Fatal(err)
	}
	own, err := m.measure(t.Context(), opened.Index)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d passages, %d questions; overlap@10 of the index %.4f", len(set.Passages), len(set.Queries), own.meanOverlap())
	for _, engine := range engines {
		x := engine.Open(t, from)
		got, err := m.measure(t.Context(), x)
		if err != nil {
			t.Fatalf("%s: %v", engine.Name, err)
		}
		lines, problems := engine.judge(own, got)
		for _, line := range lines {
			t.Logf("%s | %s", set.Name, line)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", engine.Name, p)
		}
	}
}

// everyone may read the sets.
var everyone = assay.Local().Access()
