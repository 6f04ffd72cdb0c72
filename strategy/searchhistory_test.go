package strategy

import "testing"

func TestDrought(t *testing.T) {
	type search struct{ fresh, hits int }
	tests := []struct {
		name     string
		searches []search
		ends     bool
	}{
		{"one without hits", []search{{0, 0}}, false},
		{"two without hits", []search{{0, 0}, {0, 0}}, true},
		{"two of known hits", []search{{20, 20}, {0, 20}, {0, 20}}, true},
		{"two with a tenth new", []search{{20, 20}, {2, 20}, {2, 20}}, true},
		{"two with more than a tenth new", []search{{20, 20}, {3, 20}, {3, 20}}, false},
		{"not in a row", []search{{20, 20}, {0, 20}, {5, 20}, {1, 20}}, false},
	}
	for _, tt := range tests {
		var d noProgressCount
		for _, s := range tt.searches {
			d.add(s.fresh, s.hits)
		}
		if d.stalled() != tt.ends {
			t.Errorf("%s: ends is %v, want %v", tt.name, d.stalled(), tt.ends)
		}
	}
}
