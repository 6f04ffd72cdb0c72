package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

var asciiDocSigns = []*lazyregexp.Regexp{
	lazyregexp.New(`(?m)^={2,6} \S`),
	lazyregexp.New(`(?m)^\[(verse|NOTE|TIP|IMPORTANT|WARNING|CAUTION|horizontal|quote|listing|literal|discrete|appendix|\[[\w-]+\])\]$|^\[source[,\]]`),
	lazyregexp.New(`\blinkgit:[\w-]+\[\d\]`),
	lazyregexp.New(`(?m)^(include|ifdef|ifndef|ifeval|image|toc)::\S*\[`),
	lazyregexp.New(`(?m)^\+$`),
	lazyregexp.New(`(?m)^\S.*::$`),
	lazyregexp.New(`(?m)^\|===$`),
	lazyregexp.New(`<<[\w-]+(,[^>\n]+)?>>`),
}

// adDescribed is a term and its description.
var adDescribed = lazyregexp.New(`(?m)^\S[^\n]*::\n[ \t]+\S`)

// isAsciiDoc reports whether src has an AsciiDoc extension or, without one, headings such as
// "== Title" or several kinds of its markup.
func isAsciiDoc(src *source) bool {
	switch src.ext {
	case ".adoc", ".asciidoc", ".asciidoctor":
		return true
	case ".asc":
		return !strings.HasPrefix(src.text, "-----BEGIN ")
	case "", ".txt", ".text":
	default:
		return false
	}
	if rstDirective.MatchString(head(src.text)) {
		return false
	}
	signs := 0
	for _, s := range asciiDocSigns {
		if s.MatchString(head(src.text)) {
			signs++
		}
	}
	described := len(adDescribed.FindAllStringIndex(head(src.text), 3)) > 2
	return hasAsciiDocSections(src) || described || adLinkGit.MatchString(head(src.text)) || signs >= 3 || signs >= 2 && rstTitle.MatchString(head(src.text)) && !strings.Contains(head(src.text), ":`")
}

// hasAsciiDocSections reports whether several sections have titles such as "== Title" below a blank
// line or an attribute. One at least is of the first level: logs and licenses have lines such as
// "=== RUN" too.
func hasAsciiDocSections(src *source) bool {
	if strings.Contains(src.text, "\n<<<<<<<") { // with its marks of conflicts
		return false
	}
	sections, first, before := 0, false, ""
	for l := range strings.SplitSeq(src.text, "\n") {
		if level := asciiDocLevel(l); level > 1 && (isBlank(before) || before[0] == '[') {
			sections++
			first = first || level == 2
		}
		before = l
	}
	return first && sections >= 2
}

// parseAsciiDoc parses AsciiDoc: sections, lists with their continuations, description lists,
// delimited blocks, tables with cells and inline markup. Files to be included are named and not
// read. The text under both outcomes of a condition is kept, unless the document itself defines the
// attribute that the condition tests.
//
// Source: AsciiDoc Language Documentation, https://docs.asciidoctor.org/asciidoc/latest/
func parseAsciiDoc(src *source, b *builder) bool {
	a := &asciiDoc{b: b, lines: src.lines(), attrs: map[string]string{}, budget: maxAttributeBytes + len(src.text)}
	a.blocks(len(a.lines), 0)
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// Limits of AsciiDoc.
const (
	maxAsciiDocDepth  = 20      // delimited blocks in each other
	maxAttributeValue = 2000    // bytes of an attribute's value
	maxAttributeBytes = 1 << 20 // added by replacing references to attributes, beyond the source's size
)

// An asciiDoc is the state of parsing AsciiDoc line by line.
type asciiDoc struct {
	b      *builder
	lines  []string
	at     int
	attrs  map[string]string // defined by the document
	budget int               // bytes that references to attributes may still add
	legacy bool              // sections are underlined, so 'x' is emphasis
	lists  []string          // markers of the open lists, outermost first
	counts []int             // numbers of the next items of these lists

	// Of the next block:
	style string   // the first word in brackets, such as "source"
	opts  []string // the other words in brackets
	title string   // written as ".Title"
	line  int      // source line of title
}

func (a *asciiDoc) get(i int) string {
	if i < 0 || i >= len(a.lines) {
		return ""
	}
	return strings.TrimRight(a.lines[i], " \t")
}

func (a *asciiDoc) blank(i int) bool { return a.get(i) == "" }

// blocks reads the blocks up to line end, which are nested in depth delimited blocks.
func (a *asciiDoc) blocks(end, depth int) {
	for a.at < end && !a.b.canceled() {
		a.block(end, depth)
	}
}

func (a *asciiDoc) block(end, depth int) {
	l := a.get(a.at)
	switch {
	case l == "" || l == "+":
		a.at++
	case a.processor(l) || a.attributes(l):
	case a.section(l, end, depth):
		a.lists = a.lists[:0]
	case a.delimited(l, end, depth):
		a.done()
	case a.macro(l):
		a.done()
	case a.item(l, end):
		a.done()
	case a.term(l, end):
		a.done()
	default:
		a.paragraph(end)
		a.done()
	}
}

// done forgets the attributes and the title of the block that was read.
func (a *asciiDoc) done() { a.style, a.opts, a.title = "", nil, "" }

// putTitle writes the title of a block.
func (a *asciiDoc) putTitle(kind BlockKind) {
	if a.title != "" {
		a.b.puts(kind, a.inline(a.title), a.line)
		a.title = ""
	}
}

// asciiDocLevel returns the level of an AsciiDoc heading ("= Title" is 1), or 0.
func asciiDocLevel(l string) int {
	level := 0
	for level < len(l) && l[level] == '=' {
		level++
	}
	if level == 0 || level > 6 || level+1 >= len(l) || l[level] != ' ' || strings.HasSuffix(l, " =") {
		return 0
	}
	return level
}

// section reads a section title on one line or underlined. After the document's title it reads the
// lines about the author and the revision.
func (a *asciiDoc) section(l string, end, depth int) bool {
	if depth > 0 && a.style != "discrete" && a.style != "float" {
		return false
	}
	level, title, n := asciiDocLevel(l), l, 1
	if level > 0 {
		marks := strings.Repeat("=", level)
		title = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(l, marks), " "+marks))
	} else if level = a.underline(l, end); level > 0 {
		a.legacy = true
		n = 2
	}
	if level == 0 {
		return false
	}
	a.putTitle(Paragraph)
	first := len(a.b.blocks) == 0
	a.b.heading(level, a.inline(title), a.at+1)
	a.at += n
	a.done()
	if first && level == 1 {
		a.header()
	}
	return true
}

// underline returns the level of a title that is underlined on the next line, or 0.
func (a *asciiDoc) underline(l string, end int) int {
	under := a.get(a.at + 1)
	if a.at+1 >= end || len(under) < 3 || l[0] == ' ' || l[0] == '\t' || strings.IndexFunc(l, unicode.IsLetter) < 0 {
		return 0
	}
	level := strings.IndexByte("=-~^+", under[0]) + 1
	far := utf8.RuneCountInString(l) - len(under)
	if level == 0 || strings.Trim(under, under[:1]) != "" || far < -3 || far > 3 || strings.HasSuffix(l, "::") {
		return 0
	}
	if a.at > 0 && !a.blank(a.at-1) && a.style == "" && !strings.HasPrefix(a.get(a.at-1), "[") && !strings.HasPrefix(a.get(a.at-1), "//") {
		return 0
	}
	return level
}

var (
	adAuthor   = lazyregexp.New(`^[\pL][\pL.'-]*(?: [\pL.'-]+){0,3} <([^<>\s]+@[^<>\s]+|https?:[^<>\s]+)>`)
	adRevision = lazyregexp.New(`^(?:v[\d.]+(?:,|$)|\d{4}-\d\d-\d\d)`)
)

// header reads the lines about the author and the revision below the document's title.
func (a *asciiDoc) header() {
	l := a.get(a.at)
	if !adAuthor.MatchString(l) {
		return
	}
	name, _, _ := strings.Cut(l, " <")
	a.b.set(assay.MetaAuthor, assay.StringValue(name))
	a.b.puts(Paragraph, l, a.at+1)
	a.at++
	if l = a.get(a.at); adRevision.MatchString(l) {
		a.b.puts(Paragraph, l, a.at+1)
		a.at++
	}
}

// fenceEnd returns the line of the fence that ends the block that starts on the current line, at
// most end.
func (a *asciiDoc) fenceEnd(fence string, end int) int {
	for i := a.at + 1; i < end; i++ {
		if a.get(i) == fence {
			return i
		}
	}
	return end
}

// delimited reads a block between two equal fences.
func (a *asciiDoc) delimited(l string, end, depth int) bool {
	fence := l
	if strings.HasPrefix(l, "```") {
		fence = "```"
	}
	switch {
	case len(fence) == 5 && fence[1:] == "===" || fence == "|===":
		a.tableBlock(fence, end)
		return true
	case l == "--" || len(l) >= 4 && strings.IndexByte("-.=*_+", l[0]) >= 0 && strings.Trim(l, l[:1]) == "":
	case fence == "```" && !strings.Contains(l[3:], "`"):
	case l == "'''" || l == "<<<" || l == "---" || l == "***":
		a.at++
		return true
	default:
		return false
	}
	stop := a.fenceEnd(fence, end)
	if stop == end && fence == "--" { // text
		return false
	}
	a.at++
	verbatim := strings.IndexByte("-.`+", l[0]) >= 0 && l != "--" || isVerbatimStyle(a.style)
	switch {
	case verbatim:
		a.putTitle(Caption)
		a.code(stop)
	case a.style == "verse":
		a.putTitle(Paragraph)
		a.lineBlock(stop)
	case depth >= maxAsciiDocDepth:
		a.code(stop)
	default:
		a.nested(stop, depth)
	}
	a.at = min(stop+1, len(a.lines))
	return true
}

// isVerbatimStyle reports whether blocks of a style are code.
func isVerbatimStyle(style string) bool {
	switch style {
	case "source", "listing", "literal", "synopsis", "stem", "latexmath", "asciimath", "graphviz", "plantuml", "mermaid", "ditaa":
		return true
	}
	return false
}

// nested reads the blocks up to line stop, with the label of an admonition before and the
// attribution of a quotation after them.
func (a *asciiDoc) nested(stop, depth int) {
	style, opts := a.style, a.opts
	lists, counts := a.lists, a.counts
	a.lists, a.counts = nil, nil
	if label := admonition(style); label != "" && a.title == "" {
		a.b.puts(Paragraph, label+":", a.at)
	}
	a.putTitle(Paragraph)
	a.done()
	a.blocks(stop, depth+1)
	a.attribution(style, opts, stop)
	a.lists, a.counts = lists, counts
}

func (a *asciiDoc) attribution(style string, opts []string, line int) {
	if (style == "quote" || style == "verse") && len(opts) > 0 {
		if by := strings.Trim(strings.Join(opts, ", "), `", `); by != "" {
			a.b.puts(Paragraph, "— "+a.inline(by), min(line, len(a.lines)))
		}
	}
}

func admonition(style string) string {
	switch style {
	case "NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION":
		return style
	}
	return ""
}

// code writes the lines up to stop as they are.
func (a *asciiDoc) code(stop int) {
	for a.at < stop && isBlank(a.lines[a.at]) {
		a.at++
	}
	kind := Code
	if a.style == "stem" || a.style == "latexmath" || a.style == "asciimath" {
		kind = Formula
	}
	a.b.begin(kind)
	for ; a.at < stop; a.at++ {
		a.b.put(a.lines[a.at], a.at+1)
		a.b.newline()
	}
	a.b.end()
}

// lineBlock writes the lines up to stop as a paragraph that keeps its line breaks.
func (a *asciiDoc) lineBlock(stop int) {
	a.putLines(Paragraph, "", a.at, stop)
	a.at = stop
}

// putLines writes the lines [from, to) as one block, with its inline markup removed.
func (a *asciiDoc) putLines(kind BlockKind, marker string, from, to int) {
	var text strings.Builder
	for i := from; i < to; i++ {
		l := a.get(i)
		if i == from || kind != Code {
			l = strings.TrimLeft(l, " \t")
		}
		if strings.HasPrefix(l, "//") && !strings.HasPrefix(l, "///") {
			l = ""
		}
		if i > from {
			text.WriteString("\n")
		}
		text.WriteString(strings.TrimSuffix(l, " +"))
	}
	if last := len(a.b.blocks) - 1; kind == ListItem && last >= 0 && a.b.blocks[last].Kind == ListItem {
		a.b.beginTight(kind)
	} else {
		a.b.begin(kind)
	}
	if kind == ListItem {
		a.b.cur.Level = max(len(a.lists), 1)
	}
	notes := a.putInline(marker, text.String(), from+1)
	a.b.end()
	for _, n := range notes {
		a.b.puts(Footnote, n, from+1)
	}
}

// putInline puts text, which starts on a line, and returns the texts of its footnotes.
func (a *asciiDoc) putInline(marker, text string, line int) []string {
	text, notes := a.footnotes(text)
	if marker != "" {
		a.b.put(marker, line)
	}
	for i, l := range strings.Split(a.inline(text), "\n") {
		if i > 0 && !isBlank(l) {
			a.b.newline()
		}
		if !isBlank(l) {
			a.b.put(l, line+i)
		}
	}
	return notes
}

var adFootnote = lazyregexp.New(`\s?\bfootnote(?:ref)?:([\w-]*)\[([^\]]*)\]`)

// footnotes replaces the footnotes in text by marks and returns their texts.
func (a *asciiDoc) footnotes(text string) (string, []string) {
	if !strings.Contains(text, "footnote") {
		return text, nil
	}
	var notes []string
	text = adFootnote.ReplaceAllStringFunc(text, func(s string) string {
		m := adFootnote.FindStringSubmatch(s)
		body := strings.Join(strings.Fields(m[2]), " ")
		if body != "" {
			notes = append(notes, a.inline(body))
		}
		return strings.Repeat("\n", strings.Count(s, "\n"))
	})
	return text, notes
}

var adMacro = lazyregexp.New(`^(image|video|audio|toc|icon|link|menu|btn|kbd|stem|latexmath|asciimath)::([^\[\]]*)\[(.*)\]$`)

// macro reads a block macro: an image by its alternative text and title.
func (a *asciiDoc) macro(l string) bool {
	m := adMacro.FindStringSubmatch(strings.TrimSpace(l))
	if m == nil {
		return false
	}
	alt := ""
	for i, word := range splitQuoted(m[3]) {
		if v, ok := strings.CutPrefix(word, "alt="); ok || i == 0 && !strings.Contains(word, "=") {
			alt = strings.Trim(v, `"`)
		}
		if v, ok := strings.CutPrefix(word, "title="); ok && a.title == "" {
			a.title, a.line = strings.Trim(v, `"`), a.at+1
		}
	}
	if m[1] == "link" {
		a.b.puts(Paragraph, a.inline(alt), a.at+1)
	} else if m[1] != "toc" {
		a.b.puts(Figure, a.inline(alt), a.at+1)
	}
	a.putTitle(Caption)
	a.at++
	return true
}

// paragraph reads the lines up to a blank line. An indented one is literal.
func (a *asciiDoc) paragraph(end int) {
	from := a.at
	if isCellLine(a.get(from)) && a.style == "" {
		a.bareTable(end)
		return
	}
	indented := a.lines[from][0] == ' ' || a.lines[from][0] == '\t'
	for a.at++; a.at < end && !a.blank(a.at) && a.get(a.at) != "+" && (indented || !a.endsParagraph(a.at)); a.at++ {
	}
	style, opts := a.style, a.opts
	switch {
	case isVerbatimStyle(style) || indented && style != "verse" && style != "normal":
		a.putTitle(Caption)
		stop := a.at
		a.at = from
		if !indented || strings.TrimSpace(a.lines[from]) != "" {
			a.code(stop)
		}
		return
	}
	a.putTitle(Paragraph)
	marker := ""
	if label := admonition(style); label != "" {
		marker = label + ": "
	}
	a.putLines(Paragraph, marker, from, a.at)
	a.attribution(style, opts, a.at)
}

// endsParagraph reports whether line i starts another block although no blank line is before it.
func (a *asciiDoc) endsParagraph(i int) bool {
	l := a.get(i)
	m := adCondition.FindStringSubmatch(l)
	return m != nil || isAsciiDocFence(l) || adInclude.MatchString(l) || strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") && len(l) > 2 && !strings.Contains(l, " ")
}
