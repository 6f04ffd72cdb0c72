package main

import (
	"strings"
	"unicode/utf8"
)

// wrap breaks text into lines of at most width columns, each after indent.
// Lines that are indented themselves, and those between code fences, are code
// and stay as they are; the lines of a list item hang under its first word.
// A word that is longer than a line stays whole.
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
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			b.WriteString(indent)
			column = utf8.RuneCountInString(indent)
		case column+1+length > width:
			b.WriteString("\n" + hang)
			column = utf8.RuneCountInString(hang)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	b.WriteByte('\n')
}

// oneLine puts text on one line of at most width columns, cut with an ellipsis.
func oneLine(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
