package local

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay/llm"
)

// BenchmarkReader reads with the weights of the embedded encoder and random heads: a claim with a
// passage of 200 tokens, and the fifteen pairs of a question whose best ten passages are ranked and
// best five read. layers=9 is a reader with fewer layers than its encoder. cpu-ms/op is the total
// time of all cores.
func BenchmarkReader(b *testing.B) {
	encoder := open(b, filepath.Join("..", "embedded"))
	for _, layers := range []int{9, 12} {
		r := readerOn(b, encoder, layers)
		claim, pairs := benchmarkPairs(r)
		for name, run := range map[string]struct {
			cores int
			pairs []llm.ClaimPair
		}{"claim": {1, claim}, "fifteen": {2, pairs}, "fifteen-one-core": {1, pairs}} {
			b.Run(fmt.Sprintf("%s/layers=%d", name, layers), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(run.cores))
				start := cpuTime()
				for b.Loop() {
					if _, err := r.Entail(b.Context(), run.pairs); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((cpuTime()-start).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// readerOn returns a reader on the encoder's lowest layers, with random heads.
func readerOn(t testing.TB, encoder *Encoder, layers int) *Reader {
	t.Helper()
	files := fstest.MapFS{}
	settings := tinyReaderSettings()
	settings["encoder"], settings["max_tokens"], settings["layers"] = encoder.Model(), 256, layers
	setReader(t, files, settings)
	// One layer must be its own. Its weights do not matter.
	setTensors(t, files, randomTensors(layers-1, layers, encoder.bert.Hidden, encoder.bert.Intermediate, rewriteI8))
	r, err := OpenReader(t.Context(), files, Config{Name: "reader"}, encoder)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// benchmarkPairs returns a claim of 20 tokens with a text of 200, and fifteen such pairs.
func benchmarkPairs(r *Reader) (one, fifteen []llm.ClaimPair) {
	random := sequenceOf(9)
	for range 15 {
		fifteen = append(fifteen, llm.ClaimPair{
			Claim:   textOf(r.tokenizer, 22, false, &random),
			Passage: llm.Excerpt{Heading: "Handbook > Leave", Text: textOf(r.tokenizer, 202, false, &random)},
		})
	}
	return fifteen[:1], fifteen
}
