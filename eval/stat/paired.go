package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// A Difference is the difference between two runs on the same cases.
type Difference struct {
	Mean float64 // of the first minus the second
	Low  float64 // 95 % bounds, by Bootstrap of the differences
	High float64
	P    float64 // of Randomisation
}

// Paired compares two runs of the same cases, where a[i] and b[i] belong to one case. It panics if
// the slices have different lengths. Without cases, P is 1.
//
// Source: as of Bootstrap and Randomisation. Cases are drawn in pairs, so that the difficulty of a
// case does not affect the difference.
func Paired(a, b []float64) Difference {
	if len(a) != len(b) {
		panic("stat: the runs do not have the same cases")
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	boot := Bootstrap(differences)
	return Difference{Mean: boot.Mean, Low: boot.Low, High: boot.High, P: Randomisation(differences)}
}

const (
	// exactCases is the largest number of differing cases for which all assignments are enumerated:
	// 2^20 take some milliseconds.
	exactCases = 20

	// shuffles is the number of assignments drawn for more cases. A p of 0.05 then has a standard
	// error of 0.002.
	shuffles = 9999
)

// Randomisation returns the two-sided p of a paired randomisation test, in (0, 1]. Under the null
// hypothesis, the assignment of a case's two values to the runs is random. p is the share of all
// assignments whose mean is at least as far from 0 as that of the differences. It is exact for up
// to 20 cases that differ, and otherwise estimated from 9,999 drawn assignments and the observed
// one. Without a case that differs it is 1.
//
// Source: Fisher, "The Design of Experiments", 1935; Smucker, Allan and Carterette, "A comparison
// of statistical significance tests for information retrieval evaluation", CIKM 2007; Phipson and
// Smyth, "Permutation P-values should never be zero", SAGMB 2010, for counting the observed
// assignment.
func Randomisation(differences []float64) float64 {
	var ds []float64 // cases without a difference change no sum
	scale := 0.0
	for _, d := range differences {
		if d != 0 {
			ds = append(ds, d)
			scale += math.Abs(d)
		}
	}
	if len(ds) == 0 {
		return 1
	}
	seen := math.Abs(sum(ds)) - 1e-9*scale // sums that differ only by rounding count as equal
	if len(ds) <= exactCases {
		return exactly(ds, seen)
	}
	random := rand.New(rand.NewPCG(1935, uint64(len(ds))))
	far := 1
	for range shuffles {
		total := 0.0
		for i := 0; i < len(ds); i += 64 {
			signs := random.Uint64()
			for j := i; j < min(i+64, len(ds)); j++ {
				total += flipped(ds[j], signs&1 == 1)
				signs >>= 1
			}
		}
		if math.Abs(total) >= seen {
			far++
		}
	}
	return float64(far) / (shuffles + 1)
}

// exactly enumerates all signs, changing one at a time. The i-th change is that of the lowest set
// bit of i (a Gray code).
func exactly(ds []float64, seen float64) float64 {
	total, signs := sum(ds), make([]bool, len(ds))
	all := 1 << len(ds)
	far := 1 // the observed signs
	for i := 1; i < all; i++ {
		at := bits.TrailingZeros(uint(i))
		total -= 2 * flipped(ds[at], signs[at])
		signs[at] = !signs[at]
		if math.Abs(total) >= seen {
			far++
		}
	}
	return float64(far) / float64(all)
}

func flipped(x float64, flip bool) float64 {
	if flip {
		return -x
	}
	return x
}
