//go:build !amd64

package tensor

func scaleTile(y []float32, stride int, tile *[tileRows * tileCols]float32, rows int, factors *[tileRows]float32) {
	scaleTilePortable(y, stride, tile, rows, factors)
}

func normalise(x, residual, gamma, beta []float32, eps float32) {
	normalisePortable(x, residual, gamma, beta, eps)
}

func transpose(panel, rows []float32, n, width, stride int) int { return 0 }

func pair(panel, rows []int8, n, in int) int { return 0 }

func copyRows(panel, rows []float32, n, stride int) { copyRowsPortable(panel, rows, n, stride) }
