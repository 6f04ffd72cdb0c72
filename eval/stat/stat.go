// Package stat holds the statistics of measurements: means, percentiles, intervals by
// bootstrap, the paired comparison of two runs, and how well scores are calibrated.
//
// Everything is deterministic: what is drawn by chance comes from a generator with a fixed
// seed, so that equal input gives equal figures on every machine.
package stat

import (
	"math"
	"slices"
)

// Mean returns the arithmetic mean of xs; 0 of none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return sum(xs) / float64(len(xs))
}

// WeightedMean returns the sum of x·weight over that of the weights; 0 where these are 0
// together. The two have the same length and weights are 0 or more; else it panics.
func WeightedMean(xs, weights []float64) float64 {
	if len(xs) != len(weights) {
		panic("stat: as many weights as values are needed")
	}
	total, all := 0.0, 0.0
	for i, w := range weights {
		if w < 0 {
			panic("stat: a weight is below 0")
		}
		total += w * xs[i]
		all += w
	}
	if all == 0 {
		return 0
	}
	return total / all
}

// Percentile returns the value below which p of 100 parts of xs lie, p in [0, 100], with
// linear interpolation between the two nearest: 50 is the median. 0 of none; xs is left as
// it is.
//
// Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
// Statistician 1996, type 7, which is the default of NumPy, R and spreadsheets.
func Percentile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	at := min(max(p, 0), 100) / 100 * float64(len(sorted)-1)
	below := int(at)
	if below == len(sorted)-1 {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// sum adds with compensation, so that the order and the number of xs hardly matter.
// Source: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
// Summen", ZAMM 1974.
func sum(xs []float64) float64 {
	total, lost := 0.0, 0.0
	for _, x := range xs {
		next := total + x
		if math.Abs(total) >= math.Abs(x) {
			lost += (total - next) + x
		} else {
			lost += (x - next) + total
		}
		total = next
	}
	return total + lost
}
