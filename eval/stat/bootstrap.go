package stat

import (
	"math/rand/v2"
	"slices"
)

// Resamples is how many sets of cases Draws draws: with 1,000 the bounds are steady to the
// third digit.
const Resamples = 1000

// An Interval is a figure, the mean unless another is named, with the bounds within which
// it lies for 95 of 100 sets of as many cases of this kind.
type Interval struct {
	Mean float64
	Low  float64
	High float64
}

// Draws calls each with Resamples draws of n cases out of n, with replacement: their
// indexes, in a slice that is used again. Equal n gives equal draws, so that figures of
// the same cases are compared on the same draws.
func Draws(n int, each func(draw []int)) {
	random := rand.New(rand.NewPCG(1979, uint64(n)))
	draw := make([]int, n)
	for range Resamples {
		for i := range draw {
			draw[i] = random.IntN(n)
		}
		each(draw)
	}
}

// Bootstrap returns the mean of xs, one for each case, with its bounds by the percentiles
// of the means of Draws. Of no cases it is zero; of one, all three are the same.
//
// Source: Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics
// 1979; Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13, for
// percentile intervals.
func Bootstrap(xs []float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	means := make([]float64, 0, Resamples)
	Draws(len(xs), func(draw []int) {
		total := 0.0
		for _, i := range draw {
			total += xs[i]
		}
		means = append(means, total/float64(len(xs)))
	})
	return around(Mean(xs), means)
}

// BootstrapPercentile is Bootstrap of a percentile instead of the mean; the bounds of one
// that few cases are beyond, as the 95th of under 100, are narrower than they should be.
func BootstrapPercentile(xs []float64, p float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	drawn, values := make([]float64, len(xs)), make([]float64, 0, Resamples)
	Draws(len(xs), func(draw []int) {
		for i, j := range draw {
			drawn[i] = xs[j]
		}
		values = append(values, Percentile(drawn, p))
	})
	return around(Percentile(xs, p), values)
}

// around is a figure with the bounds of what was drawn, which hold it: sums of equal
// numbers differ in their last digit by the order of the draw.
func around(x float64, drawn []float64) Interval {
	low, high := Bounds(drawn)
	return Interval{Mean: x, Low: min(low, x), High: max(high, x)}
}

// Bounds returns the values that a fortieth of xs is below and above: of the figures of
// Draws, the bounds of 95 in 100. It sorts xs, which are not empty.
func Bounds(xs []float64) (low, high float64) {
	slices.Sort(xs)
	cut := len(xs) / 40
	return xs[cut], xs[len(xs)-1-cut]
}
