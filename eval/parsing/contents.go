package main

import (
	"html"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A contents is the compared parts of a document. All strings are words joined by spaces.
type contents struct {
	words    []string
	headings []string
	cells    []string // of tables, without empty ones
}

var (
	comment   = lazyregexp.New(`(?s)<!--.*?-->`)
	heading   = lazyregexp.New(`^ {0,3}#{1,6}[ \t]+(.*)$`)
	fence     = lazyregexp.New("^[ \t]*(```|~~~)")
	delimiter = lazyregexp.New(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	picture   = lazyregexp.New(`!\[([^\]]*)\]\([^)]*\)`)
	link      = lazyregexp.New(`\[([^\]]*[^\]\\])\]\([^)\s]*\)`)
	tag       = lazyregexp.New(`(?i)</?(a|b|br|code|del|div|em|i|img|ins|li|mark|ol|p|s|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)(\s[^<>]*)?/?>`)
	escape    = lazyregexp.New("\\\\([!-/:-@\\[-`{-~])")
	item      = lazyregexp.New(`^[ \t]*([-*+]|[0-9]{1,9}[.)])[ \t]+`)
)

// readMarkdown returns the contents of Markdown: of docling's, of this program's and of other tools'.
// Markers of list items, HTML comments and tags, and the targets of links are no words.
func readMarkdown(text string) contents {
	var c contents
	var body strings.Builder
	code := false
	lines := strings.Split(comment.ReplaceAllString(text, " "), "\n")
	for i, line := range lines {
		if fence.MatchString(line) {
			code = !code
			continue
		}
		if code {
			body.WriteString(line + "\n")
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			line = m[1]
			if h := strings.Join(wordsOf(plain(line)), " "); h != "" {
				c.headings = append(c.headings, h)
			}
		}
		if isRow(lines, i) {
			if delimiter.MatchString(line) {
				continue
			}
			for _, cell := range cellsOf(line) {
				if w := strings.Join(wordsOf(plain(cell)), " "); w != "" {
					c.cells = append(c.cells, w)
				}
				body.WriteString(plain(cell) + " ")
			}
			body.WriteString("\n")
			continue
		}
		body.WriteString(plain(item.ReplaceAllString(line, "")) + "\n")
	}
	c.words = wordsOf(body.String())
	return c
}

// isRow reports whether a line is part of a table: it starts with a bar, as do the lines around it
// up to one that delimits a header.
func isRow(lines []string, i int) bool {
	bar := func(i int) bool { return strings.HasPrefix(strings.TrimLeft(lines[i], " "), "|") }
	if !bar(i) {
		return false
	}
	if i+1 < len(lines) && delimiter.MatchString(lines[i+1]) && bar(i+1) {
		return true
	}
	for ; i >= 0 && bar(i); i-- {
		if delimiter.MatchString(lines[i]) {
			return true
		}
	}
	return false
}

// cellsOf returns the cells of a row: the text between bars that are not escaped.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var cells []string
	start := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, line[start:i])
			start = i + 1
		}
	}
	if rest := line[start:]; strings.TrimSpace(rest) != "" {
		cells = append(cells, rest)
	}
	return cells
}

// plain removes inline markup that contains letters: tags, the targets of links, entities. Marks of
// emphasis are no part of words.
func plain(s string) string {
	s = tag.ReplaceAllString(s, " ")
	s = picture.ReplaceAllString(s, "$1")
	s = link.ReplaceAllString(s, "$1")
	s = escape.ReplaceAllString(s, "$1")
	return html.UnescapeString(s)
}

// wordsOf returns the words of a text.
func wordsOf(text string) []string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, c := range strings.ToLower(norm.NFKC.String(text)) {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush()
			words = append(words, string(c))
		case unicode.In(c, unicode.L, unicode.N, unicode.M):
			word.WriteRune(c)
		case unicode.Is(unicode.Cf, c) || strings.ContainsRune("*~`", c):
			// Invisible characters and marks of emphasis do not divide words.
		default:
			flush()
		}
	}
	flush()
	return words
}
