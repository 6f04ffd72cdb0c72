package tensor

import "math"

// Polynomials of the functions, lowest power first, fitted to minimise the largest error on their
// intervals.
var (
	// expPowers approximates exp on [-ln 2/2, ln 2/2], to a relative error of 7.5e-8.
	expPowers = [...]float32{1.0000001, 0.9999997, 0.49998894, 0.16667575, 0.041915383, 0.008297655}

	// erf(x/sqrt 2) is x*erfAbove(x*x)/erfBelow(x*x) to 1e-8 for |x| <= erfEnd. Beyond that it is
	// practically 1.
	erfAbove = [...]float32{0.7978845, 0.066509046, 0.009289143, 0.00032647187, 1.2727914e-05, 4.711408e-08}
	erfBelow = [...]float32{1, 0.25002286, 0.028313706, 0.0018528645, 7.210904e-05, 1.2218111e-06}
)

const (
	erfEnd = 5.3740115

	// log2High and log2Low add up to ln 2. The first has so few bits that its products with whole
	// numbers up to 2^8 are exact.
	log2High = 0.693359375
	log2Low  = -2.12194440e-4

	// expLowest is the lower limit for exp. Below it, exp is 1.7e-38 or less.
	expLowest = -87
)

func polynomial(powers *[6]float32, x float32) float32 {
	y := powers[5]
	for i := 4; i >= 0; i-- {
		y = y*x + powers[i]
	}
	return y
}

// expNegative returns exp(x) for x <= 0, to a relative error of 2e-7. Below expLowest it returns
// exp(expLowest).
func expNegative(x float32) float32 {
	if x < expLowest {
		x = expLowest
	}
	n := float32(math.RoundToEven(float64(x * math.Log2E)))
	r := x - n*log2High - n*log2Low
	return polynomial(&expPowers, r) * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// geluPortable sets x to GELU(x), to 3e-7 of the larger of 1 and |x|.
func geluPortable(x []float32) {
	for i, v := range x {
		t := max(-erfEnd, min(erfEnd, v))
		u := t * t
		erf := t * polynomial(&erfAbove, u) / polynomial(&erfBelow, u)
		h := v / 2
		x[i] = h + h*erf
	}
}

// LayerNorm sets each of the rows of n values of x to gamma*(v-mean)/sqrt(variance+eps) + beta. v
// is the row plus that of the residual, and mean and variance are over its n values. residual may
// be nil. LayerNorm panics if a length does not fit.
func LayerNorm(x, residual, gamma, beta []float32, rows, n int, eps float32) {
	checkLength("values", len(x), rows*n)
	if residual != nil {
		checkLength("values of residual", len(residual), rows*n)
	}
	checkLength("gammas", len(gamma), n)
	checkLength("betas", len(beta), n)
	for from := 0; from < len(x); from += n {
		var r []float32
		if residual != nil {
			r = residual[from : from+n]
		}
		normalise(x[from:from+n], r, gamma, beta, eps)
	}
}

// normalisePortable is normalise for any processor. It applies LayerNorm to one row.
func normalisePortable(x, residual, gamma, beta []float32, eps float32) {
	for i, v := range residual {
		x[i] += v
	}
	var sum [8]float32
	for i, v := range x {
		sum[i%8] += v
	}
	mean := total(sum) / float32(len(x))
	sum = [8]float32{}
	for i, v := range x {
		sum[i%8] += (v - mean) * (v - mean)
	}
	inverse := float32(1 / math.Sqrt(float64(total(sum)/float32(len(x))+eps)))
	for i, v := range x {
		x[i] = (v-mean)*inverse*gamma[i] + beta[i]
	}
}

func total(s [8]float32) float32 {
	return (s[0] + s[4] + (s[2] + s[6])) + (s[1] + s[5] + (s[3] + s[7]))
}
