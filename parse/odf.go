package parse

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// odfFormat returns the format of OpenDocument packages whose media type ends in one of kinds, such
// as "text" in "application/vnd.oasis.opendocument.text". The same document in one XML file (flat
// ODF) belongs to it too.
//
// Source: OASIS OpenDocument 1.3, part 2 (packages) and part 3 (schema).
func odfFormat(name string, kinds ...string) format {
	types := map[string]bool{}
	for _, kind := range kinds {
		types["application/vnd.oasis.opendocument."+kind] = true
		types["application/vnd.sun.xml."+kind] = true
	}
	return format{
		name:  name,
		is:    func(src *source) bool { return types[odfType(src.data)] },
		parse: parseODF,
	}
}

// odfType returns the media type that an OpenDocument file states, or "".
func odfType(data []byte) string {
	start := data[:min(len(data), 4<<10)]
	if i := bytes.Index(start, []byte("<office:document")); i >= 0 && bytes.HasPrefix(bytes.TrimSpace(start), []byte("<")) {
		_, rest, _ := bytes.Cut(start[i:], []byte("office:mimetype=\""))
		mimetype, _, _ := bytes.Cut(rest, []byte("\""))
		return strings.TrimSuffix(string(mimetype), "-template")
	}
	return strings.TrimSuffix(zipMimetype(data), "-template")
}

// parseODF parses an OpenDocument package or flat document: a text, a spreadsheet, slides or
// drawings. Tracked deletions, tables of contents, headers and footers are left out. Footnotes and
// comments follow the paragraph that they belong to.
func parseODF(src *source, b *builder) bool {
	o := &odf{b: b, styles: map[string]odfStyle{}, lists: map[string]odfListStyle{}, budget: maxRepeatedCells}
	b.unlined = true
	if err := o.read(src.data); b.err == nil {
		b.err = err
	}
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// An odf writes an OpenDocument file.
type odf struct {
	b      *builder
	pkg    *bundle // nil: a flat document
	styles map[string]odfStyle
	lists  map[string]odfListStyle
	budget int // cells that repetition may still add

	titled   bool                // a paragraph with the style Title was written
	page     int                 // slide, from 1; 0: not one
	area     odfArea             // of the shape that is written, if page > 0
	after    []func()            // footnotes, frames and comments of the open paragraph
	counters map[string]int      // numbers of the items of lists, by list style and level
	notes    int                 // footnotes without a mark of their own
	depth    int                 // objects, frames and tables around the current node
	sizes    map[string]odfSizes // page sizes, by master page

	lastHref   string // of the object that was read last
	lastObject *markupNode
}

// An odfArea is a rectangle on a page in points.
type odfArea struct{ x0, y0, x1, y1 float32 }

type odfSizes struct{ width, height float32 }

// maxRepeatedCells is the most cells of a document that come from repetition. Beyond it, a repeated
// cell or row is written once and spans the others.
const maxRepeatedCells = 100_000

// maxObjectDepth is the greatest nesting depth of frames, tables and embedded objects. The text of
// deeper ones is written in one paragraph.
const maxObjectDepth = 20

// read reads a package or a flat document.
func (o *odf) read(data []byte) error {
	if !bytes.HasPrefix(data, []byte("PK")) {
		return o.content(data)
	}
	var err error
	if o.pkg, err = openBundle(data, o.b.canceled); err != nil {
		return err
	}
	manifest, err := o.pkg.read("META-INF/manifest.xml")
	if err != nil {
		return err
	}
	if bytes.Contains(manifest, []byte("encryption-data")) {
		return fmt.Errorf("the OpenDocument package is encrypted: %w", ErrPassword)
	}
	if !o.pkg.has("content.xml") {
		return fmt.Errorf("the OpenDocument package has no content.xml: %w", ErrDamaged)
	}
	for _, name := range []string{"meta.xml", "styles.xml", "content.xml"} {
		member, err := o.pkg.read(name)
		if err != nil {
			return err
		}
		if member == nil {
			continue
		}
		if err := o.content(member); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// content reads a document element, whose children are the metadata, the styles and the body.
func (o *odf) content(data []byte) error {
	r := newMarkupReader(data, o.b.canceled)
	start, err := r.root()
	if err != nil {
		return err
	}
	if root := r.open(start); root.name == "math:math" {
		return o.formulaDocument(r, start)
	}
	for {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if r.name(t.Name) == "office:body" {
				err = o.body(r)
			} else if n, e := r.element(t); e != nil {
				err = e
			} else {
				o.part(n)
			}
			if err != nil {
				return err
			}
		}
	}
}

func (o *odf) formulaDocument(r *markupReader, start xml.StartElement) error {
	n, err := r.element(start)
	if err != nil {
		return err
	}
	o.b.puts(Formula, mathText(n), 0)
	return nil
}

// part reads a part of a document other than its body.
func (o *odf) part(n *markupNode) {
	switch n.name {
	case "office:meta":
		o.meta(n)
	case "office:automatic-styles", "office:styles", "office:master-styles":
		o.readStyles(n)
	}
}

func (o *odf) meta(n *markupNode) {
	var keywords []string
	for _, c := range n.children {
		text := c.words()
		if text == "" {
			continue
		}
		value, _ := metaValue(text)
		switch c.name {
		case "dc:title":
			o.b.title = text
		case "meta:initial-creator":
			o.b.set(assay.MetaAuthor, assay.StringValue(text))
		case "meta:creation-date":
			o.b.set(assay.MetaCreated, value)
		case "dc:date":
			o.b.set(assay.MetaModified, value)
		case "dc:language":
			o.b.set(assay.MetaLanguage, assay.StringValue(languageCode(text)))
		case "dc:subject", "dc:description":
			o.b.set(c.local(), assay.StringValue(text))
		case "meta:keyword":
			keywords = append(keywords, text)
		}
	}
	if creator := n.child("dc:creator"); creator != nil && creator.words() != "" {
		o.b.set(assay.MetaAuthor, assay.StringValue(creator.words()))
	}
	if len(keywords) > 0 {
		o.b.set("keywords", assay.ListValue(keywords...))
	}
}

// body reads the children of office:body.
func (o *odf) body(r *markupReader) error {
	for {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := o.kindOfBody(r, t); err != nil {
				return err
			}
		}
	}
}

// kindOfBody reads a text, a spreadsheet or pages, one child at a time so that memory does not hold
// all of them as trees.
func (o *odf) kindOfBody(r *markupReader, start xml.StartElement) error {
	for {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if r.name(start.Name) == "office:spreadsheet" && r.name(t.Name) == "table:table" {
				if err := o.sheet(r, t); err != nil {
					return err
				}
				continue
			}
			n, err := r.element(t)
			if err != nil {
				return err
			}
			if n.name == "draw:page" {
				o.slide(n)
			} else {
				o.block(n)
			}
		}
	}
}

// odfDropped are the elements that are not read: deleted text, indexes that repeat the document,
// settings and furniture.
var odfDropped = tagSet("text:tracked-changes text:table-of-content text:illustration-index text:table-index text:object-index " +
	"text:alphabetical-index text:sequence-decls text:variable-decls text:user-field-decls text:dde-connection-decls " +
	"office:forms office:scripts office:settings office:event-listeners text:script text:page-number text:page-count " +
	"draw:enhanced-geometry draw:glue-point draw:page-thumbnail draw:image-map anim:par anim:seq presentation:animations " +
	"table:calculation-settings table:content-validations table:named-expressions table:database-ranges table:tracked-changes " +
	"table:dde-links table:data-pilot-tables table:consolidation table:shapes-end presentation:settings presentation:header-decl " +
	"presentation:footer-decl presentation:date-time-decl office:binary-data text:alphabetical-index-auto-mark-file")

// block writes a child of a body, a section, a cell or a text box.
func (o *odf) block(n *markupNode) {
	if o.b.canceled() || n.name == "" || odfDropped[n.name] || n.attr("text:display") == "none" && n.name == "text:section" {
		return
	}
	switch n.name {
	case "text:p", "text:h":
		o.paragraph(n, Paragraph, "", 0)
	case "text:list", "text:ordered-list", "text:unordered-list":
		o.list(n, 1, "")
	case "table:table":
		o.table(n)
	case "office:annotation":
		o.annotation(n)
	default:
		if strings.HasPrefix(n.name, "draw:") || strings.HasPrefix(n.name, "dr3d:") {
			o.shape(n)
			return
		}
		o.blocks(n)
	}
}

func (o *odf) blocks(n *markupNode) {
	for _, c := range n.children {
		o.block(c)
	}
}

// begin starts a block on the current slide, in the area of the current shape.
func (o *odf) begin(kind BlockKind, tight bool) {
	if tight {
		o.b.beginTight(kind)
	} else {
		o.b.begin(kind)
	}
	o.place()
}

func (o *odf) place() {
	if o.page > 0 {
		o.b.box(o.page, o.area.x0, o.area.y0, o.area.x1, o.area.y1)
	}
}

// paragraph writes a paragraph or heading, or the first paragraph of a list item after its marker,
// and the frames, footnotes and comments in it.
func (o *odf) paragraph(n *markupNode, kind BlockKind, marker string, level int) {
	outer := o.after
	o.after = nil
	var out odfLine
	o.inline(n, &out)
	text := strings.Trim(out.String(), " \n")
	style := o.style("paragraph", n.attr("text:style-name"))
	if style.hidden {
		text = ""
	}
	if kind == Paragraph {
		kind, level = o.kind(n, style)
		if kind == Paragraph && out.formula && !out.words {
			kind = Formula
		}
	}
	if text != "" {
		last := len(o.b.blocks) - 1
		o.begin(kind, kind == ListItem && last >= 0 && o.b.blocks[last].Kind == ListItem)
		o.b.cur.Level = level
		o.b.put(marker+text, 0)
		o.b.end()
	}
	inside := o.after
	o.after = outer
	for _, write := range inside {
		write()
	}
}

// kind returns the kind and level of a paragraph by its element and its style.
func (o *odf) kind(n *markupNode, style odfStyle) (BlockKind, int) {
	if style.role == "title" && !o.titled && o.page == 0 {
		o.titled = true
		return Heading, 1
	}
	level := style.outline
	if n.name == "text:h" {
		level = 1
		if outline, err := strconv.Atoi(n.attr("text:outline-level")); err == nil && outline > 0 {
			level = min(outline, 20)
		}
	}
	if level == 0 && style.role == "subtitle" && o.titled {
		level = 1
	}
	if level > 0 {
		if o.titled {
			level++
		}
		return Heading, level
	}
	switch style.role {
	case "caption":
		return Caption, 0
	case "code":
		return Code, 0
	}
	return Paragraph, 0
}

// list writes a list, whose style is the outer list's if it has none of its own.
func (o *odf) list(n *markupNode, level int, style string) {
	if s := n.attr("text:style-name"); s != "" {
		style = s
	}
	form := o.lists[style].levels[level]
	switch n.name {
	case "text:ordered-list":
		form.numbered = true
	case "text:unordered-list":
		form.numbered = false
	}
	key := style + "\x00" + strconv.Itoa(level)
	if n.attr("text:continue-numbering") != "true" && n.attr("text:continue-list") == "" || o.counters[key] == 0 {
		if o.counters == nil {
			o.counters = map[string]int{}
		}
		o.counters[key] = max(form.start, 1)
	}
	for _, item := range n.children {
		if item.name == "" || o.b.canceled() {
			continue
		}
		if start, err := strconv.Atoi(item.attr("text:start-value")); err == nil {
			o.counters[key] = start
		}
		first := true
		for _, c := range item.children {
			switch {
			case c.name == "text:p" && first && item.name == "text:list-item":
				marker := "- "
				if form.numbered {
					marker = strconv.Itoa(o.counters[key]) + ". "
					o.counters[key]++
				}
				o.paragraph(c, ListItem, strings.Repeat("  ", min(level-1, 8))+marker, level)
				first = false
			case strings.HasSuffix(c.name, "list") && strings.HasPrefix(c.name, "text:"):
				o.list(c, level+1, style)
			default:
				o.block(c)
			}
		}
	}
}

// An odfLine collects the text of a paragraph.
type odfLine struct {
	strings.Builder
	words   bool // it has text outside formulas
	formula bool
}

// text appends text with runs of white space collapsed.
func (l *odfLine) text(s string) {
	for _, r := range s {
		if r == '\n' || r == '\t' || r == '\r' {
			r = ' '
		}
		if r == ' ' && strings.HasSuffix(l.String(), " ") {
			continue
		}
		l.words = l.words || r != ' '
		l.WriteRune(r)
	}
}

// inline appends the text of a paragraph or span to out. Frames, footnotes and comments wait in
// o.after.
func (o *odf) inline(n *markupNode, out *odfLine) {
	for _, c := range n.children {
		o.inlineNode(c, out)
	}
}

func (o *odf) inlineNode(c *markupNode, out *odfLine) {
	switch c.name {
	case "":
		out.text(c.text)
	case "text:s":
		count, err := strconv.Atoi(c.attr("text:c"))
		if err != nil {
			count = 1
		}
		out.WriteString(strings.Repeat(" ", min(max(count, 0), 100)))
	case "text:tab", "text:tab-stop":
		out.WriteString("\t")
	case "text:line-break":
		out.WriteString("\n")
	case "text:note", "text:footnote", "text:endnote":
		o.note(c, out)
	case "office:annotation":
		o.after = append(o.after, func() { o.annotation(c) })
	case "text:ruby":
		o.ruby(c, out)
	case "text:span":
		o.span(c, out)
	case "math:math":
		out.formula = true
		out.WriteString(mathText(c))
	case "text:hidden-text", "text:hidden-paragraph":
		if c.attr("text:is-hidden") != "true" {
			o.inline(c, out)
		}
	case "draw:frame":
		if formula := o.formula(c); formula != "" {
			out.formula = true
			out.WriteString(formula)
			return
		}
		o.after = append(o.after, func() { o.shape(c) })
	case "table:table", "text:list":
		o.after = append(o.after, func() { o.block(c) })
	default:
		if odfDropped[c.name] {
			return
		}
		if strings.HasPrefix(c.name, "draw:") && c.name != "draw:a" {
			o.after = append(o.after, func() { o.shape(c) })
			return
		}
		o.inline(c, out)
	}
}

// span appends a span. A raised one after a word is written as a power, as in HTML.
func (o *odf) span(n *markupNode, out *odfLine) {
	style := o.style("text", n.attr("text:style-name"))
	if style.hidden {
		return
	}
	if before := out.String(); style.raised && before != "" && isWordByte(before[len(before)-1]) {
		if w := n.words(); w != "" && len(w) <= 8 && w[0] >= '0' && w[0] <= '9' {
			out.WriteString("^")
		}
	}
	o.inline(n, out)
}

func (o *odf) ruby(n *markupNode, out *odfLine) {
	for _, c := range n.children {
		if c.name == "text:ruby-text" {
			if text := c.words(); text != "" {
				out.text("(" + text + ")")
			}
			continue
		}
		o.inlineNode(c, out)
	}
}

// note appends the mark of a footnote or endnote and writes its text after the paragraph.
func (o *odf) note(n *markupNode, out *odfLine) {
	mark := ""
	for _, c := range n.children {
		if strings.HasSuffix(c.name, "-citation") {
			mark = c.words()
		}
	}
	if mark == "" {
		o.notes++
		mark = strconv.Itoa(o.notes)
	}
	mark = "[" + mark + "]"
	out.WriteString(mark)
	for _, c := range n.children {
		if strings.HasSuffix(c.name, "-body") {
			o.after = append(o.after, func() { o.aside(mark+" ", c) })
		}
	}
}

// annotation writes a comment.
func (o *odf) annotation(n *markupNode) {
	label := "Comment: "
	if by := n.child("dc:creator"); by != nil && by.words() != "" {
		label = "Comment by " + by.words() + ": "
	}
	body := &markupNode{name: n.name}
	for _, c := range n.children {
		if strings.HasPrefix(c.name, "text:") {
			body.children = append(body.children, c)
		}
	}
	o.aside(label, body)
}

// aside writes the paragraphs of a footnote or comment as one block.
func (o *odf) aside(label string, n *markupNode) {
	outer := o.after
	o.after = nil
	if text := o.flat(n); text != "" {
		o.begin(Footnote, false)
		o.b.put(label+text, 0)
		o.b.end()
	}
	inside := o.after
	o.after = outer
	for _, write := range inside {
		write()
	}
}

// flat returns the paragraphs below n on one line.
func (o *odf) flat(n *markupNode) string {
	var out odfLine
	o.flatten(n, &out)
	return strings.Join(strings.Fields(out.String()), " ")
}

func (o *odf) flatten(n *markupNode, out *odfLine) {
	for _, c := range n.children {
		switch {
		case c.name == "text:p" || c.name == "text:h":
			if style := o.style("paragraph", c.attr("text:style-name")); !style.hidden {
				o.inline(c, out)
				out.WriteString(" ")
			}
		case c.name == "office:annotation":
			o.after = append(o.after, func() { o.annotation(c) })
		case c.name == "draw:text-box":
			o.flatten(c, out)
		case strings.HasPrefix(c.name, "draw:"):
			o.inlineNode(c, out)
		case c.name != "" && !odfDropped[c.name]:
			o.flatten(c, out)
		}
	}
}
