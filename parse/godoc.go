package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A docLine is one line of a comment without its marker.
type docLine struct {
	text string
	line int // in the source
}

func (l docLine) blank() bool    { return isBlank(l.text) }
func (l docLine) indented() bool { return l.text != "" && (l.text[0] == ' ' || l.text[0] == '\t') }

// writeDoc writes a comment by the rules of Go doc comments (go.dev/doc/comment): paragraphs, "# "
// headings at the given level, lists, and indented code. The brackets of doc links are removed.
//
// go/doc/comment is not used because it does not report source positions.
func writeDoc(b *builder, lines []docLine, level int) {
	for len(lines) > 0 {
		n := 1
		switch {
		case lines[0].blank():
		case lines[0].indented() && !isDocItem(lines[0].text):
			n = docCodeLines(lines)
			writeDocCode(b, lines[:n])
		case isDocItem(lines[0].text):
			n = docItemLines(lines)
			writeDocLines(b, ListItem, lines[:n])
		case isDocHeading(lines):
			b.heading(level, strings.TrimSpace(strings.TrimPrefix(lines[0].text, "#")), lines[0].line)
		default:
			n = docParagraphLines(lines)
			writeDocLines(b, Paragraph, lines[:n])
		}
		lines = lines[n:]
	}
}

// writeDocLines writes lines of prose as one block.
func writeDocLines(b *builder, kind BlockKind, lines []docLine) {
	if n := len(b.blocks); kind == ListItem && n > 0 && b.blocks[n-1].Kind == ListItem {
		b.beginTight(kind)
	} else {
		b.begin(kind)
	}
	for i, l := range lines {
		if i > 0 {
			b.newline()
		}
		b.put(unlink(strings.TrimRight(trimIndent(l.text, i == 0 || kind == Paragraph), " \t")), l.line)
	}
	b.end()
}

// trimIndent removes l's indentation: all of it, or all but two spaces under a list marker.
func trimIndent(l string, all bool) string {
	t := strings.TrimLeft(l, " \t")
	if all || len(t) == len(l) {
		return t
	}
	return "  " + t
}

func writeDocCode(b *builder, lines []docLine) {
	prefix := lines[0].text[:len(lines[0].text)-len(strings.TrimLeft(lines[0].text, " \t"))]
	for _, l := range lines {
		for !l.blank() && !strings.HasPrefix(l.text, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	b.begin(Code)
	for i, l := range lines {
		if i > 0 {
			b.newline()
		}
		if !l.blank() {
			b.put(l.text[len(prefix):], l.line)
		}
	}
	b.end()
}

// docCodeLines returns the number of lines of the code block that lines start with: indented or
// blank lines, up to the last that is not blank. A less indented list item ends it.
func docCodeLines(lines []docLine) int {
	indent := lines[0].text[:indentOf(lines[0].text)]
	n := 0
	for i, l := range lines {
		if !l.indented() && !l.blank() {
			break
		}
		if n < i && isDocItem(l.text) && !strings.HasPrefix(l.text, indent) {
			break
		}
		if !l.blank() {
			n = i + 1
		}
	}
	return n
}

// docItemLines returns the number of lines of the list item that lines start with.
func docItemLines(lines []docLine) int {
	n := 1
	for n < len(lines) && !lines[n].blank() && !isDocItem(lines[n].text) && (lines[n].indented() || !lines[0].indented()) {
		n++
	}
	return n
}

func docParagraphLines(lines []docLine) int {
	n := 1
	for n < len(lines) && !lines[n].blank() && !lines[n].indented() {
		n++
	}
	return n
}

// isDocItem reports whether a line starts a list item: "- x", "  1. x".
func isDocItem(l string) bool {
	t := strings.TrimLeft(l, " \t")
	r, n := utf8.DecodeRuneInString(t)
	switch r {
	case '-', '*', '+', '•':
		return len(t) > n && (t[n] == ' ' || t[n] == '\t')
	}
	i := 0
	for i < len(t) && i < 3 && '0' <= t[i] && t[i] <= '9' {
		i++
	}
	return i > 0 && i+1 < len(t) && (t[i] == '.' || t[i] == ')') && (t[i+1] == ' ' || t[i+1] == '\t')
}

// isDocHeading reports whether lines start with a heading: "# Title", or a single line that
// qualifies as a heading under the rules before Go 1.19.
func isDocHeading(lines []docLine) bool {
	if len(lines) > 1 && !lines[1].blank() {
		return false
	}
	l := lines[0].text
	if strings.HasPrefix(l, "# ") {
		return true
	}
	if len(lines) < 3 || lines[2].blank() || lines[2].indented() || len(l) > 70 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(l)
	last, _ := utf8.DecodeLastRuneInString(l)
	return unicode.IsUpper(first) && (unicode.IsLetter(last) || unicode.IsDigit(last)) &&
		!strings.ContainsAny(l, ".;:!?+*/=[]{}_^°&§~%#@<\">\\")
}

// unlink removes the brackets of doc links: "[Server.Serve]", "[*os.File]".
func unlink(s string) string {
	if strings.IndexByte(s, '[') < 0 {
		return s
	}
	var out strings.Builder
	for {
		open := strings.IndexByte(s, '[')
		if open < 0 {
			break
		}
		end := open + strings.IndexByte(s[open:min(len(s), open+longestDocLink)], ']')
		if end < open {
			out.WriteString(s[:open+1])
			s = s[open+1:]
			continue
		}
		name := s[open+1 : end]
		before, _ := utf8.DecodeLastRuneInString(s[:open])
		after, _ := utf8.DecodeRuneInString(s[end+1:])
		if !isDocLink(name) || isWordRune(before) || isWordRune(after) || after == '[' || after == '(' || before == ']' {
			out.WriteString(s[:open+1])
			s = s[open+1:]
			continue
		}
		if after == ':' && open == 0 { // a link's definition
			break
		}
		out.WriteString(s[:open])
		out.WriteString(name)
		s = s[end+1:]
	}
	out.WriteString(s)
	return out.String()
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

const longestDocLink = 160

// isDocLink reports whether name looks like a Go name or an import path with a name.
func isDocLink(name string) bool {
	name = strings.TrimPrefix(name, "*")
	first, _ := utf8.DecodeRuneInString(name)
	if !unicode.IsLetter(first) {
		return false
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '_' && r != '/' && r != '-' {
			return false
		}
	}
	return unicode.IsUpper(first) || strings.ContainsAny(name, "./") || len(name) > 1
}
