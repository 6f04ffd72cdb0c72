//go:build linux || darwin

package vector

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// atPageEnd returns n zero bytes at the end of readable memory.
func atPageEnd(t testing.TB, n int) []byte {
	t.Helper()
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
	return memory[size-n : size : size]
}

// TestEndOfMemory checks that no form reads past the end of a row, a group or a query, since a
// mapped file may end there.
func TestEndOfMemory(t *testing.T) {
	for _, dimensions := range sizes {
		r := rand.New(rand.NewPCG(uint64(dimensions), 4))
		row := atPageEnd(t, RowBytes(dimensions))
		PutRow(row, randomValues(r, dimensions))
		query := unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(atPageEnd(t, 2*Padded(dimensions))))), Padded(dimensions))
		copy(query, randomValues(r, dimensions))
		group := Group(atPageEnd(t, GroupBytes(dimensions)))
		for lane := range GroupRows {
			group.Put(lane, randomCode(r, dimensions), Numbers{Scale: r.Float32(), Norm: 1})
		}
		code := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(atPageEnd(t, 8*Words(dimensions))))), Words(dimensions))
		e := &Estimator{Code: code, Dimensions: dimensions, Gain: 1, ByNorm: true, Slope: 1}
		var want [GroupRows]float32
		reached := estimatePortable(e, group, 0, &want)
		for _, f := range forms {
			t.Run(fmt.Sprintf("%s %d", f.name, dimensions), func(t *testing.T) {
				f.use(t)
				scores := (*[GroupRows]float32)(unsafe.Pointer(unsafe.SliceData(atPageEnd(t, 4*GroupRows))))
				if got := e.Estimate(group, 0, scores); got != reached || *scores != want {
					t.Errorf("Estimate = %x, %v, want %x, %v", got, *scores, reached, want)
				}
				if got, want := Dot(row, query), dotPortable(row, query); got != want {
					t.Errorf("Dot = %d, want %d", got, want)
				}
				Prefetch(row)
				Prefetch(group)
			})
		}
	}
}
