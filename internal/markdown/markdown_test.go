package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/assay-rag/assay"
)

// A piece is a block and its text.
type piece struct {
	kind  assay.BlockKind
	level int
	text  string
}

// document joins pieces to a text with blocks.
func document(pieces ...piece) (string, assay.Structure) {
	var text string
	var s assay.Structure
	for _, p := range pieces {
		if text != "" {
			text += "\n"
		}
		start := len(text)
		text += p.text
		s.Blocks = append(s.Blocks, assay.Block{Kind: p.kind, Level: p.level, Start: start, End: len(text)})
	}
	return text, s
}

func TestRender(t *testing.T) {
	tests := []struct {
		name   string
		pieces []piece
		want   string
	}{
		{"none", nil, ""},
		{"headings", []piece{{assay.BlockHeading, 1, "A\n B"}, {assay.BlockHeading, 9, "C"}, {assay.BlockHeading, 0, "D"}}, "# A B\n\n###### C\n\n# D\n"},
		{"list", []piece{
			{assay.BlockParagraph, 0, "Buy:"}, {assay.BlockListItem, 1, "• bread"}, {assay.BlockListItem, 2, "  1. rye"},
			{assay.BlockListItem, 2, "a) oat"}, {assay.BlockListItem, 0, "    - milk\nor cream"},
		}, "Buy:\n\n- bread\n  1. rye\n  - a) oat\n    - milk\n      or cream\n"},
		{"code", []piece{{assay.BlockCode, 0, "a := `b`\n```"}}, "````\na := `b`\n```\n````\n"},
		{"formula, figure and notes", []piece{
			{assay.BlockFormula, 0, "a_1 * b"}, {assay.BlockFigure, 0, "A cat\non a mat"}, {assay.BlockCaption, 0, "Figure 1: cat"}, {assay.BlockFootnote, 0, "1 Felis"},
		}, "$$\na_1 * b\n$$\n\n> A cat\n> on a mat\n\nFigure 1: cat\n\n1 Felis\n"},
		{"rows without cells", []piece{
			{assay.BlockTableHead, 0, "a | b"}, {assay.BlockTableRow, 0, "1"}, {assay.BlockTableRow, 0, "2 | 3 | 4|5"},
			{assay.BlockTableHead, 0, "c"}, {assay.BlockParagraph, 0, "End."},
		}, "| a | b |  |\n| --- | --- | --- |\n| 1 |  |  |\n| 2 | 3 | 4\\|5 |\n\n| c |\n| --- |\n\nEnd.\n"},
		{"escapes", []piece{
			{assay.BlockParagraph, 0, "# not\n> a\n- list\n1. of *markup* [x](y) <b> &amp; snake_case _em_ [12] #tag a < b"},
		}, "\\# not\n\\> a\n\\- list\n1\\. of \\*markup\\* [x\\](y) \\<b> \\&amp; snake_case \\_em\\_ [12] #tag a < b\n"},
	}
	for _, test := range tests {
		text, s := document(test.pieces...)
		if diff := cmp.Diff(test.want, Render(text, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestRenderCells(t *testing.T) {
	text, s := document(
		piece{assay.BlockTableHead, 0, "Size | Price"},
		piece{assay.BlockTableRow, 0, "10 | 5 | 6"},
		piece{assay.BlockTableRow, 0, "7"},
	)
	s.Tables = []assay.Table{{Start: 0, End: len(text), Cells: []assay.Cell{
		{Start: 0, End: 4, Row: 0, Col: 0, Header: true}, {Start: 7, End: 12, Row: 0, Col: 1, ColSpan: 2, Header: true},
		{Start: 13, End: 15, Row: 2, Col: 0, RowSpan: 2}, {Start: 18, End: 19, Row: 2, Col: 1}, {Start: 22, End: 23, Row: 2, Col: 2},
		{Start: 24, End: 25, Row: 3, Col: 2},
	}}}
	want := "| Size | Price | Price |\n| --- | --- | --- |\n| 10 | 5 | 6 |\n| 10 |  | 7 |\n"
	if diff := cmp.Diff(want, Render(text, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Blocks[0].Kind = assay.BlockTableRow
	if got := Render(text, s); !strings.HasPrefix(got, "|  |  |  |\n| --- |") {
		t.Errorf("a table without a header row starts %q", got)
	}
}

// FuzzRender checks that a Markdown parser reads the words of a paragraph back.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"a *b* c", "# x", "1. y", "    indented", "[a]: b", "<div>", "a\n===", "&#35; &amp", "~~a~~", "`", "| a |\n| --- |", "_a_b_", "!\\[x]", "a\\", "* a"} {
		f.Add(s)
	}
	md := goldmark.New(goldmark.WithExtensions(extension.Table))
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\n' }) || strings.TrimSpace(s) == "" {
			t.Skip()
		}
		text, structure := document(piece{assay.BlockParagraph, 0, s})
		var html strings.Builder
		out := Render(text, structure)
		if err := md.Convert([]byte(out), &html); err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"<h1", "<h2", "<h3", "<ul", "<ol", "<pre", "<table", "<em", "<strong", "<code", "<hr", "<blockquote", "<a ", "<img"} {
			if strings.Contains(html.String(), tag) {
				t.Errorf("%q is rendered as %q, which has %s", s, out, tag)
			}
		}
	})
}
