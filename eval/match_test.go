package eval

import (
	"math"
	"testing"
)

func TestMatchAnswer(t *testing.T) {
	tests := []struct {
		said, right string
		match       bool
		f1          float64
	}{
		{"The first president was G. Stanley Hall.", "G. Stanley Hall", true, 2 * 3.0 / (6 + 3)},
		{"He was born in the Hague", "The Hague", true, 2 * 1.0 / (5 + 1)},
		{"It has 1,350 rooms.", "1350", true, 2 * 1.0 / (4 + 1)},
		{"He worked in Londonderry.", "London", false, 0},
		{"the cat sat", "cat the mat", false, 2 * 1.0 / (2 + 2)},
		{"", "x", false, 0},
		{"something", "…", false, 0},
		{"yes", "Yes", true, 1},
		{"na na", "na na na", false, 2 * 2.0 / 5},
	}
	for _, tt := range tests {
		match, f1 := matchAnswer(tt.said, tt.right)
		if match != tt.match || math.Abs(f1-tt.f1) > 1e-9 {
			t.Errorf("matchAnswer(%q, %q) = %v, %.3f; want %v, %.3f", tt.said, tt.right, match, f1, tt.match, tt.f1)
		}
	}
}
