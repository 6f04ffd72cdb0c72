package tensor

import "golang.org/x/sys/cpu"

// The features of the processor. They take into account that the operating system must save the
// wide registers too.
var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW
	hasVNNI   = cpu.X86.HasAVX512VNNI
)

// The assembly takes strides in bytes, and tables of constants in eight lanes each.

//go:noescape
func productFloatsAVX512(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)

//go:noescape
func productFloatsAVX2(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)

//go:noescape
func productIntsAVX512(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)

//go:noescape
func productIntsAVX2(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)

//go:noescape
func finishTileAVX512(y *float32, stride int, tile *float32, rows int, bias *float32, gelu *float32)

//go:noescape
func finishTileAVX2(y *float32, stride int, tile *float32, rows int, bias *float32, gelu *float32)

//go:noescape
func widenTileAVX2(tile *float32, counts *int32, rows, cols *float32)

//go:noescape
func scaleTileAVX2(y *float32, stride int, tile *float32, rows int, factors *float32)

//go:noescape
func largestBitsAVX2(x *float32, n int) uint32

//go:noescape
func roundRowAVX2(values *int16, x *float32, n int, factor float32)

//go:noescape
func normaliseAVX2(x, residual, gamma, beta *float32, n int, eps float32)

//go:noescape
func exponentialsAVX512(x *float32, n, rows int, factor float32, exp, sums *float32)

//go:noescape
func exponentialsAVX2(x *float32, n, rows int, factor float32, exp, sums *float32)

//go:noescape
func transposeAVX2(to, from *float32, stride, n int)

//go:noescape
func copyRowsAVX2(to, from *float32, stride, rows int)

//go:noescape
func pairAVX2(to, from *int8, stride, n int)

// lane is the number of values of a row that the assembly processes at once. Rows of other lengths
// use the portable form.
const lane = 16

var (
	geluTable = table(geluConstants())
	expTable  = table(expConstants())
)

// table repeats each constant in eight lanes.
func table(constants []float32) []float32 {
	t := make([]float32, 8*len(constants))
	for i := range t {
		t[i] = constants[i/8]
	}
	return t
}

func productFloats(y []float32, yStride int, x []float32, xStride int, panel []float32, n int) {
	_, _, _ = y[:(tileRows-1)*yStride+tileCols], x[:(tileRows-1)*xStride+n], panel[:n*tileCols]
	switch {
	case n == 0 || !hasAVX2:
		productFloatsPortable(y, yStride, x, xStride, panel, n)
	case hasAVX512:
		productFloatsAVX512(&y[0], 4*yStride, &x[0], 4*xStride, &panel[0], n)
	default:
		productFloatsAVX2(&y[0], 4*yStride, &x[0], 4*xStride, &panel[0], n)
	}
}

func productInts(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	_, _ = x[:(tileRows-1)*stride+n], panel[:n*tileCols]
	switch {
	case n == 0 || !hasAVX2:
		productIntsPortable(counts, x, stride, panel, n)
	case hasAVX512 && hasVNNI:
		productIntsAVX512(&counts[0], 4*tileCols, &x[0], 2*stride, &panel[0], n)
	default:
		productIntsAVX2(&counts[0], 4*tileCols, &x[0], 2*stride, &panel[0], n)
	}
}

func finishTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	_ = y[:(rows-1)*stride+tileCols]
	var gelu *float32
	if act == GELU {
		gelu = &geluTable[0]
	}
	switch {
	case hasAVX512:
		finishTileAVX512(&y[0], 4*stride, &tile[0], rows, &bias[0], gelu)
	case hasAVX2:
		finishTileAVX2(&y[0], 4*stride, &tile[0], rows, &bias[0], gelu)
	default:
		finishTilePortable(y, stride, tile, rows, bias, act)
	}
}

func widenTile(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	if !hasAVX2 {
		widenTilePortable(tile, counts, rows, cols)
		return
	}
	widenTileAVX2(&tile[0], &counts[0], &rows[0], &cols[0])
}

func scaleTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, factors *[tileRows]float32) {
	if !hasAVX2 {
		scaleTilePortable(y, stride, tile, rows, factors)
		return
	}
	_ = y[:(rows-1)*stride+tileCols]
	scaleTileAVX2(&y[0], 4*stride, &tile[0], rows, &factors[0])
}

func largestBits(x []float32) uint32 {
	if !hasAVX2 || len(x) == 0 || len(x)%lane != 0 {
		return largestBitsPortable(x)
	}
	return largestBitsAVX2(&x[0], len(x))
}

func roundRow(values []int16, x []float32, factor float32) {
	if !hasAVX2 || len(x) == 0 || len(x)%lane != 0 {
		roundRowPortable(values, x, factor)
		return
	}
	_ = values[:len(x)]
	roundRowAVX2(&values[0], &x[0], len(x), factor)
}

func normalise(x, residual, gamma, beta []float32, eps float32) {
	if !hasAVX2 || len(x)%lane != 0 {
		normalisePortable(x, residual, gamma, beta, eps)
		return
	}
	_, _ = gamma[:len(x)], beta[:len(x)]
	var r *float32
	if residual != nil {
		r = &residual[:len(x)][0]
	}
	normaliseAVX2(&x[0], r, &gamma[0], &beta[0], len(x), eps)
}

func exponentials(x []float32, n int, factor float32, sums []float32) {
	_ = x[:len(sums)*n]
	switch {
	case !hasAVX2:
		exponentialsPortable(x, n, factor, sums)
	case hasAVX512:
		exponentialsAVX512(&x[0], n, len(sums), factor, &expTable[0], &sums[0])
	default:
		exponentialsAVX2(&x[0], n, len(sums), factor, &expTable[0], &sums[0])
	}
}

// transpose writes some of the first n rows to columns of a panel, and returns their number.
func transpose(panel, rows []float32, n, width, stride int) int {
	const eight = 8
	if !hasAVX2 || width%eight != 0 || n < eight {
		return 0
	}
	n = n / eight * eight
	_, _ = panel[:width*tileCols], rows[:(n-1)*stride+width]
	for t := 0; t < n; t += eight {
		transposeAVX2(&panel[t], &rows[t*stride], 4*stride, width)
	}
	return n
}

func copyRows(panel, rows []float32, n, stride int) {
	if !hasAVX2 {
		copyRowsPortable(panel, rows, n, stride)
		return
	}
	_, _ = panel[:n*tileCols], rows[:(n-1)*stride+tileCols]
	copyRowsAVX2(&panel[0], &rows[0], 4*stride, n)
}

// pair lays out some of the first n rows in a panel of int8, and returns their number.
func pair(panel, rows []int8, n, in int) int {
	const eight = 8
	if !hasAVX2 || in%lane != 0 || n < eight {
		return 0
	}
	n = n / eight * eight
	_, _ = panel[:in*tileCols], rows[:n*in]
	for c := 0; c < n; c += eight {
		pairAVX2(&panel[c*group], &rows[c*in], in, in)
	}
	return n
}
