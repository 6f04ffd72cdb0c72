// Package learn fits logistic regressions. Equal input gives equal models, bit for bit on
// one machine.
package learn

import "math"

// A Row is one example.
type Row struct {
	Features []float64 // finite; the same number in every row
	Positive bool
	Weight   float64 // positive
}

// Sigmoid returns the probability whose log odds are x.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// LogOdds is the inverse of Sigmoid, for p in (0, 1).
func LogOdds(p float64) float64 { return math.Log(p / (1 - p)) }

// round rounds a fitted number, so that files are short and do not depend on the last bits of a
// machine's arithmetic.
func round(x, unit float64) float64 { return math.Round(x/unit) * unit }
