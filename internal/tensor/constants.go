//go:build amd64 || arm64

package tensor

import "math"

// roundingBias, when added to a number, leaves only the bits of its integer part.
const roundingBias = 3 << 22

// geluConstants and expConstants return the constants of the assembly, in its order.
func geluConstants() []float32 {
	return append(append([]float32{erfEnd, -erfEnd, 0.5}, erfAbove[:]...), erfBelow[:]...)
}

func expConstants() []float32 {
	return append([]float32{expLowest, math.Log2E, roundingBias, -log2High, -log2Low}, expPowers[:]...)
}
