//go:build !amd64 && !arm64

package tensor

func productFloats(y []float32, yStride int, x []float32, xStride int, panel []float32, n int) {
	productFloatsPortable(y, yStride, x, xStride, panel, n)
}

func productInts(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	productIntsPortable(counts, x, stride, panel, n)
}
