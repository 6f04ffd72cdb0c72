package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// wrap breaks text into lines of at most width columns, each after indent. Indented lines and those
// between code fences are code and stay unchanged. Continuation lines of a list item align with its
// first word. A word that is longer than a line is not split.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case line == "":
			b.WriteByte('\n')
		case fence || fenced || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    "):
			b.WriteString(indent + line + "\n")
		default:
			wrapLine(&b, line, indent, width)
		}
		fenced = fenced != fence
	}
	return b.String()
}

// wrapLine writes one line of prose.
func wrapLine(b *strings.Builder, line, indent string, width int) {
	hang := indent
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
		hang += "  "
	}
	column := 0
	for i, word := range strings.Fields(line) {
		length := cells(word)
		switch {
		case i == 0:
			b.WriteString(indent)
			column = cells(indent)
		case column+1+length > width:
			b.WriteString("\n" + hang)
			column = cells(hang)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	b.WriteByte('\n')
}

// oneLine puts text on one line of at most limit columns, cut with an ellipsis.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if cells(text) <= limit {
		return text
	}
	column := 1 // the ellipsis
	for i, r := range text {
		if column += runeCells(r); column > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// cells returns the number of columns of text on a terminal.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

// runeCells returns 2 for wide East Asian characters and pictographs, 0 for combining marks and
// format characters, and 1 for all others.
func runeCells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
