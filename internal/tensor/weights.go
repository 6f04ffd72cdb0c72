package tensor

import (
	"fmt"
	"sync"
)

// A tile is the part of a product that is computed at once: tileRows rows of the input and tileCols
// rows of the weights.
const (
	tileRows = 12
	tileCols = 32
)

// blockRows is the number of rows that are multiplied with one panel of weights after another, a
// multiple of tileRows. With 1,536 columns they fit into the L2 cache.
const blockRows = 8 * tileRows

// Activation is the final function that Apply applies to each value.
type Activation int

const (
	None Activation = iota
	GELU            // x * (1 + erf(x/sqrt 2)) / 2
)

// Weights is a matrix laid out for products with rows. It is safe for concurrent use.
//
// The outputs are in panels of tileCols, the last padded with zeros.
type Weights struct {
	out, in int
	floats  []float32 // panel, input, output of the panel
	bytes   []int8    // panel, group of inputs, output of the panel, input of the group
	scales  []float32 // of bytes: one per output of the panels
}

// Out returns the number of values of a row of the output.
func (w *Weights) Out() int { return w.out }

// In returns the number of values of a row of the input.
func (w *Weights) In() int { return w.in }

// PackFloat32 lays out out rows of in weights each, which it copies. It panics if w has another
// length or is empty.
func PackFloat32(w []float32, out, in int) *Weights {
	checkShape(len(w), out, in)
	p := &Weights{out: out, in: in, floats: make([]float32, panels(out)*in*tileCols)}
	for o := 0; o < out; o += tileCols {
		packColumns(p.floats[o*in:][:tileCols*in], w[o*in:], min(tileCols, out-o), in, in)
	}
	return p
}

// packColumns copies n rows of width values to columns of a panel. The rows are stride values
// apart. Other columns of the panel are unchanged.
func packColumns(panel, rows []float32, n, width, stride int) {
	for c := transpose(panel, rows, n, width, stride); c < n; c++ {
		for i, v := range rows[c*stride:][:width] {
			panel[i*tileCols+c] = v
		}
	}
}

func panels(out int) int { return (out + tileCols - 1) / tileCols }

func checkShape(weights, out, in int) {
	if out < 1 || in < 1 {
		panic(fmt.Sprintf("tensor: %d x %d weights", out, in))
	}
	checkLength("weights", weights, out*in)
}

func checkLength(what string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("tensor: %d %s, want %d", got, what, want))
	}
}

// Apply sets y, rows of Out values, to act(x·Wᵀ + bias), where x has as many rows of In values and
// bias has Out values or is nil. Each row's result is independent of the other rows. Apply panics
// if a length does not fit. y must not share memory with x or bias.
func (w *Weights) Apply(y, x []float32, rows int, bias []float32, act Activation) {
	checkLength("values of input", len(x), rows*w.in)
	checkLength("values of output", len(y), rows*w.out)
	if bias != nil {
		checkLength("biases", len(bias), w.out)
	}
	s := workspaces.Get().(*workspace)
	defer workspaces.Put(s)
	for from := 0; from < rows; from += blockRows {
		n := min(blockRows, rows-from)
		x, y := x[from*w.in:(from+n)*w.in], y[from*w.out:(from+n)*w.out]
		if w.floats != nil {
			w.applyFloats(s, y, x, n, bias, act)
		} else {
			w.applyBytes(s, y, x, n, bias, act)
		}
	}
}

// workspaces are reused, since a product takes less time than clearing memory.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// workspace is the working memory of a product.
type workspace struct {
	tile   [tileRows * tileCols]float32
	counts [tileRows * tileCols]int32
	bias   [tileCols]float32
	rest   []float32 // the last rows, padded to a tile
	rows   quantised
}

func (w *Weights) applyFloats(s *workspace, y, x []float32, rows int, bias []float32, act Activation) {
	full := rows / tileRows * tileRows
	if full < rows {
		s.rest = resize(s.rest, tileRows*w.in)
		clear(s.rest[copy(s.rest, x[full*w.in:]):])
	}
	for col := 0; col < w.out; col += tileCols {
		panel := w.floats[col*w.in : (col+tileCols)*w.in]
		f := finish{s: s, y: y, out: w.out, rows: rows, col: col, act: act}
		f.setBias(bias)
		for row := 0; row < rows; row += tileRows {
			a := s.rest
			if row < full {
				a = x[row*w.in:]
			}
			productFloats(s.tile[:], tileCols, a, w.in, panel, w.in)
			f.tile(row)
		}
	}
}

// finish writes tiles to the output.
type finish struct {
	s         *workspace
	y         []float32
	out, rows int // of y
	col       int // of the tiles
	act       Activation
}

// setBias stores the part of the bias that belongs to the tiles.
func (f *finish) setBias(bias []float32) {
	clear(f.s.bias[:])
	if bias != nil {
		copy(f.s.bias[:], bias[f.col:])
	}
}

// tile adds the bias to the tile that begins at the row, and writes the part of it that lies in the
// output.
func (f *finish) tile(row int) {
	rows, cols := min(tileRows, f.rows-row), min(tileCols, f.out-f.col)
	y := f.y[row*f.out+f.col:]
	if cols == tileCols {
		finishTile(y, f.out, &f.s.tile, rows, &f.s.bias, f.act)
		return
	}
	finishTile(f.s.tile[:], tileCols, &f.s.tile, rows, &f.s.bias, f.act)
	for r := range rows {
		copy(y[r*f.out:r*f.out+cols], f.s.tile[r*tileCols:])
	}
}

// resize returns a slice of n values with unspecified content.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// productFloatsPortable is productFloats for any processor. It sets a tile of y to the products of
// tileRows rows of n inputs with the weights of a panel. Rows begin xStride or yStride values
// apart.
func productFloatsPortable(y []float32, yStride int, x []float32, xStride int, panel []float32, n int) {
	for r := 0; r < tileRows; r += 2 {
		x0, x1 := x[r*xStride:][:n], x[(r+1)*xStride:][:n]
		for c := 0; c < tileCols; c += 4 {
			var a0, a1, a2, a3, b0, b1, b2, b3 float32
			p := panel[c:]
			for k, v := range x0 {
				u := x1[k]
				w := (*[4]float32)(p[k*tileCols:])
				a0 += v * w[0]
				a1 += v * w[1]
				a2 += v * w[2]
				a3 += v * w[3]
				b0 += u * w[0]
				b1 += u * w[1]
				b2 += u * w[2]
				b3 += u * w[3]
			}
			*(*[4]float32)(y[r*yStride+c:]) = [4]float32{a0, a1, a2, a3}
			*(*[4]float32)(y[(r+1)*yStride+c:]) = [4]float32{b0, b1, b2, b3}
		}
	}
}

// finishTilePortable is finishTile for any processor. It sets the given number of rows of y, a
// whole tile wide, to act(tile + bias).
func finishTilePortable(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	for r := range rows {
		y := y[r*stride:][:tileCols]
		for c := range y {
			y[c] = tile[r*tileCols+c] + bias[c]
		}
		if act == GELU {
			geluPortable(y)
		}
	}
}
