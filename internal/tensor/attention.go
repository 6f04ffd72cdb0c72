package tensor

import (
	"math"
	"slices"
)

// Scratch is working memory for Attention. It grows with the longest sequence. The zero value is
// ready to use. It is not safe for concurrent use.
type Scratch struct {
	queries []float32         // the last rows of queries, padded to a tile
	keys    []float32         // panel of keys, dimension, key of the panel
	values  []float32         // panel of dimensions, key, dimension of the panel
	weights []float32         // row of the tile, key
	factors [tileRows]float32 // of the rows of weights, to make them sum to 1
	tile    [tileRows * tileCols]float32
}

// Attention computes the attention of one sequence of n tokens. qkv has a row of 3*heads*headDim
// values for each token: the queries of all heads, then the keys, then the values. out has a row of
// heads*headDim values for each token. It holds for every head the mean of all tokens' values,
// weighted by the softmax of the products of the token's query with their keys divided by
// sqrt(headDim). Attention panics if a length does not fit. out must not share memory with qkv.
func Attention(out, qkv []float32, n, heads, headDim int, s *Scratch) {
	AttentionRows(out, qkv, 0, n, n, heads, headDim, s)
}

// AttentionRows is Attention for the tokens [from, to) of a sequence of n. out has a row for each
// of these, and qkv one for each token of the sequence.
func AttentionRows(out, qkv []float32, from, to, n, heads, headDim int, s *Scratch) {
	hidden := heads * headDim
	checkLength("values of output", len(out), (to-from)*hidden)
	checkLength("queries, keys and values", len(qkv), 3*n*hidden)
	keyPanels, dimPanels := panels(n), panels(headDim)
	s.keys = resize(s.keys, keyPanels*tileCols*headDim)
	s.values = resize(s.values, dimPanels*tileCols*n)
	s.weights = resize(s.weights, tileRows*keyPanels*tileCols)
	s.queries = resize(s.queries, tileRows*headDim)
	for head := range heads {
		q := qkv[head*headDim:]
		s.pack(q[hidden:], n, headDim, 3*hidden)
		for row := from; row < to; row += tileRows {
			s.attend(out[(row-from)*hidden+head*headDim:], q[row*3*hidden:], n, min(tileRows, to-row), headDim, hidden)
		}
	}
}

// pack lays out the keys and values of a head. kv begins with its first key, and stride is the
// distance between tokens.
func (s *Scratch) pack(kv []float32, n, headDim, stride int) {
	for t := 0; t < n; t += tileCols {
		panel := s.keys[t*headDim:][:tileCols*headDim]
		if n-t < tileCols {
			clear(panel)
		}
		packColumns(panel, kv[t*stride:], min(tileCols, n-t), headDim, stride)
	}
	for d := 0; d < headDim; d += tileCols {
		packValues(s.values[d*n:][:tileCols*n], kv[stride/3+d:], n, min(tileCols, headDim-d), stride)
	}
}

// packValues copies the first width values of n rows to the rows of a panel, padded with zeros.
func packValues(panel, rows []float32, n, width, stride int) {
	if width == tileCols {
		copyRows(panel, rows, n, stride)
		return
	}
	clear(panel)
	for t := range n {
		copy(panel[t*tileCols:], rows[t*stride:][:width])
	}
}

// copyRowsPortable is copyRows for any processor. It copies tileCols values of each of n rows.
func copyRowsPortable(panel, rows []float32, n, stride int) {
	for t := range n {
		copy(panel[t*tileCols:][:tileCols], rows[t*stride:])
	}
}

// attend computes one tile of rows of one head. q begins with the first row's query.
func (s *Scratch) attend(out, q []float32, n, rows, headDim, hidden int) {
	stride := 3 * hidden
	if rows < tileRows {
		for r := range rows {
			copy(s.queries[r*headDim:(r+1)*headDim], q[r*stride:])
		}
		clear(s.queries[rows*headDim:])
		q, stride = s.queries, headDim
	}
	padded := panels(n) * tileCols
	for from := 0; from < n; from += tileCols {
		productFloats(s.weights[from:], padded, q, stride, s.keys[from*headDim:], headDim)
	}
	sums := s.factors[:rows]
	for r := range sums {
		outside := s.weights[r*padded+n : (r+1)*padded]
		for i := range outside {
			outside[i] = float32(math.Inf(-1))
		}
	}
	exponentials(s.weights, padded, float32(1/math.Sqrt(float64(headDim))), sums)
	for r, sum := range sums {
		s.factors[r] = 1 / sum
	}
	for d := 0; d < headDim; d += tileCols {
		productFloats(s.tile[:], tileCols, s.weights, padded, s.values[d*n:], n)
		if headDim-d >= tileCols {
			scaleTile(out[d:], hidden, &s.tile, rows, &s.factors)
			continue
		}
		scaleTile(s.tile[:], tileCols, &s.tile, rows, &s.factors)
		for r := range rows {
			copy(out[r*hidden+d:r*hidden+headDim], s.tile[r*tileCols:])
		}
	}
}

// scaleTilePortable is scaleTile for any processor. It sets the given number of rows of y, a whole
// tile wide, to those of the tile, each multiplied by its factor.
func scaleTilePortable(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, factors *[tileRows]float32) {
	for r, f := range factors[:rows] {
		for c, v := range tile[r*tileCols : (r+1)*tileCols] {
			y[r*stride+c] = v * f
		}
	}
}

// exponentialsPortable is exponentials for any processor. It sets each row of x, n values that are
// whole panels, to exp(factor*(x-largest)), and sums, one per row, to their sums. A value far below
// the largest becomes 1e-38 instead of 0.
func exponentialsPortable(x []float32, n int, factor float32, sums []float32) {
	for r := range sums {
		x := x[r*n : (r+1)*n]
		largest := slices.Max(x)
		sums[r] = 0
		for i, v := range x {
			x[i] = expNegative((v - largest) * factor)
			sums[r] += x[i]
		}
	}
}
