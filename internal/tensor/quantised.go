package tensor

import (
	"fmt"
	"math"
)

// group is the number of inputs of one output that are adjacent in Weights.bytes. The instructions
// multiply and add pairs of 16-bit integers.
const group = 2

// PackInt8 lays out out rows of in weights each, which it copies. Weight i of row o is
// scales[o]*w[o*in+i]. PackInt8 panics if w or scales have another length, if they are empty, or if
// there are more than 65,536 inputs.
//
// Products with them are integer products. Each row of the input is quantised to 16-bit integers
// with its own scale. It uses as many bits as the sum of in products allows in 32 bits: all 16 for
// up to 516 inputs, 14.4 for 1,536. Nearly all of the loss against float32 therefore comes from the
// quantisation of the weights. For up to 1,536 inputs the error of a value is below 1e-4 of the
// largest input times the sum of the weights' absolute values. A row with a NaN or an infinity
// gives NaNs.
func PackInt8(w []int8, scales []float32, out, in int) *Weights {
	checkShape(len(w), out, in)
	checkLength("scales", len(scales), out)
	if in > 1<<16 {
		panic(fmt.Sprintf("tensor: %d inputs of int8 weights", in))
	}
	padded := groups(in) * group
	p := &Weights{
		out: out, in: in,
		bytes:  make([]int8, panels(out)*padded*tileCols),
		scales: make([]float32, panels(out)*tileCols),
	}
	copy(p.scales, scales)
	for o := 0; o < out; o += tileCols {
		packPairs(p.bytes[o*padded:][:tileCols*padded], w[o*in:], min(tileCols, out-o), in)
	}
	return p
}

// packPairs lays out n rows of in weights as a panel.
func packPairs(panel, rows []int8, n, in int) {
	for c := pair(panel, rows, n, in); c < n; c++ {
		for i, v := range rows[c*in : (c+1)*in] {
			panel[i/group*group*tileCols+c*group+i%group] = v
		}
	}
}

func groups(in int) int { return (in + group - 1) / group }

// limit returns the largest absolute value of a quantised input for which the sum of in products
// with int8 fits an int32, in any order.
func limit(in int) float32 {
	return float32(min(math.MaxInt16, math.MaxInt32/(128*in)))
}

// quantised holds rows of activations: value i of row r is scales[r]*values[r*stride+i].
type quantised struct {
	values []int16
	scales []float32
	stride int
}

// quantise quantises rows of n values. It pads the rows with zeros to whole groups. It also pads
// the number of rows to whole tiles, with unspecified values.
func (q *quantised) quantise(x []float32, rows, n int) {
	padded := (rows + tileRows - 1) / tileRows * tileRows
	q.stride = groups(n) * group
	q.values = resize(q.values, padded*q.stride)
	q.scales = resize(q.scales, padded)
	for r := range rows {
		v := q.values[r*q.stride : (r+1)*q.stride]
		q.scales[r] = quantiseRow(v[:n], x[r*n:(r+1)*n], limit(n))
		clear(v[n:])
	}
}

func (w *Weights) applyBytes(s *workspace, y, x []float32, rows int, bias []float32, act Activation) {
	q := &s.rows
	q.quantise(x, rows, w.in)
	for col := 0; col < w.out; col += tileCols {
		panel := w.bytes[col*q.stride : (col+tileCols)*q.stride]
		scales := (*[tileCols]float32)(w.scales[col:])
		f := finish{s: s, y: y, out: w.out, rows: rows, col: col, act: act}
		f.setBias(bias)
		for row := 0; row < rows; row += tileRows {
			productInts(&s.counts, q.values[row*q.stride:], q.stride, panel, q.stride)
			widenTile(&s.tile, &s.counts, (*[tileRows]float32)(q.scales[row:]), scales)
			f.tile(row)
		}
	}
}

// quantiseRow sets values to x divided by the returned scale. The scale is 0 for a row too small to
// have one, and NaN for a row with a NaN or an infinity.
func quantiseRow(values []int16, x []float32, limit float32) float32 {
	bits := largestBits(x)
	largest := math.Float32frombits(bits)
	factor := limit / largest
	switch {
	case bits >= infinity:
		clear(values)
		return float32(math.NaN())
	case factor > math.MaxFloat32:
		clear(values)
		return 0
	}
	roundRow(values, x, factor)
	return largest / limit
}

// infinity holds the bits of an infinity without its sign; those of NaNs are greater.
const infinity = 0xFF << 23

// largestBitsPortable is largestBits for any processor. It returns the bits of the largest absolute
// value.
func largestBitsPortable(x []float32) uint32 {
	var largest uint32
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	return largest
}

// roundRowPortable is roundRow for any processor. It rounds products, halves to even.
func roundRowPortable(values []int16, x []float32, factor float32) {
	for i, v := range x {
		values[i] = int16(math.RoundToEven(float64(v * factor)))
	}
}

// productIntsPortable is productInts for any processor. It is productFloats for whole groups of
// inputs, n inputs in total.
func productIntsPortable(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	for r := range tileRows {
		x := x[r*stride:][:n]
		for c := 0; c < tileCols; c += 4 {
			var a, b, c1, d int32
			p := panel[c*group:]
			for k := 0; k+1 < len(x); k += group {
				u, v := int32(x[k]), int32(x[k+1])
				w := (*[4 * group]int8)(p[k*tileCols:])
				a += u*int32(w[0]) + v*int32(w[1])
				b += u*int32(w[2]) + v*int32(w[3])
				c1 += u*int32(w[4]) + v*int32(w[5])
				d += u*int32(w[6]) + v*int32(w[7])
			}
			*(*[4]int32)(counts[r*tileCols+c:]) = [4]int32{a, b, c1, d}
		}
	}
}

// widenTilePortable is widenTile for any processor. It multiplies counts by the scales of their row
// and column.
func widenTilePortable(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	for r, scale := range rows {
		for c := range tileCols {
			tile[r*tileCols+c] = float32(counts[r*tileCols+c]) * (scale * cols[c])
		}
	}
}
