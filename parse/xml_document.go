package parse

import (
	"io"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// decodedCharset returns r, because a source's text is UTF-8 whatever its declaration says.
func decodedCharset(_ string, r io.Reader) (io.Reader, error) { return r, nil }

// An xmlDoc writes a tree of XML.
type xmlDoc struct {
	b   *builder
	src *source

	inline []*markupNode // text and inline elements that wait to be a paragraph
	notes  []*markupNode // footnotes of it
	count  int           // footnotes so far
	lists  int           // lists around the current node
	marker string        // of the next paragraph, which is a list item
}

func (x *xmlDoc) line(n *markupNode) int { return x.src.line(min(int(n.at), len(x.src.text))) }

// The elements of DocBook, JATS, TEI, DITA and FictionBook by what they mean.
var (
	xmlSections = tagSet("article book chapter part appendix preface section sect1 sect2 sect3 sect4 sect5 simplesect refentry refsection refsect1 " +
		"refsect2 refsect3 reference glossary bibliography sec app topic concept task div div1 div2 div3 div4 div5 body glossdiv colophon dedication " +
		"ack abstract boxed-text sidebar troubleshooting")
	xmlTitles     = tagSet("title head article-title refname refentrytitle titleabbrev")
	xmlParagraphs = tagSet("p para simpara formalpara ab shortdesc line l attrib attribution verse v bridgehead refpurpose synopsis cmdsynopsis funcsynopsis " +
		"address subtitle trans-title aff kwd mixed-citation element-citation bibl biblioentry")
	xmlCode     = tagSet("programlisting screen literallayout codeblock code-block preformat pre source eg msgblock sourceCode")
	xmlLists    = tagSet("itemizedlist orderedlist simplelist list ul ol sl procedure steps steps-unordered substeps calloutlist")
	xmlItems    = tagSet("listitem list-item item li sli member step callout substep")
	xmlNotes    = tagSet("footnote fn note-foot")
	xmlDropped  = tagSet("indexterm primary secondary xref-label object-id journal-id issn pub-id permissions counts self-uri article-id toc index processing-meta")
	xmlTables   = tagSet("table informaltable simpletable")
	xmlFormulas = tagSet("math disp-formula inline-formula equation informalequation formula tex-math")
	xmlFigures  = tagSet("alt alt-text figDesc")
	xmlMeta     = tagSet("info articleinfo bookinfo chapterinfo sectioninfo refentryinfo front article-meta teiHeader title-info description prolog journal-meta")
	xmlTerms    = tagSet("term dt glossterm")
	xmlPeople   = tagSet("author editor personname name string-name contrib othercredit")
	xmlBlocks   = tagSet("varlistentry variablelist dl dlentry dlhead glosslist glossentry def-list def-item definition dd def glossdef blockquote quote-block note tip " +
		"warning important caution figure fig informalfigure mediaobject example informalexample graphic textobject imageobject imagedata caption " +
		"label text front back group floats-group table-wrap lg sp epigraph disp-quote result conbody taskbody refbody steps-section " +
		"title-group contrib-group kwd-group ref-list ref refnamediv refmeta refsynopsisdiv qandaset qandaentry question answer")
)

// maxXMLDepth is the greatest depth of elements that are read by their names. The words of deeper
// ones become a paragraph.
const maxXMLDepth = 150

// section writes the children of an element that is nested in level sections.
func (x *xmlDoc) section(n *markupNode, level, depth int) {
	for _, c := range n.children {
		if x.b.canceled() {
			return
		}
		x.node(c, n, level, depth)
	}
}

func (x *xmlDoc) node(c, parent *markupNode, level, depth int) {
	name := ""
	if c.name != "" {
		name = c.local()
	}
	switch {
	case name == "":
		if len(x.inline) > 0 || !isBlank(c.text) {
			x.inline = append(x.inline, c)
		}
	case depth > maxXMLDepth:
		x.inline = append(x.inline, c)
	case xmlDropped[name]:
	case xmlTitles[name]:
		x.title(c, parent, level)
	case xmlMeta[name]:
		x.meta(c)
		x.section(c, level, depth+1)
		x.flush()
	case xmlSections[name]:
		x.flush()
		x.section(c, level+1, depth+1)
		x.flush()
	case xmlCode[name]:
		x.code(c)
	case xmlLists[name]:
		x.list(c, name, level, depth)
	case xmlTables[name]:
		x.table(c, level, depth)
	case xmlFormulas[name] && len(x.inline) == 0 && !x.inParagraph(parent):
		x.flush()
		x.b.puts(Formula, xmlFormula(c), x.line(c))
	case xmlNotes[name]:
		x.note(c)
	case xmlFigures[name]:
		x.flush()
		x.b.puts(Figure, c.words(), x.line(c))
	case xmlPeople[name] && !x.inParagraph(parent):
		x.flush()
		x.inline = append(x.inline, c)
		x.flush()
	case xmlTerms[name]:
		x.flush()
		x.term(c, parent, level, depth)
	case xmlParagraphs[name] || xmlBlocks[name] || xmlItems[name] || x.hasBlocks(c):
		x.flush()
		x.section(c, level, depth+1)
		x.flush()
	case len(x.inline) == 0 && !x.isMixed(parent):
		x.inline = append(x.inline, c)
		x.flush()
	default:
		x.inline = append(x.inline, c)
	}
}

func (x *xmlDoc) inParagraph(parent *markupNode) bool {
	return xmlParagraphs[parent.local()] || x.isMixed(parent)
}

// hasBlocks reports whether an element of no known name has blocks directly in it.
func (x *xmlDoc) hasBlocks(n *markupNode) bool {
	for _, c := range n.elements() {
		name := c.local()
		if xmlParagraphs[name] || xmlSections[name] || xmlTitles[name] || xmlLists[name] || xmlCode[name] || xmlTables[name] || xmlBlocks[name] {
			return true
		}
	}
	return len(n.elements()) > 0 && !x.isMixed(n)
}

// title writes the title of a section, or the caption of a table, figure or example.
func (x *xmlDoc) title(c, parent *markupNode, level int) {
	x.flush()
	text := c.words()
	switch name := parent.local(); {
	case xmlTables[name] || name == "figure" || name == "fig" || name == "example" || name == "caption" || name == "table-wrap":
		x.b.puts(Caption, text, x.line(c))
	case xmlSections[name] || xmlMeta[name] || name == "title-group" || level == 0 || name == "refnamediv" || name == "refmeta":
		if x.b.title == "" {
			x.b.title = text
		}
		if name == "refnamediv" && x.b.title != text {
			x.b.puts(Paragraph, text, x.line(c))
			return
		}
		x.b.heading(max(level, 1), text, x.line(c))
	default:
		x.b.puts(Paragraph, text, x.line(c))
	}
}

// meta reads the author, the date and the language of a document.
func (x *xmlDoc) meta(n *markupNode) {
	var authors []string
	for _, name := range []string{"author", "contrib"} {
		n.each(name, func(a *markupNode) {
			for _, part := range []string{"personname", "name"} {
				if p := a.find(part); p != nil {
					a = p
					break
				}
			}
			first, last := a.find("firstname"), a.find("surname")
			if first == nil {
				first = a.find("given-names")
			}
			switch text := a.words(); {
			case first != nil && last != nil:
				authors = append(authors, first.words()+" "+last.words())
			case text != "" && len(text) < 100:
				authors = append(authors, text)
			}
		})
	}
	switch len(authors) {
	case 0:
	case 1:
		x.b.set(assay.MetaAuthor, assay.StringValue(authors[0]))
	default:
		x.b.set(assay.MetaAuthor, assay.ListValue(authors...))
	}
	if d := n.find("pubdate"); d != nil {
		if v, ok := metaValue(d.words()); ok && d.words() != "" {
			setField(x.b, "date", v)
		}
	}
}

// flush writes the waiting text as a paragraph or list item, and its footnotes.
func (x *xmlDoc) flush() {
	inline := x.inline
	x.inline = nil
	var out strings.Builder
	for _, n := range inline {
		x.words(n, &out)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if text != "" {
		kind := Paragraph
		if x.marker != "" {
			kind = ListItem
		}
		last := len(x.b.blocks) - 1
		if kind == ListItem && last >= 0 && x.b.blocks[last].Kind == ListItem {
			x.b.beginTight(kind)
		} else {
			x.b.begin(kind)
		}
		if kind == ListItem {
			x.b.cur.Level = max(x.lists, 1)
		}
		x.b.put(x.marker+text, x.line(inline[0]))
		x.b.end()
		x.marker = ""
	}
	notes := x.notes
	x.notes = nil
	for i, n := range notes {
		x.b.puts(Footnote, "["+strconv.Itoa(x.count-len(notes)+i+1)+"] "+n.words(), x.line(n))
	}
}

// words appends the text of an inline node. Notes are replaced by their marks.
func (x *xmlDoc) words(n *markupNode, out *strings.Builder) {
	switch {
	case n.name == "":
		out.WriteString(n.text)
	case xmlNotes[n.local()]:
		x.count++
		x.notes = append(x.notes, n)
		out.WriteString("[" + strconv.Itoa(x.count) + "]")
	case xmlDropped[n.local()]:
	case xmlFormulas[n.local()]:
		out.WriteString(xmlFormula(n))
	default:
		mixed := x.isMixed(n)
		for _, c := range n.children {
			x.words(c, out)
			if !mixed {
				out.WriteString(" ")
			}
		}
		if n.local() == "lb" || n.local() == "br" || n.local() == "break" {
			out.WriteString(" ")
		}
	}
}

// note writes a footnote that is not in a paragraph.
func (x *xmlDoc) note(n *markupNode) {
	if len(x.inline) > 0 {
		x.inline = append(x.inline, n)
		return
	}
	x.b.puts(Footnote, n.words(), x.line(n))
}

// xmlFormula returns MathML as text, or TeX as it is.
func xmlFormula(n *markupNode) string {
	if n.local() == "math" {
		return mathText(n)
	}
	if tex := n.find("tex-math"); tex != nil {
		return tex.words()
	}
	var math *markupNode
	n.each("math", func(m *markupNode) { math = m })
	if math != nil {
		return mathText(math)
	}
	return n.words()
}

func (x *xmlDoc) code(c *markupNode) {
	x.flush()
	var out strings.Builder
	c.collect(&out)
	x.b.begin(Code)
	x.b.put(strings.TrimRight(out.String(), " \t\n"), x.line(c))
	x.b.end()
}

// list writes a list. Its items are numbered if its name says so.
func (x *xmlDoc) list(n *markupNode, name string, level, depth int) {
	x.flush()
	x.lists++
	ordered := name == "orderedlist" || name == "ol" || name == "procedure" || name == "steps" || n.attr("list-type") == "order" || n.attr("type") == "ordered"
	number := 0
	for _, c := range n.elements() {
		if !xmlItems[c.local()] {
			x.node(c, n, level, depth+1)
			continue
		}
		number++
		marker := "- "
		if ordered {
			marker = strconv.Itoa(number) + ". "
		}
		x.flush()
		x.marker = strings.Repeat("  ", min(x.lists-1, 8)) + marker
		x.section(c, level, depth+1)
		x.flush()
		x.marker = ""
	}
	x.flush()
	x.lists--
}

// term writes a term of a description list as an item, whose definition follows as paragraphs.
func (x *xmlDoc) term(c, parent *markupNode, level, depth int) {
	if !xmlBlocks[parent.local()] && len(x.inline) > 0 {
		x.inline = append(x.inline, c)
		return
	}
	x.marker = "- "
	x.inline = append(x.inline, c)
	x.flush()
	x.marker = ""
}

// table writes a table of DocBook (CALS), JATS, TEI, DITA or HTML.
func (x *xmlDoc) table(n *markupNode, level, depth int) {
	x.flush()
	t := &xmlTable{x: x, names: map[string]int{}}
	for _, c := range n.elements() {
		if xmlTitles[c.local()] || c.local() == "caption" {
			x.b.puts(Caption, c.words(), x.line(c))
		}
	}
	t.rows(n, false)
	if len(t.cells) == 0 { // a table of another vocabulary
		x.section(n, level, depth+1)
		x.flush()
		return
	}
	x.b.table(t.cells, nil)
	for i, note := range t.notes {
		x.b.puts(Footnote, "["+strconv.Itoa(x.count-len(t.notes)+i+1)+"] "+note.words(), x.line(note))
	}
}

// An xmlTable collects the cells of a table.
type xmlTable struct {
	x     *xmlDoc
	cells []gridCell
	notes []*markupNode
	row   int
	taken map[[2]int]bool // cells of rows above
	names map[string]int  // columns of CALS by name
}

func (t *xmlTable) rows(n *markupNode, head bool) {
	for _, c := range n.elements() {
		switch c.local() {
		case "row", "tr", "strow", "sthead":
			t.addRow(c, head || c.local() == "sthead" || c.attr("role") == "label")
		case "colspec":
			t.names[c.attr("colname")] = len(t.names)
		case "caption", "title", "head":
		default:
			t.rows(c, head || c.local() == "thead")
		}
	}
}

func (t *xmlTable) addRow(n *markupNode, head bool) {
	col := 0
	for _, c := range n.elements() {
		for t.taken[[2]int{t.row, col}] {
			col++
		}
		var out strings.Builder
		notes := t.x.notes
		t.x.notes = nil
		t.x.words(c, &out)
		t.notes = append(t.notes, t.x.notes...)
		t.x.notes = notes
		cell := gridCell{text: out.String(), row: t.row, col: col, header: head || c.local() == "th", line: t.x.line(c)}
		cell.colSpan, cell.rowSpan = xmlSpan(c.attr("colspan"), c.attr("cols")), xmlSpan(c.attr("rowspan"), c.attr("rows"))
		first, ok := t.names[c.attr("namest")]
		last, ok2 := t.names[c.attr("nameend")]
		if ok && ok2 && last > first {
			cell.colSpan = last - first + 1
		}
		if more := xmlSpan(c.attr("morerows"), ""); c.attr("morerows") != "" {
			cell.rowSpan = more + 1
		}
		for r := 1; r < cell.rowSpan && len(t.taken) < 100_000; r++ {
			if t.taken == nil {
				t.taken = map[[2]int]bool{}
			}
			for k := range cell.colSpan {
				t.taken[[2]int{t.row + r, col + k}] = true
			}
		}
		t.cells = append(t.cells, cell)
		col += cell.colSpan
	}
	t.row++
}

// xmlSpan returns the first of two counts that is a number, from 1 to 1000.
func xmlSpan(a, b string) int {
	for _, s := range []string{a, b} {
		if n, err := strconv.Atoi(s); err == nil {
			return min(max(n, 1), 1000)
		}
	}
	return 1
}
