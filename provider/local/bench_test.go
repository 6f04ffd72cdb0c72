package local

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay/llm"
)

// BenchmarkEmbed embeds texts of 128 tokens, on all cores and on one, with the original weights,
// which are float32 in memory, and with int8 weights.
func BenchmarkEmbed(b *testing.B) {
	for _, name := range []string{"gte-small", "all-minilm-l6-v2"} {
		for _, kind := range []string{"float32", "int8"} {
			e := openAs(b, filepath.Join(models(b), name), kind)
			for _, cores := range []int{runtime.GOMAXPROCS(0), 1} {
				for _, texts := range []int{1, 8, 32} {
					b.Run(fmt.Sprintf("%s/%s/cores=%d/texts=%d", name, kind, cores, texts), func(b *testing.B) { benchmarkEmbed(b, e, cores, texts, 128) })
				}
			}
			b.Run(name+"/"+kind+"/query", func(b *testing.B) { benchmarkEmbed(b, e, runtime.GOMAXPROCS(0), 1, 8) })
		}
	}
}

// openAs opens a model, with its matrices converted to int8 if kind is "int8".
func openAs(t testing.TB, dir, kind string) *Encoder {
	t.Helper()
	if kind != "int8" {
		return open(t, dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	e, err := OpenDir(t.Context(), dir, Config{Weights: rewrite(t, data, rewriteI8)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func benchmarkEmbed(b *testing.B, e *Encoder, cores, texts, tokens int) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	random := sequenceOf(9)
	batch := make([]string, texts)
	for i := range batch {
		batch[i] = textOf(e.tokenizer, tokens, false, &random)
	}
	start := cpuTime()
	for b.Loop() {
		if _, err := e.Embed(b.Context(), llm.Passage, batch); err != nil {
			b.Fatal(err)
		}
	}
	count := float64(b.N * texts * tokens)
	b.ReportMetric(count/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(count/(cpuTime()-start).Seconds(), "tokens/cpu-s")
}

// BenchmarkOpen opens a model from a folder, and one with int8 weights in memory, vocab.txt and a
// known checksum.
func BenchmarkOpen(b *testing.B) {
	dir := filepath.Join(models(b), "gte-small")
	b.Run("folder", func(b *testing.B) {
		for b.Loop() {
			open(b, dir)
		}
	})
	data, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		b.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range []string{configFile, vocabularyFile, tokenizerConfigFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	c := Config{Name: "gte-small", SHA256: strings.Repeat("0", 64), Weights: rewrite(b, data, rewriteI8)}
	b.Run("memory", func(b *testing.B) {
		start := cpuTime()
		for b.Loop() {
			if _, err := Open(b.Context(), files, c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpuTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
	})
}

// BenchmarkTokens tokenizes mixed lines.
func BenchmarkTokens(b *testing.B) {
	e := open(b, filepath.Join("testdata", "tiny"))
	lines, bytes := mixedLines(1000), 0
	for _, line := range lines {
		bytes += len(line)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		for _, line := range lines {
			e.Tokens(line)
		}
	}
}

// BenchmarkTokensPlain tokenizes a plain text.
func BenchmarkTokensPlain(b *testing.B) {
	e := open(b, filepath.Join(models(b), "gte-small"))
	random := sequenceOf(5)
	text := textOf(e.tokenizer, 512, false, &random)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		e.Tokens(text)
	}
}
