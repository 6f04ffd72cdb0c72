package pgvector

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/index/indextest/quality"
	"github.com/assay-rag/assay/llm"
)

// TestMeasure prints the costs of searches beside those of the index of package index, on as many
// chunks of real text as ASSAY_MEASURE says. Half of the documents have an ACL that excludes the
// second access. Vectors are by the embedded encoder for the first chunks, as many as
// ASSAY_MEASURE_ENCODED says (all), and by indextest.MoreVectors for the others. They are cached, see
// package quality.
func TestMeasure(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("ASSAY_MEASURE"))
	if err != nil {
		t.Skip("ASSAY_MEASURE is not the number of chunks")
	}
	m := newMeasurement(t, n)
	everyone, half := assay.Principal{User: "ann"}.Access(), assay.Local().Access()
	few := assay.Filter{Op: assay.OpLessThan, Key: "share", Value: assay.NumberValue(0.01)}
	for _, c := range []struct {
		name   string
		access assay.Access
		filter assay.Filter
	}{{"all", everyone, assay.Filter{}}, {"ACL keeps 50 %", half, assay.Filter{}}, {"filter keeps 1 %", everyone, few}} {
		m.compare(t, c.name, c.access, c.filter)
	}
	for _, scan := range []int{100, 200, 300, 600, 800} {
		m.x.settings.scan = scan
		m.compare(t, fmt.Sprint("ef_search ", scan), everyone, assay.Filter{})
		m.compare(t, fmt.Sprint("ef_search ", scan, ", ACL keeps 50 %"), half, assay.Filter{})
	}
}

// A measurement is a corpus in both indexes.
type measurement struct {
	own       index.Index
	x         *Index
	questions []string
	vectors   []index.Vector
}

func newMeasurement(t *testing.T, n int) *measurement {
	source := indextest.NewSource("measure")
	entries, texts := indextest.RealChunks(t, n)
	source.Put(entries...)
	encoder := quality.Encoder(t)
	encoded, err := strconv.Atoi(cmp.Or(os.Getenv("ASSAY_MEASURE_ENCODED"), strconv.Itoa(n)))
	if err != nil {
		t.Fatal(err)
	}
	known := encodePassages(t, encoder, texts[:min(n, encoded)])
	vectors := make(map[string][]float32)
	for _, e := range entries {
		for _, c := range e.Chunks {
			vectors[c.ID] = indextest.MoreVectors(known, len(vectors))
		}
	}
	t.Logf("%d documents, %d chunks, %d vectors", len(entries), n, len(vectors))
	own, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	x := opener(t, defaultSettings)(t, source, t.TempDir()).(*Index)
	m := &measurement{own: own, x: x, questions: indextest.Questions(t, 70)}
	for _, ix := range []index.Index{own, x} {
		began := time.Now()
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%T: texts in %.1f s", ix, time.Since(began).Seconds())
	}
	source.PutVectors("m", vectors)
	for _, ix := range []index.Index{own, x} {
		began := time.Now()
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%T: vectors in %.1f s", ix, time.Since(began).Seconds())
	}
	queries, err := encoder.Embed(t.Context(), llm.Query, m.questions)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range queries {
		m.vectors = append(m.vectors, index.Vector{Model: "m", Metric: index.Cosine, Values: v})
	}
	began := time.Now()
	if _, err := x.Nearest(t.Context(), assay.Principal{User: "ann"}.Access(), assay.Query{Limit: 10}, m.vectors[0]); err != nil {
		t.Fatal(err)
	}
	if err := x.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	size, err := x.Size(t.Context())
	t.Logf("HNSW index in %.1f s; %.0f MB, %v", time.Since(began).Seconds(), float64(size)/1e6, err)
	return m
}

// encodePassages returns the vectors of texts.
func encodePassages(t *testing.T, encoder llm.Embedder, texts []string) [][]float32 {
	var list [][]float32
	began := time.Now()
	for batch := range slices.Chunk(texts, 64) {
		var passages []assay.Passage
		for _, text := range batch {
			passages = append(passages, assay.Passage{Text: text})
		}
		vectors, err := llm.EmbedPassages(t.Context(), encoder, passages)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, vectors...)
		if time.Since(began) > 10*time.Second {
			began = time.Now()
			t.Logf("encoded %d of %d", len(list), len(texts))
		}
	}
	return list
}

// compare prints the costs of text, vector and hybrid searches, taking turns, and how many of the ten
// nearest chunks each index finds.
func (m *measurement) compare(t *testing.T, name string, access assay.Access, filter assay.Filter) {
	var costs [6][]time.Duration
	var text, own, recall float64
	for i, question := range m.questions {
		q := assay.Query{Text: question, Limit: 50, Filter: filter}
		var results [4]index.Result
		for j, search := range []func() (index.Result, error){
			func() (index.Result, error) { return m.own.Search(t.Context(), access, q) },
			func() (index.Result, error) { return m.x.Search(t.Context(), access, q) },
			func() (index.Result, error) { return m.own.Nearest(t.Context(), access, q, m.vectors[i]) },
			func() (index.Result, error) { return m.x.Nearest(t.Context(), access, q, m.vectors[i]) },
		} {
			began := time.Now()
			var err error
			if results[j], err = search(); err != nil {
				t.Fatal(err)
			}
			costs[j] = append(costs[j], time.Since(began))
		}
		for j := range 2 { // one after the other
			costs[4+j] = append(costs[4+j], costs[j][i]+costs[2+j][i])
		}
		exact := m.exact(t, access, q, m.vectors[i])
		text += overlap(results[0], results[1])
		own += overlap(exact, results[2])
		recall += overlap(exact, results[3])
	}
	n := float64(len(m.questions))
	t.Logf("%s: overlap@10 by text %.4f; recall@10 by vectors: index %.4f, pgvector %.4f", name, text/n, own/n, recall/n)
	for j, what := range []string{"text", "text", "vectors", "vectors", "hybrid", "hybrid"} {
		slices.SortFunc(costs[j], cmp.Compare)
		ms := func(p float64) float64 { return costs[j][int(p*(n-1))].Seconds() * 1000 }
		t.Logf("%-18s %-8s %-9s p50 %7.1f  p95 %7.1f  min %7.1f ms", name, what, []string{"index", "pgvector"}[j%2], ms(0.5), ms(0.95), ms(0))
	}
}

// exact returns the nearest chunks by a search that reads all vectors.
func (m *measurement) exact(t *testing.T, access assay.Access, q assay.Query, v index.Vector) index.Result {
	defer func(before int) { m.x.settings.exact = before }(m.x.settings.exact)
	m.x.settings.exact = math.MaxInt
	result, err := m.x.Nearest(t.Context(), access, q, v)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// overlap returns the share of the first ten hits of want that are among the first ten of got; 1 if
// there are none.
func overlap(want, got index.Result) float64 {
	first, second := want.Hits[:min(10, len(want.Hits))], got.Hits[:min(10, len(got.Hits))]
	n := 0
	for _, h := range first {
		if slices.ContainsFunc(second, func(other index.Hit) bool { return other.Chunk == h.Chunk }) {
			n++
		}
	}
	if len(first) == 0 {
		return 1
	}
	return float64(n) / float64(len(first))
}
