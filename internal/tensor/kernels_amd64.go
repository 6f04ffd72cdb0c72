//go:build amd64

package tensor

func productFloats(tile *[tileRows * tileCols]float32, x []float32, stride int, panel []float32, n int) {
	productFloatsPortable(tile, x, stride, panel, n)
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

func quantiseRow(values []int16, x []float32, limit float32) float32 {
	return quantiseRowPortable(values, x, limit)
}

func add(x, y []float32) { addPortable(x, y) }

func normalise(x, gamma, beta []float32, eps float32) { normalisePortable(x, gamma, beta, eps) }

func exponentials(x []float32, factor float32) float32 { return exponentialsPortable(x, factor) }
