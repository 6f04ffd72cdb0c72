package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// A Difference is by how much one run is above another on the same cases.
type Difference struct {
	Mean float64 // of the first less the second
	Low  float64 // of 95 in 100 sets of as many cases, by Bootstrap of the differences
	High float64
	P    float64 // of Randomisation
}

// Paired compares two runs of the same cases, a[i] and b[i] being one case's; slices of
// different lengths are a programmer's mistake and panic. Without cases, P is 1.
//
// Source: as of Bootstrap and Randomisation. Cases are drawn in pairs, so that what is
// easy or hard for both is no part of the difference.
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
	// exactCases is up to how many differing cases all assignments are gone through:
	// 2^20 of them take some milliseconds.
	exactCases = 20

	// shuffles is how many assignments are drawn where there are more: then a p of 0.05
	// has a standard error of 0.002.
	shuffles = 9999
)

// Randomisation returns the two-sided p of a paired randomisation test, in (0, 1]: if the
// two runs were alike, which of them has which value of a case would be chance; p is the
// share of all such assignments whose mean is at least as far from 0 as that of the
// differences. It is exact for up to 20 cases that differ, and otherwise of 9,999 drawn
// assignments and the one that there is. Without a case that differs it is 1.
//
// Source: Fisher, "The Design of Experiments", 1935; Smucker, Allan and Carterette, "A
// comparison of statistical significance tests for information retrieval evaluation", CIKM
// 2007; Phipson and Smyth, "Permutation P-values should never be zero", SAGMB 2010, for
// counting the one that there is.
func Randomisation(differences []float64) float64 {
	var ds []float64 // equal ones change no sum
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
	seen := math.Abs(sum(ds)) - 1e-9*scale // sums that are equal but for rounding count as equal
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

// exactly goes through all signs, changing one at a time: the i-th change is of the
// lowest set bit of i (a Gray code).
func exactly(ds []float64, seen float64) float64 {
	total, signs := sum(ds), make([]bool, len(ds))
	all := 1 << len(ds)
	far := 1 // the signs that there are
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
