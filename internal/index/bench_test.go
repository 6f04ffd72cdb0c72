package index_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// corpus returns documents of real text with n chunks in total, and questions that people have
// typed.
func corpus(b *testing.B, n int) ([]indextest.Entry, []string) {
	root := filepath.Join(indextest.Data(b), "retrieval")
	var entries []indextest.Entry
	var questions []string
	chunks := 0
	for _, set := range []string{"scifact-train", "hotpotqa-train100", "musique-train100", "mtrag-un-reference", "clapnq-answerable", "pubmedqa-1000", "xquad-en", "anthropic-docs"} {
		for _, q := range indextest.ReadRows(b, filepath.Join(root, set, "queries.jsonl"))[:50] {
			questions = append(questions, q.Text)
		}
		for _, row := range indextest.ReadRows(b, filepath.Join(root, set, "corpus.jsonl")) {
			var texts []string
			for text := row.Text; text != "" && chunks < n; chunks++ {
				cut := min(700, len(text))
				texts = append(texts, text[:cut])
				text = text[cut:]
			}
			e := indextest.NewEntry(set, row.ID, row.Title, texts...)
			e.Document.Metadata = assay.Metadata{"set": assay.StringValue(set), "chunks": assay.NumberValue(float64(len(texts)))}
			entries = append(entries, e)
		}
	}
	if chunks < n {
		b.Skipf("the test data has only %d chunks", chunks)
	}
	return entries, questions
}

func openWith(b *testing.B, entries []indextest.Entry, dir string) (*indextest.Source, index.Index) {
	s := indextest.NewSource("bench")
	s.Put(entries...)
	ix := open(b, s, dir)
	if err := ix.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, ix
}

const benchChunks = 20_000

func BenchmarkBuild(b *testing.B) {
	entries, _ := corpus(b, benchChunks)
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Document.Text)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		openWith(b, entries, b.TempDir())
	}
}

func BenchmarkSearch(b *testing.B) {
	entries, questions := corpus(b, benchChunks)
	_, ix := openWith(b, entries, b.TempDir())
	small := assay.Filter{Op: assay.OpEquals, Key: "set", Value: assay.StringValue("xquad-en")}
	for name, filter := range map[string]assay.Filter{"all": {}, "filtered": small} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q := assay.Query{Text: questions[i%len(questions)], Limit: 50, Filter: filter}
				if _, err := ix.Search(b.Context(), assay.Local().Access(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen measures the time until the first answer of a new process.
func BenchmarkOpen(b *testing.B) {
	entries, questions := corpus(b, benchChunks)
	dir := b.TempDir()
	s, writer := openWith(b, entries, dir)
	if err := writer.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ix := open(b, s, dir)
		if _, err := ix.Search(b.Context(), assay.Local().Access(), assay.Query{Text: questions[0], Limit: 50}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory measures the memory that an open index retains.
func BenchmarkMemory(b *testing.B) {
	entries, _ := corpus(b, benchChunks)
	dir := b.TempDir()
	s, _ := openWith(b, entries, dir)
	var kept []index.Index
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		kept = append(kept, open(b, s, dir))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perChunk := float64(after.HeapAlloc-before.HeapAlloc) / float64(len(kept)) / benchChunks
	b.ReportMetric(perChunk, "KB/1000chunks") // bytes per chunk are kB per thousand
	runtime.KeepAlive(kept)
}

// BenchmarkUpdate changes one document and searches immediately.
func BenchmarkUpdate(b *testing.B) {
	entries, questions := corpus(b, benchChunks)
	s, ix := openWith(b, entries, b.TempDir())
	for i := 0; b.Loop(); i++ {
		s.Put(indextest.NewEntry("new", fmt.Sprint(i%1000), "A title", "some words that are new", questions[i%len(questions)]))
		if _, err := ix.Search(b.Context(), assay.Local().Access(), assay.Query{Text: "new words", Limit: 10}); err != nil {
			b.Fatal(err)
		}
	}
}
