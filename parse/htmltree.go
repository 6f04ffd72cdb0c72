package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/net/html"
)

// An htmlNode is an element, or text if tag is empty.
type htmlNode struct {
	tag      string
	bits     tagBits
	raw      string // text: as in the source, with entities unresolved
	line     int    // source line of its start
	attrs    map[string]string
	children []*htmlNode

	// Counted by measure, to separate content from boilerplate:
	words int // bytes of text that are not white space
	links int // of these, bytes inside links
	prose int // of these, bytes in paragraphs, preformatted text, td, dd and blockquote
}

func (n *htmlNode) attr(name string) string { return n.attrs[name] }

// deepestHTML is the greatest nesting depth of elements; deeper ones are added to their ancestor at
// that depth. Browsers have the same kind of limit, at 512.
const deepestHTML = 400

// An htmlBuilder builds a tree from a token stream, as precisely as needed to find blocks and text.
// It handles end tags that may be omitted. The parser of golang.org/x/net/html is not used because
// it does not report source positions.
type htmlBuilder struct {
	stack []*htmlNode // open elements; stack[0] is the root
}

// parseTree parses HTML whose first line is the given source line.
func parseTree(text string, line int, canceled func() bool) *htmlNode {
	root := &htmlNode{tag: "#root", line: line}
	t := &htmlBuilder{stack: []*htmlNode{root}}
	z := html.NewTokenizer(strings.NewReader(text))
	for tokens := 0; ; tokens++ {
		kind := z.Next()
		if kind == html.ErrorToken || tokens%4096 == 0 && canceled() {
			return root // the only error of the reader is the end of input
		}
		raw := z.Raw()
		breaks := 0
		for _, c := range raw {
			if c == '\n' {
				breaks++
			}
		}
		switch kind {
		case html.TextToken:
			t.top().add(&htmlNode{raw: string(raw), line: line})
		case html.StartTagToken, html.SelfClosingTagToken:
			t.open(z, line)
		case html.EndTagToken:
			name, _ := z.TagName()
			t.close(string(name))
		}
		line += breaks
	}
}

func (t *htmlBuilder) top() *htmlNode { return t.stack[len(t.stack)-1] }

func (n *htmlNode) add(c *htmlNode) { n.children = append(n.children, c) }

// keptAttrs are the attributes that are read.
var keptAttrs = map[string]bool{
	"class": true, "id": true, "role": true, "href": true, "hidden": true, "aria-hidden": true, "style": true, "lang": true,
	"name": true, "property": true, "content": true, "alt": true, "start": true, "datetime": true, "type": true, "http-equiv": true,
}

func (t *htmlBuilder) open(z *html.Tokenizer, line int) {
	name, more := z.TagName()
	n := &htmlNode{tag: string(name), line: line}
	n.bits = bitsOf[n.tag]
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if k := string(key); keptAttrs[k] {
			if n.attrs == nil {
				n.attrs = map[string]string{}
			}
			if _, ok := n.attrs[k]; !ok {
				n.attrs[k] = string(value)
			}
		}
	}
	t.implyEnds(n)
	t.top().add(n)
	if !voidTags[n.tag] && len(t.stack) < deepestHTML {
		t.stack = append(t.stack, n)
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
	for _, c := range n.children {
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
	for _, c := range n.children {
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
	for _, c := range n.children {
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
	for _, c := range n.children {
		c.collect(out)
	}
}
