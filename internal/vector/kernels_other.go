//go:build !amd64

package vector

func estimate(e *Estimator, g Group, threshold float32, scores *[GroupRows]float32) uint64 {
	return estimatePortable(e, g, threshold, scores)
}

func dot(row []byte, q []int16) int64 { return dotPortable(row, q) }

func prefetch(*byte, int) {}
