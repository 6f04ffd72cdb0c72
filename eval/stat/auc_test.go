package stat_test

import (
	"testing"

	"github.com/assay-rag/assay/eval/stat"
)

func TestAUC(t *testing.T) {
	tests := []struct {
		name   string
		scores []float64
		right  []bool
		want   float64
		ok     bool
	}{
		{"none", nil, nil, 0, false},
		{"one kind", []float64{1, 2}, []bool{true, true}, 0, false},
		{"in order", []float64{-3, 5, 0.5}, []bool{false, true, false}, 1, true},
		{"the wrong way round", []float64{1, 2}, []bool{true, false}, 0, true},
		{"a tie counts half", []float64{1, 1, 1, 1}, []bool{true, false, true, false}, 0.5, true},
		{"some of each", []float64{1, 0.25, 0.25, 0}, []bool{true, true, false, false}, 0.875, true},
	}
	for _, tt := range tests {
		if got, ok := stat.AUC(tt.scores, tt.right); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
