package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// parseText parses plain text: paragraphs between blank lines, list items, indented code and clear
// headings, which are underlined, in capitals or numbered.
func parseText(src *source, b *builder) bool {
	t := &plainText{b: b, lines: src.lines()}
	for t.at < len(t.lines) && !b.canceled() {
		t.step()
	}
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// A plainText is the state of parsing plain text line by line.
type plainText struct {
	b     *builder
	lines []string
	at    int    // the next line, from 0
	marks []byte // underline characters, outermost level first

	words func(string) string // returns a title without markup; nil: unchanged
}

// line returns line i, or "" outside the text.
func (t *plainText) line(i int) string {
	if i < 0 || i >= len(t.lines) {
		return ""
	}
	return t.lines[i]
}

func (t *plainText) blank(i int) bool { return isBlank(t.line(i)) }

// step reads one blank line or one block.
func (t *plainText) step() {
	switch {
	case t.blank(t.at):
		t.at++
	case t.underlined():
	case isRule(t.line(t.at)):
		t.at++ // a separator between sections
	case t.plainHeading():
	case isDocItem(t.line(t.at)):
		t.item()
	case t.preformatted():
	default:
		t.paragraph()
	}
}

// put writes the next n lines as one block.
func (t *plainText) put(kind BlockKind, n int) {
	if k := len(t.b.blocks); kind == ListItem && k > 0 && t.b.blocks[k-1].Kind == ListItem && t.at > 0 && !t.blank(t.at-1) {
		t.b.beginTight(kind)
	} else {
		t.b.begin(kind)
	}
	for i := range n {
		l := strings.TrimRight(t.line(t.at+i), " \t")
		if i > 0 {
			t.b.newline()
		} else if kind == Paragraph {
			l = strings.TrimLeft(l, " \t")
		}
		t.b.put(l, t.at+i+1)
	}
	t.b.end()
	t.at += n
}

// underlined reads a heading that is underlined, and possibly overlined, with one punctuation mark.
// Each mark is a level, in the order of first use.
func (t *plainText) underlined() bool {
	over := 0
	if isRule(t.line(t.at)) && !t.blank(t.at+1) && strings.TrimSpace(t.line(t.at+2)) == strings.TrimSpace(t.line(t.at)) {
		over = 1
	}
	title, under := strings.TrimSpace(t.line(t.at+over)), strings.TrimRight(t.line(t.at+over+1), " \t")
	if !isRule(under) || isRule(title) || !t.blank(t.at-1) || !fits(title, under) {
		return false
	}
	level := strings.IndexByte(string(t.marks), under[0]) + 1
	if level == 0 {
		t.marks = append(t.marks, under[0])
		level = len(t.marks)
	}
	if t.words != nil {
		title = t.words(title)
	}
	t.b.heading(level, title, t.at+over+1)
	t.at += over + 2
	return true
}

// isRule reports whether l consists of one repeated punctuation mark.
func isRule(l string) bool {
	l = strings.TrimSpace(l)
	return len(l) >= 3 && strings.IndexByte("=-~^*#+\"'`:._", l[0]) >= 0 && strings.Trim(l, l[:1]) == ""
}

// fits reports whether under is an underline of title rather than a separator.
func fits(title, under string) bool {
	have, want := len(strings.TrimSpace(under)), utf8.RuneCountInString(title)
	return want > 0 && want <= 100 && have >= want-2 && have <= want+12 && strings.IndexFunc(title, unicode.IsLetter) >= 0
}

// plainHeading reads a free-standing heading, which is numbered ("2.1 Scope") or in capitals above
// blank or indented lines ("SYNOPSIS").
func (t *plainText) plainHeading() bool {
	l := t.line(t.at)
	if !t.blank(t.at-1) || l == "" || l[0] == ' ' || l[0] == '\t' {
		return false
	}
	alone := t.blank(t.at + 1)
	level := 0
	switch {
	case alone && !isNumberedAfter(t.lines[t.at+1:]):
		level = sectionNumber(l)
	case !alone && strings.TrimLeft(t.line(t.at+1), " \t") == t.line(t.at+1):
		return false
	}
	if level == 0 && isCapitals(l) {
		level = 1
	}
	if level == 0 {
		return false
	}
	t.b.heading(level, strings.TrimSpace(l), t.at+1)
	t.at++
	return true
}

// isNumberedAfter reports whether the next line that is not blank is numbered too, which means a
// list rather than headings.
func isNumberedAfter(lines []string) bool {
	for _, l := range lines {
		if !isBlank(l) {
			return l[0] != ' ' && isDocItem(l)
		}
	}
	return true
}

// sectionNumber returns the level of a numbered heading (1 for "1. Scope", 2 for "2.1 Terms"), or
// 0.
func sectionNumber(l string) int {
	number, words, ok := strings.Cut(strings.TrimRight(l, " \t"), " ")
	words = strings.TrimSpace(words)
	if !ok || len(number) > 12 || len(words) > 80 || words == "" || strings.ContainsAny(words[len(words)-1:], ".,;:!") {
		return 0
	}
	number = strings.TrimSuffix(number, ".")
	level := 1
	for i := 0; i < len(number); i++ {
		switch c := number[i]; {
		case c == '.' && i > 0 && i+1 < len(number) && number[i-1] != '.':
			level++
		case c < '0' || c > '9':
			return 0
		}
	}
	first, _ := utf8.DecodeRuneInString(words)
	if number == "" || !unicode.IsUpper(first) || len(strings.Fields(words)) > 12 || level == 1 && len(number) > 2 {
		return 0
	}
	return level
}

// isCapitals reports whether l consists of a few words without lower-case letters.
func isCapitals(l string) bool {
	const marks = "-/@#%$\\" // of comments, templates and PEM
	punctuated := strings.ContainsAny(l, "|=<>{};\t") || strings.HasSuffix(strings.TrimSpace(l), ",")
	if l == "" || len(l) > 60 || punctuated || strings.IndexByte(marks, l[0]) >= 0 {
		return false
	}
	letters := 0
	for _, r := range l {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters >= 3 && letters*2 > len(l)
}

// item reads a list item with its continuation lines.
func (t *plainText) item() {
	indent := indentOf(t.line(t.at))
	n := 1
	for !t.blank(t.at+n) && !isDocItem(t.line(t.at+n)) && (indentOf(t.line(t.at+n)) > indent || indent == 0 && !isRule(t.line(t.at+n))) {
		n++
	}
	t.put(ListItem, n)
}

func indentOf(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }

// preformatted reads lines whose layout matters: indented code and columns.
func (t *plainText) preformatted() bool {
	if t.at > 0 && !t.blank(t.at-1) {
		return false // decided at the first of these lines
	}
	n, indented := t.runLength()
	lines := t.lines[t.at : t.at+n]
	after := len(t.b.blocks) > 0 && t.b.text[len(t.b.text)-1] == ':'
	if !(indented && (after || readsAsCode(lines)) || n > 1 && hasColumns(lines)) {
		return false
	}
	if !indented {
		t.put(Code, n)
		return true
	}
	// Code continues over blank lines if the following lines are indented and look like code.
	for {
		k := n
		for t.at+k < len(t.lines) && t.blank(t.at+k) {
			k++
		}
		m := k
		for !t.blank(t.at+m) && indentOf(t.line(t.at+m)) >= 2 {
			m++
		}
		if m == k || !t.blank(t.at+m) || !readsAsCode(t.lines[t.at+k:t.at+m]) {
			break
		}
		n = m
	}
	t.put(Code, n)
	return true
}

// runLength returns the number of lines up to the next blank line, and whether all of them are
// indented.
func (t *plainText) runLength() (n int, indented bool) {
	indented = true
	for ; !t.blank(t.at + n); n++ {
		indented = indented && indentOf(t.line(t.at+n)) >= 2
	}
	return n, indented
}

// readsAsCode reports whether most lines look like code rather than prose.
func readsAsCode(lines []string) bool {
	code := 0
	for _, l := range lines {
		l = strings.TrimSpace(l)
		switch {
		case l == "":
		case strings.HasPrefix(l, "$ "), strings.HasPrefix(l, "# "), strings.HasPrefix(l, "> "), strings.HasPrefix(l, "//"), strings.HasPrefix(l, "--"),
			strings.ContainsAny(l, "{}=;|<>\\"), strings.Contains(l, "()"), strings.Contains(l, "::"), strings.Contains(l, "->"):
			code++
		case len(strings.Fields(l)) <= 2 && strings.ContainsAny(l, "/_.(:") && !strings.HasSuffix(l, "."):
			code++
		}
	}
	return code*2 > len(lines)
}

// hasColumns reports whether most lines contain wide gaps, as tables in plain text do, or
// box-drawing characters.
func hasColumns(lines []string) bool {
	gaps := 0
	for _, l := range lines {
		l = strings.TrimSpace(l)
		gap := strings.Index(l, "   ")
		if gap > 0 && !strings.HasSuffix(l[:gap], ".") || strings.Contains(l, "\t") || strings.ContainsAny(l, "│┃║├└┌─") || strings.Count(l, "|") > 1 {
			gaps++
		}
	}
	return gaps*3 > len(lines)*2
}

// paragraph reads lines up to a blank line or a list item.
func (t *plainText) paragraph() {
	n := 1
	for !t.blank(t.at+n) && !(isDocItem(t.line(t.at+n)) && startsList(t.line(t.at+n-1), t.line(t.at+n))) {
		n++
	}
	t.put(Paragraph, n)
}

// startsList reports whether a list can start at the line next, which follows the line before. A
// wrapped line may also start with "- " or a number.
func startsList(before, next string) bool {
	before = strings.TrimSpace(before)
	return strings.HasSuffix(before, ":") || strings.HasSuffix(before, ".") || indentOf(next) > 0 || strings.HasPrefix(next, "* ") || strings.HasPrefix(next, "- ") || strings.HasPrefix(next, "1")
}
