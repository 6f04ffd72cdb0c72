package engine

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// goRoot is where Go is installed.
func goRoot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// benchmarkDocs are documents that every Go installation has.
func benchmarkDocs(b *testing.B) string { return filepath.Join(goRoot(b), "src", "net", "http") }

const benchmarkQuestion = "How do I shut a server down without dropping requests?"

// BenchmarkIngest reads the documents into an empty data directory.
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

// BenchmarkIngestUnchanged looks for changes where there are none.
func BenchmarkIngestUnchanged(b *testing.B) {
	docs := benchmarkDocs(b)
	e := benchmarkOpen(b, benchmarkDir(b))
	defer e.Close()
	for b.Loop() {
		if _, err := e.Ingest(b.Context(), IngestRequest{Paths: []string{docs}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAskCold opens a data directory with documents, asks and closes it.
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

// BenchmarkAskWarm asks an engine that is open.
func BenchmarkAskWarm(b *testing.B) {
	e := benchmarkOpen(b, benchmarkDir(b))
	defer e.Close()
	for b.Loop() {
		benchmarkAsk(b, e)
	}
}

// BenchmarkReplay replays a run.
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

// benchmarkDir is a data directory with the documents in it.
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
