package strategy

import "testing"

func TestSiblings(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"Falcon gateway", "Heron gateway", true},
		{"Handbook for Germany", "Handbook for Spain", true},
		{"Falcon gateway", "Falcon gateway", false},
		{"Leave policy 2022", "Leave policy 2024", false},
		{"Leave policy", "Leave policy (superseded)", false},
		{"Leave policy", "Draft of the new leave policy", false},
		{"Heron gateway v1", "Falcon gateway v2", false},
		{"Travel", "Expenses", false},
		{"Gateway", "Heron gateway", false},
		{"", "", false},
	} {
		if got := siblings(tt.a, tt.b); got != tt.want || siblings(tt.b, tt.a) != tt.want {
			t.Errorf("siblings(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
