package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"golang.org/x/net/html"
)

// An htmlNode is an element, or a piece of text where tag is empty.
type htmlNode struct {
	tag      string
	bits     tagBits
	raw      string // text: as in the source, entities not resolved; title: resolved
	line     int    // source line of its start
	attrs    map[string]string
	children []*htmlNode

	// Counted by measure, for telling content from what is around it:
	words int // bytes of text that are not blank
	links int // of these, inside links
	prose int // of these, inside paragraphs' own text, code and table cells
}

func (n *htmlNode) attr(name string) string { return n.attrs[name] }

// deepestHTML is how deep elements nest; those deeper down belong to their
// ancestor at that depth. Browsers have the same limit, at 512.
const deepestHTML = 400

// An htmlBuilder makes a tree of a token stream, as far as it takes to find
// blocks and text: it knows which end tags may be left out. The tree of
// golang.org/x/net/html itself does not tell where in the source its nodes are.
type htmlBuilder struct {
	stack []*htmlNode // open elements; stack[0] is the root
}

// parseTree reads HTML whose first line is the given source line.
func parseTree(text string, line int, canceled func() bool) *htmlNode {
	root := &htmlNode{tag: "#root", line: line}
	t := &htmlBuilder{stack: []*htmlNode{root}}
	z := html.NewTokenizer(strings.NewReader(text))
	for tokens := 0; ; tokens++ {
		kind := z.Next()
		if kind == html.ErrorToken || tokens%4096 == 0 && canceled() {
			return root // the reader has no errors but its end
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

// keptAttrs are the attributes that are looked at.
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

// tagSet makes a set of space-separated names.
func tagSet(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

var (
	voidTags = tagSet("area base br col embed hr img input link meta param source track wbr frame keygen")

	// blockTags start a block of their own and end an open paragraph.
	blockTags = tagSet("address article aside blockquote center details dialog dd dir div dl dt fieldset figcaption figure " +
		"footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul " +
		"tbody thead tfoot tr td th caption body html")

	tagSetHeading = tagSet("h1 h2 h3 h4 h5 h6")
)

// tagBits say what a tag means for the ends that are left out.
type tagBits uint16

const (
	bitP tagBits = 1 << iota
	bitLi
	bitDef
	bitCell
	bitRow
	bitGroup // of rows, and caption
	bitOption
	bitLink
	bitHeading
	bitScope // keeps an end tag inside from closing what is outside
	bitList
	bitTable
	bitRoot // html and body, which end tags close from anywhere
)

var bitsOf = map[string]tagBits{
	"p": bitP, "li": bitLi, "dt": bitDef, "dd": bitDef, "tr": bitRow, "td": bitCell | bitScope, "th": bitCell | bitScope,
	"thead": bitGroup, "tbody": bitGroup, "tfoot": bitGroup, "caption": bitGroup | bitScope, "colgroup": bitGroup,
	"option": bitOption, "a": bitLink, "h1": bitHeading, "h2": bitHeading, "h3": bitHeading, "h4": bitHeading, "h5": bitHeading, "h6": bitHeading,
	"table": bitTable | bitScope, "button": bitScope, "object": bitScope, "template": bitScope,
	"ul": bitList, "ol": bitList, "dl": bitList, "menu": bitList, "dir": bitList, "html": bitRoot, "body": bitRoot,
}

// implyEnds closes the elements whose end tags are left out before n starts.
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

// closeUpTo closes the outermost open element with one of the bits, and all
// inside it, without leaving an element with one of stop's.
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

// close handles an end tag: it closes the nearest such element, unless there is
// none or it is outside of what a table cell may close.
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

// measure counts the words of n and below.
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

// find returns the nodes at and below n that ok holds for, in document order,
// not looking inside those.
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

// walk calls visit for n and what is below it, in document order; not for what
// is below a node that visit returns false for.
func (n *htmlNode) walk(visit func(*htmlNode) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.children {
		c.walk(visit)
	}
}

// line1 returns the words below n on one line.
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
