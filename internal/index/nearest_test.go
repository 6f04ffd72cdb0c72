package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// similarityOf computes the metric by its definition.
func similarityOf(m Metric, a, b []float32) float64 {
	var dot, distance float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		distance += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
	}
	switch m {
	case Dot:
		return dot
	case L2:
		return -math.Sqrt(distance)
	}
	if length(a) == 0 || length(b) == 0 {
		return 0
	}
	return dot / length(a) / length(b)
}

func TestNearestOfFew(t *testing.T) {
	t.Parallel()
	for _, dimensions := range []int{1, 2, 31, 32, 33, 63, 64, 65, 100, 384, 1000} {
		for _, m := range []Metric{Cosine, Dot, L2} {
			t.Run(fmt.Sprintf("%d %s", dimensions, m), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(dimensions), 1))
				rounds := 5
				if testing.Short() {
					rounds = 1
				}
				for range rounds {
					checkFew(t, r, dimensions, m)
				}
			})
		}
	}
}

// checkFew searches several views that together have fewer rows than the short list, so that every
// row's similarity is computed. It compares the results with the stored vectors, including their
// order, and with the original vectors, approximately.
func checkFew(t *testing.T, r *rand.Rand, dimensions int, m Metric) {
	t.Helper()
	type chunk struct {
		neighbour
		id   []byte
		was  float64 // similarity of the original vector
		norm float64
	}
	var views []vectorView
	var want []chunk
	q := gaussian(r, dimensions, 1)
	for v := range 1 + r.IntN(3) {
		rows := randomRows(r, r.IntN(400), dimensions, r.Float64())
		sidecar := sidecarOf(t, dimensions, nil, rows)
		view := vectorView{vectors: sidecar, ids: idsFrom(1000*v, len(rows))}
		if r.IntN(3) > 0 {
			view.kept = newBitset(len(rows))
			for i := range rows {
				if r.IntN(3) > 0 {
					view.kept.set(uint32(i))
				}
			}
		}
		for row := range sidecar.rows() {
			c := sidecar.chunkOf(row)
			if view.kept != nil && !view.kept.has(c) {
				continue
			}
			want = append(want, chunk{
				neighbour: neighbour{view: v, chunk: c, similarity: similarityOf(m, q, sidecar.values(row, nil))},
				id:        view.ids[16*c:][:16],
				was:       similarityOf(m, q, rows[c]),
				norm:      length(rows[c]),
			})
		}
		views = append(views, view)
	}
	slices.SortFunc(want, func(a, b chunk) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), bytes.Compare(a.id, b.id))
	})
	all, _, err := nearest(t.Context(), views, Vector{Model: "a model", Metric: m, Values: q}, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	limit := 1 + r.IntN(len(want)+10)
	got, total, err := nearest(t.Context(), views, Vector{Model: "a model", Metric: m, Values: q}, limit)
	if err != nil {
		t.Fatal(err)
	}
	if total != len(want) || len(got) != min(limit, len(want)) {
		t.Fatalf("%d neighbours of %d rows, want %d of %d", len(got), total, min(limit, len(want)), len(want))
	}
	if !slices.Equal(got, all[:len(got)]) {
		t.Errorf("the best %d are not the first of all", len(got))
	}
	for i, g := range got {
		w := want[i]
		if !near(m, g.similarity, w.similarity, length(q)*w.norm) || !near(m, g.similarity, w.was, length(q)*w.norm) {
			t.Errorf("neighbour %d: %v, want %v, of the vector itself %v", i, g, w.neighbour, w.was)
		}
	}
}

// near reports whether two similarities are equal up to the precision of twelve bits. A cosine may
// be off by 1e-3 (one dimension of two is a quarter of that), a product and a squared distance by
// that times the norms.
func near(m Metric, a, b, norms float64) bool {
	switch m {
	case Dot:
		return math.Abs(a-b) <= 1e-3*norms
	case L2:
		return math.Abs(a*a-b*b) <= 2e-3*norms
	}
	return math.Abs(a-b) <= 1e-3
}

func TestNearestRefuses(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	views := []vectorView{{vectors: sidecarOf(t, 2, nil, [][]float32{{1, 2}}), ids: idsOf(1)}}
	for _, q := range []Vector{
		{Metric: Cosine, Values: []float32{1}},
		{Metric: Cosine, Values: []float32{1, 2, 3}},
		{Metric: Cosine, Values: []float32{0, 0}},
		{Metric: Dot, Values: []float32{1, nan}},
		{Metric: L2, Values: []float32{1, inf}},
		{Metric: "hamming", Values: []float32{1, 2}},
		{Values: []float32{1, 2}},
	} {
		if _, _, err := nearest(t.Context(), views, q, 10); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("nearest(%v) = %v, want ErrInvalid", q, err)
		}
	}
}

// manyRows is enough rows that most similarities are estimated, not computed.
const manyRows = 20_000

// TestNearestOfMany checks the promised recall, with and without filters.
func TestNearestOfMany(t *testing.T) {
	t.Parallel()
	const dimensions, rounds = 96, 20
	for _, norms := range []float64{0, 0.5} {
		r := rand.New(rand.NewPCG(1, uint64(10*norms)))
		rows, queries := clustered(r, manyRows, rounds, dimensions, norms)
		held := slices.Clone(rows)
		kept := newBitset(manyRows)
		for c := range rows {
			if r.IntN(10) == 0 {
				held[c] = nil
			} else if r.IntN(2) == 0 {
				kept.set(uint32(c))
			}
		}
		// eligible holds the vectors that may be found, by whether a filter is set.
		eligible := map[bool][][]float32{true: slices.Clone(held), false: held}
		for c := range rows {
			if !kept.has(uint32(c)) {
				eligible[true][c] = nil
			}
		}
		sidecar, ids := sidecarOf(t, dimensions, nil, held), idsOf(manyRows)
		for _, m := range []Metric{Cosine, Dot, L2} {
			for _, filtered := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, norms %g, filtered %v", m, norms, filtered), func(t *testing.T) {
					view := vectorView{vectors: sidecar, ids: ids}
					if filtered {
						view.kept = kept
					}
					var found float64
					for _, q := range queries {
						query := Vector{Metric: m, Values: q}
						got, _, err := nearest(t.Context(), []vectorView{view}, query, 10)
						if err != nil {
							t.Fatal(err)
						}
						for _, g := range got {
							if eligible[filtered][g.chunk] == nil {
								t.Fatalf("found chunk %d, which has no vector or is not kept", g.chunk)
							}
						}
						found += recall(got, exactly(query, eligible[filtered], 10))
					}
					if found /= float64(len(queries)); found < 0.99 {
						t.Errorf("recall@10 is %.4f, want 0.99", found)
					}
				})
			}
		}
	}
}

// TestNearestOfSparse keeps so few rows that the others are not estimated, but more than are
// rescored.
func TestNearestOfSparse(t *testing.T) {
	t.Parallel()
	const dimensions, rounds = 96, 20
	r := rand.New(rand.NewPCG(1, 17))
	rows, queries := clustered(r, manyRows, rounds, dimensions, 0.3)
	view := vectorView{vectors: sidecarOf(t, dimensions, nil, rows), ids: idsOf(manyRows), kept: newBitset(manyRows)}
	eligible := make([][]float32, manyRows)
	for range manyRows / sparse * 3 / 4 {
		c := r.IntN(manyRows)
		eligible[c] = rows[c]
		view.kept.set(uint32(c))
	}
	for _, m := range []Metric{Cosine, Dot, L2} {
		var found float64
		for _, q := range queries {
			query := Vector{Metric: m, Values: q}
			got := nearestBy(t, view, query, 10, counts{short: 100, rescored: 150})
			for _, g := range got {
				if eligible[g.chunk] == nil {
					t.Fatalf("found chunk %d, which is not kept", g.chunk)
				}
			}
			found += recall(got, exactly(query, eligible, 10))
		}
		if found /= rounds; found < 0.99 {
			t.Errorf("%s: recall@10 is %.4f, want 0.99", m, found)
		}
	}
}

// TestNearestOverViews checks that the results are the same if the rows are in one sidecar or in
// several around the same centre.
func TestNearestOverViews(t *testing.T) {
	t.Parallel()
	const dimensions = 64
	r := rand.New(rand.NewPCG(1, 12))
	rows, queries := clustered(r, manyRows, 10, dimensions, 0.3)
	var c centroid
	for _, values := range rows {
		c.add(values)
	}
	centre, ids := c.centre(dimensions), idsOf(manyRows)
	one := []vectorView{{vectors: sidecarOf(t, dimensions, centre, rows), ids: ids}, {}}
	var several []vectorView
	var starts []uint32
	for start := 0; start < manyRows; {
		end := min(manyRows, start+1+r.IntN(6000))
		several = append(several, vectorView{vectors: sidecarOf(t, dimensions, centre, rows[start:end]), ids: ids[16*start : 16*end]})
		starts = append(starts, uint32(start))
		start = end
	}
	for _, m := range []Metric{Cosine, Dot, L2} {
		for _, q := range queries {
			want, total, err := nearest(t.Context(), one, Vector{Metric: m, Values: q}, 50)
			if err != nil {
				t.Fatal(err)
			}
			got, gotTotal, err := nearest(t.Context(), several, Vector{Metric: m, Values: q}, 50)
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range got {
				got[i] = neighbour{chunk: starts[n.view] + n.chunk, similarity: n.similarity}
			}
			if !slices.Equal(got, want) || gotTotal != total {
				t.Fatalf("%s: %v of %d, want %v of %d", m, got, gotTotal, want, total)
			}
		}
	}
}

// TestNearestTies checks that among many chunks with the same vectors the smallest IDs win.
func TestNearestTies(t *testing.T) {
	t.Parallel()
	const dimensions = 32
	r := rand.New(rand.NewPCG(1, 13))
	distinct := [][]float32{gaussian(r, dimensions, 1), gaussian(r, dimensions, 1), gaussian(r, dimensions, 1)}
	rows := make([][]float32, 15_000)
	for i := range rows {
		rows[i] = distinct[i%3]
	}
	ids := idsOf(len(rows))
	view := vectorView{vectors: sidecarOf(t, dimensions, nil, rows), ids: ids}
	id := func(chunk uint32) []byte { return ids[16*chunk:][:16] }
	for which := range distinct {
		var want []uint32
		for c := which; c < len(rows); c += 3 {
			want = append(want, uint32(c))
		}
		slices.SortFunc(want, func(a, b uint32) int { return bytes.Compare(id(a), id(b)) })
		for _, m := range []Metric{Cosine, L2} {
			got, _, err := nearest(t.Context(), []vectorView{view}, Vector{Metric: m, Values: distinct[which]}, 10)
			if err != nil {
				t.Fatal(err)
			}
			var chunks []uint32
			for _, n := range got {
				chunks = append(chunks, n.chunk)
			}
			if !slices.Equal(chunks, want[:10]) {
				t.Errorf("%s: %v, want the smallest IDs %v", m, chunks, want[:10])
			}
		}
	}
}

// TestNearestSample checks that the short list is the same if the best rows are adjacent, so that
// the sample of estimates misses them or consists only of them.
func TestNearestSample(t *testing.T) {
	t.Parallel()
	const dimensions = 64
	r := rand.New(rand.NewPCG(1, 14))
	rows, queries := clustered(r, manyRows, 1, dimensions, 0)
	q := queries[0]
	slices.SortFunc(rows, func(a, b []float32) int {
		return cmp.Compare(similarityOf(Cosine, q, a), similarityOf(Cosine, q, b))
	})
	var c centroid
	for _, values := range rows {
		c.add(values)
	}
	centre := c.centre(dimensions)
	s := new(vectorSearch)
	for range 3 {
		view := vectorView{vectors: sidecarOf(t, dimensions, centre, rows), ids: idsOf(manyRows)}
		if err := s.prepare([]vectorView{view}, Vector{Metric: Cosine, Values: q}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 100, 1000, 4000} {
			if err := s.gather(t.Context(), n, everyScore); err != nil {
				t.Fatal(err)
			}
			want := sorted(s.best(s.rows, n))
			if err := s.scan(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if got := sorted(s.rows); len(got) != n || !slices.Equal(got, want) {
				t.Errorf("the short list of %d is another with a sample", n)
			}
		}
		slices.Reverse(rows)
		rows = append(rows[manyRows/3:], rows[:manyRows/3]...)
	}
}

func sorted(rows []scoredRow) []scoredRow {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b scoredRow) int { return cmp.Compare(a.row, b.row) })
	return rows
}

func TestNearestCancelled(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 15))
	for _, chunks := range []int{100, manyRows} {
		view := vectorView{vectors: sidecarOf(t, 8, nil, randomRows(r, chunks, 8, 0)), ids: idsOf(chunks)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := nearest(ctx, []vectorView{view}, Vector{Metric: Cosine, Values: gaussian(r, 8, 1)}, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("%d chunks: %v, want context.Canceled", chunks, err)
		}
	}
}

// TestBest compares best with sorting.
func TestBest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 16))
	rows := make([][]float32, 500)
	for i := range rows {
		rows[i] = []float32{1}
	}
	s := &vectorSearch{views: []searchedView{{vectorView: vectorView{vectors: sidecarOf(t, 1, nil, rows), ids: idsOf(len(rows))}}}}
	for range 2000 {
		list := make([]scoredRow, 1+r.IntN(len(rows)))
		spread := []uint64{1, 3, 1 << 12, 1 << 40, math.MaxUint64}[r.IntN(5)]
		for i := range list {
			list[i] = scoredRow{key: r.Uint64N(spread), row: uint32(i)}
		}
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b scoredRow) int {
			return cmp.Or(cmp.Compare(b.key, a.key), s.compareIDs(a, b))
		})
		n := r.IntN(len(list) + 5)
		got := s.best(list, n)
		if !slices.Equal(sorted(got), sorted(want[:min(n, len(want))])) {
			t.Fatalf("best %d of %d: %v, want %v", n, len(want), got, want)
		}
	}
}

// TestRecallOfReal measures the recall on an encoder's vectors, with the counts that nearest uses
// and with others. ASSAY_VECTORS names a file of rows of 384 float32, little-endian. The first
// ASSAY_VECTORS_ROWS rows (default: all) are used. A file next to it has the queries in the same
// format: NAME.queries.f32 for NAME.f32.
func TestRecallOfReal(t *testing.T) {
	t.Parallel()
	file := os.Getenv("ASSAY_VECTORS")
	if file == "" {
		t.Skip("ASSAY_VECTORS names no file of vectors")
	}
	const dimensions = 384
	limit, _ := strconv.Atoi(os.Getenv("ASSAY_VECTORS_ROWS"))
	rows := readRows(t, file, dimensions, limit)
	queries := readRows(t, strings.TrimSuffix(file, ".f32")+".queries.f32", dimensions, 500)
	for _, values := range slices.Concat(rows, queries) {
		scaled(values, 1)
	}
	view := vectorView{vectors: sidecarOf(t, dimensions, nil, rows), ids: idsOf(len(rows))}
	exact := make([][]neighbour, len(queries))
	for i, q := range queries { // of unit length, so the product is the cosine
		exact[i] = exactly(Vector{Metric: Dot, Values: q}, rows, 50)
	}
	t.Logf("%d vectors, %d queries", len(rows), len(queries))
	t.Logf("asked  short list  rescored  recall@10  recall of asked")
	measure := func(asked int, n counts) {
		var ten, all float64
		for i, q := range queries {
			got := nearestBy(t, view, Vector{Metric: Cosine, Values: q}, asked, n)
			ten += recall(got[:min(10, len(got))], exact[i][:10])
			all += recall(got, exact[i][:asked])
		}
		t.Logf("%5d  %10d  %8d  %9.4f  %15.4f", asked, n.short, n.rescored, ten/float64(len(queries)), all/float64(len(queries)))
	}
	for _, asked := range []int{10, 50} {
		measure(asked, countsFor(asked, len(rows)))
	}
	for _, n := range []counts{
		{500, 100}, {1000, 100}, {2000, 100}, {1000, 200}, {2000, 200}, {4000, 200},
		{2000, 500}, {4000, 500}, {8000, 500}, {8000, 1000}, {len(rows), len(rows)},
	} {
		measure(50, n)
	}
}

// nearestBy is like nearest with other counts.
func nearestBy(t *testing.T, view vectorView, q Vector, limit int, n counts) []neighbour {
	t.Helper()
	s := new(vectorSearch)
	if err := s.prepare([]vectorView{view}, q); err != nil {
		t.Fatal(err)
	}
	found, err := s.nearest(t.Context(), limit, n)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readRows reads at most limit rows (0: all) of a file of float32 numbers.
func readRows(t testing.TB, name string, dimensions, limit int) [][]float32 {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows [][]float32
	b := make([]byte, 4*dimensions)
	for limit == 0 || len(rows) < limit {
		if _, err := io.ReadFull(f, b); err != nil {
			break
		}
		row := make([]float32, dimensions)
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		rows = append(rows, row)
	}
	return rows
}

// exactly returns the limit rows most similar to q, best first. Similarities follow the definition
// of the metric up to a constant factor or summand, and are computed in float32.
func exactly(q Vector, rows [][]float32, limit int) []neighbour {
	var best []neighbour
	for i, values := range rows {
		if values == nil {
			continue
		}
		n := neighbour{chunk: uint32(i), similarity: float64(product(q.Values, values))}
		switch q.Metric {
		case Cosine:
			n.similarity /= math.Sqrt(float64(product(values, values)))
		case L2:
			n.similarity -= float64(product(values, values)) / 2
		}
		if len(best) == limit && n.similarity <= best[limit-1].similarity {
			continue
		}
		at := len(best)
		for at > 0 && best[at-1].similarity < n.similarity {
			at--
		}
		best = slices.Insert(best, at, n)
		best = best[:min(limit, len(best))]
	}
	return best
}

// product returns the dot product. It uses eight sums, which compilers keep in registers.
func product(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for ; len(a) >= 8 && len(b) >= 8; a, b = a[8:], b[8:] {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}

// recall returns the fraction of the exact neighbours that were found.
func recall(got, exact []neighbour) float64 {
	want := map[uint32]bool{}
	for _, n := range exact {
		want[n.chunk] = true
	}
	found := 0
	for _, n := range got {
		if want[n.chunk] {
			found++
		}
	}
	return float64(found) / float64(max(1, len(exact)))
}

// clustered returns vectors like those of an encoder, around topics that lie around a common
// direction, and queries close to some of them.
func clustered(r *rand.Rand, n, queries, dimensions int, norms float64) (rows, qs [][]float32) {
	common := gaussian(r, dimensions, 1)
	topics := make([][]float32, max(1, n/100))
	for i := range topics {
		topics[i] = plus(common, gaussian(r, dimensions, 0.7))
	}
	for range n {
		rows = append(rows, scaled(plus(topics[r.IntN(len(topics))], gaussian(r, dimensions, 0.5)), math.Exp(r.NormFloat64()*norms)))
	}
	for range queries {
		qs = append(qs, plus(topics[r.IntN(len(topics))], gaussian(r, dimensions, 0.5)))
	}
	return rows, qs
}

func plus(a, b []float32) []float32 {
	for i := range b {
		b[i] += a[i]
	}
	return b
}

// scaled scales a vector to the given norm.
func scaled(v []float32, norm float64) []float32 {
	factor := float32(norm / length(v))
	for i := range v {
		v[i] *= factor
	}
	return v
}

// BenchmarkNearest searches 200,000 vectors, or ASSAY_VECTORS_ROWS. They are clustered, or read
// from the file ASSAY_VECTORS. The CPU time is the relevant figure if other programs are running.
func BenchmarkNearest(b *testing.B) {
	const dimensions = 384
	chunks, _ := strconv.Atoi(os.Getenv("ASSAY_VECTORS_ROWS"))
	chunks = cmp.Or(chunks, 200_000)
	var rows, queries [][]float32
	if file := os.Getenv("ASSAY_VECTORS"); file != "" {
		rows = readRows(b, file, dimensions, chunks)
		queries = readRows(b, strings.TrimSuffix(file, ".f32")+".queries.f32", dimensions, 0)
	} else {
		rows, queries = clustered(rand.New(rand.NewPCG(1, 1)), chunks, 200, dimensions, 0)
	}
	sidecar, ids := sidecarOf(b, dimensions, nil, rows), idsOf(len(rows))
	rows = nil
	for _, share := range []float64{1, 0.5, 0.1, 0.01, 0.0001} {
		var kept bitset
		if share < 1 {
			r := rand.New(rand.NewPCG(2, 2))
			kept = newBitset(chunks)
			for c := range sidecar.rows() {
				if r.Float64() < share {
					kept.set(uint32(c))
				}
			}
		}
		b.Run(fmt.Sprintf("kept %g", share), func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime()
			views := []vectorView{{vectors: sidecar, ids: ids, kept: kept}}
			for i := 0; b.Loop(); i++ {
				q := Vector{Metric: Cosine, Values: queries[i%len(queries)]}
				if _, _, err := nearest(b.Context(), views, q, 50); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N), "CPU-µs/op")
		})
	}
}
