package main

import "testing"

func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		uri        string
		line, page int
		want       string
	}{
		{"/docs/a.md", 3, 0, "/docs/a.md:3"},
		{"/docs/a.pptx", 0, 4, "/docs/a.pptx, page 4"},
		{"/docs/a.pdf", 0, 4, "/docs/a.pdf#page=4"},
		{"https://example.com/a.pdf", 0, 4, "https://example.com/a.pdf#page=4"},
		{"/docs/a.pdf", 0, 0, "/docs/a.pdf"},
	} {
		if got := place(tt.uri, tt.line, tt.page); got != tt.want {
			t.Errorf("place(%q, %d, %d) = %q, want %q", tt.uri, tt.line, tt.page, got, tt.want)
		}
	}
}
