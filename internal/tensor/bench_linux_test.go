package tensor

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time of the calling thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// measure reports the amount of work that f does, in billions per second of processor time, both as
// a mean and for the fastest call, which other processes disturbed least.
func measure(b *testing.B, work float64, unit string, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
	fastest, start := time.Duration(1<<62), threadTime(b)
	last := start
	for b.Loop() {
		f()
		now := threadTime(b)
		fastest, last = min(fastest, now-last), now
	}
	b.ReportMetric(work*float64(b.N)/float64(last-start), unit)
	b.ReportMetric(work/float64(fastest), "best-"+unit)
	b.ReportMetric(0, "ns/op")
}

// BenchmarkApply measures products on one core, in GFLOP/s. An addition and a multiplication count
// as two operations for all number types.
func BenchmarkApply(b *testing.B) {
	for _, f := range forms {
		for _, s := range []struct {
			rows, out, in int
			act           Activation
		}{{504, 1152, 384, None}, {504, 384, 384, None}, {504, 1536, 384, None}, {504, 1536, 384, GELU}, {504, 384, 1536, None}, {8, 1536, 384, None}} {
			r := rand.New(rand.NewPCG(1, 2))
			x, y := randomFloats(r, s.rows*s.in), make([]float32, s.rows*s.out)
			scales, bias := randomFloats(r, s.out), randomFloats(r, s.out)
			for _, w := range []struct {
				name string
				w    *Weights
			}{{"float32", PackFloat32(randomFloats(r, s.out*s.in), s.out, s.in)}, {"int8", PackInt8(randomBytes(r, s.out*s.in), scales, s.out, s.in)}} {
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d/act=%d", f.name, w.name, s.rows, s.out, s.in, s.act), func(b *testing.B) {
					f.use(b)
					measure(b, 2*float64(s.rows)*float64(s.out)*float64(s.in), "GFLOP/s", func() { w.w.Apply(y, x, s.rows, bias, s.act) })
				})
			}
		}
	}
}

// BenchmarkAttention measures twelve heads of 32 dimensions on one core, in billions of
// multiplications and additions per second.
func BenchmarkAttention(b *testing.B) {
	const heads, headDim = 12, 32
	for _, f := range forms {
		for _, n := range []int{8, 128, 512} {
			qkv, out := randomFloats(rand.New(rand.NewPCG(1, 2)), 3*n*heads*headDim), make([]float32, n*heads*headDim)
			b.Run(fmt.Sprintf("%s/tokens=%d", f.name, n), func(b *testing.B) {
				f.use(b)
				var s Scratch
				measure(b, 4*float64(n)*float64(n)*heads*headDim, "GFLOP/s", func() { Attention(out, qkv, n, heads, headDim, &s) })
			})
		}
	}
}

// BenchmarkLayerNorm measures rows of 384 values on one core, in billions of values per second.
func BenchmarkLayerNorm(b *testing.B) {
	const rows, n = 96, 384
	r := rand.New(rand.NewPCG(1, 2))
	x, residual, gamma, beta := randomFloats(r, rows*n), randomFloats(r, rows*n), randomFloats(r, n), randomFloats(r, n)
	for _, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			f.use(b)
			measure(b, rows*n, "Gvalue/s", func() { LayerNorm(x, residual, gamma, beta, rows, n, 1e-12) })
		})
	}
}

// BenchmarkPack measures the layout of weights, in billions per second.
func BenchmarkPack(b *testing.B) {
	const out, in = 1536, 384
	r := rand.New(rand.NewPCG(1, 2))
	floats, bytes, scales := randomFloats(r, out*in), randomBytes(r, out*in), randomFloats(r, out)
	b.Run("float32", func(b *testing.B) {
		measure(b, out*in, "Gweight/s", func() { PackFloat32(floats, out, in) })
	})
	b.Run("int8", func(b *testing.B) {
		measure(b, out*in, "Gweight/s", func() { PackInt8(bytes, scales, out, in) })
	})
}
