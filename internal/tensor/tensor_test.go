package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// A form is an implementation that this machine supports.
type form struct {
	name string
	use  func(testing.TB)
}

var forms = []form{{"best", func(testing.TB) {}}}

func randomFloats(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func randomBytes(r *rand.Rand, n int) []int8 {
	v := make([]int8, n)
	for i := range v {
		v[i] = int8(r.IntN(255) - 127)
	}
	return v
}

// near fails the test at the first value that differs by more than its tolerance.
func near(t testing.TB, what string, got []float32, want, tolerance []float64) {
	t.Helper()
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d <= tolerance[i]) {
			t.Fatalf("%s: value %d = %v, want %v, off by %g where %g is allowed", what, i, v, want[i], d, tolerance[i])
		}
	}
}

func gelu64(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }

// product64 returns act(x·wᵀ + bias), and the tolerance for a float32 product.
func product64(x, w []float32, bias []float32, rows, out, in int, act Activation) (y, tolerance []float64) {
	y, tolerance = make([]float64, rows*out), make([]float64, rows*out)
	for r := range rows {
		for o := range out {
			var sum, size float64
			if bias != nil {
				sum = float64(bias[o])
				size = math.Abs(sum)
			}
			for i := range in {
				p := float64(x[r*in+i]) * float64(w[o*in+i])
				sum += p
				size += math.Abs(p)
			}
			if act == GELU {
				sum = gelu64(sum)
			}
			y[r*out+o], tolerance[r*out+o] = sum, 1e-6+2e-6*size
		}
	}
	return y, tolerance
}

var shapes = []struct{ rows, out, in int }{
	{1, 1, 1}, {1, 32, 2}, {2, 33, 3}, {11, 31, 17}, {12, 32, 64}, {13, 64, 65}, {24, 96, 31}, {100, 40, 48}, {97, 65, 130}, {5, 384, 384}, {3, 7, 1536},
}

func TestApplyFloat32(t *testing.T) {
	for _, f := range forms {
		for _, s := range shapes {
			t.Run(fmt.Sprintf("%s %dx%dx%d", f.name, s.rows, s.out, s.in), func(t *testing.T) {
				f.use(t)
				testApplyFloat32(t, s.rows, s.out, s.in)
			})
		}
	}
}

func testApplyFloat32(t testing.TB, rows, out, in int) {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(out*in)))
	x, w, bias := randomFloats(r, rows*in), randomFloats(r, out*in), randomFloats(r, out)
	p := PackFloat32(w, out, in)
	y := make([]float32, rows*out)
	for _, act := range []Activation{None, GELU} {
		for _, b := range [][]float32{nil, bias} {
			p.Apply(y, x, rows, b, act)
			want, tolerance := product64(x, w, b, rows, out, in, act)
			near(t, fmt.Sprintf("Apply, activation %d", act), y, want, tolerance)
		}
	}
}

func TestApplyInt8(t *testing.T) {
	for _, f := range forms {
		for _, s := range shapes {
			t.Run(fmt.Sprintf("%s %dx%dx%d", f.name, s.rows, s.out, s.in), func(t *testing.T) {
				f.use(t)
				testApplyInt8(t, s.rows, s.out, s.in)
			})
		}
	}
}

func testApplyInt8(t testing.TB, rows, out, in int) {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(out*in)))
	x, w, scales, bias := randomFloats(r, rows*in), randomBytes(r, out*in), make([]float32, out), randomFloats(r, out)
	wide := make([]float32, len(w))
	for o := range out {
		scales[o] = 0.001 + r.Float32()/100
		for i := range in {
			wide[o*in+i] = scales[o] * float32(w[o*in+i])
		}
	}
	p := PackInt8(w, scales, out, in)
	y := make([]float32, rows*out)
	for _, act := range []Activation{None, GELU} {
		p.Apply(y, x, rows, bias, act)
		want, tolerance := product64(x, wide, bias, rows, out, in, act)
		for i := range tolerance {
			tolerance[i] += 1e-4 * quantisationBound(x[i/out*in:][:in], wide[i%out*in:][:in])
		}
		near(t, fmt.Sprintf("Apply, activation %d", act), y, want, tolerance)
	}
}

// quantisationBound returns the largest input times the sum of the weights' absolute values.
func quantisationBound(x, w []float32) float64 {
	var largest, sum float64
	for i := range x {
		largest = max(largest, math.Abs(float64(x[i])))
		sum += math.Abs(float64(w[i]))
	}
	return largest * sum
}

func TestLayerNorm(t *testing.T) {
	for _, f := range forms {
		for _, n := range []int{1, 2, 7, 16, 31, 384, 385, 1000} {
			t.Run(fmt.Sprintf("%s %d", f.name, n), func(t *testing.T) {
				f.use(t)
				const rows = 3
				r := rand.New(rand.NewPCG(uint64(n), 1))
				x, residual, gamma, beta := randomFloats(r, rows*n), randomFloats(r, rows*n), randomFloats(r, n), randomFloats(r, n)
				want, tolerance := make([]float64, rows*n), make([]float64, rows*n)
				for row := range rows {
					var mean, variance float64
					for i := range n {
						mean += (float64(x[row*n+i]) + float64(residual[row*n+i])) / float64(n)
					}
					for i := range n {
						d := float64(x[row*n+i]) + float64(residual[row*n+i]) - mean
						variance += d * d / float64(n)
					}
					for i := range n {
						k := row*n + i
						v := (float64(x[k]) + float64(residual[k]) - mean) / math.Sqrt(variance+1e-5)
						want[k], tolerance[k] = v*float64(gamma[i])+float64(beta[i]), 2e-5
					}
				}
				LayerNorm(x, residual, gamma, beta, rows, n, 1e-5)
				near(t, "LayerNorm", x, want, tolerance)
			})
		}
	}
}

func TestAttention(t *testing.T) {
	for _, f := range forms {
		for _, s := range []struct{ n, heads, headDim int }{{1, 1, 1}, {1, 2, 32}, {7, 3, 5}, {12, 2, 32}, {33, 2, 64}, {64, 1, 32}, {101, 2, 40}, {512, 1, 32}} {
			t.Run(fmt.Sprintf("%s %d tokens %dx%d", f.name, s.n, s.heads, s.headDim), func(t *testing.T) {
				f.use(t)
				testAttention(t, s.n, s.heads, s.headDim)
			})
		}
	}
}

func testAttention(t testing.TB, n, heads, headDim int) {
	hidden := heads * headDim
	qkv := randomFloats(rand.New(rand.NewPCG(uint64(n), uint64(hidden))), 3*n*hidden)
	out := make([]float32, n*hidden)
	want, tolerance := make([]float64, n*hidden), make([]float64, n*hidden)
	for i := range n {
		for h := range heads {
			q := qkv[i*3*hidden+h*headDim:][:headDim]
			weights := make([]float64, n)
			var sum float64
			for j := range n {
				var s float64
				for d, v := range qkv[j*3*hidden+hidden+h*headDim:][:headDim] {
					s += float64(q[d]) * float64(v)
				}
				weights[j] = math.Exp(s / math.Sqrt(float64(headDim)))
				sum += weights[j]
			}
			for d := range headDim {
				k := i*hidden + h*headDim + d
				for j, w := range weights {
					want[k] += w / sum * float64(qkv[j*3*hidden+2*hidden+h*headDim+d])
				}
				tolerance[k] = 1e-5
			}
		}
	}
	var s Scratch
	Attention(out, qkv, n, heads, headDim, &s)
	near(t, "Attention", out, want, tolerance)
}

// TestApplyConcurrently checks that weights can be shared by goroutines, and that products leave no
// state.
func TestApplyConcurrently(t *testing.T) {
	const rows, out, in = 101, 96, 64
	r := rand.New(rand.NewPCG(3, 4))
	x := randomFloats(r, rows*in)
	for _, w := range []*Weights{PackFloat32(randomFloats(r, out*in), out, in), PackInt8(randomBytes(r, out*in), randomFloats(r, out), out, in)} {
		want := make([]float32, rows*out)
		w.Apply(want, x, rows, nil, GELU)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					got := make([]float32, rows*out)
					w.Apply(got, x, rows, nil, GELU)
					if !slices.Equal(got, want) {
						t.Error("a product beside others differs")
						return
					}
				}
			})
		}
		all.Wait()
		// Under the race detector a pool drops some of its items.
		if n := testing.AllocsPerRun(100, func() { w.Apply(want, x, rows, nil, GELU) }); n > 3 {
			t.Errorf("Apply allocates %v times", n)
		}
	}
}

// TestRowsAreIndependent checks that the result for a row does not depend on the other rows or
// their number.
func TestRowsAreIndependent(t *testing.T) {
	const rows, out, in = 2*blockRows + 5, 40, 48
	r := rand.New(rand.NewPCG(3, 4))
	x := randomFloats(r, rows*in)
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			f.use(t)
			for _, w := range []*Weights{PackFloat32(randomFloats(r, out*in), out, in), PackInt8(randomBytes(r, out*in), randomFloats(r, out), out, in)} {
				all, one := make([]float32, rows*out), make([]float32, out)
				w.Apply(all, x, rows, nil, GELU)
				for row := 0; row < rows; row += 7 {
					w.Apply(one, x[row*in:(row+1)*in], 1, nil, GELU)
					if !slices.Equal(one, all[row*out:(row+1)*out]) {
						t.Fatalf("row %d alone differs", row)
					}
				}
			}
		})
	}
}

func TestApplyPanics(t *testing.T) {
	w := PackFloat32(make([]float32, 6), 2, 3)
	for name, f := range map[string]func(){
		"short input": func() { w.Apply(make([]float32, 2), make([]float32, 2), 1, nil, None) },
		"long output": func() { w.Apply(make([]float32, 3), make([]float32, 3), 1, nil, None) },
		"few biases":  func() { w.Apply(make([]float32, 2), make([]float32, 3), 1, make([]float32, 1), None) },
		"no outputs":  func() { PackFloat32(nil, 0, 3) },
		"few weights": func() { PackInt8(make([]int8, 5), make([]float32, 2), 2, 3) },
		"few scales":  func() { PackInt8(make([]int8, 6), make([]float32, 1), 2, 3) },
		"many inputs": func() { PackInt8(make([]int8, 1<<16+1), make([]float32, 1), 1, 1<<16+1) },
		"few gammas":  func() { LayerNorm(make([]float32, 3), nil, make([]float32, 2), make([]float32, 3), 1, 3, 0) },
		"few residual": func() {
			LayerNorm(make([]float32, 3), make([]float32, 2), make([]float32, 3), make([]float32, 3), 1, 3, 0)
		},
		"few queries": func() { Attention(make([]float32, 4), make([]float32, 11), 1, 1, 4, new(Scratch)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
