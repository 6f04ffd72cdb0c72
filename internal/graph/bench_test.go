package graph_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// A crowd is a source of many passages. It has many copies of each real passage, in which two of
// three names get a number, either unique or shared by some copies. So names are as common as in a
// collection of that size: most are in a few passages, some in thousands.
type crowd struct {
	passages  []passage
	documents int
}

type passage struct{ Title, Text string }

func (c crowd) Sequence(context.Context) (int64, error) { return 1, nil }

func (c crowd) Identity(context.Context) (string, error) {
	return fmt.Sprint("crowd ", c.documents), nil
}

func (c crowd) Changes(_ context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		for i := 0; after == 0 && i < c.documents; i++ {
			e := c.document(i)
			if !yield(assay.Change{Sequence: 1, ID: e.Document.ID, Document: &e.Document, Chunks: e.Chunks}, nil) {
				return
			}
		}
	}
}

var capitalised = regexp.MustCompile(`\b[A-Z][a-z]+( [A-Z][a-z]+)+\b`)

func (c crowd) document(i int) indextest.Entry {
	p, copied := c.passages[i%len(c.passages)], i/len(c.passages)
	vary := func(name string) string {
		switch hash := len(name) + int(name[0]) + int(name[len(name)-1]); {
		case copied == 0 || hash%3 == 0:
			return name
		case hash%3 == 1:
			return name + " " + roman(copied)
		default:
			return name + " " + roman(copied/10+1000)
		}
	}
	title := capitalised.ReplaceAllStringFunc(p.Title, vary)
	return indextest.NewEntry(fmt.Sprint("c", i%2), strconv.Itoa(i), title, capitalised.ReplaceAllStringFunc(p.Text, vary))
}

// roman writes a number as a capitalised word.
func roman(n int) string {
	return "X" + strings.Map(func(r rune) rune { return 'a' + r - '0' }, strconv.Itoa(n))
}

func readSet(tb testing.TB, path string) []passage {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var list []passage
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var p passage
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			tb.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// BenchmarkWalk walks over an index of ASSAY_CHUNKS passages (default 20,000) from the ten best
// hits by words for each question of two sets, once in the whole index and once in one of its two
// collections. ASSAY_BENCH_INDEX is a folder in which the index is kept between runs.
func BenchmarkWalk(b *testing.B) {
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		b.Skip("ASSAY_TESTDATA is not set to a folder that holds data")
	}
	documents, _ := strconv.Atoi(cmp.Or(os.Getenv("ASSAY_CHUNKS"), "20000"))
	sets := filepath.Join(root, "data", "retrieval")
	source := crowd{documents: documents}
	var questions []passage
	for _, set := range []string{"hotpotqa-train100", "musique-train100"} {
		source.passages = append(source.passages, readSet(b, filepath.Join(sets, set, "corpus.jsonl"))...)
		questions = append(questions, readSet(b, filepath.Join(sets, set, "queries.jsonl"))...)
	}
	ix, err := index.Open(b.Context(), cmp.Or(os.Getenv("ASSAY_BENCH_INDEX"), b.TempDir()), source)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	start := time.Now()
	if err := ix.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := ix.Settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("an index of %d passages after %v", documents, time.Since(start).Round(time.Second))
	for name, collections := range map[string][]string{"all": nil, "collection": {"c0"}} {
		b.Run(name, func(b *testing.B) { benchmarkWalks(b, ix, questions, collections) })
	}
}

func benchmarkWalks(b *testing.B, ix *index.Searcher, questions []passage, collections []string) {
	access := assay.Local().Access()
	seeds := make([][]graph.Seed, len(questions))
	for i, q := range questions {
		found, err := ix.Search(b.Context(), access, assay.Query{Text: q.Text, Collections: collections, Limit: 10})
		if err != nil {
			b.Fatal(err)
		}
		for _, h := range found.Hits {
			seeds[i] = append(seeds[i], graph.Seed{Chunk: h.Chunk, Score: h.BM25})
		}
	}
	walker := graph.New(ix, graph.Options{})
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % len(questions)
		start := time.Now()
		if _, err := walker.Walk(b.Context(), access, assay.Query{Text: questions[n].Text, Collections: collections}, seeds[n]); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100])/1e6, "p95-ms")
}
