package parse

import (
	"fmt"
	"strings"
	"unicode"
)

// parseSource parses source code by its comments, its blank lines and, for known languages, its
// declarations. Each declaration that is not deeply nested gets a heading. The comment above it or
// the docstring below it becomes prose of its section, and the rest is code.
func parseSource(src *source, b *builder) bool {
	if minified(src) {
		b.err = fmt.Errorf("its lines are %d bytes long on average: %w", len(src.text)/len(src.at), ErrMinified)
		return false
	}
	lang := sourceLanguage(src)
	if lang == nil {
		lang = slashLang
	}
	c := &sourceCode{b: b, lang: lang, lines: src.lines()}
	for c.at < len(c.lines) && !b.canceled() {
		c.step()
	}
	c.flush(c.at)
	return true
}

// minified reports whether a script or style sheet is minified: at least 10 KB with an average line
// length of at least 1,000 bytes.
func minified(src *source) bool {
	const size, line = 10_000, 1_000
	switch src.ext {
	case ".js", ".mjs", ".cjs", ".css":
	default:
		return false
	}
	return len(src.text) >= size && len(src.text) >= line*len(src.at)
}

// A sourceCode is the state of parsing source code line by line. Lines [code, at) are code not yet
// written.
type sourceCode struct {
	b     *builder
	lang  *language
	lines []string
	at    int
	code  int
	open  int // block comments are not recognized before this line
}

// deepest is the greatest indentation in columns at which comments and declarations are recognized.
// It includes members of a class but not the inside of functions.
const deepest = 4

// step reads one line or one comment.
func (c *sourceCode) step() {
	l := c.lines[c.at]
	if isBlank(l) {
		c.at++
		return
	}
	if label, level := c.head(c.at); label != "" {
		c.flush(c.above(c.at))
		c.heading(level, label, c.at)
		return
	}
	n, text := c.comment(c.at)
	if n == 0 {
		c.at++
		return
	}
	next := c.at + n
	label, level := c.headBelow(next)
	switch {
	case label != "" && columns(l) <= deepest:
		c.flush(c.at)
		c.b.heading(level, label, c.declLine(next)+1)
		writeDoc(c.b, text, level+1)
		c.code, c.at = next, c.declLine(next)+1
	case isProse(text) && (columns(l) <= deepest || c.isString(c.at)):
		c.flush(c.at)
		writeDoc(c.b, text, 2)
		c.code, c.at = next, next
	default:
		c.at = next // short remarks and licences stay with the code
	}
}

// heading writes a heading for the declaration on line decl. The code before it must have been
// written.
func (c *sourceCode) heading(level int, label string, decl int) {
	c.b.heading(level, label, decl+1)
	c.at = decl + 1
	// A docstring follows the signature, which may span several lines.
	for i := decl; i < min(decl+12, len(c.lines)); i++ {
		if n := c.at; strings.HasSuffix(strings.TrimSpace(c.lines[i]), ":") && i+1 < len(c.lines) && c.isString(i+1) {
			c.at = i + 1
			if k, text := c.comment(c.at); k > 0 {
				c.flush(c.at)
				writeDoc(c.b, text, level+1)
				c.at += k
				c.code = c.at
				return
			}
			c.at = n
		}
		if isBlank(c.lines[i]) {
			return
		}
	}
}

// above returns the line of the first annotation or decorator directly above the declaration on
// line at.
func (c *sourceCode) above(at int) int {
	for at > c.code && isAnnotation(c.lines[at-1]) {
		at--
	}
	return at
}

func isAnnotation(l string) bool {
	l = strings.TrimSpace(l)
	return strings.HasPrefix(l, "@") || strings.HasPrefix(l, "#[") || strings.HasPrefix(l, "template<") || strings.HasPrefix(l, "template <")
}

// flush writes the code before line end.
func (c *sourceCode) flush(end int) {
	from := c.code
	c.code = end
	for from < end && isBlank(c.lines[from]) {
		from++
	}
	if from >= end {
		return
	}
	c.b.begin(Code)
	for i := from; i < end; i++ {
		if i > from {
			c.b.newline()
		}
		c.b.put(c.lines[i], i+1)
	}
	c.b.end()
}

// head returns the heading of the declaration that starts on line i, or "".
func (c *sourceCode) head(i int) (label string, level int) {
	const longest = 400
	l := c.lines[i]
	if c.lang.heads == nil || len(l) > longest || columns(l) > deepest {
		return "", 0
	}
	m := c.lang.heads.FindStringSubmatch(l)
	if m == nil || isStatement(m[2]) || c.lang == cLang && strings.HasSuffix(strings.TrimSpace(l), ";") {
		return "", 0
	}
	label = strings.Join(strings.Fields(strings.TrimRight(m[2], " \t({=:")), " ")
	if end := strings.IndexByte(label, '{'); end > 0 {
		label = strings.TrimSpace(label[:end])
	}
	level = 1
	if columns(m[1]) > 0 {
		level = 2
	}
	return label, level
}

// isStatement reports whether words that look like a declaration are a statement.
func isStatement(words string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(words), " ")
	switch strings.TrimRight(first, "(") {
	case "return", "if", "for", "while", "switch", "else", "do", "case", "throw", "new", "delete", "goto", "using", "sizeof", "await", "yield":
		return true
	}
	return false
}

// headBelow returns the heading of the declaration on line i or below the annotations there.
func (c *sourceCode) headBelow(i int) (label string, level int) {
	if i = c.declLine(i); i >= len(c.lines) {
		return "", 0
	}
	return c.head(i)
}

func (c *sourceCode) declLine(i int) int {
	for i < len(c.lines) && isAnnotation(c.lines[i]) {
		i++
	}
	return i
}

// columns returns the width of l's indentation; a tab counts as four columns.
func columns(l string) int {
	n := 0
	for i := 0; i < len(l); i++ {
		switch l[i] {
		case ' ':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

// isString reports whether line i starts a string that serves as a comment.
func (c *sourceCode) isString(i int) bool {
	l := strings.TrimSpace(c.lines[i])
	return c.lang == pyLang && (strings.HasPrefix(l, `"""`) || strings.HasPrefix(l, `'''`) || strings.HasPrefix(l, `r"""`))
}

// comment reads the comment that starts on line i. It returns the number of its lines and its text
// without markers. A line that also contains code is not a comment.
func (c *sourceCode) comment(i int) (n int, text []docLine) {
	l := strings.TrimSpace(c.lines[i])
	for _, m := range c.lang.block {
		if strings.HasPrefix(l, m[0]) {
			return c.blockComment(i, m)
		}
	}
	for _, m := range c.lang.line {
		if strings.HasPrefix(l, m) && !strings.HasPrefix(l, "#!") && !isAnnotation(l) {
			return c.lineComments(i, m)
		}
	}
	return 0, nil
}

func (c *sourceCode) lineComments(i int, marker string) (n int, text []docLine) {
	for ; i+n < len(c.lines); n++ {
		l := strings.TrimSpace(c.lines[i+n])
		if !strings.HasPrefix(l, marker) || isAnnotation(l) {
			break
		}
		l = strings.TrimLeft(l, marker[:1])
		l = strings.TrimLeft(l, "!|")
		text = append(text, docLine{strings.TrimRight(strings.TrimPrefix(l, " "), " \t"), i + n + 1})
	}
	return n, text
}

func (c *sourceCode) blockComment(i int, m [2]string) (n int, text []docLine) {
	if i < c.open {
		return 0, nil
	}
	for ; i+n < len(c.lines); n++ {
		l := c.lines[i+n]
		if n == 0 {
			l = strings.TrimPrefix(strings.TrimSpace(l), m[0])
			l = strings.TrimLeft(l, "*! ")
		}
		end := strings.Index(l, m[1])
		if end >= 0 {
			if !isBlank(strings.TrimLeft(l[end+len(m[1]):], ";,)")) {
				c.open = i + n + 1
				return 0, nil // code follows on the same line
			}
			l = l[:end]
		}
		text = append(text, docLine{l, i + n + 1})
		if end >= 0 {
			return n + 1, margin(text)
		}
	}
	c.open = len(c.lines)
	return 0, nil // not closed
}

// margin removes the prefix of a block comment's lines: " * ", or the indentation shared by all but
// the first.
func margin(text []docLine) []docLine {
	starred, indent := true, -1
	for _, l := range text[1:] {
		t := strings.TrimSpace(l.text)
		if t == "" {
			continue
		}
		starred = starred && t[0] == '*'
		if in := indentOf(l.text); indent < 0 || in < indent {
			indent = in
		}
	}
	for i := 1; i < len(text); i++ {
		l := text[i].text
		switch {
		case isBlank(l):
			l = ""
		case starred:
			l = strings.TrimPrefix(strings.TrimLeft(strings.TrimSpace(l), "*"), " ")
		default:
			l = l[indent:]
		}
		text[i].text = strings.TrimRight(l, " \t")
	}
	return text
}

// isProse reports whether a comment is worth reading by itself: it has several words and is not a
// licence.
func isProse(text []docLine) bool {
	const (
		enough  = 6
		licence = 260 // words of the longest licence at the top of files
	)
	words, legal := 0, false
	for _, l := range text {
		lower := strings.ToLower(l.text)
		legal = legal || strings.Contains(lower, "copyright") || strings.Contains(lower, "license") || strings.Contains(lower, "licence")
		for w := range strings.FieldsSeq(l.text) {
			if strings.IndexFunc(w, unicode.IsLetter) >= 0 {
				words++
			}
		}
	}
	return words >= enough && !(legal && words <= licence)
}
