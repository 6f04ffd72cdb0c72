package stat

import "math"

// A Bin holds the cases with a score in [Low, High). The last bin includes High.
type Bin struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Cases int     `json:"cases"`
	Score float64 `json:"score"` // mean; 0 without cases
	Right float64 `json:"right"` // share; 0 without cases
}

// Bins returns a calibration curve: n bins of equal width from 0 to 1, from scores in [0, 1] and
// whether each case was right. It panics if a score is not a number or out of range, if the slices
// have different lengths, or if n is below 1.
//
// Source: DeGroot and Fienberg, "The comparison and evaluation of forecasters", The Statistician
// 1983, for the curve; Guo et al., as of ECE, for the bins.
func Bins(scores []float64, right []bool, n int) []Bin {
	if len(scores) != len(right) || n < 1 {
		panic("stat: bins need a word on each score, and one bin at least")
	}
	bins := make([]Bin, n)
	for i := range bins {
		bins[i].Low, bins[i].High = float64(i)/float64(n), float64(i+1)/float64(n)
	}
	for i, s := range scores {
		if !(s >= 0 && s <= 1) {
			panic("stat: a score is not in [0, 1]")
		}
		at := min(int(s*float64(n)), n-1)
		// Correct for rounding at the edges.
		if at+1 < n && s >= bins[at].High {
			at++
		} else if s < bins[at].Low {
			at--
		}
		b := &bins[at]
		b.Cases++
		b.Score += s
		if right[i] {
			b.Right++
		}
	}
	for i := range bins {
		if n := float64(bins[i].Cases); n > 0 {
			bins[i].Score /= n
			bins[i].Right /= n
		}
	}
	return bins
}

// ECE returns the expected calibration error: the mean over the cases of the distance between a
// bin's mean score and its share of right cases. It is in [0, 1], and less is better; 0 without
// cases. It depends on the number of bins, so compare only figures with equal numbers (here 10
// unless another number is named).
//
// Source: Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
// Binning", AAAI 2015; Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
func ECE(bins []Bin) float64 {
	distance, cases := 0.0, 0
	for _, b := range bins {
		distance += float64(b.Cases) * math.Abs(b.Score-b.Right)
		cases += b.Cases
	}
	if cases == 0 {
		return 0
	}
	return distance / float64(cases)
}
