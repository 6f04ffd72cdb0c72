//go:build !amd64 && !arm64

package tensor

func productFloats(y []float32, yStride int, x []float32, xStride int, panel []float32, n int) {
	productFloatsPortable(y, yStride, x, xStride, panel, n)
}

func productInts(counts *[tileRows * tileCols]int32, x []int16, stride int, panel []int8, n int) {
	productIntsPortable(counts, x, stride, panel, n)
}

func finishTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	finishTilePortable(y, stride, tile, rows, bias, act)
}

func widenTile(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	widenTilePortable(tile, counts, rows, cols)
}

func largestBits(x []float32) uint32 { return largestBitsPortable(x) }

func roundRow(values []int16, x []float32, factor float32) { roundRowPortable(values, x, factor) }

func exponentials(x []float32, n int, factor float32, sums []float32) {
	exponentialsPortable(x, n, factor, sums)
}
