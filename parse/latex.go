package parse

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

var latexStart = lazyregexp.New(`(?m)^[^%\n]*\\(documentclass|documentstyle|begin\{document\})`)

// isLaTeX reports whether src has a LaTeX extension or, without one, starts as a LaTeX document.
func isLaTeX(src *source) bool {
	switch src.ext {
	case ".tex", ".ltx", ".latex":
		return true
	case "", ".txt", ".text":
		return latexStart.MatchString(head(src.text))
	}
	return false
}

// parseLaTeX parses a LaTeX document: sections, lists, tables, verbatim text, captions, footnotes
// and formulas, which keep their source. Macros that the document defines are expanded within
// limits; of other commands the arguments are kept. Comments and labels are dropped. Files that it
// includes are named and not read.
//
// Source: Lamport, "LaTeX: A Document Preparation System", 2nd edition.
func parseLaTeX(src *source, b *builder) bool {
	l := &latex{b: b, src: src, shared: &latexShared{macros: map[string]latexMacro{}, budget: maxMacroBytes + len(src.text)}}
	text := src.text
	l.shared.chapters = strings.Contains(text, `\chapter`)
	l.shared.parts = strings.Contains(text, `\part{`)
	l.shared.titled = strings.Contains(text, `\maketitle`)
	l.shared.beamer = strings.Contains(text, `{beamer}`)
	preamble, _, ok := strings.Cut(text, `\begin{document}`)
	if !ok {
		preamble = ""
	}
	l.preamble(preamble)
	if l.shared.title != "" {
		b.title = l.shared.title
	}
	from := len(preamble)
	l.run(latexInput{text: text[from:], base: from})
	l.finish()
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// Limits of the expansion of macros.
const (
	maxMacroBytes = 1 << 20 // of all expansions, beyond the size of the source
	maxMacroDepth = 25      // expansions, arguments and environments in each other
	longestOption = 2_000   // bytes of an argument in brackets, or between delimiters on a line
)

// A latexMacro is a macro that the document defines.
type latexMacro struct {
	args     int
	optional string // default of the first argument, if hasOptional
	hasOpt   bool
	body     string
}

// A latexShared is what a document and the texts of its arguments share.
type latexShared struct {
	macros                          map[string]latexMacro
	budget                          int // bytes that expansions may still add
	notes                           int
	chapters, parts, titled, beamer bool
	title, author, date             string
	theorems                        map[string]string // titles of environments
	unended                         bool              // no \fi follows
	depth                           int
}

// A latexInput is text that is being read: a part of the source from the offset base, or an
// expansion, all of which is on one line.
type latexInput struct {
	text string
	at   int
	base int // -1: an expansion
	line int // of an expansion
}

// A latex is the state of reading LaTeX.
type latex struct {
	b      *builder
	src    *source
	shared *latexShared
	in     latexInput

	open    bool
	kind    BlockKind // of the next block
	marker  string
	level   int
	blank   bool // a space is due
	newline bool // a line break is due
	after   []string
	lists   []latexList
}

type latexList struct {
	ordered bool
	number  int
}

// line returns the source line of the next byte.
func (l *latex) line() int {
	if l.in.base < 0 {
		return l.in.line
	}
	return l.src.line(min(l.in.base+l.in.at, max(len(l.src.text)-1, 0)))
}

// run reads an input.
func (l *latex) run(in latexInput) {
	if l.shared.depth >= maxMacroDepth {
		l.text(strings.Join(strings.Fields(in.text), " "))
		return
	}
	l.shared.depth++
	outer := l.in
	l.in = in
	for steps := 0; l.in.at < len(l.in.text); steps++ {
		if steps%1024 == 0 && l.b.canceled() {
			break
		}
		l.step()
	}
	l.in = outer
	l.shared.depth--
}

// sub returns the input of an argument of the current input.
func (l *latex) sub(a latexArg) latexInput {
	if l.in.base < 0 {
		return latexInput{text: a.text, base: -1, line: l.in.line}
	}
	return latexInput{text: a.text, base: l.in.base + a.at}
}

// step reads one command, symbol or run of text.
func (l *latex) step() {
	s := l.in.text[l.in.at:]
	switch c := s[0]; c {
	case '\\':
		l.command()
	case '%':
		l.comment()
	case '\n':
		l.lineEnd()
	case ' ', '\t':
		l.blank = true
		l.in.at++
	case '{', '}':
		l.in.at++
	case '~':
		l.in.at++
		l.blank = true
	case '$':
		l.dollar()
	case '&':
		l.in.at++
		l.blank = true
	case '`', '\'', '-':
		l.quote(s)
	default:
		n := strings.IndexAny(s, "\\%\n \t{}~$&`'-")
		if n < 0 {
			n = len(s)
		}
		l.text(s[:n])
		l.in.at += n
	}
}

// latexQuotes are ligatures.
var latexQuotes = []struct{ source, text string }{
	{"---", "—"}, {"--", "–"}, {"``", "“"}, {"''", "”"}, {"`", "‘"}, {"'", "’"}, {"-", "-"},
}

func (l *latex) quote(s string) {
	for _, q := range latexQuotes {
		if strings.HasPrefix(s, q.source) {
			l.text(q.text)
			l.in.at += len(q.source)
			return
		}
	}
}

// comment skips a comment and the blanks at the start of the next line.
func (l *latex) comment() {
	s := l.in.text[l.in.at:]
	end := strings.IndexByte(s, '\n')
	if end < 0 {
		l.in.at = len(l.in.text)
		return
	}
	l.in.at += end + 1
	l.skipBlanks()
	if l.in.at < len(l.in.text) && l.in.text[l.in.at] == '\n' && isBlank(s[end:min(len(s), end+2)]) {
		l.lineEnd()
	}
}

func (l *latex) skipBlanks() {
	for l.in.at < len(l.in.text) && (l.in.text[l.in.at] == ' ' || l.in.text[l.in.at] == '\t') {
		l.in.at++
	}
}

// lineEnd reads line ends; two of them end a paragraph.
func (l *latex) lineEnd() {
	breaks := 0
	for l.in.at < len(l.in.text) && strings.IndexByte(" \t\n", l.in.text[l.in.at]) >= 0 {
		if l.in.text[l.in.at] == '\n' {
			breaks++
		}
		l.in.at++
	}
	if breaks > 1 {
		l.finish()
		return
	}
	l.blank, l.newline = true, true
}

// text adds text of the current line to the open block.
func (l *latex) text(s string) {
	if strings.Contains(s, "\n") { // of an argument
		s = strings.Join(strings.Fields(s), " ")
	}
	if s == "" {
		return
	}
	line := l.line()
	if !l.open {
		kind := l.kind
		if kind == "" {
			kind = Paragraph
		}
		last := len(l.b.blocks) - 1
		if kind == ListItem && last >= 0 && l.b.blocks[last].Kind == ListItem {
			l.b.beginTight(kind)
		} else {
			l.b.begin(kind)
		}
		l.b.cur.Level = l.level
		l.open = true
		if l.marker != "" {
			l.b.put(l.marker, line)
		}
		l.kind, l.marker, l.level = "", "", 0
		l.blank, l.newline = false, false
	}
	switch {
	case l.newline:
		l.b.newline()
	case l.blank:
		l.b.glue(" ")
	}
	l.blank, l.newline = false, false
	l.b.put(s, line)
}

// finish ends the open block and writes its footnotes.
func (l *latex) finish() {
	if l.open {
		l.b.end()
		l.open = false
	}
	l.blank, l.newline = false, false
	l.marker, l.kind, l.level = "", "", 0
	notes := l.after
	l.after = nil
	for _, n := range notes {
		l.b.puts(Footnote, n, l.line())
	}
}

// render returns the text of an argument on one line.
func (l *latex) render(a latexArg) string {
	if a.text == "" {
		return ""
	}
	inner := &latex{b: newBuilder(l.b.ctx), src: l.src, shared: l.shared}
	in := l.sub(a)
	inner.in = in
	inner.run(in)
	if inner.open {
		inner.b.end()
	}
	l.after = append(l.after, inner.after...)
	return strings.Join(strings.Fields(string(inner.b.text)), " ")
}

// dollar reads a formula between dollar signs.
func (l *latex) dollar() {
	if strings.HasPrefix(l.in.text[l.in.at:], "$$") {
		l.formula("$$", "$$")
		return
	}
	l.in.at++
	end := 0
	s := l.in.text[l.in.at:]
	for end < len(s) && s[end] != '$' {
		if s[end] == '\\' {
			end++
		}
		if strings.HasPrefix(s[min(end, len(s)):], "\n\n") {
			break
		}
		end++
	}
	end = min(end, len(s))
	l.text(strings.Join(strings.Fields(s[:end]), " "))
	l.in.at += end
	if end < len(s) && s[end] == '$' {
		l.in.at++
	}
}

// formula reads a formula on lines of its own.
func (l *latex) formula(open, shut string) {
	line := l.line()
	l.in.at += len(open)
	s := l.in.text[l.in.at:]
	end := strings.Index(s, shut)
	if end < 0 {
		end = len(s)
		l.in.at += end
	} else {
		l.in.at += end + len(shut)
	}
	l.putFormula(s[:end], line)
}

var latexLabel = lazyregexp.New(`\\(?:label|tag)\{[^{}]*\}|\\(?:nonumber|notag)\b|%[^\n]*`)

func (l *latex) putFormula(s string, line int) {
	l.finish()
	line += strings.Count(s[:len(s)-len(strings.TrimLeft(s, " \t\n"))], "\n")
	l.b.begin(Formula)
	for i, row := range strings.Split(strings.TrimSpace(s), "\n") {
		row = strings.TrimSpace(latexLabel.ReplaceAllString(row, ""))
		if row != "" {
			l.b.newline()
			l.b.put(row, line+i)
		}
	}
	l.b.end()
}

// A latexArg is an argument and its offset in the current input.
type latexArg struct {
	text string
	at   int
}

// arg reads the next argument: a group in braces, a command or a character.
func (l *latex) arg() latexArg {
	for l.in.at < len(l.in.text) && strings.IndexByte(" \t\n", l.in.text[l.in.at]) >= 0 {
		l.in.at++
	}
	s, at := l.in.text, l.in.at
	if at >= len(s) {
		return latexArg{at: at}
	}
	if s[at] != '{' {
		n := 1
		if s[at] == '\\' {
			n = commandLength(s[at:])
		} else if s[at] >= 0x80 {
			for at+n < len(s) && s[at+n]&0xc0 == 0x80 {
				n++
			}
		}
		l.in.at += n
		return latexArg{s[at : at+n], at}
	}
	end := groupEnd(s, at, '{', '}')
	l.in.at = min(end+1, len(s))
	return latexArg{s[at+1 : end], at + 1}
}

// option reads an argument in brackets directly after a command.
func (l *latex) option() (latexArg, bool) {
	s, at := l.in.text, l.in.at
	if at >= len(s) || s[at] != '[' {
		return latexArg{at: at}, false
	}
	s = s[:min(len(s), at+longestOption)]
	end := groupEnd(s, at, '[', ']')
	if end >= len(s) {
		return latexArg{at: at}, false
	}
	l.in.at = end + 1
	return latexArg{s[at+1 : end], at + 1}, true
}

// groupEnd returns the offset of the delimiter that ends the group that starts at at, or len(s).
func groupEnd(s string, at int, open, shut byte) int {
	depth, braces := 0, 0
	for i := at; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '%' && (i == 0 || s[i-1] == '\n' || s[i-1] == ' '):
			if end := strings.IndexByte(s[i:], '\n'); end >= 0 {
				i += end
			}
		case c == open && (open == '{' || braces == 0):
			depth++
		case c == shut && (open == '{' || braces == 0):
			if depth--; depth == 0 {
				return i
			}
		case c == '{':
			braces++
		case c == '}':
			if braces--; braces < 0 {
				return len(s)
			}
		}
	}
	return len(s)
}

// commandLength returns the length of the command at the start of s.
func commandLength(s string) int {
	n := 1
	for n < len(s) && (s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] == '@') {
		n++
	}
	if n == 1 && len(s) > 1 {
		n = 2
		for n < len(s) && s[n]&0xc0 == 0x80 {
			n++
		}
	}
	return n
}

// command reads a command.
func (l *latex) command() {
	n := commandLength(l.in.text[l.in.at:])
	start := l.in.at
	name := l.in.text[start+1 : start+n]
	l.in.at += n
	letters := name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z')
	if letters && l.in.at < len(l.in.text) && l.in.text[l.in.at] == '*' {
		l.in.at++
	}
	if m, ok := l.shared.macros[name]; ok {
		l.expand(name, m)
		return
	}
	switch {
	case name == "":
	case l.symbol(name):
		if letters {
			l.skipBlanks()
			if strings.HasPrefix(l.in.text[l.in.at:], "{}") {
				l.in.at += 2
			}
		}
	case l.accent(name), l.structure(name), l.reference(name), l.definition(name):
	default:
		l.other(name)
	}
}

// other reads a command of no other kind: its options and the arguments that are not text are
// dropped, the others are read as text.
func (l *latex) other(name string) {
	if l.shared.beamer && l.in.at < len(l.in.text) && l.in.text[l.in.at] == '<' {
		s := l.in.text[l.in.at:]
		if end := strings.IndexByte(s[:min(len(s), 40)], '>'); end > 0 {
			l.in.at += end + 1
		}
	}
	for range 3 {
		if _, ok := l.option(); !ok {
			break
		}
	}
	for range latexDropped[name] {
		if l.in.at < len(l.in.text) && l.in.text[l.in.at] == '{' || name == "setlength" {
			l.arg()
			l.option()
		}
	}
	if len(name) > 0 && latexDropped[name] == 0 {
		l.skipBlankAfter()
	}
}

// skipBlankAfter skips the blanks that end the name of a command without arguments.
func (l *latex) skipBlankAfter() {
	if s := l.in.text[l.in.at:]; s != "" && (s[0] == ' ' || s[0] == '\t') {
		l.skipBlanks()
	}
}

// expand replaces a macro by its body.
func (l *latex) expand(name string, m latexMacro) {
	line := l.line()
	args := make([]string, 0, m.args)
	if m.hasOpt {
		value := m.optional
		if o, ok := l.option(); ok {
			value = o.text
		}
		args = append(args, value)
	}
	for len(args) < m.args {
		args = append(args, l.arg().text)
	}
	if m.args == 0 {
		l.skipBlankAfter()
	}
	var out strings.Builder
	size := len(m.body)
	for i := 0; i < len(m.body); i++ {
		if c := m.body[i]; c == '#' && i+1 < len(m.body) && m.body[i+1] >= '1' && int(m.body[i+1]-'0') <= len(args) {
			i++
			value := args[m.body[i]-'1']
			if size += len(value); size > l.shared.budget {
				break
			}
			out.WriteString(value)
			continue
		}
		out.WriteByte(m.body[i])
	}
	if size > l.shared.budget || l.shared.depth >= maxMacroDepth-5 {
		l.text(`\` + name) // not expanded: the call is kept
		return
	}
	l.shared.budget -= size
	l.run(latexInput{text: out.String(), base: -1, line: line})
}

// preamble reads the definitions and the title before the document.
func (l *latex) preamble(text string) {
	outer := l.in
	l.in = latexInput{text: text}
	for l.in.at < len(text) && !l.b.canceled() {
		next := strings.IndexAny(text[l.in.at:], `\%`)
		if next < 0 {
			break
		}
		l.in.at += next
		if text[l.in.at] == '%' {
			end := strings.IndexByte(text[l.in.at:], '\n')
			if end < 0 {
				break
			}
			l.in.at += end + 1
			continue
		}
		n := commandLength(text[l.in.at:])
		name := text[l.in.at+1 : l.in.at+n]
		l.in.at += n
		if l.in.at < len(text) && text[l.in.at] == '*' {
			l.in.at++
		}
		if !l.titleCommand(name) {
			l.definition(name)
		}
	}
	l.in = outer
	l.after = nil
}

// titleCommand reads the title, the author and the date, which \maketitle writes.
func (l *latex) titleCommand(name string) bool {
	if name != "title" && name != "author" && name != "date" && name != "subtitle" {
		return false
	}
	l.option()
	text := l.render(l.arg())
	switch name {
	case "title":
		l.shared.title = text
	case "author":
		l.shared.author = text
		var names []string
		for _, n := range strings.Split(text, ";") {
			if n = strings.TrimSpace(n); n != "" {
				names = append(names, n)
			}
		}
		if len(names) == 1 && len(names[0]) < 100 {
			l.b.set(assay.MetaAuthor, assay.StringValue(names[0]))
		} else if len(names) > 1 {
			l.b.set(assay.MetaAuthor, assay.ListValue(names...))
		}
	case "date":
		l.shared.date = text
		if v, ok := metaValue(text); ok && text != "" {
			setField(l.b, "date", v)
		}
	}
	return true
}

// maxMacros is the most macros of a document.
const maxMacros = 10_000

// definition reads the definition of a macro, a theorem or an environment.
func (l *latex) definition(name string) bool {
	switch name {
	case "newcommand", "renewcommand", "providecommand", "DeclareRobustCommand", "newrobustcmd":
		macro := strings.TrimPrefix(strings.TrimSpace(l.arg().text), `\`)
		m := latexMacro{}
		if o, ok := l.option(); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(o.text)); err == nil {
				m.args = min(max(n, 0), 9)
			}
			if o, ok := l.option(); ok && m.args > 0 {
				m.optional, m.hasOpt = o.text, true
			}
		}
		m.body = l.arg().text
		l.define(macro, m)
	case "def", "gdef", "edef":
		l.plainDefinition()
	case "DeclareMathOperator":
		l.arg()
		l.arg()
	case "newtheorem":
		env := l.arg().text
		l.option()
		if l.shared.theorems == nil {
			l.shared.theorems = map[string]string{}
		}
		if title := l.render(l.arg()); len(l.shared.theorems) < maxMacros {
			l.shared.theorems[env] = title
		}
		l.option()
	case "newenvironment", "renewenvironment":
		l.arg()
		l.option()
		l.option()
		l.arg()
		l.arg()
	default:
		return false
	}
	return true
}

// plainDefinition reads \def\name#1#2{body}. A definition with delimited arguments is skipped.
func (l *latex) plainDefinition() {
	macro := strings.TrimPrefix(l.arg().text, `\`)
	open := strings.IndexByte(l.in.text[l.in.at:], '{')
	if open < 0 || open > 100 {
		return
	}
	params := l.in.text[l.in.at : l.in.at+open]
	l.in.at += open
	body := l.arg().text
	n := strings.Count(params, "#")
	if n > 9 || len(strings.TrimSpace(params)) != 2*n {
		return
	}
	l.define(macro, latexMacro{args: n, body: body})
}

// define adds a macro. Commands that give a document its structure are not redefined.
func (l *latex) define(name string, m latexMacro) {
	if name == "" || len(l.shared.macros) >= maxMacros || slices.Contains(latexKept, name) || latexSections[name] > 0 {
		return
	}
	if latexProgram.MatchString(m.body) {
		m.body = ""
		if m.args > 0 { // usually the text, after arguments that say how it looks
			m.body = "#" + strconv.Itoa(m.args)
		}
	}
	l.shared.macros[name] = m
}

// latexProgram is a body that cannot be expanded without running TeX.
var latexProgram = lazyregexp.New(`\\(?:if[a-z]*|csname|expandafter|futurelet|loop|@[a-z]+)\b`)

// latexKept are commands that a document cannot redefine here.
var latexKept = []string{"begin", "end", "item", "caption", "footnote", "title", "author", "date", "maketitle", "label", "ref", "cite", "par"}
