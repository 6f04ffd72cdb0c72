package stat

import (
	"math/rand/v2"
	"slices"
)

// Resamples is the number of sets of cases that Draws draws. With 1,000 the bounds are stable to
// the third digit.
const Resamples = 1000

// An Interval is a figure, the mean unless another is named, with its 95 % confidence bounds for
// sets of as many cases of this kind.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Draws calls each with Resamples draws of n cases out of n, with replacement. A draw is a slice of
// indexes that is reused. Equal n gives equal draws, so that figures of the same cases are compared
// on the same draws.
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

// Bootstrap returns the mean of xs, one value per case, with its bounds by the percentiles of the
// means of Draws. Without cases it is zero. For one case all three are equal.
//
// Source: Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 1979;
// Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13, for percentile
// intervals.
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

// BootstrapPercentile is like Bootstrap for a percentile instead of the mean. If few cases lie
// beyond the percentile, as for the 95th of under 100 cases, the bounds are too narrow.
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

// around returns a figure with the bounds of the drawn values, widened to contain it. Sums of equal
// numbers can differ in their last digit by the order of the draw.
func around(x float64, drawn []float64) Interval {
	low, high := Bounds(drawn)
	return Interval{Mean: x, Low: min(low, x), High: max(high, x)}
}

// Bounds returns the values that a fortieth of xs is below and above. For the figures of Draws
// these are the 95 % bounds. It sorts xs, which must not be empty.
func Bounds(xs []float64) (low, high float64) {
	slices.Sort(xs)
	cut := len(xs) / 40
	return xs[cut], xs[len(xs)-1-cut]
}
