package main

import (
	"slices"
	"testing"
)

// TestFitLineNotNegative checks that fitLine drops a feature that repeats another one with noise. A
// plain fit gives it a negative weight.
func TestFitLineNotNegative(t *testing.T) {
	var rows []fitRow
	for i := range 200 {
		x, noise := float64(i%20)-9.5, float64(i%7)-3
		r := fitRow{features: []float64{x, x + noise, 1}}
		r.Answerable = x-noise > 0
		rows = append(rows, r)
	}
	line := fitLine(rows)
	if slices.Min(line.Weights) < 0 || line.Weights[0] <= 0 || line.Weights[1] != 0 {
		t.Errorf("weights %v, want the first feature alone", line.Weights)
	}
	if rows[0].features[1] != -9.5-3 {
		t.Errorf("the rows were changed: %v", rows[0].features)
	}
	if line := fitLine(nil); len(line.Weights) != 0 {
		t.Errorf("no rows give %v", line.Weights)
	}
}
