// Package quality compares searches on an index with those on the index of package index, over
// labelled sets and with the vectors of the embedded encoder. [Run] measures each set by text, by
// vectors and by both as package retrieve fuses them by default.
//
// Two small sets are compared unless ASSAY_QUALITY names others, separated by commas, or is "all". 100
// questions of each are asked, 20 with -short, and of a set of more than 2,000 passages those are
// searched that are relevant to them, and others. They are chosen by a hash of their IDs. With
// ASSAY_LONG=1 sets are complete.
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

// together is the name of a set that consists of those before it.
const together = "together"

// sets reads the sets that ASSAY_QUALITY names.
func sets(t *testing.T) []testset.Set {
	t.Helper()
	root := filepath.Join(indextest.Data(t), "retrieval")
	names := strings.Split(cmp.Or(os.Getenv("ASSAY_QUALITY"), "xquad-en,hotpotqa-train100"), ",")
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
	questions, passages := indextest.Rounds(20, 100, math.MaxInt), indextest.Rounds(2000, 2000, math.MaxInt)
	var list []testset.Set
	for _, name := range names {
		if name == together {
			list = append(list, shorten(join(list), questions, math.MaxInt))
			continue
		}
		set, err := testset.ReadSet(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, shorten(set, questions, passages))
	}
	return list
}

// shorten returns a set with at most as many questions, and as many passages, but all that are
// relevant to the questions.
func shorten(set testset.Set, questions, passages int) testset.Set {
	set.Queries = choose(set.Queries, questions, func(q testset.Query) string { return q.ID })
	relevant := make(map[string]bool)
	for _, q := range set.Queries {
		for id := range q.Relevant {
			relevant[id] = true
		}
	}
	isRelevant := func(p testset.Passage) bool { return relevant[p.ID] }
	others := slices.DeleteFunc(slices.Clone(set.Passages), isRelevant)
	for _, p := range choose(others, max(0, passages-len(relevant)), func(p testset.Passage) string { return p.ID }) {
		relevant[p.ID] = true
	}
	set.Passages = slices.DeleteFunc(slices.Clone(set.Passages), func(p testset.Passage) bool { return !isRelevant(p) })
	return set
}

// choose returns n elements, chosen by a hash of their IDs, in their order.
func choose[E any](list []E, n int, id func(E) string) []E {
	if len(list) <= n {
		return list
	}
	hash := func(e E) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(id(e)))) }
	var hashes []string
	for _, e := range list {
		hashes = append(hashes, hash(e))
	}
	slices.Sort(hashes)
	return slices.DeleteFunc(slices.Clone(list), func(e E) bool { return hash(e) >= hashes[n] })
}

// join returns a set of all passages and questions of sets.
func join(list []testset.Set) testset.Set {
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
	return all
}

// compare measures a set on package index and on each engine.
func compare(t *testing.T, set testset.Set, e llm.Embedder, engines []Engine) {
	m := open(t, set, e)
	own, err := m.measure(t.Context(), m.Index)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d passages, %d questions; overlap@10 of the index %.4f", len(set.Passages), len(set.Queries), own.meanOverlap())
	for _, engine := range engines {
		x := engine.Open(t, m.source)
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

// open embeds a set.
func open(t *testing.T, set testset.Set, e llm.Embedder) *measurement {
	t.Helper()
	opened, err := retrieval.Open(t.Context(), set, retrieval.Parts{Embedder: e, Progress: eval.ProgressTo(t.Output())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := newMeasurement(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Nearest is a set whose questions are searched for by vectors alone.
type Nearest struct{ m *measurement }

// Together returns the set of all sets that ASSAY_QUALITY names. It skips the test unless "together"
// or "all" is the last name.
func Together(t *testing.T) Nearest {
	t.Helper()
	list := sets(t)
	all := list[len(list)-1]
	if all.Name != together {
		t.Skip("ASSAY_QUALITY does not end in " + together)
	}
	return Nearest{open(t, all, Encoder(t))}
}

// Source returns the passages with their vectors.
func (n Nearest) Source() index.VectorSource { return n.m.source }

// Overlap returns the mean share of the ten passages nearest to a question that a search for ten
// finds.
func (n Nearest) Overlap(t *testing.T, x index.Index) float64 {
	t.Helper()
	o := outcome{overlap: make([]float64, len(n.m.Set.Queries))}
	for i, q := range n.m.Set.Queries {
		var err error
		if o.overlap[i], err = n.m.nearestOverlap(t.Context(), x, q.Text, 10); err != nil {
			t.Fatal(err)
		}
	}
	return o.meanOverlap()
}

// everyone may read the sets.
var everyone = assay.Local().Access()
