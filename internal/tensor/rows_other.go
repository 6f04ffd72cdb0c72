//go:build !amd64

package tensor

func finishTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, bias *[tileCols]float32, act Activation) {
	finishTilePortable(y, stride, tile, rows, bias, act)
}

func widenTile(tile *[tileRows * tileCols]float32, counts *[tileRows * tileCols]int32, rows *[tileRows]float32, cols *[tileCols]float32) {
	widenTilePortable(tile, counts, rows, cols)
}

func scaleTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, factors *[tileRows]float32) {
	scaleTilePortable(y, stride, tile, rows, factors)
}

func largestBits(x []float32) uint32 { return largestBitsPortable(x) }

func roundRow(values []int16, x []float32, factor float32) { roundRowPortable(values, x, factor) }

func normalise(x, residual, gamma, beta []float32, eps float32) {
	normalisePortable(x, residual, gamma, beta, eps)
}

func exponentials(x []float32, n int, factor float32, sums []float32) {
	exponentialsPortable(x, n, factor, sums)
}

func transpose(panel, rows []float32, n, width, stride int) int { return 0 }

func pair(panel, rows []int8, n, in int) int { return 0 }

func copyRows(panel, rows []float32, n, stride int) { copyRowsPortable(panel, rows, n, stride) }
