package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
)

// idsOf returns distinct chunk IDs that do not ascend with the chunks' numbers.
func idsOf(chunks int) []byte { return idsFrom(0, chunks) }

func idsFrom(first, chunks int) []byte {
	ids := make([]byte, 16*chunks)
	for i := range chunks {
		binary.BigEndian.PutUint64(ids[16*i:], uint64(first+i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(ids[16*i+8:], uint64(first+i))
	}
	return ids
}

// sidecarOf writes a sidecar of the rows and opens it. Nil rows have no vector. A nil centre means
// the mean direction of the rows.
func sidecarOf(t testing.TB, dimensions int, centre []float32, rows [][]float32) *vectors {
	t.Helper()
	v, err := openVectors(sidecarBytes(t, dimensions, centre, rows), uint32(len(rows)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sidecarBytes(t testing.TB, dimensions int, centre []float32, rows [][]float32) []byte {
	t.Helper()
	if centre == nil {
		var c centroid
		for _, values := range rows {
			if values != nil {
				c.add(values)
			}
		}
		centre = c.centre(dimensions)
	}
	var b bytes.Buffer
	w := newVectorsWriter(&b, "a model", dimensions, centre)
	for chunk, values := range rows {
		if values == nil {
			continue
		}
		if err := w.add(uint32(chunk), values); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// randomRows returns vectors with various norms, some of them missing.
func randomRows(r *rand.Rand, chunks, dimensions int, missing float64) [][]float32 {
	rows := make([][]float32, chunks)
	shift := gaussian(r, dimensions, 1)
	for i := range rows {
		if r.Float64() < missing {
			continue
		}
		rows[i] = gaussian(r, dimensions, 1)
		factor := float32(math.Exp(r.NormFloat64() / 2))
		for j := range rows[i] {
			rows[i][j] = (rows[i][j] + shift[j]) * factor
		}
	}
	return rows
}

func gaussian(r *rand.Rand, dimensions int, deviation float64) []float32 {
	values := make([]float32, dimensions)
	for i := range values {
		values[i] = float32(r.NormFloat64() * deviation)
	}
	return values
}

func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var b bytes.Buffer
	w := newVectorsWriter(&b, "a model", 2, []float32{0, 0})
	for _, values := range [][]float32{{1}, {1, 2, 3}, {1, nan}, {inf, 1}, {3e38, 3e38}} {
		if err := w.add(0, values); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("add(%v) = %v, want ErrDamaged", values, err)
		}
	}
	for _, dimensions := range []int{0, 4097} {
		if err := newVectorsWriter(&b, "a model", dimensions, make([]float32, dimensions)).finish(); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("a sidecar of %d dimensions: %v, want ErrInvalid", dimensions, err)
		}
	}
}

func TestVectorsHoldWhatWasAdded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 7))
	for _, chunks := range []int{0, 1, 63, 64, 65, 1023, 1024, 1025, 2500} {
		const dimensions = 40
		rows := randomRows(r, chunks, dimensions, 0.3)
		v := sidecarOf(t, dimensions, nil, rows)
		row := 0
		for c, values := range rows {
			if v.has().has(uint32(c)) != (values != nil) {
				t.Fatalf("%d chunks: has %d: %v", chunks, c, values == nil)
			}
			if values == nil {
				continue
			}
			if v.chunkOf(row) != uint32(c) {
				t.Fatalf("%d chunks: row %d is of chunk %d, want %d", chunks, row, v.chunkOf(row), c)
			}
			got := v.values(row, nil)
			for i, x := range values {
				if math.Abs(float64(got[i]-x)) > 1e-3*length(values) {
					t.Fatalf("%d chunks: row %d, dimension %d: %v, want %v", chunks, row, i, got[i], x)
				}
			}
			row++
		}
		if v.rows() != row || v.model() != "a model" || v.dimensions() != dimensions {
			t.Errorf("%d chunks: %d rows of %s, %d dimensions, want %d", chunks, v.rows(), v.model(), v.dimensions(), row)
		}
	}
}

// TestVectorsMerged copies the rows of two sidecars into one.
func TestVectorsMerged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 8))
	const dimensions = 70
	rows := randomRows(r, 3000, dimensions, 0.2)
	centre := gaussian(r, dimensions, 0.1)
	merged := func(first, second []float32) []byte {
		var b bytes.Buffer
		w := newVectorsWriter(&b, "a model", dimensions, centre)
		chunk := 0
		for i, part := range [][][]float32{rows[:1100], rows[1100:]} {
			v := sidecarOf(t, dimensions, [][]float32{first, second}[i], part)
			for row := range v.rows() {
				if err := w.addRow(v, row, uint32(chunk)+v.chunkOf(row)); err != nil {
					t.Fatal(err)
				}
			}
			chunk += len(part)
		}
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	want := sidecarBytes(t, dimensions, centre, rows)
	if got := merged(centre, centre); !bytes.Equal(got, want) {
		t.Error("rows around the same centre, merged, are not those written at once")
	}
	anew, err := openVectors(merged(nil, gaussian(r, dimensions, 0.1)), uint32(len(rows)))
	if err != nil {
		t.Fatal(err)
	}
	for row := range anew.rows() {
		values := rows[anew.chunkOf(row)]
		for i, x := range anew.values(row, nil) {
			if math.Abs(float64(values[i]-x)) > 2e-3*length(values) {
				t.Fatalf("row %d from another centre, dimension %d: %v, want %v", row, i, x, values[i])
			}
		}
	}
}

// A shortWriter accepts a limited number of bytes.
type shortWriter struct{ left int }

var errFull = errors.New("no space")

func (w *shortWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return 0, errFull
	}
	w.left -= len(b)
	return len(b), nil
}

func TestVectorsWriterStops(t *testing.T) {
	t.Parallel()
	rows := randomRows(rand.New(rand.NewPCG(1, 9)), 1500, 8, 0)
	size := len(sidecarBytes(t, 8, nil, rows))
	for left := 0; left < size; left += 1 + size/50 {
		w := newVectorsWriter(&shortWriter{left}, "a model", 8, make([]float32, 8))
		var err error
		for chunk, values := range rows {
			if err = w.add(uint32(chunk), values); err != nil {
				break
			}
		}
		if last := w.finish(); !errors.Is(last, errFull) || err != nil && !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: add %v, finish %v, want the writer's error", left, err, last)
		}
	}
}

const damagedChunks = 150

// searchDamaged opens a sidecar of damagedChunks that may be damaged, searches it and copies it.
func searchDamaged(t *testing.T, file []byte) {
	t.Helper()
	v, err := openVectors(file, damagedChunks)
	if err != nil {
		if !errors.Is(err, assay.ErrDamaged) {
			t.Fatalf("openVectors: %v, want ErrDamaged", err)
		}
		return
	}
	q := gaussian(rand.New(rand.NewPCG(1, 11)), v.dimensions(), 1)
	for _, m := range []Metric{Cosine, Dot, L2} {
		s := new(vectorSearch)
		if err := s.prepare([]vectorView{{vectors: v, ids: idsOf(damagedChunks)}}, Vector{Metric: m, Values: q}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []counts{{30, 12}, {damagedChunks, damagedChunks}} {
			found, err := s.nearest(t.Context(), 10, n)
			if err != nil && !errors.Is(err, assay.ErrDamaged) {
				t.Fatalf("nearest: %v, want ErrDamaged", err)
			}
			for _, n := range found {
				if !v.has().has(n.chunk) || math.IsNaN(n.similarity) {
					t.Fatalf("nearest found %v", n)
				}
			}
		}
	}
	w := newVectorsWriter(io.Discard, v.model(), v.dimensions(), make([]float32, v.dimensions()))
	for row := range v.rows() {
		if err := w.addRow(v, row, v.chunkOf(row)); err != nil {
			if !errors.Is(err, assay.ErrDamaged) {
				t.Fatalf("addRow: %v, want ErrDamaged", err)
			}
			break
		}
	}
}

func TestVectorsDamaged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 18))
	for _, dimensions := range []int{3, 70} {
		whole := sidecarBytes(t, dimensions, nil, randomRows(r, damagedChunks, dimensions, 0.1))
		step := len(whole)/400 + 1
		for at := r.IntN(step); at < len(whole); at += 1 + r.IntN(2*step) {
			if _, err := openVectors(whole[:at], damagedChunks); !errors.Is(err, assay.ErrDamaged) {
				t.Fatalf("cut after %d bytes: %v, want ErrDamaged", at, err)
			}
			file := bytes.Clone(whole)
			file[at] ^= byte(1 + r.IntN(255))
			searchDamaged(t, file)
		}
		if _, err := openVectors(whole, damagedChunks/2); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("a sidecar of %d chunks for fewer: %v, want ErrDamaged", damagedChunks, err)
		}
	}
}

// FuzzVectors opens damaged sidecars and searches those that open.
func FuzzVectors(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 10))
	for _, dimensions := range []int{3, 70} {
		whole := sidecarBytes(f, dimensions, nil, randomRows(r, damagedChunks, dimensions, 0.1))
		f.Add(whole, uint32(0), byte(0), uint32(0))
		f.Add(whole, uint32(len(whole)-4), byte(3), uint32(0))
		f.Add(whole, uint32(10), byte(0x80), uint32(5))
		f.Add(whole, uint32(200), byte(0xff), uint32(64))
	}
	f.Add([]byte{}, uint32(0), byte(0), uint32(0))
	f.Fuzz(func(t *testing.T, file []byte, at uint32, flip byte, cut uint32) {
		file = bytes.Clone(file[:len(file)-int(cut%uint32(len(file)+1))])
		if len(file) > 0 {
			file[at%uint32(len(file))] ^= flip
		}
		searchDamaged(t, file)
	})
}

// TestScoresOfOthers checks that a similarity depends on the query and the row's vector alone, to
// the last bit. It encodes the same vectors around other centres, among other vectors, in other
// sidecars, and after merges.
func TestScoresOfOthers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 21))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		dimensions := []int{3, 33, 64, 100}[r.IntN(4)]
		rows := randomRows(r, 20+r.IntN(400), dimensions, 0.2)
		q := Vector{Metric: []Metric{Cosine, Dot, L2}[r.IntN(3)], Values: gaussian(r, dimensions, 1)}
		want := scoresByID(t, layoutOf(t, r, dimensions, rows, false), q)
		for range 3 {
			got := scoresByID(t, layoutOf(t, r, dimensions, rows, true), q)
			if len(got) != len(want) {
				t.Fatalf("%d chunks found, want %d", len(got), len(want))
			}
			for id, similarity := range want {
				if math.Float64bits(got[id]) != math.Float64bits(similarity) {
					t.Fatalf("%s of chunk %x is %v, and %v in another layout", q.Metric, id, similarity, got[id])
				}
			}
		}
	}
}

// layoutOf returns views of the rows. If others is set, the rows are distributed over several
// sidecars, among rows that are not kept, around different centres, and re-encoded.
func layoutOf(t *testing.T, r *rand.Rand, dimensions int, rows [][]float32, others bool) []vectorView {
	t.Helper()
	if !others {
		return []vectorView{{vectors: sidecarOf(t, dimensions, nil, rows), ids: idsOf(len(rows))}}
	}
	var views []vectorView
	for from := 0; from < len(rows); {
		end := min(len(rows), from+1+r.IntN(len(rows)))
		mixed := slices.Clone(rows[from:end])
		kept := newBitset(4 * len(rows))
		for i := range mixed {
			kept.set(uint32(i))
		}
		foreign := randomRows(r, r.IntN(2*len(rows)), dimensions, 0.1)
		mixed = append(mixed, foreign...)
		v := sidecarOf(t, dimensions, nil, mixed)
		for range r.IntN(3) {
			v = encodedAgain(t, v, gaussian(r, dimensions, 0.3), len(mixed))
		}
		ids := append(idsFrom(from, end-from), idsFrom(100_000+from, len(foreign))...)
		views = append(views, vectorView{vectors: v, ids: ids, kept: kept[:(len(mixed)+63)/64]})
		from = end
	}
	return views
}

// encodedAgain copies a sidecar's rows into one around another centre.
func encodedAgain(t *testing.T, v *vectors, centre []float32, chunks int) *vectors {
	t.Helper()
	var b bytes.Buffer
	w := newVectorsWriter(&b, v.model(), v.dimensions(), centre)
	for row := range v.rows() {
		if err := w.addRow(v, row, v.chunkOf(row)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	again, err := openVectors(b.Bytes(), uint32(chunks))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// scoresByID returns the similarities of all chunks by their IDs.
func scoresByID(t *testing.T, views []vectorView, q Vector) map[string]float64 {
	t.Helper()
	found, _, err := nearest(t.Context(), views, q, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]float64{}
	for _, n := range found {
		scores[string(views[n.view].ids[16*n.chunk:][:16])] = n.similarity
	}
	return scores
}
