package strategy

import (
	"strings"
	"testing"
)

func TestWithoutMarks(t *testing.T) {
	tests := []struct{ claim, want string }{
		{"It lasts 3 months.", "It lasts 3 months."},
		{"It lasts 3 months [2].", "It lasts 3 months (2)."},
		{"It lasts 3 months.[2][13] [4, 5]", "It lasts 3 months.(2)(13) (4, 5)"},
		{"[1] It lasts [2-4] months [5–7]", "(1) It lasts (2-4) months (5–7)"},
		{"Use os.Args[1] or an array of type [4]byte.", "Use os.Args[1] or an array of type [4]byte."},
		{"It has [no] marks [], not one.", "It has [no] marks [], not one."},
		{"x := [1]; y := [2]", "x := [1]; y := [2]"},
		{"| a | [1] |\n| b | [2] |", "| a | [1] |\n| b | [2] |"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := withoutMarks(tt.claim); got != tt.want {
			t.Errorf("withoutMarks(%q) = %q, want %q", tt.claim, got, tt.want)
		}
	}
}

func TestOpening(t *testing.T) {
	long := strings.Repeat("wörd ", 100)
	tests := []struct{ text, want string }{
		{"", ""},
		{" one\n two ", "one two"},
		{strings.Repeat("ü", 200), strings.Repeat("ü", 200)},
		{strings.Repeat("ü", 201), strings.Repeat("ü", 200) + " …"},
		{long, strings.TrimSpace(strings.Repeat("wörd ", 40)) + " …"},
	}
	for _, tt := range tests {
		if got := opening(tt.text); got != tt.want {
			t.Errorf("opening(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
