package learn

import (
	"math"
	"slices"
)

// A Linear model gives the log odds of the positive class as a weighted sum of scaled features.
type Linear struct {
	Bias    float64   `json:"bias"`
	Mean    []float64 `json:"mean"`
	Scale   []float64 `json:"scale"` // a feature is (x - mean) · scale, within ±widest
	Weights []float64 `json:"weights"`
}

// widest bounds a scaled feature, so that a single outlier does not decide.
const widest = 4

// LogOdds returns the log odds that a row is positive.
func (l *Linear) LogOdds(features []float64) float64 {
	sum := l.Bias
	for i, w := range l.Weights {
		sum += w * l.scaled(i, features[i])
	}
	return sum
}

func (l *Linear) scaled(i int, x float64) float64 {
	return max(-widest, min(widest, (x-l.Mean[i])*l.Scale[i]))
}

// biasRidge keeps the bias finite if all rows are of one class.
const biasRidge = 1e-9

// Logistic fits a linear model: it minimises the weighted log loss of rows plus ridge times half
// the squared weights, without the bias. The weights of the rows count as shares.
func Logistic(rows []Row, ridge float64) *Linear {
	if len(rows) == 0 {
		return &Linear{}
	}
	n := len(rows[0].Features)
	l := &Linear{Mean: make([]float64, n), Scale: make([]float64, n), Weights: make([]float64, n)}
	all := 0.0
	for _, r := range rows {
		all += r.Weight
		for i, x := range r.Features {
			l.Mean[i] += r.Weight * x
		}
	}
	for i := range n {
		square := 0.0
		l.Mean[i] = round(l.Mean[i]/all, 1e-6)
		for _, r := range rows {
			square += r.Weight * (r.Features[i] - l.Mean[i]) * (r.Features[i] - l.Mean[i])
		}
		if deviation := math.Sqrt(square / all); deviation > 1e-6 {
			l.Scale[i] = round(1/deviation, 1e-6)
		}
	}
	scaled := make([]Row, len(rows))
	for k, r := range rows {
		scaled[k] = Row{Features: make([]float64, n+1), Positive: r.Positive, Weight: r.Weight}
		for i, x := range r.Features {
			scaled[k].Features[i] = l.scaled(i, x)
		}
		scaled[k].Features[n] = 1
	}
	w := Newton(scaled, append(slices.Repeat([]float64{ridge}, n), biasRidge))
	for i := range n {
		l.Weights[i] = round(w[i], 1e-6)
	}
	l.Bias = round(w[n], 1e-6)
	return l
}

// Newton minimises the weighted log loss of rows plus half the squared weights, each times its
// ridge, by Newton's method. It returns a weight for each feature. The weights of the rows
// count as shares.
func Newton(rows []Row, ridge []float64) []float64 {
	const rounds = 50
	n, all := len(ridge), 0.0
	for _, r := range rows {
		all += r.Weight
	}
	w := make([]float64, n)
	for range rounds {
		slope, curve := make([]float64, n), make([][]float64, n)
		for i := range curve {
			curve[i] = make([]float64, n)
			slope[i], curve[i][i] = ridge[i]*w[i], ridge[i]
		}
		for _, r := range rows {
			p, y, share := Probability(w, r.Features), 0.0, r.Weight/all
			if r.Positive {
				y = 1
			}
			for i, v := range r.Features {
				if v == 0 {
					continue
				}
				slope[i] += share * (p - y) * v
				h := share * p * (1 - p) * v
				row := curve[i]
				for j := range i + 1 {
					row[j] += h * r.Features[j]
				}
			}
		}
		step := solve(curve, slope)
		largest := 0.0
		for i := range w {
			w[i] -= step[i]
			largest = max(largest, math.Abs(step[i]))
		}
		if largest < 1e-9 {
			break
		}
	}
	return w
}

// Probability returns the probability that a row with these features is positive.
func Probability(weights, features []float64) float64 {
	sum := 0.0
	for i, x := range features {
		sum += weights[i] * x
	}
	return Sigmoid(sum)
}

// solve returns the solution x of a·x = b for a symmetric, positive definite a, by Cholesky
// decomposition. It reads and overwrites the lower half of a.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		for j := range i + 1 {
			sum := a[i][j]
			for k := range j {
				sum -= a[i][k] * a[j][k]
			}
			if i == j {
				a[i][i] = math.Sqrt(max(sum, 1e-12))
			} else {
				a[i][j] = sum / a[j][j]
			}
		}
	}
	x := make([]float64, n)
	for i := range n {
		sum := b[i]
		for k := range i {
			sum -= a[i][k] * x[k]
		}
		x[i] = sum / a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		sum := x[i]
		for k := i + 1; k < n; k++ {
			sum -= a[k][i] * x[k]
		}
		x[i] = sum / a[i][i]
	}
	return x
}

// Fits reports whether the model is one of n features.
func (l *Linear) Fits(n int) bool {
	return len(l.Weights) == n && len(l.Mean) == n && len(l.Scale) == n
}
