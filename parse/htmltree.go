package parse

import (
	"bytes"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/net/html"
)

// An htmlNode is an element, or text if tag is empty. A large document has millions.
type htmlNode struct {
	tag   string
	bits  tagBits
	raw   string      // text: as in the source, with entities unresolved
	line  uint32      // source line of its start
	attrs *[]htmlAttr // nil: none

	first, next *htmlNode // child and sibling

	// Counted by measure, to separate content from boilerplate:
	words uint32 // bytes of text that are not white space
	links uint32 // of these, bytes inside links
	prose uint32 // of these, bytes in paragraphs, preformatted text, td, dd and blockquote
}

// An htmlAttr is an attribute.
type htmlAttr struct{ key, value string }

// attr returns the value of an attribute, or "".
func (n *htmlNode) attr(name string) string {
	value, _ := n.lookup(name)
	return value
}

func (n *htmlNode) lookup(name string) (value string, ok bool) {
	if n.attrs == nil {
		return "", false
	}
	for _, a := range *n.attrs {
		if a.key == name {
			return a.value, true
		}
	}
	return "", false
}

// deepestHTML is the greatest nesting depth of elements; deeper ones are added to their ancestor at
// that depth. Browsers have the same kind of limit, at 512.
const deepestHTML = 400

// An htmlBuilder builds a tree from a token stream, as precisely as needed to find blocks and text.
// It handles end tags that may be omitted. The parser of golang.org/x/net/html is not used because
// it does not report source positions.
type htmlBuilder struct {
	stack []openElement // stack[0] is the root
	slab  []htmlNode    // nodes that are not used yet
	names map[string]string
}

// parseTree parses HTML whose first line is the given source line.
func parseTree(text string, line int, canceled func() bool) *htmlNode {
	t := &htmlBuilder{names: map[string]string{}}
	root := t.node(line)
	root.tag = "#root"
	t.stack = []openElement{{htmlNode: root}}
	at := 0 // offset of the token in text
	z := html.NewTokenizer(strings.NewReader(text))
	for tokens := 0; ; tokens++ {
		kind := z.Next()
		if kind == html.ErrorToken || tokens%4096 == 0 && canceled() {
			return root // the only error of the reader is the end of input
		}
		raw := z.Raw()
		size, breaks := len(raw), bytes.Count(raw, []byte("\n"))
		switch kind {
		case html.TextToken:
			if rowTags[t.top().tag] && isBlank(text[at:at+len(raw)]) {
				break // between rows or cells
			}
			n := t.node(line)
			n.raw = text[at : at+len(raw)]
			t.top().add(n)
		case html.StartTagToken, html.SelfClosingTagToken:
			t.open(z, line)
		case html.EndTagToken:
			name, _ := z.TagName()
			t.close(string(name))
		}
		line += breaks
		at += size
	}
}

// node returns a new node on a line.
func (t *htmlBuilder) node(line int) *htmlNode {
	if len(t.slab) == 0 {
		t.slab = make([]htmlNode, 102) // nearly 8 KiB, which is a size class
	}
	n := &t.slab[0]
	t.slab = t.slab[1:]
	n.line = uint32(line)
	return n
}

// name returns the name of an element as a string that all elements of that name share.
func (t *htmlBuilder) name(name []byte) string {
	s, ok := t.names[string(name)]
	if !ok {
		s = string(name)
		t.names[s] = s
	}
	return s
}

// An openElement is an element whose end has not been found.
type openElement struct {
	*htmlNode
	last *htmlNode // child
}

func (t *htmlBuilder) top() *openElement { return &t.stack[len(t.stack)-1] }

func (n *openElement) add(c *htmlNode) {
	if n.last == nil {
		n.first = c
	} else {
		n.last.next = c
	}
	n.last = c
}

// keptAttrs are the attributes that are read.
var keptAttrs = map[string]bool{
	"class": true, "id": true, "role": true, "href": true, "hidden": true, "aria-hidden": true, "style": true, "lang": true,
	"name": true, "property": true, "content": true, "alt": true, "start": true, "datetime": true, "type": true, "http-equiv": true, "colspan": true, "rowspan": true, "src": true,
}

func (t *htmlBuilder) open(z *html.Tokenizer, line int) {
	name, more := z.TagName()
	n := t.node(line)
	n.tag = t.name(name)
	n.bits = bitsOf[n.tag]
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if k := string(key); keptAttrs[k] {
			if n.attrs == nil {
				n.attrs = &[]htmlAttr{}
			}
			if _, ok := n.lookup(k); !ok {
				*n.attrs = append(*n.attrs, htmlAttr{k, string(value)})
			}
		}
	}
	t.implyEnds(n)
	t.top().add(n)
	if !voidTags[n.tag] && len(t.stack) < deepestHTML {
		t.stack = append(t.stack, openElement{htmlNode: n})
	}
}

// tagSet returns the set of space-separated names.
func tagSet(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

var (
	voidTags = tagSet("area base br col embed hr img input link meta param source track wbr frame keygen")

	// blockTags start a new block and end an open paragraph.
	blockTags = tagSet("address article aside blockquote center details dialog dd dir div dl dt fieldset figcaption figure " +
		"footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul " +
		"tbody thead tfoot tr td th caption body html")

	rowTags = tagSet("table thead tbody tfoot tr") // which contain rows or cells

	tagSetHeading = tagSet("h1 h2 h3 h4 h5 h6")
)

// tagBits classify tags for the handling of omitted end tags.
type tagBits uint16

const (
	bitP tagBits = 1 << iota
	bitLi
	bitDef
	bitCell
	bitRow
	bitGroup // row groups and caption
	bitOption
	bitLink
	bitHeading
	bitScope // keeps an end tag inside from closing an element outside
	bitList
	bitTable
	bitRoot // html and body, which end tags close from any depth
)

var bitsOf = map[string]tagBits{
	"p": bitP, "li": bitLi, "dt": bitDef, "dd": bitDef, "tr": bitRow, "td": bitCell | bitScope, "th": bitCell | bitScope,
	"thead": bitGroup, "tbody": bitGroup, "tfoot": bitGroup, "caption": bitGroup | bitScope, "colgroup": bitGroup,
	"option": bitOption, "a": bitLink, "h1": bitHeading, "h2": bitHeading, "h3": bitHeading, "h4": bitHeading, "h5": bitHeading, "h6": bitHeading,
	"table": bitTable | bitScope, "button": bitScope, "object": bitScope, "template": bitScope,
	"ul": bitList, "ol": bitList, "dl": bitList, "menu": bitList, "dir": bitList, "html": bitRoot, "body": bitRoot,
}

// implyEnds closes the elements whose end tags are omitted before n.
func (t *htmlBuilder) implyEnds(n *htmlNode) {
	switch {
	case n.bits&bitLi != 0:
		t.closeUpTo(bitLi, bitList|bitTable|bitCell)
	case n.bits&bitDef != 0:
		t.closeUpTo(bitDef, bitList|bitTable|bitCell)
	case n.bits&bitRow != 0:
		t.closeUpTo(bitRow|bitCell, bitTable)
	case n.bits&bitCell != 0:
		t.closeUpTo(bitCell, bitTable)
	case n.tag == "thead" || n.tag == "tbody" || n.tag == "tfoot":
		t.closeUpTo(bitGroup|bitRow|bitCell, bitTable)
	case n.bits&bitOption != 0:
		t.closeUpTo(bitOption, bitScope)
	case n.bits&bitLink != 0:
		t.closeUpTo(bitLink, bitScope)
	}
	if blockTags[n.tag] {
		t.closeUpTo(bitP, bitScope)
	}
	if n.bits&t.top().bits&bitHeading != 0 {
		t.stack = t.stack[:len(t.stack)-1]
	}
}

// closeUpTo closes the outermost open element with one of the bits and everything inside it, up to
// the nearest element with one of stop's bits.
func (t *htmlBuilder) closeUpTo(bits, stop tagBits) {
	at := -1
	for i := len(t.stack) - 1; i > 0; i-- {
		b := t.stack[i].bits
		if b&bits != 0 {
			at = i
		} else if b&stop != 0 {
			break
		}
	}
	if at > 0 {
		t.stack = t.stack[:at]
	}
}

// close handles an end tag. It closes the nearest open element of that name, unless there is none
// or a table cell lies in between that the tag cannot close.
func (t *htmlBuilder) close(tag string) {
	if voidTags[tag] {
		return
	}
	wide := bitsOf[tag]&(bitTable|bitRow|bitCell|bitGroup|bitRoot) != 0
	for i := len(t.stack) - 1; i > 0; i-- {
		n := t.stack[i]
		if n.tag == tag {
			t.stack = t.stack[:i]
			return
		}
		if n.bits&bitScope != 0 && !wide || n.bits&bitTable != 0 && bitsOf[tag]&bitRoot == 0 {
			return
		}
	}
}

// measure counts the words of n and its descendants.
func (n *htmlNode) measure(inLink, inProse bool) {
	if n.tag == "" {
		for i := 0; i < len(n.raw); i++ {
			if n.raw[i] > ' ' {
				n.words++
			}
		}
		if inLink {
			n.links = n.words
		} else if inProse {
			n.prose = n.words
		}
		return
	}
	if droppedTags[n.tag] || n.hidden() {
		return
	}
	inLink = inLink || n.tag == "a" && n.attr("href") != ""
	inProse = inProse || proseTags[n.tag]
	for c := n.first; c != nil; c = c.next {
		c.measure(inLink, inProse)
		n.words += c.words
		n.links += c.links
		n.prose += c.prose
	}
}

var proseTags = tagSet("p pre td dd blockquote")

// find returns the nodes at and below n for which ok returns true, in document order. It does not
// search inside those nodes.
func (n *htmlNode) find(ok func(*htmlNode) bool) []*htmlNode {
	if ok(n) {
		return []*htmlNode{n}
	}
	var found []*htmlNode
	for c := n.first; c != nil; c = c.next {
		found = append(found, c.find(ok)...)
	}
	return found
}

// walk calls visit for n and its descendants, in document order. It skips the descendants of a node
// for which visit returns false.
func (n *htmlNode) walk(visit func(*htmlNode) bool) {
	if !visit(n) {
		return
	}
	for c := n.first; c != nil; c = c.next {
		c.walk(visit)
	}
}

// line1 returns the text below n on one line.
func (n *htmlNode) line1() string {
	var out strings.Builder
	n.collect(&out)
	return strings.Join(strings.Fields(visible.Text(out.String())), " ")
}

func (n *htmlNode) collect(out *strings.Builder) {
	if n.tag == "" {
		out.WriteString(html.UnescapeString(n.raw))
		return
	}
	if droppedTags[n.tag] && n.tag != "title" || n.hidden() {
		return
	}
	for c := n.first; c != nil; c = c.next {
		c.collect(out)
	}
}
