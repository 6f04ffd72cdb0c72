package run

import (
	"context"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// BenchmarkStep measures a run's own overhead per step with 1 KB in and 1 KB out, for a first
// execution and for a replay from the journal.
func BenchmarkStep(b *testing.B) {
	ctx := context.Background()
	in := question{Query: strings.Repeat("words of a query. ", 57), Limit: 10}
	out := result{Score: 0.25}
	for range 10 {
		out.Hits = append(out.Hits, strings.Repeat("0123456789", 10))
	}
	step := func(s Scope, i int) {
		if _, err := Do(ctx, s.Sub("round", i), search("search"), in, answer[question](out)); err != nil {
			b.Fatal(err)
		}
	}
	const steps = 100 // in one run
	b.Run("live", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			var j Memory
			r := start(b, &j, withBudget(assay.Budget{Calls: 1, Wall: 1 << 40}))
			b.StartTimer()
			for i := range steps {
				step(r.Scope(), i)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
	})
	b.Run("replay", func(b *testing.B) {
		var j Memory
		r := start(b, &j)
		for i := range steps {
			step(r.Scope(), i)
		}
		records := j.Records()
		for b.Loop() {
			r := replay(b, records)
			for i := range steps {
				step(r.Scope(), i)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
	})
}
