package tensor

import "golang.org/x/sys/cpu"

// What the processor can do; the assembly needs the operating system to keep the
// wide registers too, which these take into account.
var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW
	hasVNNI   = cpu.X86.HasAVX512VNNI
)

// productFloatsAVX512 is productFloats with the stride in bytes.
//
//go:noescape
func productFloatsAVX512(tile *float32, x *float32, stride int, panel *float32, n int)

// productFloatsAVX2 is the same.
//
//go:noescape
func productFloatsAVX2(tile *float32, x *float32, stride int, panel *float32, n int)

// productIntsAVX512 is productInts with the stride in bytes.
//
//go:noescape
func productIntsAVX512(counts *int32, x *int16, stride int, panel *int8, n int)

// productIntsAVX2 is the same.
//
//go:noescape
func productIntsAVX2(counts *int32, x *int16, stride int, panel *int8, n int)

// productFloats sets the tile to the products of tileRows rows of n inputs, of which one
// begins stride values after the other, with the weights of a panel.
func productFloats(tile *[tileRows * tileCols]float32, x []float32, stride int, panel []float32, n int) {
	_, _ = x[:(tileRows-1)*stride+n], panel[:n*tileCols]
	switch {
	case n == 0:
		clear(tile[:])
	case hasAVX512:
		productFloatsAVX512(&tile[0], &x[0], 4*stride, &panel[0], n)
	case hasAVX2:
		productFloatsAVX2(&tile[0], &x[0], 4*stride, &panel[0], n)
	default:
		productFloatsPortable(tile, x, stride, panel, n)
	}
}

// productInts is the same for whole groups of inputs, n together.
func productInts(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	_, _ = x[:(tileRows-1)*stride+n], panel[:n*tileCols]
	switch {
	case n == 0:
		clear(counts[:])
	case hasAVX512 && hasVNNI:
		productIntsAVX512(&counts[0], &x[0], 2*stride, &panel[0], n)
	case hasAVX2:
		productIntsAVX2(&counts[0], &x[0], 2*stride, &panel[0], n)
	default:
		productIntsPortable(counts, x, stride, panel, n)
	}
}

func finishTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	finishTilePortable(y, stride, tile, rows, bias, act)
}

func widenTile(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	widenTilePortable(tile, counts, rows, cols)
}

func quantiseRow(values []int16, x []float32, limit float32) float32 {
	return quantiseRowPortable(values, x, limit)
}

func add(x, y []float32) { addPortable(x, y) }

func normalise(x, gamma, beta []float32, eps float32) { normalisePortable(x, gamma, beta, eps) }

func exponentials(x []float32, factor float32) float32 { return exponentialsPortable(x, factor) }
