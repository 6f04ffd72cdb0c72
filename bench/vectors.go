package main

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/viterin/vek/vek32"
)

// A vectorSet holds rows of float32 of unit length, mapped from a file that is row-major and
// little-endian, without a header.
type vectorSet struct {
	dimensions int
	values     []float32
}

func openVectors(path string, dimensions int) (*vectorSet, error) {
	data, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%(4*dimensions) != 0 {
		return nil, fmt.Errorf("%s has %d bytes, which is not a number of vectors of %d float32 (4 bytes each)", path, len(data), dimensions)
	}
	// A mapping begins on a page boundary, so float32 values are aligned in it.
	return &vectorSet{dimensions, unsafe.Slice((*float32)(unsafe.Pointer(&data[0])), len(data)/4)}, nil
}

func (v *vectorSet) rows() int { return len(v.values) / v.dimensions }

// row returns a row, which must not be modified.
func (v *vectorSet) row(i int) []float32 {
	return v.values[i*v.dimensions : (i+1)*v.dimensions]
}

// chunkVectors returns at least n vectors, one for each chunk, with their file and a description.
// Without a file they are synthetic. If a file has fewer rows, additional ones are made by adding
// half the difference of two rows to a third, which keeps the directions in which real vectors
// vary. Generated vectors are cached under a name that depends on how they are made.
func chunkVectors(cache, file string, dimensions, n int) (v *vectorSet, path, what string, err error) {
	if file == "" {
		path := filepath.Join(cache, fmt.Sprintf("synthetic-1-%dx%d.f32", n, dimensions))
		v, err := cachedVectors(path, dimensions, n, func() func(int, []float32) { return newClusters(dimensions).passage })
		return v, path, fmt.Sprintf("%d synthetic vectors of %d dimensions in %d clusters", n, dimensions, clusterCount), err
	}
	real, err := openVectors(file, dimensions)
	if err != nil {
		return nil, "", "", err
	}
	what = fmt.Sprintf("%d real vectors of %d dimensions (%s)", min(n, real.rows()), dimensions, filepath.Base(file))
	if real.rows() >= n {
		return real, file, what, nil
	}
	path = filepath.Join(cache, fmt.Sprintf("%s-%d-made-%d.f32", filepath.Base(file), real.rows(), n))
	v, err = cachedVectors(path, dimensions, n, func() func(int, []float32) { return real.between })
	return v, path, fmt.Sprintf("%s, and %d made from them", what, n-real.rows()), err
}

// queryVectors returns the query vectors: those of a file, or else synthetic ones that relate to
// the synthetic rows as questions relate to passages.
func queryVectors(file string, dimensions, n int) ([][]float32, error) {
	if file == "" {
		c := newClusters(dimensions)
		queries := make([][]float32, n)
		for i := range queries {
			queries[i] = make([]float32, dimensions)
			c.query(i, queries[i])
		}
		return queries, nil
	}
	set, err := openVectors(file, dimensions)
	if err != nil {
		return nil, err
	}
	var queries [][]float32
	for i := range min(n, set.rows()) {
		queries = append(queries, set.row(i))
	}
	return queries, nil
}

// between makes row i of an extended set: row i itself, or one of the rows moved by half the
// difference of two others.
func (v *vectorSet) between(i int, into []float32) {
	if i < v.rows() {
		copy(into, v.row(i))
		return
	}
	random := rand.New(rand.NewPCG(5, uint64(i)))
	copy(into, v.row(i%v.rows()))
	a, b := v.row(random.IntN(v.rows())), v.row(random.IntN(v.rows()))
	for j := range into {
		into[j] += (a[j] - b[j]) / 2
	}
	normalise(into)
}

func cachedVectors(path string, dimensions, n int, generator func() func(int, []float32)) (*vectorSet, error) {
	if v, err := openVectors(path, dimensions); err == nil && v.rows() == n {
		return v, nil
	}
	progress("making %d vectors (once; kept as %s)", n, path)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.tmp")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	w := bufio.NewWriterSize(f, 1<<20)
	generate := generator()
	row, bytes := make([]float32, dimensions), []byte(nil)
	for i := range n {
		generate(i, row)
		bytes = bytes[:0]
		for _, x := range row {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
		}
		w.Write(bytes)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, err
	}
	return openVectors(path, dimensions)
}

// The numbers of topics, and of clusters within them, of the synthetic vectors.
const (
	topicCount   = 64
	clusterCount = 2000
)

// clusters generates synthetic vectors that resemble an encoder's in the properties that matter to
// an index of codes. They have a large common part, variance that differs by direction but not by
// coordinate, and neighbours at gradually increasing distance. The constants were fitted to 20,000
// vectors of gte-small and 200 questions:
//
//	                                           gte-small   synthetic
//	common part, squared length                     0.74        0.75
//	effective dimensions, (tr C)² / tr C²            115         114
//	similarity of neighbours, in deviations    1st   5.9         6.1
//	above the mean of all                     10th   4.1         4.4
//	                                         100th   3.0         3.2
//	                                         500th   2.1         2.0
//
//	passage  normalise(common + mix(topic + cluster + alone)), each weighted
//	query    normalise(common + mix(topic + cluster of some passage + a share of
//	         what it has alone + noise))
//
// Component d before mixing is Gaussian with the deviation (1 + d)^-0.24; mix
// multiplies by a matrix of random directions. Cluster ⌊2000 u²⌋, of a uniform u,
// belongs to topic cluster mod 64.
type clusters struct {
	common     []float32
	deviations []float32
	directions [][]float32 // by output coordinate
	topics     [][]float32
	centres    [][]float32
}

func newClusters(dimensions int) *clusters {
	random := rand.New(rand.NewPCG(5, 0))
	c := &clusters{deviations: make([]float32, dimensions)}
	for d := range c.deviations {
		c.deviations[d] = float32(math.Pow(1+float64(d), -0.24))
	}
	own := float32(0) // mean squared length of own
	for _, s := range c.deviations {
		own += s * s
	}
	for range dimensions {
		row := make([]float32, dimensions)
		for d := range row {
			row[d] = float32(random.NormFloat64() / math.Sqrt(float64(dimensions)))
		}
		c.directions = append(c.directions, row)
	}
	for range topicCount {
		c.topics = append(c.topics, c.gauss(random))
	}
	for range clusterCount {
		c.centres = append(c.centres, c.gauss(random))
	}
	c.common = make([]float32, dimensions)
	for d := range c.common {
		c.common[d] = float32(random.NormFloat64())
	}
	normalise(c.common)
	vek32.MulNumber_Inplace(c.common, commonLength*float32(math.Sqrt(float64(own))))
	return c
}

// The fitted constants.
const (
	commonLength  = 1.69 // relative to the length of own
	topicWeight   = 0.55
	clusterWeight = 0.45
	aloneWeight   = 0.7
	queryAlone    = 0.3
	queryNoise    = 0.75
)

func (c *clusters) gauss(random *rand.Rand) []float32 {
	v := make([]float32, len(c.deviations))
	for d := range v {
		v[d] = float32(random.NormFloat64()) * c.deviations[d]
	}
	return v
}

// own returns the parts of passage i besides the common one, before mixing: the part shared with
// its neighbours, and the part of its own.
func (c *clusters) own(i int) (shared, alone []float32) {
	random := rand.New(rand.NewPCG(6, uint64(i)))
	u := random.Float64()
	cluster := int(u * u * clusterCount)
	alone = c.gauss(random)
	shared = make([]float32, len(alone))
	for d := range shared {
		alone[d] *= aloneWeight
		shared[d] = topicWeight*c.topics[cluster%topicCount][d] + clusterWeight*c.centres[cluster][d]
	}
	return shared, alone
}

func (c *clusters) passage(i int, into []float32) {
	shared, alone := c.own(i)
	vek32.Add_Inplace(shared, alone)
	c.mix(shared, into)
}

func (c *clusters) query(i int, into []float32) {
	random := rand.New(rand.NewPCG(7, uint64(i)))
	shared, alone := c.own(random.IntN(10_000))
	for d, x := range c.gauss(random) {
		shared[d] += queryAlone*alone[d] + queryNoise*x
	}
	c.mix(shared, into)
}

func (c *clusters) mix(own, into []float32) {
	for d := range into {
		into[d] = c.common[d] + vek32.Dot(c.directions[d], own)
	}
	normalise(into)
}

func normalise(v []float32) {
	if n := vek32.Norm(v); n > 0 {
		vek32.DivNumber_Inplace(v, n)
	}
}

// A floatScan compares a query with every vector, in float32 with SIMD. Its answer is exact, and it
// is the baseline without an index.
type floatScan struct {
	vectors *vectorSet
	shares  []float64 // of each chunk's document
}

func newFloatScan(c *corpus, v *vectorSet) *floatScan {
	s := &floatScan{vectors: v}
	for d := range c.documents() {
		for range c.first[d+1] - c.first[d] {
			s.shares = append(s.shares, share(d))
		}
	}
	return s
}

func (s *floatScan) nearest(q []float32, below float64, limit int) (answer, error) {
	best := make(scoreHeap, 0, limit)
	for i := range s.shares {
		if below < 1 && s.shares[i] >= below {
			continue
		}
		best.offer(scored{i, vek32.Dot(q, s.vectors.row(i))}, limit)
	}
	return best.sorted, nil
}

// scored is a chunk with its score.
type scored struct {
	chunk int
	score float32
}

// scoreHeap keeps the best chunks, with the worst of them first.
type scoreHeap []scored

func (h scoreHeap) Len() int           { return len(h) }
func (h scoreHeap) Less(i, j int) bool { return h[i].worse(h[j]) }
func (h scoreHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *scoreHeap) Push(x any)        { *h = append(*h, x.(scored)) }
func (h *scoreHeap) Pop() any          { panic("nothing is taken out of a scoreHeap") }

func (a scored) worse(b scored) bool {
	return a.score < b.score || a.score == b.score && a.chunk > b.chunk
}

func (h *scoreHeap) offer(s scored, limit int) {
	switch {
	case len(*h) < limit:
		heap.Push(h, s)
	case (*h)[0].worse(s):
		(*h)[0] = s
		heap.Fix(h, 0)
	}
}

// sorted returns the chunks, best first.
func (h scoreHeap) sorted() []int {
	slices.SortFunc(h, func(a, b scored) int {
		if a.worse(b) {
			return 1
		}
		return -1
	})
	chunks := make([]int, len(h))
	for i, s := range h {
		chunks[i] = s.chunk
	}
	return chunks
}
