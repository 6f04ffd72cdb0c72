package learn

import (
	"math"
	"testing"
)

// TestLogisticOfNothing checks that a model without rows has even odds.
func TestLogisticOfNothing(t *testing.T) {
	if got := Logistic(nil, 1).LogOdds(nil); got != 0 {
		t.Errorf("log odds %g", got)
	}
}

// TestLogisticWeights checks that the weights of contradicting rows count as shares.
func TestLogisticWeights(t *testing.T) {
	rows := []Row{
		{Features: []float64{1}, Positive: true, Weight: 3}, {Features: []float64{1}, Positive: false, Weight: 1},
		{Features: []float64{0}, Positive: true, Weight: 1}, {Features: []float64{0}, Positive: false, Weight: 3},
	}
	l := Logistic(rows, 1e-9)
	for x, want := range map[float64]float64{1: 0.75, 0: 0.25} {
		if got := Sigmoid(l.LogOdds([]float64{x})); math.Abs(got-want) > 1e-3 {
			t.Errorf("p(%g) = %.4f, want %.4f", x, got, want)
		}
	}
	if got := LogOdds(Sigmoid(0.7)); math.Abs(got-0.7) > 1e-12 {
		t.Errorf("LogOdds(Sigmoid(0.7)) = %g", got)
	}
}
