// Package stat holds the statistics of measurements: means, percentiles, bootstrap intervals, the
// paired comparison of two runs, and the calibration of scores.
//
// Everything is deterministic. Random draws come from a generator with a fixed seed, so that equal
// input gives equal figures on every machine.
package stat

import (
	"math"
	"slices"
)

// Mean returns the arithmetic mean of xs, or 0 if xs is empty.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return sum(xs) / float64(len(xs))
}

// Percentile returns the p-th percentile of xs, p in [0, 100], with linear interpolation between
// the two nearest values; 50 is the median. It returns 0 for empty xs and does not modify xs.
//
// Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician
// 1996, type 7, which is the default of NumPy, R and spreadsheets.
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

// sum adds with compensation, so that the order and the number of xs hardly matter. Source:
// Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 1974.
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
