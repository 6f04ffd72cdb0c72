package retrieve

import (
	"slices"
	"testing"
)

func TestCompounds(t *testing.T) {
	tests := []struct {
		query string
		want  []string
	}{
		{"How do I shut a server down?", []string{"shutdown"}},
		{"What is the file name for?", []string{"filename"}},
		{"log in", []string{"login"}},
		{"What is it?", nil},
		{"", nil},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range compounds(tt.query) {
			got = append(got, c.word)
		}
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("compounds(%q) = %q, want %q among them", tt.query, got, w)
			}
		}
		if len(tt.want) == 0 && len(got) > 0 {
			t.Errorf("compounds(%q) = %q, want none", tt.query, got)
		}
	}
}
