package tensor

// hasNEON selects the NEON forms. Every processor of this kind supports NEON.
var hasNEON = true

// The assembly takes strides in bytes.

//go:noescape
func productFloatsNEON(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)

//go:noescape
func productIntsNEON(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)

//go:noescape
func finishTileNEON(y *float32, stride int, tile *float32, rows int, bias, gelu *float32)

//go:noescape
func exponentialsNEON(x *float32, n, rows int, factor float32, exp, sums *float32)

//go:noescape
func widenTileNEON(tile *float32, counts *int32, rows, cols *float32)

//go:noescape
func largestBitsNEON(x *float32, n int) uint32

//go:noescape
func roundRowNEON(values *int16, x *float32, n int, factor float32)

// lane is the number of values of a row that the assembly processes at once. Rows of other lengths
// use the portable form.
const lane = 8

var (
	geluTable = geluConstants()
	expTable  = expConstants()
)

func productFloats(y []float32, yStride int, x []float32, xStride int, panel []float32, n int) {
	if !hasNEON || n == 0 {
		productFloatsPortable(y, yStride, x, xStride, panel, n)
		return
	}
	_, _, _ = y[:(tileRows-1)*yStride+tileCols], x[:(tileRows-1)*xStride+n], panel[:n*tileCols]
	productFloatsNEON(&y[0], 4*yStride, &x[0], 4*xStride, &panel[0], n)
}

func productInts(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	if !hasNEON || n == 0 {
		productIntsPortable(counts, x, stride, panel, n)
		return
	}
	_, _ = x[:(tileRows-1)*stride+n], panel[:n*tileCols]
	productIntsNEON(&counts[0], 4*tileCols, &x[0], 2*stride, &panel[0], n)
}

func finishTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	if !hasNEON {
		finishTilePortable(y, stride, tile, rows, bias, act)
		return
	}
	_ = y[:(rows-1)*stride+tileCols]
	var gelu *float32
	if act == GELU {
		gelu = &geluTable[0]
	}
	finishTileNEON(&y[0], 4*stride, &tile[0], rows, &bias[0], gelu)
}

func exponentials(x []float32, n int, factor float32, sums []float32) {
	if !hasNEON {
		exponentialsPortable(x, n, factor, sums)
		return
	}
	_ = x[:len(sums)*n]
	exponentialsNEON(&x[0], n, len(sums), factor, &expTable[0], &sums[0])
}

func widenTile(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	if !hasNEON {
		widenTilePortable(tile, counts, rows, cols)
		return
	}
	widenTileNEON(&tile[0], &counts[0], &rows[0], &cols[0])
}

func largestBits(x []float32) uint32 {
	if !hasNEON || len(x) == 0 || len(x)%lane != 0 {
		return largestBitsPortable(x)
	}
	return largestBitsNEON(&x[0], len(x))
}

func roundRow(values []int16, x []float32, factor float32) {
	if !hasNEON || len(x) == 0 || len(x)%lane != 0 {
		roundRowPortable(values, x, factor)
		return
	}
	_ = values[:len(x)]
	roundRowNEON(&values[0], &x[0], len(x), factor)
}
