package assay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestPosition(t *testing.T) {
	lines := assay.Document{Text: "one\ntwo\nthree\nfour\n", Anchors: []assay.Anchor{{Start: 0, Line: 3}, {Start: 8, Line: 10, Page: 2}}}
	pages := assay.Document{Text: "one\ntwo\n", Anchors: []assay.Anchor{{Start: 0, Page: 1}, {Start: 4, Page: 2}}}
	late := assay.Document{Text: "one\ntwo\n", Anchors: []assay.Anchor{{Start: 4, Line: 7}}}
	tests := []struct {
		name       string
		d          assay.Document
		offset     int
		line, page int
	}{
		{"first byte", lines, 0, 3, 0},
		{"a line break is of its line", lines, 3, 3, 0},
		{"next line", lines, 4, 4, 0},
		{"before the next anchor", lines, 7, 4, 0},
		{"at an anchor", lines, 8, 10, 2},
		{"after it", lines, 14, 11, 2},
		{"at the end", lines, 19, 12, 2},
		{"beyond the end", lines, 100, 12, 2},
		{"before the beginning", lines, -1, 0, 0},
		{"pages without lines", pages, 5, 0, 2},
		{"before the first anchor", late, 3, 0, 0},
		{"no anchors", assay.Document{Text: "one"}, 1, 0, 0},
	}
	for _, tt := range tests {
		if line, page := tt.d.Position(tt.offset); line != tt.line || page != tt.page {
			t.Errorf("%s: Position(%d) = %d, %d; want %d, %d", tt.name, tt.offset, line, page, tt.line, tt.page)
		}
	}
}

func TestAnchorsIn(t *testing.T) {
	d := assay.Document{
		Text:    "one\ntwo\nthree\nfour\n",
		Anchors: []assay.Anchor{{Start: 0, Line: 3}, {Start: 8, Line: 10, Page: 2}, {Start: 14, Line: 20, Page: 2}},
	}
	tests := []struct {
		start, end int
		want       []assay.Anchor
	}{
		{0, 19, d.Anchors},
		{4, 8, []assay.Anchor{{Start: 0, Line: 4}}},
		{4, 9, []assay.Anchor{{Start: 0, Line: 4}, {Start: 4, Line: 10, Page: 2}}},
		{8, 14, []assay.Anchor{{Start: 0, Line: 10, Page: 2}}},
		{15, 19, []assay.Anchor{{Start: 0, Line: 20, Page: 2}}},
		{4, 4, []assay.Anchor{{Start: 0, Line: 4}}},
	}
	for _, tt := range tests {
		got := d.AnchorsIn(tt.start, tt.end)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("AnchorsIn(%d, %d) (-want +got):\n%s", tt.start, tt.end, diff)
		}
		part := assay.Document{Text: d.Text[tt.start:tt.end], Anchors: got}
		for i := range part.Text {
			line, page := part.Position(i)
			if wantLine, wantPage := d.Position(tt.start + i); line != wantLine || page != wantPage {
				t.Errorf("AnchorsIn(%d, %d) put byte %d at %d, %d; want %d, %d", tt.start, tt.end, i, line, page, wantLine, wantPage)
			}
		}
	}
	if got := (&assay.Document{Text: "one"}).AnchorsIn(0, 3); got == nil || len(got) != 0 {
		t.Errorf("AnchorsIn without anchors = %#v, want an empty list", got)
	}
}

// TestIdentities checks that an identity depends on the boundaries between its parts.
func TestIdentities(t *testing.T) {
	seen := map[string]string{}
	for name, id := range map[string]string{
		"document a, b":       assay.DocumentID("a", "b"),
		"document ab":         assay.DocumentID("ab", ""),
		"document , ab":       assay.DocumentID("", "ab"),
		"version a, b":        assay.DocumentVersion("a", nil, "b"),
		"version ab":          assay.DocumentVersion("ab", nil, ""),
		"version with a key":  assay.DocumentVersion("a", assay.Metadata{"k": assay.StringValue("v")}, "b"),
		"version other value": assay.DocumentVersion("a", assay.Metadata{"k": assay.ListValue("v")}, "b"),
		"chunk 0":             assay.ChunkID("a", "b", 0),
		"chunk 1":             assay.ChunkID("a", "b", 1),
		"chunk of another":    assay.ChunkID("ab", "", 0),
	} {
		if len(id) != 32 {
			t.Errorf("%s: %q has %d digits, want 32", name, id, len(id))
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		seen[id] = name
	}
}
