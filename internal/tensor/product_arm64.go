package tensor

// hasNEON is whether to use it: every processor of this kind has it.
var hasNEON = true

// The assembly takes strides in bytes.

//go:noescape
func productFloatsNEON(y *float32, yStride int, x *float32, xStride int, panel *float32, n int)

//go:noescape
func productIntsNEON(y *int32, yStride int, x *int16, xStride int, panel *int8, n int)

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
