package assay

import "testing"

func TestPageLink(t *testing.T) {
	for _, tt := range []struct {
		uri  string
		page int
		want string
	}{
		{"/docs/plan.pdf", 3, "file:///docs/plan.pdf#page=3"},
		{"/docs/Plan #1 (50%).PDF", 1, "file:///docs/Plan%20%231%20%2850%25%29.PDF#page=1"},
		{"C:/docs/plan.pdf", 3, "file:///C:/docs/plan.pdf#page=3"},
		{"https://example.com/plan.pdf?v=2#top", 12, "https://example.com/plan.pdf?v=2#page=12"},
		{"/docs/plan.pdf", 0, ""},
		{"/docs/slides.pptx", 3, ""},
		{"/docs/mail.eml!/plan.pdf", 3, ""},
		{"stdin:plan.pdf", 3, ""},
	} {
		if got := PageLink(tt.uri, tt.page); got != tt.want {
			t.Errorf("PageLink(%q, %d) = %q, want %q", tt.uri, tt.page, got, tt.want)
		}
	}
}
