package opensearch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// TestMeasure prints the costs of searches beside those of the index of package index, on as many
// chunks of real text as ASSAY_MEASURE says. Half of the documents have an ACL that excludes the
// second access. Vectors are by the embedded encoder for the first chunks, as many as
// ASSAY_MEASURE_ENCODED says (6,000), and by indextest.MoreVectors for the others.
func TestMeasure(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("ASSAY_MEASURE"))
	if err != nil {
		t.Skip("ASSAY_MEASURE is not the number of chunks")
	}
	m := newMeasurement(t, n)
	all, half := assay.Principal{User: "ann"}.Access(), assay.Local().Access()
	few := assay.Filter{Op: assay.OpLessThan, Key: "share", Value: assay.NumberValue(0.01)}
	m.compareText(t, "common words", m.common, all)
	m.compareText(t, "common words, ACL", m.common, half)
	m.compareText(t, "questions", m.questions, all)
	m.compareGraphs(t, all)
	m.addVectors(t)
	m.compare(t, "all", all, assay.Filter{})
	m.compare(t, "ACL keeps 50 %", half, assay.Filter{})
	m.compare(t, "filter keeps 1 %", all, few)
}

// A measurement is a corpus in both indexes.
type measurement struct {
	source    *indextest.Source
	entries   []indextest.Entry
	texts     []string // of the chunks
	own       index.Index
	x         *Index
	questions []string
	common    []string       // queries of common words
	vectors   []index.Vector // of the questions
}

func newMeasurement(t *testing.T, n int) *measurement {
	m := &measurement{source: indextest.NewSource("measure"), questions: indextest.Questions(t, 40)}
	m.entries, m.texts = indextest.RealChunks(t, n)
	m.common = commonQueries(m.texts, 40)
	m.source.Put(m.entries...)
	own, err := index.Open(t.Context(), t.TempDir(), m.source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	m.own, m.x = own, connect(t, nil).open(t, t.TempDir(), m.source)
	m.flush(t, "texts")
	t.Logf("%d documents, %d chunks", len(m.entries), n)
	return m
}

// addVectors adds the vectors of the chunks and of the questions.
func (m *measurement) addVectors(t *testing.T) {
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := strconv.Atoi(cmp.Or(os.Getenv("ASSAY_MEASURE_ENCODED"), "6000"))
	if err != nil {
		t.Fatal(err)
	}
	known := encode(t, encoder, llm.Passage, slices.Clone(m.texts[:min(len(m.texts), encoded)]))
	vectors := make(map[string][]float32)
	for _, e := range m.entries {
		for _, c := range e.Chunks {
			vectors[c.ID] = indextest.MoreVectors(known, len(vectors))
		}
	}
	m.source.PutVectors("m", vectors)
	m.flush(t, "vectors")
	for _, v := range encode(t, encoder, llm.Query, slices.Clone(m.questions)) {
		m.vectors = append(m.vectors, index.Vector{Model: "m", Metric: index.Cosine, Values: v})
	}
}

// flush flushes both indexes and prints what it costs.
func (m *measurement) flush(t *testing.T, what string) {
	for _, ix := range []index.Index{m.own, m.x} {
		began := time.Now()
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%T: %s in %.1f s", ix, what, time.Since(began).Seconds())
	}
}

// encode returns the vectors of the beginnings of texts, which are short enough for the encoder.
func encode(t *testing.T, encoder llm.Embedder, purpose llm.Purpose, texts []string) [][]float32 {
	var list [][]float32
	for batch := range slices.Chunk(texts, 64) {
		for i, text := range batch {
			batch[i] = strings.ToValidUTF8(text[:min(len(text), 700)], "")
		}
		vectors, err := encoder.Embed(t.Context(), purpose, batch)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, vectors...)
	}
	return list
}

// costs are those of searches on several indexes that take turns.
type costs struct {
	times map[string][]time.Duration
	nodes map[string]time.Duration // processor time
}

func newCosts() costs {
	return costs{make(map[string][]time.Duration), make(map[string]time.Duration)}
}

func (c costs) print(t *testing.T, name string, columns ...string) {
	for _, column := range columns {
		list := slices.Sorted(slices.Values(c.times[column]))
		ms := func(p float64) float64 { return list[int(p*float64(len(list)-1))].Seconds() * 1000 }
		nodes := c.nodes[column].Seconds() * 1000 / float64(len(list))
		t.Logf("%-18s %-19s p50 %7.1f  p95 %7.1f  min %7.1f ms, nodes %.1f ms of processor", name, column, ms(0.5), ms(0.95), ms(0), nodes)
	}
}

// search measures a search.
func (c costs) search(t *testing.T, column string, f func() (index.Result, error)) index.Result {
	nodes, began := processorTime(t), time.Now()
	result, err := f()
	if err != nil {
		t.Fatal(err)
	}
	c.times[column] = append(c.times[column], time.Since(began))
	c.nodes[column] += processorTime(t) - nodes
	return result
}

// processorTime returns the time that the nodes of scripts/opensearch have computed, in steps of 10 ms,
// or zero where Linux does not say.
func processorTime(t *testing.T) time.Duration {
	files, err := filepath.Glob(filepath.Join(os.Getenv("ASSAY_TEST_OPENSEARCH_RIG"), "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for _, file := range files {
		pid, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil {
			return 0
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		for _, n := range strings.Fields(after)[11:13] { // of the user and of the system
			more, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			ticks += more
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// compare prints the cost and the agreement of text, vector and hybrid searches, taking turns.
func (m *measurement) compare(t *testing.T, name string, access assay.Access, filter assay.Filter) {
	c := newCosts()
	var text, near float64
	for i, question := range m.questions {
		q := assay.Query{Text: question, Limit: 50, Filter: filter}
		var texts, nearest []index.Hit
		for _, of := range []struct {
			name string
			ix   index.Index
		}{{"own", m.own}, {"opensearch", m.x}} {
			a := c.search(t, "text "+of.name, func() (index.Result, error) { return of.ix.Search(t.Context(), access, q) })
			b := c.search(t, "vectors "+of.name, func() (index.Result, error) { return of.ix.Nearest(t.Context(), access, q, m.vectors[i]) })
			// A hybrid search is one after the other.
			c.times["hybrid "+of.name] = append(c.times["hybrid "+of.name], c.times["text "+of.name][i]+c.times["vectors "+of.name][i])
			c.nodes["hybrid "+of.name] = c.nodes["text "+of.name] + c.nodes["vectors "+of.name]
			if of.name == "own" {
				texts, nearest = a.Hits, b.Hits
				continue
			}
			text += recall(texts, a.Hits, 10)
			near += overlap(nearest, b.Hits)
		}
	}
	n := float64(len(m.questions))
	t.Logf("%s: of the first ten, found by text %.4f, by vectors %.4f", name, text/n, near/n)
	c.print(t, name, "text own", "text opensearch", "vectors own", "vectors opensearch", "hybrid own", "hybrid opensearch")
}

// overlap returns the share of the first ten of want that are among the first ten of got.
func overlap(want, got []index.Hit) float64 {
	want, got = want[:min(10, len(want))], got[:min(10, len(got))]
	n := 0
	for _, h := range want {
		if slices.ContainsFunc(got, func(other index.Hit) bool { return other.Chunk == h.Chunk }) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(want)))
}

// compareText prints the cost of text searches that score all matching chunks, and the cost and recall
// of those that score candidates.
func (m *measurement) compareText(t *testing.T, name string, queries []string, access assay.Access) {
	c := newCosts()
	windows := []int{100, 1000}
	ten, fifty := make([]float64, len(windows)), make([]float64, len(windows))
	defer func(before scoring) { m.x.scoring = before }(m.x.scoring)
	columns := []string{"own", "all"}
	for _, text := range queries {
		q := assay.Query{Text: text, Limit: 50}
		search := func() (index.Result, error) { return m.x.Search(t.Context(), access, q) }
		if _, err := search(); err != nil { // counts the terms
			t.Fatal(err)
		}
		c.search(t, "own", func() (index.Result, error) { return m.own.Search(t.Context(), access, q) })
		m.x.scoring = every
		want := c.search(t, "all", search)
		for i, window := range windows {
			m.x.scoring = some
			m.x.scoring.window, m.x.scoring.factor = window, 0
			got := c.search(t, fmt.Sprint("window ", window), search)
			ten[i] += recall(want.Hits, got.Hits, 10) / float64(len(queries))
			fifty[i] += recall(want.Hits, got.Hits, 50) / float64(len(queries))
		}
	}
	for i, window := range windows {
		t.Logf("%s, window %d: recall@10 %.4f, recall@50 %.4f", name, window, ten[i], fifty[i])
		columns = append(columns, fmt.Sprint("window ", window))
	}
	c.print(t, name, columns...)
}

// compareGraphs prints the cost of what a walk reads of the graph, which for the own index is part of the walk: the
// entities of the ten best passages, and the passages that name those of them that 2 to 1,000 passages name.
func (m *measurement) compareGraphs(t *testing.T, access assay.Access) {
	c := newCosts()
	read := 0
	for _, text := range m.questions {
		q := assay.Query{Text: text, Limit: 10}
		found, err := m.x.Search(t.Context(), access, q)
		if err != nil {
			t.Fatal(err)
		}
		var chunks []string
		for _, h := range found.Hits {
			chunks = append(chunks, h.Chunk)
		}
		c.search(t, "opensearch", func() (index.Result, error) {
			g, err := m.x.Graph(t.Context(), access, q)
			if err != nil {
				return index.Result{}, err
			}
			defer g.Close()
			of := g.(*remoteGraph)
			if err := of.PrefetchStart(t.Context(), chunks, nil); err != nil {
				return index.Result{}, err
			}
			var entities []uint32
			for n, e := range of.SeenEntities {
				if e.Count >= 2 && e.Count <= 1000 {
					entities = append(entities, uint32(n))
				}
			}
			err = of.Prefetch(t.Context(), nil, entities)
			read += len(of.SeenPassages)
			return index.Result{}, err
		})
	}
	t.Logf("graph: %d passages a question", read/len(m.questions))
	c.print(t, "graph", "opensearch")
}
