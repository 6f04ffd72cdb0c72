package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// goRoot returns the root of the Go installation.
func goRoot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// benchmarkDocs returns a folder of documents that every Go installation has.
func benchmarkDocs(b *testing.B) string {
	b.Helper()
	docs := filepath.Join(goRoot(b), "src", "net", "http")
	if _, err := os.Stat(docs); err != nil {
		b.Skip("the documents are Go's own source code, which is not here: ", err)
	}
	return docs
}

const benchmarkQuestion = "How do I shut a server down without dropping requests?"

// BenchmarkIngest measures ingesting the documents into an empty data directory.
func BenchmarkIngest(b *testing.B) {
	docs := benchmarkDocs(b)
	for b.Loop() {
		e := benchmarkOpen(b, b.TempDir())
		report, err := e.Ingest(b.Context(), IngestRequest{Paths: []string{docs}})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(report.Bytes)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIngestUnchanged measures an ingest that finds no changes.
func BenchmarkIngestUnchanged(b *testing.B) {
	docs := benchmarkDocs(b)
	e := benchmarkOpen(b, benchmarkDir(b))
	defer e.Close()
	for b.Loop() {
		report, err := e.Ingest(b.Context(), IngestRequest{Paths: []string{docs}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(report.Unchanged), "files")
	}
}

// BenchmarkAskCold measures opening a data directory with documents, asking a question and
// closing it.
func BenchmarkAskCold(b *testing.B) {
	dir := benchmarkDir(b)
	for b.Loop() {
		e := benchmarkOpen(b, dir)
		benchmarkAsk(b, e)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAskWarm measures asking a question of an open engine.
func BenchmarkAskWarm(b *testing.B) {
	e := benchmarkOpen(b, benchmarkDir(b))
	defer e.Close()
	for b.Loop() {
		benchmarkAsk(b, e)
	}
}

// BenchmarkMemory measures the memory that an engine retains after answering a question.
func BenchmarkMemory(b *testing.B) {
	dir := benchmarkDir(b)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var engines []*Engine
	for b.Loop() {
		e := benchmarkOpen(b, dir)
		benchmarkAsk(b, e)
		engines = append(engines, e)
	}
	// The second collection frees what sync.Pools still hold after the first.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	collections, err := engines[0].content.Collections(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	chunks := 0
	for _, c := range collections {
		chunks += c.Chunks
	}
	held := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	b.ReportMetric(held/float64(len(engines)), "bytes/engine")
	b.ReportMetric(held/float64(len(engines))/float64(chunks)*1000, "bytes/1000chunks")
	for _, e := range engines {
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStep measures a run's overhead per step, with a step that does no work and has 1 KB of
// input and 1 KB of output. It uses a durable journal and one that is not.
func BenchmarkStep(b *testing.B) {
	in, out := strings.Repeat("what goes in. ", 73), strings.Repeat("what comes out. ", 64)
	steps := func(b *testing.B, j run.Journal) {
		r, err := run.New(run.Config{Run: "bench", Journal: j})
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			// Each step has its own values, like the steps of a real run.
			got, err := run.Do(b.Context(), r.Scope().Sub("round", i), run.Step{Name: "search", Kind: assay.StepSearch}, fmt.Sprint(i, in),
				func(context.Context, string) (string, assay.Usage, error) {
					return fmt.Sprint(i, out), assay.Usage{}, nil
				})
			if err != nil || len(got) < len(out) {
				b.Fatal(got, err)
			}
		}
	}
	b.Run("durable", func(b *testing.B) {
		e := benchmarkOpen(b, b.TempDir())
		defer e.Close()
		lease, err := e.runs.Create(b.Context(), assay.Run{ID: "bench", Question: "?"})
		if err != nil {
			b.Fatal(err)
		}
		defer lease.Close()
		steps(b, lease)
	})
	b.Run("memory", func(b *testing.B) { steps(b, new(run.Memory)) })
}

// BenchmarkReplay measures replaying a run.
func BenchmarkReplay(b *testing.B) {
	e := benchmarkOpen(b, benchmarkDir(b))
	defer e.Close()
	id := benchmarkAsk(b, e).Run
	for b.Loop() {
		if _, err := e.Replay(b.Context(), assay.Local(), id); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkOpen(b *testing.B, dir string) *Engine {
	b.Helper()
	e, err := Open(b.Context(), Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func benchmarkAsk(b *testing.B, e *Engine) assay.Answer {
	b.Helper()
	answer, err := e.Answer(b.Context(), assay.Local(), Request{Question: benchmarkQuestion})
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// benchmarkDir returns a data directory that contains the documents.
func benchmarkDir(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	e := benchmarkOpen(b, dir)
	if _, err := e.Ingest(b.Context(), IngestRequest{Paths: []string{benchmarkDocs(b)}}); err != nil {
		b.Fatal(err)
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}
