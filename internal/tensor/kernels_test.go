package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIntegersAreTheSame checks that every form gives the same integers, and the same floats if
// they are computed from integers without sums.
func TestIntegersAreTheSame(t *testing.T) {
	for _, f := range forms {
		for _, n := range []int{1, 2, 3, 16, 30, 384, 1536, 4096} {
			t.Run(fmt.Sprintf("%s %d", f.name, n), func(t *testing.T) {
				f.use(t)
				r := rand.New(rand.NewPCG(uint64(n), 5))
				x := randomFloats(r, tileRows*n)
				x[0] = 1000 // the other values of its row keep few bits
				extremes := x[len(x)-n:]
				for i := range extremes {
					extremes[i] = -3
				}
				weights := randomBytes(r, groups(n)*group*tileCols)
				for i := range weights[:len(weights)/2] {
					weights[i] = -128
				}
				var q, want quantised
				q.quantise(x, tileRows, n)
				want.quantisePortable(x, tileRows, n)
				if !slices.Equal(q.values, want.values) || !slices.Equal(q.scales, want.scales) {
					t.Fatal("quantise differs from the portable form")
				}
				var counts, wantCounts [tileRows * tileCols]int32
				productInts(&counts, q.values, q.stride, weights, q.stride)
				productIntsPortable(&wantCounts, q.values, q.stride, weights, q.stride)
				if counts != wantCounts {
					t.Fatal("productInts differs from the portable form")
				}
				if got := exactProduct(q, weights, tileRows-1, 0); got != int64(counts[(tileRows-1)*tileCols]) {
					t.Fatalf("productInts = %d, want %d", counts[(tileRows-1)*tileCols], got)
				}
				var tile, wantTile [tileRows * tileCols]float32
				cols := [tileCols]float32(randomFloats(r, tileCols))
				widenTile(&tile, &counts, (*[tileRows]float32)(q.scales), &cols)
				widenTilePortable(&wantTile, &counts, (*[tileRows]float32)(q.scales), &cols)
				if tile != wantTile {
					t.Error("widenTile differs from the portable form")
				}
			})
		}
	}
}

func (q *quantised) quantisePortable(x []float32, rows, n int) {
	q.stride = groups(n) * group
	q.values, q.scales = make([]int16, rows*q.stride), make([]float32, rows)
	for r := range rows {
		row := x[r*n : (r+1)*n]
		largest := math.Float32frombits(largestBitsPortable(row))
		roundRowPortable(q.values[r*q.stride:][:n], row, limit(n)/largest)
		q.scales[r] = largest / limit(n)
	}
}

// exactProduct returns a product in 64 bits, to check that none exceeds 32.
func exactProduct(q quantised, weights []int8, row, col int) (sum int64) {
	for i, v := range q.values[row*q.stride : (row+1)*q.stride] {
		sum += int64(v) * int64(weights[i/group*group*tileCols+col*group+i%group])
	}
	return sum
}

// TestGELU checks the error bound of GELU everywhere.
func TestGELU(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			f.use(t)
			var tile [tileRows * tileCols]float32
			var bias [tileCols]float32
			for from := -20.0; from < 20; from += 0.01 * float64(len(tile)) {
				for i := range tile {
					tile[i] = float32(from + 0.01*float64(i))
				}
				got := make([]float32, len(tile))
				finishTile(got, tileCols, &tile, tileRows, &bias, GELU)
				for i, v := range got {
					x := float64(tile[i])
					if d := math.Abs(float64(v) - gelu64(x)); d > 3e-7*max(1, math.Abs(x)) {
						t.Fatalf("GELU(%v) = %v, want %v, off by %g", x, v, gelu64(x), d)
					}
				}
			}
		})
	}
}

func TestExponentials(t *testing.T) {
	const rows = 3
	for _, f := range forms {
		for _, n := range []int{32, 64, 96, 512} {
			t.Run(fmt.Sprintf("%s %d", f.name, n), func(t *testing.T) {
				f.use(t)
				r := rand.New(rand.NewPCG(uint64(n), 5))
				x, sums := randomFloats(r, rows*n), make([]float32, rows)
				for i := range x {
					x[i] *= 10
				}
				for i := 0; i < len(x); i += n {
					x[i+1], x[i+2], x[i+n-3] = -1000, float32(math.Inf(-1)), 90
				}
				was := slices.Clone(x)
				exponentials(x, n, 0.5, sums)
				want := make([]float64, rows)
				for i, v := range x {
					e := math.Exp(0.5 * float64(was[i]-90))
					if d := math.Abs(float64(v) - e); d > 4e-7*e+2e-38 {
						t.Errorf("exp(%v) = %v, want %v", was[i]-90, v, e)
					}
					want[i/n] += e
				}
				near(t, "sums", sums, want, []float64{1e-6 * want[0], 1e-6 * want[1], 1e-6 * want[2]})
			})
		}
	}
}

// TestNotFinite checks that NaNs and infinities stay in their row, and never become finite.
func TestNotFinite(t *testing.T) {
	const rows, out, in = 13, 33, 16
	r := rand.New(rand.NewPCG(1, 5))
	clean, gamma := randomFloats(r, rows*in), randomFloats(r, in)
	floats := PackFloat32(randomFloats(r, out*in), out, in)
	ints := PackInt8(randomBytes(r, out*in), randomFloats(r, out), out, in)
	functions := []struct {
		name  string
		width int
		apply func(y, x []float32)
	}{
		{"float32", out, func(y, x []float32) { floats.Apply(y, x, rows, nil, None) }},
		{"float32 GELU", out, func(y, x []float32) { floats.Apply(y, x, rows, nil, GELU) }},
		{"int8", out, func(y, x []float32) { ints.Apply(y, x, rows, nil, None) }},
		{"int8 GELU", out, func(y, x []float32) { ints.Apply(y, x, rows, nil, GELU) }},
		{"LayerNorm", in, func(y, x []float32) { copy(y, x); LayerNorm(y, nil, gamma, gamma, rows, in, 1e-5) }},
	}
	for _, f := range forms {
		for _, g := range functions {
			t.Run(f.name+" "+g.name, func(t *testing.T) {
				f.use(t)
				want, y := make([]float32, rows*g.width), make([]float32, rows*g.width)
				g.apply(want, clean)
				for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
					const row = 7
					x := slices.Clone(clean)
					x[row*in+3] = bad
					g.apply(y, x)
					for i, v := range y {
						if i/g.width == row {
							if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
								t.Fatalf("%v became %v", bad, v)
							}
						} else if v != want[i] {
							t.Fatalf("%v in row %d changed row %d", bad, row, i/g.width)
						}
					}
				}
			})
		}
	}
}

// TestAttentionNotFinite checks that attention to a token that is not finite is not finite, and
// only in its head.
func TestAttentionNotFinite(t *testing.T) {
	const n, heads, headDim = 40, 2, 32
	const hidden = heads * headDim
	clean := randomFloats(rand.New(rand.NewPCG(1, 6)), 3*n*hidden)
	for _, f := range forms {
		for part := range 3 {
			t.Run(fmt.Sprintf("%s %d", f.name, part), func(t *testing.T) {
				f.use(t)
				want, out := make([]float32, n*hidden), make([]float32, n*hidden)
				var s Scratch
				Attention(want, clean, n, heads, headDim, &s)
				qkv := slices.Clone(clean)
				const token = 17
				qkv[token*3*hidden+part*hidden+3] = float32(math.NaN())
				Attention(out, qkv, n, heads, headDim, &s)
				for i, v := range out {
					row, dim := i/hidden, i%hidden
					bad := dim < headDim && (part == 0 && row == token || part == 1 || part == 2 && dim == 3)
					if bad != (v != v) || !bad && v != want[i] {
						t.Fatalf("token %d, dimension %d = %v, was %v", row, dim, v, want[i])
					}
				}
			})
		}
	}
}

func FuzzApply(f *testing.F) {
	for _, s := range shapes {
		f.Add(uint8(s.rows), uint8(s.out), uint8(s.in))
	}
	f.Fuzz(func(t *testing.T, rows, out, in uint8) {
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				f.use(t)
				testApplyFloat32(t, int(rows), 1+int(out), 1+int(in))
				testApplyInt8(t, int(rows), 1+int(out), 1+int(in))
			})
		}
	})
}

func FuzzAttention(f *testing.F) {
	f.Add(uint8(1), uint8(1), uint8(1))
	f.Add(uint8(33), uint8(2), uint8(32))
	f.Fuzz(func(t *testing.T, n, heads, headDim uint8) {
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				f.use(t)
				testAttention(t, 1+int(n), 1+int(heads%3), 1+int(headDim))
			})
		}
	})
}
