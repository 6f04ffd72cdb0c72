package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

// shares are the fractions of the documents that the filters below keep, by the first letter of the
// values in the filter.
var shares = []struct {
	letter string
	share  float64
}{{"a", 0.0001}, {"b", 0.01}, {"c", 0.1}, {"d", 0.5}, {"e", 1}}

// benchmarkFilters returns the filters of a segment whose documents have the given number of chunks
// each. Some keys have few values, others one for each document.
func benchmarkFilters(b testing.TB, chunks, perDocument int, seed uint64) filters {
	b.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	w := newFilterWriter()
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	letter := func() string {
		x := r.Float64()
		for _, s := range shares {
			if x -= s.share; x < 0 {
				return s.letter
			}
		}
		return "e"
	}
	for first := 0; first < chunks; first += perDocument {
		number := r.IntN(1 << 30)
		m := assay.Metadata{
			"class":    assay.StringValue(letter()),
			"title":    assay.StringValue(fmt.Sprintf("%s%d of a document that has a title", letter(), number)),
			"modified": assay.TimeValue(start.Add(time.Duration(number) * time.Second / 1000)),
			"year":     assay.NumberValue(float64(1990 + r.IntN(30))),
			"user":     assay.StringValue(fmt.Sprintf("user%04d", r.IntN(10_000))),
			"path":     assay.ListValue("docs", fmt.Sprint("team", r.IntN(50)), fmt.Sprint("project", r.IntN(1000)), fmt.Sprint("file", number)),
		}
		if err := w.add(uint32(first), uint32(min(first+perDocument, chunks)), m, assay.ACL{}, "default", "en"); err != nil {
			b.Fatal(err)
		}
	}
	var data bytes.Buffer
	if err := w.writeTo(&data, uint32(chunks)); err != nil {
		b.Fatal(err)
	}
	f, err := openFilters(data.Bytes(), uint32(chunks))
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// benchmarkChunks returns the number of chunks to filter: ASSAY_CHUNKS, or 200,000 by default.
func benchmarkChunks() int {
	if n, err := strconv.Atoi(os.Getenv("ASSAY_CHUNKS")); err == nil {
		return n
	}
	return 200_000
}

func BenchmarkKeep(b *testing.B) {
	chunks := benchmarkChunks()
	key := func(op assay.FilterOp, key string, v assay.Value) assay.Filter {
		return assay.Filter{Op: op, Key: key, Value: v}
	}
	for _, perDocument := range []int{1, 20} {
		f := benchmarkFilters(b, chunks, perDocument, 1)
		modified := func(op assay.FilterOp, share float64) assay.Filter {
			t := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(share*(1<<30)) * time.Second / 1000)
			return key(op, "modified", assay.TimeValue(t))
		}
		users := func(share float64) assay.Value {
			var list []string
			for i := range max(1, int(share*10_000)) {
				list = append(list, fmt.Sprintf("user%04d", i))
			}
			return assay.ListValue(list...)
		}
		for _, s := range shares[:4] {
			for _, test := range []struct {
				name   string
				filter assay.Filter
			}{
				{"equals", key(assay.OpEquals, "class", assay.StringValue(s.letter))},
				{"not", assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{key(assay.OpEquals, "class", assay.StringValue(s.letter))}}},
				{"before", modified(assay.OpLessThan, s.share)},
				{"between", assay.And(modified(assay.OpGreaterThanOrEquals, 0.4), modified(assay.OpLessThan, 0.4+s.share))},
				{"years", key(assay.OpLessThan, "year", assay.NumberValue(1990+30*s.share))},
				{"prefix", key(assay.OpStartsWith, "title", assay.StringValue(s.letter))},
				{"in", key(assay.OpIn, "user", users(s.share))},
				{"and", assay.And(key(assay.OpEquals, "class", assay.StringValue(s.letter)), modified(assay.OpLessThan, 0.7),
					key(assay.OpNotEquals, "year", assay.NumberValue(2000)))},
			} {
				b.Run(fmt.Sprintf("chunks=%d/each=%d/%s/%g%%", chunks, perDocument, test.name, 100*s.share), func(b *testing.B) {
					b.ReportAllocs()
					members := 0
					for b.Loop() {
						kept, err := f.keep(test.filter)
						if err != nil {
							b.Fatal(err)
						}
						if members == 0 {
							members = kept.count()
						}
					}
					b.ReportMetric(float64(members), "kept")
				})
			}
		}
		b.Run(fmt.Sprintf("chunks=%d/each=%d/contains", chunks, perDocument), func(b *testing.B) {
			for b.Loop() {
				if _, err := f.keep(key(assay.OpStringContains, "title", assay.StringValue("12345 of"))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMergeFilters measures merging and also reports the size of the merged filters in bytes.
func BenchmarkMergeFilters(b *testing.B) {
	chunks := benchmarkChunks()
	for _, perDocument := range []int{1, 20} {
		var sources []filters
		for i := range 4 {
			sources = append(sources, benchmarkFilters(b, chunks/4, perDocument, uint64(i)))
		}
		b.Run(fmt.Sprintf("chunks=%d/each=%d", chunks, perDocument), func(b *testing.B) {
			var data bytes.Buffer
			for b.Loop() {
				w := newFilterWriter()
				next := uint32(0)
				for _, f := range sources {
					moved := make([]uint32, f.chunks)
					for c := range moved {
						moved[c] = next
						next++
					}
					if err := w.addSegment(f, moved); err != nil {
						b.Fatal(err)
					}
				}
				data.Reset()
				if err := w.writeTo(&data, next); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(data.Len())/float64(chunks), "bytes/chunk")
		})
	}
}
