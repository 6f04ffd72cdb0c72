package index

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/vector"
)

// A sidecar holds one model's vectors of chunks of one segment. A vector v of norm |v| is stored as
// its direction u = v/|v|, twice:
//
//   - In one bit per dimension, the sign of the residual r = u - c, where the
//     centre c is the mean direction of some vectors, which all rows share. The
//     scale |r|²/Σ|rᵢ| makes the product of a query with the signs an unbiased
//     estimate of the product with r (Gao and Long, "RaBitQ: Quantizing
//     High-Dimensional Vectors with a Theoretical Error Bound for Approximate
//     Nearest Neighbor Search", SIGMOD 2024). The rotation of that paper is left
//     out, because it finds less than 1 more of 1,000. With the offset ⟨c, r⟩, for
//     a query of direction p,
//
//     cos(p, v) = ⟨p, u⟩ = ⟨p, c⟩ + ⟨c, r⟩ + ⟨p-c, r⟩
//
//     where only the last product is estimated, and both of its factors are short.
//     These estimates choose the rows whose similarity is computed.
//
//   - In twelve bits per dimension: uᵢ = step * integer, from -2047 to 2047. The
//     similarities in the results are computed from these alone. So they depend on
//     the vector and the query only, not on the centre, which other vectors
//     determine, nor on how rows were distributed and merged.
//
// The norm is stored too.
//
// The layout is little-endian:
//
//	model name (string), dimensions (varint), centre (a float32 per dimension)
//	zeros to a multiple of 64 bytes
//	blocks of 1,024 rows, the last possibly shorter, each padded with zeros to a
//	multiple of 64 bytes:
//	    groups of 64 rows (vector.Group): codes, scales, offsets, norms and
//	        steps; the last padded with zeros
//	    chunk numbers (uint32), ascending over the whole sidecar
//	    rows in twelve bits (vector.PutRow)
//	uint32  number of rows
//
// A chunk without a row has no known vector.
const (
	blockRows     = 1024
	maxDimensions = assay.MaxDimensions
	maxNorm       = assay.MaxNorm
)

// A vectorBlock has the offsets of the parts of a block.
type vectorBlock struct{ chunks, rows, end int }

func layoutBlock(dimensions, rows int) vectorBlock {
	var b vectorBlock
	b.chunks = (rows + vector.GroupRows - 1) / vector.GroupRows * vector.GroupBytes(dimensions)
	b.rows = b.chunks + 4*rows
	b.end = (b.rows + rows*vector.RowBytes(dimensions) + 63) &^ 63
	return b
}

// A vectorsWriter writes a sidecar as a stream. It buffers one block.
type vectorsWriter struct {
	w          io.Writer
	err        error // first write error
	dimensions int
	centre     []float32
	rows       int
	last       uint32 // chunk of the last row

	groups, chunks, precise []byte // parts of the current block

	residual  residual
	direction direction
	values    []float32
}

// newVectorsWriter returns a writer of a sidecar of the model. The centre must have the given
// number of dimensions. Any centre is correct, but the mean direction of the vectors to be written
// is best, see centroid.
func newVectorsWriter(w io.Writer, model string, dimensions int, centre []float32) *vectorsWriter {
	out := &vectorsWriter{w: w, dimensions: dimensions, centre: centre}
	if dimensions < 1 || dimensions > maxDimensions || len(centre) != dimensions {
		out.err = fmt.Errorf("vectors of %s: %d dimensions and a centre of %d, want 1 to %d: %w",
			model, dimensions, len(centre), maxDimensions, assay.ErrInvalid)
		return out
	}
	header := appendString(nil, model)
	header = binary.AppendUvarint(header, uint64(dimensions))
	for _, x := range centre {
		header = appendFloat32(header, x)
	}
	out.write(append(header, make([]byte, -len(header)&63)...))
	return out
}

func appendFloat32(b []byte, x float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
}

func (w *vectorsWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

// add writes the vector of a chunk, whose number must be greater than that of the last one. The
// error wraps assay.ErrDamaged if the values have another number of dimensions, are not finite or
// have a norm greater than maxNorm.
func (w *vectorsWriter) add(chunk uint32, values []float32) error {
	if w.err != nil {
		return w.err
	}
	if len(values) != w.dimensions {
		return fmt.Errorf("a vector of %d dimensions among those of %d: %w", len(values), w.dimensions, assay.ErrDamaged)
	}
	norm := length(values)
	if !(norm <= maxNorm) {
		return fmt.Errorf("a vector that is not finite, or longer than %g: %w", maxNorm, assay.ErrDamaged)
	}
	w.direction.of(values, norm)
	row := w.put(chunk, values, norm, float32(norm), w.direction.step)
	vector.PutRow(w.precise[row*vector.RowBytes(w.dimensions):], w.direction.integers[:w.dimensions])
	return w.full()
}

// put adds a row with the signs of the residual of the values, whose norm is given, and with two
// numbers. It returns the row's number in the block.
func (w *vectorsWriter) put(chunk uint32, values []float32, norm float64, number, step float32) int {
	r := &w.residual
	r.of(values, norm, w.centre)
	row := w.grow(chunk)
	w.group(row).Put(row%vector.GroupRows, r.code, vector.Numbers{
		Scale: float32(r.scale), Offset: float32(r.offset), Norm: number, Step: step,
	})
	return row
}

// length returns the Euclidean norm.
func length(values []float32) float64 {
	var squares float64
	for _, x := range values {
		squares += float64(float64(x) * float64(x))
	}
	return math.Sqrt(squares)
}

// A direction is a vector's direction in twelve bits per dimension.
type direction struct {
	integers []int16 // the values in steps, padded with zeros for vector.Dot
	step     float32
}

// of computes the direction of a vector with the given norm. A vector of norm 0 has the zero
// direction.
func (d *direction) of(values []float32, norm float64) {
	var longest float64
	for _, x := range values {
		longest = max(longest, math.Abs(float64(x)))
	}
	d.step = 0
	if norm > 0 {
		d.step = float32(longest / norm / vector.MaxValue)
	}
	d.integers = inSteps(d.integers, len(values), d.step, func(i int) float64 { return float64(values[i]) / norm })
}

// remainder sets d to what of is missing of the direction of values, in finer steps.
func (d *direction) remainder(of *direction, values []float32, norm float64) {
	d.step = of.step / (2 * vector.MaxValue)
	d.integers = inSteps(d.integers, len(values), d.step, func(i int) float64 {
		return float64(values[i])/norm - float64(float64(of.integers[i])*float64(of.step))
	})
}

// inSteps returns n values as multiples of step, padded with zeros for vector.Dot. It uses the memory
// of into if that is large enough.
func inSteps(into []int16, n int, step float32, value func(int) float64) []int16 {
	into = slices.Grow(into[:0], vector.Padded(n))[:vector.Padded(n)]
	clear(into)
	if step == 0 {
		return into
	}
	for i := range n {
		into[i] = int16(max(-vector.MaxValue, min(vector.MaxValue, math.Round(value(i)/float64(step)))))
	}
	return into
}

// A residual is the difference between a vector's direction and a centre.
type residual struct {
	values []float64
	offset float64  // dot product with the centre
	code   []uint64 // signs, see vector.Group
	scale  float64  // factor from a product with the signs to one with the residual
}

// of computes the residual of a vector with the given norm. A vector of norm 0 has the zero
// direction.
func (r *residual) of(values []float32, norm float64, centre []float32) {
	n := len(centre)
	r.values = slices.Grow(r.values[:0], n)[:n]
	r.code = slices.Grow(r.code[:0], vector.Words(n))[:vector.Words(n)]
	clear(r.code)
	var squares, sum, offset float64
	for i, c := range centre {
		x := -float64(c)
		if norm > 0 {
			x += float64(values[i]) / norm
		}
		r.values[i] = x
		offset += float64(x * float64(c))
		squares += float64(x * x)
		sum += math.Abs(x)
		if x > 0 {
			r.code[i/64] |= 1 << (i % 64)
		}
	}
	r.offset, r.scale = offset, 0
	if sum > 0 {
		r.scale = squares / sum
	}
}

// integers returns the residual as multiples of a step.
func (r *residual) integers(into []int16) (integers []int16, step float32) {
	var longest float64
	for _, x := range r.values {
		longest = max(longest, math.Abs(x))
	}
	step = float32(longest / vector.MaxValue)
	return inSteps(into, len(r.values), step, func(i int) float64 { return r.values[i] }), step
}

// addRow writes a row of another sidecar with the same dimensions as the vector of a chunk, whose
// number must be greater than that of the last one. It copies the twelve bits and the norm. The
// signs are computed again unless the centres are equal.
func (w *vectorsWriter) addRow(v *vectors, row int, chunk uint32) error {
	if w.err != nil {
		return w.err
	}
	var n int
	if slices.Equal(v.centred, w.centre) {
		n = w.grow(chunk)
		w.group(n).CopyRow(n%vector.GroupRows, v.group(row), row%vector.GroupRows, v.dims)
	} else {
		numbers := v.numbers(row)
		w.values = v.direction(row, w.values)
		n = w.put(chunk, w.values, 1, numbers.Norm, numbers.Step)
	}
	copy(w.precise[n*vector.RowBytes(w.dimensions):], v.precise(row))
	return w.full()
}

// grow adds space for a row to the current block and returns the row's number in the block.
func (w *vectorsWriter) grow(chunk uint32) int {
	row := w.rows % blockRows
	if row%vector.GroupRows == 0 {
		w.groups = append(w.groups, make([]byte, vector.GroupBytes(w.dimensions))...)
	}
	w.chunks = binary.LittleEndian.AppendUint32(w.chunks, chunk)
	w.precise = append(w.precise, make([]byte, vector.RowBytes(w.dimensions))...)
	w.rows, w.last = w.rows+1, chunk
	return row
}

func (w *vectorsWriter) group(row int) vector.Group {
	size := vector.GroupBytes(w.dimensions)
	return w.groups[row/vector.GroupRows*size:][:size]
}

// full writes the current block if it is complete.
func (w *vectorsWriter) full() error {
	if w.rows%blockRows == 0 {
		w.writeBlock()
	}
	return w.err
}

func (w *vectorsWriter) writeBlock() {
	size := len(w.groups) + len(w.chunks) + len(w.precise)
	w.write(w.groups)
	w.write(w.chunks)
	w.write(append(w.precise, make([]byte, -size&63)...))
	w.groups, w.chunks, w.precise = w.groups[:0], w.chunks[:0], w.precise[:0]
}

// finish writes the remaining data. The writer must not be used afterwards.
func (w *vectorsWriter) finish() error {
	if len(w.chunks) > 0 {
		w.writeBlock()
	}
	w.write(binary.LittleEndian.AppendUint32(nil, uint32(w.rows)))
	return w.err
}

// vectors reads a sidecar. It is safe for concurrent use.
type vectors struct {
	name       string
	dims       int
	centred    []float32 // the centre
	blocks     []byte
	count      int
	full, last vectorBlock
	held       bitset   // the chunks that have a row
	rowsBefore []uint32 // for each word of held, the number of rows in the words before
}

// openVectors opens a sidecar of a segment with the given number of chunks.
func openVectors(file []byte, chunks uint32) (*vectors, error) {
	if len(file) < 4 {
		return nil, damaged("vectors: too few bytes")
	}
	count, body := u32(file[len(file)-4:], 0), file[:len(file)-4]
	d := decoder{rest: body}
	v := &vectors{name: d.string()}
	dimensions := d.uint()
	if d.failed || dimensions < 1 || dimensions > maxDimensions || count > chunks {
		return nil, damaged("vectors: header")
	}
	v.dims, v.count = int(dimensions), int(count)
	centre := d.bytes(4 * dimensions)
	d.bytes(uint64(-(len(body) - len(d.rest)) & 63))
	v.blocks = d.rest
	v.full = layoutBlock(v.dims, blockRows)
	v.last = layoutBlock(v.dims, v.count%blockRows)
	if d.failed || len(v.blocks) != v.count/blockRows*v.full.end+v.last.end {
		return nil, damaged("vectors: size")
	}
	v.centred = make([]float32, v.dims)
	for i := range v.centred {
		v.centred[i] = math.Float32frombits(u32(centre, i))
	}
	return v, v.index(chunks)
}

// index builds the mapping from chunks to rows.
func (v *vectors) index(chunks uint32) error {
	v.held = newBitset(int(chunks))
	next := uint32(0)
	for row := range v.count {
		chunk := v.chunkOf(row)
		if chunk < next || chunk >= chunks {
			return damaged("vectors: chunk numbers")
		}
		v.held.set(chunk)
		next = chunk + 1
	}
	v.rowsBefore = make([]uint32, len(v.held))
	before := 0
	for i, word := range v.held {
		v.rowsBefore[i] = uint32(before)
		before += bits.OnesCount64(word)
	}
	return nil
}

func (v *vectors) model() string   { return v.name }
func (v *vectors) dimensions() int { return v.dims }
func (v *vectors) rows() int       { return v.count }

// has returns the chunks that have a row. The caller must not modify it.
func (v *vectors) has() bitset { return v.held }

// centre returns the centre. The caller must not modify it.
func (v *vectors) centre() []float32 { return v.centred }

// blockOf returns the block of a row, its layout, and the row's number in the block.
func (v *vectors) blockOf(row int) ([]byte, *vectorBlock, int) {
	layout := &v.full
	if row/blockRows == v.count/blockRows {
		layout = &v.last
	}
	return v.blocks[row/blockRows*v.full.end:][:layout.end], layout, row % blockRows
}

// group returns the group of a row. The row is at row%64 in the group.
func (v *vectors) group(row int) vector.Group {
	size := vector.GroupBytes(v.dims)
	return v.blocks[row/blockRows*v.full.end+row%blockRows/vector.GroupRows*size:][:size]
}

func (v *vectors) chunkOf(row int) uint32 {
	block, layout, i := v.blockOf(row)
	return u32(block[layout.chunks:], i)
}

// precise returns the row in twelve bits per dimension.
func (v *vectors) precise(row int) []byte {
	block, layout, i := v.blockOf(row)
	size := vector.RowBytes(v.dims)
	return block[layout.rows+i*size:][:size]
}

// numbers returns the numbers of a row.
func (v *vectors) numbers(row int) vector.Numbers {
	return v.group(row).Numbers(vector.Words(v.dims), row%vector.GroupRows)
}

// direction returns the direction of the row's vector at the precision of twelve bits per dimension.
// It uses the memory of into if that is large enough.
func (v *vectors) direction(row int, into []float32) []float32 {
	step := float64(v.numbers(row).Step)
	integers := make([]int16, v.dims)
	vector.Row(v.precise(row), integers)
	into = append(into[:0], make([]float32, v.dims)...)
	for i, n := range integers {
		into[i] = float32(float64(n) * step)
	}
	return into
}

// values returns the row's vector at that precision, with its exact norm.
func (v *vectors) values(row int, into []float32) []float32 {
	into = v.direction(row, into)
	rounded := length(into)
	if rounded == 0 {
		return into
	}
	factor := float64(v.numbers(row).Norm) / rounded
	for i, x := range into {
		into[i] = float32(factor * float64(x))
	}
	return into
}

// keptRows returns the set of rows whose chunks are kept, and its size. It uses the memory of into
// if that is large enough.
func (v *vectors) keptRows(kept bitset, into bitset) (bitset, int) {
	into = append(into[:0], make(bitset, (v.count+63)/64)...)
	n := 0
	for i, word := range kept[:min(len(kept), len(v.held))] {
		held := v.held[i]
		word &= held
		if word == 0 {
			continue
		}
		n += bits.OnesCount64(word)
		if held != ^uint64(0) {
			word = extract(word, held)
		}
		at, shift := v.rowsBefore[i]/64, v.rowsBefore[i]%64
		into[at] |= word << shift
		if over := word >> (64 - shift); over != 0 {
			into[at+1] |= over
		}
	}
	return into, n
}

// extract moves the bits of word that are in mask together at the low end. All bits of word must be
// in mask.
func extract(word, mask uint64) uint64 {
	if mask&(mask+1) == 0 {
		return word
	}
	var out uint64
	for ; word != 0; word &= word - 1 {
		below := word&-word - 1
		out |= 1 << bits.OnesCount64(mask&below)
	}
	return out
}

// A centroid computes the mean direction of vectors, for newVectorsWriter. The zero value is an
// empty centroid.
type centroid struct {
	sum   []float64
	count int
}

// add adds a vector with the same number of dimensions as the others. Vectors that are zero or not
// finite are ignored.
func (c *centroid) add(values []float32) {
	norm := length(values)
	if norm == 0 || math.IsInf(norm, 0) || math.IsNaN(norm) {
		return
	}
	if c.sum == nil {
		c.sum = make([]float64, len(values))
	}
	c.count++
	for i, x := range values {
		c.sum[i] += float64(x) / norm
	}
}

// centre returns the mean direction, or zeros if no vector was added.
func (c *centroid) centre(dimensions int) []float32 {
	centre := make([]float32, dimensions)
	for i, x := range c.sum {
		centre[i] = float32(x / float64(c.count))
	}
	return centre
}
