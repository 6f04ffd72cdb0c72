package parse

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// parseMarkdown parses CommonMark with tables and strikethrough. The text keeps words, code, line
// breaks and list markers. Emphasis marks, link targets and HTML tags are removed.
func parseMarkdown(src *source, b *builder) bool {
	body := frontMatter(src, b)
	if tangled(src.text[body:]) {
		return false
	}
	writeMarkdown(src, body, b)
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// writeMarkdown writes src from the offset body onwards.
func writeMarkdown(src *source, body int, b *builder) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithHeadingAttribute()),
	).Parser()
	all := pieces(src.text, body)
	references := ""
	if len(all) > 1 {
		references = definitions(src.text[body:])
	}
	known := parser.NewContext()
	md.Parse(text.NewReader([]byte(references)), parser.WithContext(known))
	for _, p := range all {
		if b.canceled() {
			return
		}
		pc := parser.NewContext()
		for _, r := range known.References() {
			pc.AddReference(r)
		}
		m := &markdown{src: src, b: b, base: p.start - len(p.prefix), data: []byte(p.prefix + src.text[p.start:p.end])}
		if p.table {
			m.repeated = 1
		}
		m.blocks(md.Parse(text.NewReader(m.data), parser.WithContext(pc)), 0)
	}
}

// firstTitle returns the text of the first heading if it is the only one of level 1.
func firstTitle(b *builder) string {
	b.end()
	first, count := "", 0
	for _, k := range b.blocks {
		if k.Kind != Heading {
			continue
		}
		if first == "" {
			if k.Level != 1 {
				return ""
			}
			first = k.Label
		}
		if k.Level == 1 {
			count++
		}
	}
	if count > 1 {
		return ""
	}
	return first
}

// tangled reports whether a Markdown parser could need more than linear time or stack for text.
// Such text has markers nested or repeated as no author would write them.
func tangled(text string) bool {
	const (
		deepest     = 100    // block quotes or list markers on one line
		longest     = 20_000 // bytes of a line with many openers
		openers     = 1_000  // of links, emphasis, code and tags, on such a line
		crowd       = 20_000 // of links, without a blank line in between
		definitions = 20_000 // of links, in a text
	)
	if strings.Count(text, "]:") > definitions || nestedTooDeeply(text) {
		return true
	}
	links := 0
	for line := range strings.SplitSeq(text, "\n") {
		if links += strings.Count(line, "["); isBlank(line) {
			links = 0
		}
		if links > crowd {
			return true
		}
		quotes, items := 0, 0
		for i := 0; i < len(line); i++ {
			switch c := line[i]; c {
			case '>':
				quotes++
			case '-', '*', '+', '.', ')':
				items++
			case ' ', '\t', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			default:
				i = len(line)
			}
		}
		if quotes > deepest || items > deepest && strings.Count(line, " ") > deepest {
			return true
		}
		if len(line) > longest && strings.Count(line, "[")+strings.Count(line, "*")+strings.Count(line, "_")+strings.Count(line, "`")+strings.Count(line, "<") > openers {
			return true
		}
	}
	return false
}

// A markdown writes a parsed Markdown tree.
type markdown struct {
	src  *source
	b    *builder
	base int    // offset of data in src.text
	data []byte // the parsed text

	repeated int // heads of tables that an earlier piece has written
}

func (m *markdown) line(offset int) int { return m.src.line(m.base + offset) }

// blocks writes the children of n, which is nested in depth lists.
func (m *markdown) blocks(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil && !m.b.canceled(); c = c.NextSibling() {
		m.block(c, depth)
	}
}

func (m *markdown) block(n ast.Node, depth int) {
	switch n := n.(type) {
	case *ast.Heading:
		m.b.begin(Heading)
		m.b.cur.Level = n.Level
		m.inline(n)
		m.b.end()
	case *ast.Paragraph, *ast.TextBlock:
		m.b.begin(Paragraph)
		m.inline(n)
		m.b.end()
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		m.code(n.Lines())
	case *ast.HTMLBlock:
		m.html(n)
	case *ast.List:
		m.list(n, depth)
	case *extast.Table:
		m.table(n)
	default:
		m.blocks(n, depth)
	}
}

func (m *markdown) list(list *ast.List, depth int) {
	number := list.Start
	for item := list.FirstChild(); item != nil && !m.b.canceled(); item = item.NextSibling() {
		marker := string(list.Marker) + " "
		if list.IsOrdered() {
			marker = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		m.item(item, strings.Repeat("  ", min(depth, 8))+marker, list.IsTight, depth)
	}
}

func (m *markdown) item(item ast.Node, marker string, tight bool, depth int) {
	for c := item.FirstChild(); c != nil; c = c.NextSibling() {
		kind := c.Kind()
		if c.PreviousSibling() != nil || kind != ast.KindParagraph && kind != ast.KindTextBlock {
			m.block(c, depth+1)
			continue
		}
		if n := len(m.b.blocks); tight && n > 0 && m.b.blocks[n-1].Kind == ListItem {
			m.b.beginTight(ListItem)
		} else {
			m.b.begin(ListItem)
		}
		if lines := c.Lines(); lines.Len() > 0 {
			m.b.put(marker, m.line(lines.At(0).Start))
		}
		m.inline(c)
		m.b.end()
	}
}

func (m *markdown) table(table *extast.Table) {
	t := &markedTable{b: m.b}
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		kind := TableRow
		if row.Kind() == extast.KindTableHeader {
			if m.repeated > 0 {
				m.repeated--
				continue
			}
			kind = TableHead
			m.b.begin(kind)
		} else {
			m.b.beginTight(kind)
		}
		t.begin()
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if cell.PreviousSibling() != nil {
				m.b.glue(" | ")
			}
			t.cell(1, 1, kind == TableHead, func() { m.inline(cell) })
		}
		t.endRow()
		t.row++
	}
	t.end()
}

func (m *markdown) code(lines *text.Segments) {
	m.b.begin(Code)
	started := false
	for i := range lines.Len() {
		seg := lines.At(i)
		s := string(seg.Value(m.data))
		if started = started || !isBlank(s); started {
			m.b.put(s, m.line(seg.Start))
		}
	}
	m.b.end()
}

// html writes a block of raw HTML using the HTML parser.
func (m *markdown) html(n *ast.HTMLBlock) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return
	}
	from, to := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	if n.HasClosure() {
		to = max(to, n.ClosureLine.Stop)
	}
	writeHTMLFragment(m.b, string(m.data[from:to]), m.line(from))
}

// inline writes the text of n's inline children.
func (m *markdown) inline(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			m.text(c, c.IsRaw())
		case *ast.String:
			m.b.put(strings.ReplaceAll(string(c.Value), "\n", " "), m.here(n))
		case *ast.CodeSpan:
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					m.text(t, true)
				}
			}
		case *ast.AutoLink:
			m.b.put(string(c.Label(m.data)), m.here(n))
		case *ast.RawHTML:
			if c.Segments.Len() > 0 && isBreak(c.Segments.Value(m.data)) {
				m.b.glue(" ")
			}
		default:
			m.inline(c)
		}
	}
}

// here returns the source line of inline text without its own position. It is the line of the text
// before it or of the block around n.
func (m *markdown) here(n ast.Node) int {
	if m.b.line > 0 && len(m.b.text) > m.b.cur.Start {
		return m.b.line
	}
	for n.Type() == ast.TypeInline {
		n = n.Parent()
	}
	if lines := n.Lines(); lines.Len() > 0 {
		return m.line(lines.At(0).Start)
	}
	return 1
}

func isBreak(tag []byte) bool {
	return len(tag) > 3 && bytes.EqualFold(tag[:3], []byte("<br"))
}

func (m *markdown) text(t *ast.Text, raw bool) {
	value := t.Segment.Value(m.data)
	if !raw && bytes.ContainsAny(value, `\&`) {
		value = util.UnescapePunctuations(value)
		value = util.ResolveNumericReferences(value)
		value = util.ResolveEntityNames(value)
		value = bytes.ReplaceAll(value, []byte("\n"), []byte(" "))
	}
	m.b.put(string(value), m.line(t.Segment.Start))
	if t.SoftLineBreak() || t.HardLineBreak() {
		m.b.newline()
	}
}
