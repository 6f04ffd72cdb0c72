//go:build linux || darwin

package tensor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// atPageEnd returns a copy of the values at the end of readable memory.
func atPageEnd[T any](t testing.TB, values []T) []T {
	t.Helper()
	if len(values) == 0 {
		return values
	}
	n := len(values) * int(unsafe.Sizeof(values[0]))
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	if err := syscall.Mprotect(memory[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	copied := unsafe.Slice((*T)(unsafe.Pointer(&memory[size-n])), len(values))
	copy(copied, values)
	return copied
}

// TestEndOfMemory checks that no form accesses memory past the end of a slice, since weights may
// lie at the end of a mapped file. The results there must be the same as elsewhere.
func TestEndOfMemory(t *testing.T) {
	for _, f := range forms {
		for _, s := range shapes {
			t.Run(fmt.Sprintf("%s %dx%dx%d", f.name, s.rows, s.out, s.in), func(t *testing.T) {
				f.use(t)
				testEndOfMemory(t, s.rows, s.out, s.in)
			})
		}
	}
}

func testEndOfMemory(t *testing.T, rows, out, in int) {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(out*in)))
	x, bias, gamma := randomFloats(r, rows*in), randomFloats(r, out), randomFloats(r, in)
	for _, w := range []*Weights{
		PackFloat32(randomFloats(r, out*in), out, in),
		PackInt8(randomBytes(r, out*in), randomFloats(r, out), out, in),
	} {
		want := make([]float32, rows*out)
		w.Apply(want, x, rows, bias, GELU)
		moved := &Weights{out: w.out, in: w.in, floats: atPageEnd(t, w.floats), bytes: atPageEnd(t, w.bytes), scales: atPageEnd(t, w.scales)}
		got := atPageEnd(t, make([]float32, rows*out))
		moved.Apply(got, atPageEnd(t, x), rows, atPageEnd(t, bias), GELU)
		if !slices.Equal(got, want) {
			t.Error("Apply differs at the end of memory")
		}
	}

	want, got := slices.Clone(x), atPageEnd(t, x)
	LayerNorm(want, x, gamma, gamma, rows, in, 1e-5)
	LayerNorm(got, atPageEnd(t, x), atPageEnd(t, gamma), atPageEnd(t, gamma), rows, in, 1e-5)
	if !slices.Equal(got, want) {
		t.Error("LayerNorm differs at the end of memory")
	}

	qkv := randomFloats(r, 3*rows*in)
	Attention(want, qkv, rows, 1, in, new(Scratch))
	Attention(got, atPageEnd(t, qkv), rows, 1, in, new(Scratch))
	if !slices.Equal(got, want) {
		t.Error("Attention differs at the end of memory")
	}
}

// TestKernelsAtEndOfMemory checks kernels with slices of exactly the length that they require.
func TestKernelsAtEndOfMemory(t *testing.T) {
	const tileSize = tileRows * tileCols
	r := rand.New(rand.NewPCG(7, 7))
	for _, f := range forms {
		for _, n := range []int{2, 4, 6, 16, 32, 96} {
			t.Run(fmt.Sprintf("%s %d", f.name, n), func(t *testing.T) {
				f.use(t)
				const stride = tileCols + 3
				y := atPageEnd(t, make([]float32, (tileRows-1)*stride+tileCols))
				productFloats(y, stride, atPageEnd(t, randomFloats(r, tileRows*n)), n, atPageEnd(t, randomFloats(r, n*tileCols)), n)
				counts := (*[tileSize]int32)(atPageEnd(t, make([]int32, tileSize)))
				productInts(counts, atPageEnd(t, make([]int16, tileRows*n)), n, atPageEnd(t, randomBytes(r, n*tileCols)), n)
				tile := (*[tileSize]float32)(atPageEnd(t, make([]float32, tileSize)))
				rows, cols := (*[tileRows]float32)(atPageEnd(t, randomFloats(r, tileRows))), (*[tileCols]float32)(atPageEnd(t, randomFloats(r, tileCols)))
				widenTile(tile, counts, rows, cols)
				finishTile(y, stride, tile, tileRows, cols, GELU)
				scaleTile(y, stride, tile, tileRows, rows)
				if n%tileCols == 0 {
					exponentials(atPageEnd(t, randomFloats(r, 2*n)), n, 1, atPageEnd(t, make([]float32, 2)))
				}
				panel := atPageEnd(t, make([]float32, n*tileCols))
				transpose(panel, atPageEnd(t, randomFloats(r, (tileCols-1)*max(n, stride)+n)), tileCols, n, max(n, stride))
				pair(atPageEnd(t, make([]int8, n*tileCols)), atPageEnd(t, randomBytes(r, tileCols*n)), tileCols, n)
				copyRows(panel, atPageEnd(t, randomFloats(r, (n-1)*stride+tileCols)), n, stride)
				quantiseRow(atPageEnd(t, make([]int16, n)), atPageEnd(t, randomFloats(r, n)), limit(n))
			})
		}
	}
}
