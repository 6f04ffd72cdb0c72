//go:build amd64 || arm64

package tensor

import "math"

// roundingBias leaves no bits to what it is added to but those of its integer.
const roundingBias = 3 << 22

// geluConstants and expConstants are what the assembly computes with, in its order.
func geluConstants() []float32 {
	return append(append([]float32{erfEnd, -erfEnd, 0.5}, erfAbove[:]...), erfBelow[:]...)
}

func expConstants() []float32 {
	return append([]float32{expLowest, math.Log2E, roundingBias, -log2High, -log2Low}, expPowers[:]...)
}
