package parse

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/net/html"
)

// parseHTML parses an HTML document: its main content as blocks, its title and the metadata in its
// head.
func parseHTML(src *source, b *builder) bool {
	body := frontMatter(src, b)
	tree := parseTree(src.text[body:], src.line(body), b.canceled)
	p := newPage(tree)
	w := &htmlWriter{b: b, page: p}
	w.flow(p.root)
	w.flush()
	if len(b.blocks) == 0 { // everything looks like boilerplate
		w = &htmlWriter{b: b}
		w.flow(tree)
		w.flush()
	}
	readHead(tree, b)
	return true
}

// writeHTMLFragment writes all of an HTML fragment inside another format as blocks.
func writeHTMLFragment(b *builder, text string, line int) {
	w := &htmlWriter{b: b}
	tree := parseTree(text, line, b.canceled)
	tree.measure(false, false)
	w.flow(tree)
	w.flush()
}

// readHead reads the title and the metadata from their elements.
func readHead(tree *htmlNode, b *builder) {
	title := ""
	tree.walk(func(n *htmlNode) bool {
		switch n.tag {
		case "svg":
			return false // has titles of its own
		case "html":
			if code := languageCode(n.attr("lang")); code != "" {
				b.set(assay.MetaLanguage, assay.StringValue(code))
			}
		case "title":
			if title == "" {
				title = n.line1()
			}
		case "meta":
			name := strings.ToLower(n.attr("name") + n.attr("property"))
			if v, ok := metaValue(strings.TrimSpace(n.attr("content"))); ok && headNames[name] {
				setField(b, name, v)
			}
		}
		return true
	})
	if b.title == "" {
		b.title = shortTitle(title, b)
	}
}

// headNames are the names of the meta elements that are read.
var headNames = tagSet("author dc.creator date dc.date dcterms.created article:published_time " +
	"dcterms.modified article:modified_time last-modified dc.language")

// shortTitle returns the page's first level-1 heading if the title starts with it (for example with
// the site's name appended) or is empty, and otherwise the title.
func shortTitle(title string, b *builder) string {
	b.end()
	for _, k := range b.blocks {
		if k.Kind == Heading && k.Level == 1 {
			if title == "" || strings.HasPrefix(title, k.Label) {
				return k.Label
			}
			break
		}
	}
	return title
}

// An htmlWriter writes a tree as blocks. A run of white space becomes one space, or a line break if
// the source has one and the line is long enough.
type htmlWriter struct {
	b    *builder
	page *page // nil: a fragment, from which no boilerplate is removed

	images func(src string) []byte // returns an image of the document, or nil; nil: images are not read

	kind   BlockKind // of the open block or the next one
	marker string    // list marker at the start of the next block
	lists  []htmlList
	open   bool // a block of b is open
	cells  bool // in a table row: blocks are joined
	join   bool // a definition follows its term in the same block

	blank   bool // a space is due before the next text
	newline bool // … and it may be a line break
	column  int  // bytes on the current line
}

type htmlList struct {
	ordered bool
	next    int
}

// flow writes n and its descendants.
func (w *htmlWriter) flow(n *htmlNode) {
	if n.tag == "" {
		w.text(n.raw, int(n.line))
		return
	}
	if droppedTags[n.tag] || n.hidden() || n.words == 0 && n.tag != "br" && n.tag != "hr" && n.tag != "img" && !w.hasImage(n) {
		return
	}
	if w.page != nil && w.page.boilerplate(n) {
		return
	}
	switch n.tag {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.heading(n)
	case "pre", "listing", "xmp":
		w.pre(n)
	case "ul", "ol", "menu", "dir":
		w.list(n)
	case "li":
		w.item(n)
	case "dt", "dd":
		w.definition(n)
	case "table":
		w.table(n)
	case "br":
		w.lineBreak()
	case "img":
		w.image(n)
	case "sup":
		w.superscript(n)
	case "q":
		w.words("“", int(n.line))
		w.children(n)
		w.blank = false
		w.words("”", int(n.line))
	case "main", "article":
		w.article(n)
	case "figcaption", "caption":
		w.caption(n)
	default:
		if blockTags[n.tag] {
			w.flush()
			w.children(n)
			w.flush()
			return
		}
		w.children(n)
	}
}

func (w *htmlWriter) children(n *htmlNode) {
	for c := n.first; c != nil; c = c.next {
		w.flow(c)
	}
}

func (w *htmlWriter) caption(n *htmlNode) {
	w.flush()
	if !w.cells && !w.join {
		w.kind = Caption
	}
	w.startBlocks(n)
	w.flush()
}

func (w *htmlWriter) article(n *htmlNode) {
	w.flush()
	if w.page != nil {
		w.page.depth++
		defer func() { w.page.depth-- }()
	}
	w.children(n)
	w.flush()
}

// hasImage reports whether n, which has no words, has an image as a child or in a link, figure or
// similar element.
func (w *htmlWriter) hasImage(n *htmlNode) bool {
	for c := n.first; c != nil; c = c.next {
		if c.tag == "img" && (c.attr("alt") != "" || w.images != nil) {
			return true
		}
		if (imageParents[c.tag] || w.images != nil) && w.hasImage(c) {
			return true
		}
	}
	return false
}

// imageParents are the elements in which images without words around them are looked for.
var imageParents = tagSet("a figure span p div")

// flush ends the open block. If blocks are joined, it makes a space follow instead.
func (w *htmlWriter) flush() {
	if w.cells || w.join {
		w.blank = w.open
		w.newline = w.newline || w.join
		return
	}
	w.finish()
}

func (w *htmlWriter) finish() {
	if w.open {
		w.b.end()
		w.open = false
	}
	w.blank, w.newline, w.join = false, false, false
	w.kind, w.column = Paragraph, 0
}

// ensure opens a block for text on the given line.
func (w *htmlWriter) ensure(line int) {
	if w.open {
		return
	}
	w.open = true
	if w.kind == "" {
		w.kind = Paragraph
	}
	if n := len(w.b.blocks); w.kind == ListItem && n > 0 && w.b.blocks[n-1].Kind == ListItem {
		w.b.beginTight(w.kind)
	} else {
		w.b.begin(w.kind)
	}
	if w.marker != "" {
		w.b.put(w.marker, line)
		w.column = len(w.marker)
		w.marker = ""
	}
	w.blank, w.newline = false, false
}

// shortLine is the least number of bytes of a line for a source line break to be kept after it.
// Many sources put each element on its own line.
const shortLine = 40

// text writes a text node.
func (w *htmlWriter) text(raw string, line int) {
	for {
		s, rest, more := strings.Cut(raw, "\n")
		if strings.IndexByte(s, '&') >= 0 {
			s = strings.ReplaceAll(html.UnescapeString(s), "\n", " ")
		}
		w.words(visible.Text(s), line)
		if !more {
			return
		}
		w.blank, w.newline = true, true
		line++
		raw = rest
	}
}

// words writes s, which is on one line, with runs of spaces collapsed.
func (w *htmlWriter) words(s string, line int) {
	body := strings.TrimLeft(s, " \t")
	w.blank = w.blank || len(body) < len(s)
	if body == "" {
		return
	}
	w.separate(line)
	end := strings.TrimRight(body, " \t")
	if strings.Contains(end, "  ") || strings.IndexByte(end, '\t') >= 0 {
		w.write(strings.Join(strings.FieldsFunc(end, isPlainBlank), " "), line)
	} else {
		w.write(end, line)
	}
	w.blank = len(end) < len(body)
}

func isPlainBlank(r rune) bool { return r == ' ' || r == '\t' }

// separate opens a block if none is open and writes the pending space or line break.
func (w *htmlWriter) separate(line int) {
	w.ensure(line)
	switch {
	case !w.blank:
	case w.newline && (w.column >= shortLine && !w.cells && w.kind != Heading || w.join):
		w.b.newline()
		w.column = 0
		if w.join {
			w.b.glue("  ")
		}
	case w.column > 0:
		w.b.glue(" ")
	}
	w.blank, w.newline, w.join = false, false, false
}

func (w *htmlWriter) write(s string, line int) {
	w.b.put(s, line)
	w.column += len(s)
}

func (w *htmlWriter) lineBreak() {
	if !w.open {
		return
	}
	if w.cells || w.kind == Heading {
		w.blank = true
		return
	}
	w.b.newline()
	w.column, w.blank, w.newline = 0, false, false
}

func (w *htmlWriter) image(n *htmlNode) {
	alt := strings.Join(strings.Fields(n.attr("alt")), " ")
	if w.images != nil && !w.cells && !w.join && w.kind != Heading {
		if data := w.images(n.attr("src")); data != nil {
			w.finish()
			w.b.picture(picture{alt: alt, data: data, line: int(n.line)})
			return
		}
	}
	if alt == "" {
		return
	}
	w.blank = true
	w.words(alt, int(n.line))
	w.blank = true
}

// superscript writes powers in the form "2^n". Note marks, which are links, are written unchanged.
func (w *htmlWriter) superscript(n *htmlNode) {
	if n.links == 0 && w.open && !w.blank && w.column > 0 && n.words <= 8 {
		last := rune(w.b.text[len(w.b.text)-1])
		first := strings.TrimSpace(n.line1())
		if (unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')') && first != "" && !strings.ContainsAny(first[:1], "[(*") &&
			first != "th" && first != "st" && first != "nd" && first != "rd" {
			w.b.glue("^")
		}
	}
	w.children(n)
}

func (w *htmlWriter) heading(n *htmlNode) {
	if w.cells {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	w.finish()
	w.marker = ""
	w.kind = Heading
	w.ensure(int(n.line))
	w.b.cur.Level = int(n.tag[1] - '0')
	for c := n.first; c != nil; c = c.next {
		if !isPermalink(c) {
			w.flow(c)
		}
	}
	w.finish()
}

// isPermalink reports whether n is the link of a heading to itself.
func isPermalink(n *htmlNode) bool {
	if n.tag != "a" {
		return false
	}
	switch n.line1() {
	case "¶", "#", "§", "🔗", "Permalink", "Link to this heading", "Anchor":
		return true
	}
	return strings.Contains(n.attr("class"), "headerlink")
}

func (w *htmlWriter) list(n *htmlNode) {
	if w.cells {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	w.flush()
	if w.marker != "" { // a list directly inside a list item
		w.marker = ""
	}
	start := 1
	if s, err := strconv.Atoi(n.attr("start")); err == nil && s >= 0 {
		start = s
	}
	w.lists = append(w.lists, htmlList{ordered: n.tag == "ol", next: start})
	w.children(n)
	w.finish()
	w.lists = w.lists[:len(w.lists)-1]
}

func (w *htmlWriter) item(n *htmlNode) {
	if w.cells || len(w.lists) == 0 {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	w.finish()
	list := &w.lists[len(w.lists)-1]
	marker := "- "
	if list.ordered {
		marker = strconv.Itoa(list.next) + ". "
		list.next++
	}
	w.kind = ListItem
	w.marker = strings.Repeat("  ", min(len(w.lists)-1, 8)) + marker
	w.startBlocks(n)
	w.marker = ""
	w.finish()
}

// startBlocks writes n's children. The first block keeps the current kind and marker even if it is
// a paragraph.
func (w *htmlWriter) startBlocks(n *htmlNode) {
	for c := n.first; c != nil; c = c.next {
		if !w.open && blockTags[c.tag] && !startsStructure(c) {
			w.startBlocks(c)
			w.flush()
			continue
		}
		w.flow(c)
	}
}

// startsStructure reports whether n produces blocks of another kind.
func startsStructure(n *htmlNode) bool {
	switch n.tag {
	case "p", "div", "section", "article", "center", "blockquote", "figure":
		return false
	}
	return true
}

// definition writes a term or the definition that follows it in the same block.
func (w *htmlWriter) definition(n *htmlNode) {
	if w.cells {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	after := w.b.open && w.open && w.kind == ListItem && w.join
	if !after {
		w.finish()
		w.kind = ListItem
		w.startBlocks(n)
		if n.tag == "dt" && w.open {
			w.join, w.blank, w.newline = true, true, true
			return
		}
		w.finish()
		return
	}
	w.blank, w.newline = true, true
	w.children(n)
	if n.tag == "dt" {
		w.join, w.blank, w.newline = w.open, true, true
		return
	}
	w.finish()
}

// pre writes preformatted text as code.
func (w *htmlWriter) pre(n *htmlNode) {
	if w.cells {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	w.finish()
	w.marker = ""
	w.b.begin(Code)
	started := false
	w.verbatim(n, &started)
	w.b.end()
	w.finish()
}

// verbatim puts the text below n unchanged, without leading blank lines.
func (w *htmlWriter) verbatim(n *htmlNode, started *bool) {
	if n.tag == "br" {
		if *started {
			w.b.newline()
		}
		return
	}
	if n.tag != "" {
		if droppedTags[n.tag] || n.hidden() || strings.Contains(n.attr("class"), "lineno") {
			return
		}
		for c := n.first; c != nil; c = c.next {
			w.verbatim(c, started)
		}
		return
	}
	line := int(n.line)
	for s := range strings.SplitAfterSeq(n.raw, "\n") {
		text := strings.TrimSuffix(s, "\n")
		if strings.IndexByte(text, '&') >= 0 {
			text = strings.ReplaceAll(html.UnescapeString(text), "\n", " ")
		}
		if *started = *started || !isBlank(text); *started {
			w.b.put(text, line)
			if len(text) < len(s) && s[len(s)-1] == '\n' {
				w.b.newline()
			}
		}
		if strings.HasSuffix(s, "\n") {
			line++
		}
	}
}
