package opensearch

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestRecall checks that Nearest finds 99 in 100 of the ten nearest chunks of many, without a filter,
// with one that keeps half of them and with one that keeps one in a hundred.
func TestRecall(t *testing.T) {
	const dimensions, queries = 64, 20
	chunks := indextest.Rounds(3_000, 20_000, 200_000)
	r := rand.New(rand.NewPCG(5, 6))
	vector := func() []float32 {
		centre := rand.New(rand.NewPCG(r.Uint64N(50), 0))
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(centre.NormFloat64() + 0.7*r.NormFloat64())
		}
		return v
	}
	s := indextest.NewSource("a")
	var entries []indextest.Entry
	vectors := make(map[string][]float32)
	number := make(map[string]int) // of each chunk
	for i := range chunks {
		e := indextest.NewEntry("c", fmt.Sprint(i), "", fmt.Sprint("word", i%100, " text ", i%7, " number ", i))
		e.Document.Metadata = assay.Metadata{"n": assay.NumberValue(float64(i % 100))}
		entries = append(entries, e)
		vectors[e.Chunks[0].ID], number[e.Chunks[0].ID] = vector(), i
	}
	s.Put(entries...)
	s.PutVectors("m", vectors)
	x := connect(t, nil).open(t, t.TempDir(), s)
	began := time.Now()
	flush(t, x)
	t.Logf("%d chunks written in %v", chunks, time.Since(began).Round(time.Millisecond))
	for _, below := range []float64{100, 50, 1} {
		q := assay.Query{Limit: 10, Filter: assay.Filter{Op: assay.OpLessThan, Key: "n", Value: assay.NumberValue(below)}}
		found := 0
		var times []time.Duration
		for range queries {
			v := index.Vector{Model: "m", Metric: index.Cosine, Values: vector()}
			began := time.Now()
			result, err := x.Nearest(t.Context(), everyone, q, v)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, time.Since(began))
			least := tenthNearest(v, vectors, func(chunk string) bool { return float64(number[chunk]%100) < below })
			for _, h := range result.Hits {
				if float64(number[h.Chunk]%100) >= below {
					t.Fatalf("chunk %d is not kept by n < %v", number[h.Chunk], below)
				}
				if h.Similarity >= least-1e-6 {
					found++
				}
			}
		}
		slices.Sort(times)
		rate := float64(found) / (10 * queries)
		t.Logf("n < %v: recall@10 %.3f, median %v, least %v", below, rate, times[len(times)/2].Round(100*time.Microsecond), times[0].Round(100*time.Microsecond))
		if rate < 0.99 {
			t.Errorf("n < %v: recall@10 is %.3f, want 0.99", below, rate)
		}
	}
	times := make([]time.Duration, queries)
	for i := range times {
		began := time.Now()
		if _, err := x.Search(t.Context(), everyone, assay.Query{Text: fmt.Sprint("word", i, " text ", i%7), Limit: 50}); err != nil {
			t.Fatal(err)
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	t.Logf("text: median %v, least %v", times[queries/2].Round(100*time.Microsecond), times[0].Round(100*time.Microsecond))
}

// tenthNearest returns the cosine of the tenth nearest of the vectors that are kept.
func tenthNearest(v index.Vector, vectors map[string][]float32, kept func(chunk string) bool) float64 {
	var list []float64
	for chunk, values := range vectors {
		if kept(chunk) {
			list = append(list, exact(v, values))
		}
	}
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(list) < 10 {
		return math.Inf(-1)
	}
	return list[9]
}
