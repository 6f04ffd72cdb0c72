package parse

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/html"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

var xmlStart = lazyregexp.New(`^\s*<(\?xml[\s?]|!DOCTYPE\s|!--|[A-Za-z_][\w.-]*(:[\w.-]+)?[\s/>])`)

// xmlExtensions are the extensions of XML documents and data. Programs in XML, such as XSLT, are
// source code.
var xmlExtensions = tagSet(".xml .rss .atom .svg .dbk .docbook .jats .nxml .tei .dita .ditamap .opml .kml .gpx .xliff .xlf .tmx .wsdl .fb2 .rdf .mml")

// isXML reports whether src may be XML other than XHTML.
func isXML(src *source) bool {
	start := head(src.text)
	if htmlStart.MatchString(start) || !xmlStart.MatchString(start) {
		return false
	}
	return xmlExtensions[src.ext] || languages[src.ext] == nil && strings.HasPrefix(strings.TrimSpace(start), "<?xml")
}

// parseXML parses XML. Elements of DocBook, JATS, TEI, DITA and similar vocabularies become
// headings, paragraphs, lists, code and tables by their names. Data, which has no text between
// elements, becomes records as JSON does. Entities that the document declares as plain text are
// replaced; other declared entities are refused.
func parseXML(src *source, b *builder) bool {
	entities, err := xmlEntities(src.text)
	if err != nil {
		b.err = err
		return true
	}
	r := newMarkupReader([]byte(src.text), b.canceled)
	r.Strict = false
	r.CharsetReader = decodedCharset
	if len(entities) > 0 {
		r.Entity = entities
	}
	start, err := r.root()
	if err != nil {
		return false
	}
	root, err := r.element(start)
	switch {
	case errors.Is(err, ErrLimit):
		b.err = err
		return true
	case err != nil:
		return false // read as another text, which keeps all of it
	}
	x := &xmlDoc{b: b, src: src}
	switch {
	case root.local() == "svg":
		x.svg(root)
	case isXMLDocument(root):
		x.section(root, 0, 0)
		x.flush()
	default:
		x.data(root)
	}
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

var (
	xmlEntityDecl = lazyregexp.New(`<!ENTITY\s+(%\s+)?([\w.-]+)\s+("[^"]*"|'[^']*'|SYSTEM|PUBLIC)`)
	xmlEntityRef  = lazyregexp.New(`&([A-Za-z_][\w.-]*);`)
)

// xmlPredefined are the entities that need no declaration.
var xmlPredefined = tagSet("amp lt gt quot apos")

const (
	maxEntityBytes = 10_000  // of one entity
	maxExpansion   = 1 << 20 // bytes that entities may add to a document
)

// xmlEntities returns the entities of HTML and those that the document declares as text without
// markup and references. References to entities in other files stay as they are.
func xmlEntities(text string) (map[string]string, error) {
	declared := xmlEntityDecl.FindAllStringSubmatch(text, 2_000)
	if len(declared) == 0 {
		return nil, nil
	}
	entities := make(map[string]string, len(xml.HTMLEntity)+len(declared))
	for k, v := range xml.HTMLEntity {
		entities[k] = v
	}
	own := map[string]string{}
	for _, m := range declared {
		if _, ok := own[m[2]]; ok || m[1] != "" || m[3] == "SYSTEM" || m[3] == "PUBLIC" {
			continue
		}
		value := m[3][1 : len(m[3])-1]
		own[m[2]] = "&" + m[2] + ";" // kept as a reference
		foreign := false
		for _, ref := range xmlEntityRef.FindAllStringSubmatch(value, -1) {
			if _, ok := own[ref[1]]; ok {
				return nil, fmt.Errorf("its entity %q is made of other entities: %w", m[2], ErrLimit)
			}
			foreign = foreign || !xmlPredefined[ref[1]]
		}
		if len(value) <= maxEntityBytes && !foreign && !strings.ContainsAny(value, "<%") {
			own[m[2]] = html.UnescapeString(value)
		}
		entities[m[2]] = own[m[2]]
	}
	added := 0
	for _, ref := range xmlEntityRef.FindAllStringSubmatchIndex(text, -1) {
		if added += len(own[text[ref[2]:ref[3]]]); added > maxExpansion {
			return nil, fmt.Errorf("its entities add more than %d MiB: %w", maxExpansion>>20, ErrLimit)
		}
	}
	return entities, nil
}

// xmlDocuments are the root elements of vocabularies of documents.
var xmlDocuments = tagSet("article book chapter section part appendix preface refentry reference set sect1 TEI teiCorpus TEI.2 topic concept task " +
	"dita FictionBook glossary bookmap troubleshooting guide document doc")

// isXMLDocument reports whether a tree is prose rather than data: it has the root of a known
// vocabulary, or text between elements.
func isXMLDocument(root *markupNode) bool {
	if xmlDocuments[root.local()] && (root.find("title") != nil || hasNode(root, xmlParagraphs)) {
		return true
	}
	mixed, total := 0, 0
	countMixed(root, &mixed, &total)
	return mixed > 0 && mixed*10 >= total
}

func hasNode(n *markupNode, names map[string]bool) bool {
	for _, c := range n.children {
		if c.name != "" && (names[c.local()] || hasNode(c, names)) {
			return true
		}
	}
	return false
}

// countMixed adds the elements below n with text, and those of them that have elements too.
func countMixed(n *markupNode, mixed, total *int) {
	text, elements := false, false
	for _, c := range n.children {
		if c.name == "" {
			text = text || !isBlank(c.text)
			continue
		}
		elements = true
		countMixed(c, mixed, total)
	}
	if text {
		*total++
		if elements {
			*mixed++
		}
	}
}

// data writes data as JSON is written: the element as an object, its attributes and children as
// members, repeated children as lists.
func (x *xmlDoc) data(root *markupNode) {
	top := root
	for range maxMarkupDepth { // rss > channel
		elements := top.elements()
		if len(elements) != 1 || len(elements[0].elements()) == 0 || len(xmlAttrs(top)) > 1 {
			break
		}
		top = elements[0]
	}
	v := x.value(top, 0)
	if v.kind == jsonScalar {
		x.b.puts(Paragraph, v.text, v.line)
		return
	}
	if t := v.member("title", "name"); t != nil && t.kind == jsonScalar {
		x.b.title = t.text
	}
	if len(v.members) == 1 && v.members[0].kind == jsonList {
		v = v.members[0]
	}
	writeJSON(x.b, v, 1)
}

// elements returns the children that are elements.
func (n *markupNode) elements() []*markupNode {
	var list []*markupNode
	for _, c := range n.children {
		if c.name != "" {
			list = append(list, c)
		}
	}
	return list
}

// xmlAttrs returns the attributes of n that are not about the form of the document.
func xmlAttrs(n *markupNode) []xml.Attr {
	var list []xml.Attr
	for _, a := range n.attrs {
		name := a.Name.Local
		if name == "xmlns" || strings.HasPrefix(name, "xmlns:") || strings.HasPrefix(name, "XMLSchema-instance:") || strings.HasPrefix(name, "xml:") || a.Value == "" {
			continue
		}
		list = append(list, a)
	}
	return list
}

// maxDataDepth is the greatest depth of elements in data. The text of deeper ones becomes one
// value.
const maxDataDepth = 60

// value returns an element of data as a value of JSON.
func (x *xmlDoc) value(n *markupNode, depth int) *jsonValue {
	v := &jsonValue{kind: jsonObject, key: xmlKey(n), line: x.line(n)}
	attrs := xmlAttrs(n)
	elements := n.elements()
	if len(elements) == 0 || depth >= maxDataDepth || x.isMixed(n) {
		v.text = plainWords(n.words())
		if v.text == "" || len(attrs) == 0 {
			v.kind = jsonScalar
			if v.text == "" && len(attrs) > 0 {
				v.kind = jsonObject
				v.members = attrValues(attrs, v.line)
			}
			return v
		}
		v.kind = jsonScalar
		var notes []string
		for _, a := range attrs {
			notes = append(notes, attrKey(a)+": "+a.Value)
		}
		v.text += " (" + strings.Join(notes, ", ") + ")"
		return v
	}
	v.members = attrValues(attrs, v.line)
	lists := map[string]*jsonValue{}
	counts := map[string]int{}
	for _, c := range elements {
		counts[xmlKey(c)]++
	}
	for _, c := range elements {
		member := x.value(c, depth+1)
		if member.kind == jsonScalar && member.text == "" {
			continue
		}
		if counts[member.key] == 1 {
			v.members = append(v.members, member)
			continue
		}
		list := lists[member.key]
		if list == nil {
			list = &jsonValue{kind: jsonList, key: member.key, line: member.line}
			lists[member.key] = list
			v.members = append(v.members, list)
		}
		member.key = ""
		list.members = append(list.members, member)
	}
	return v
}

func attrValues(attrs []xml.Attr, line int) []*jsonValue {
	var list []*jsonValue
	for _, a := range attrs {
		list = append(list, &jsonValue{kind: jsonScalar, key: attrKey(a), text: a.Value, line: line})
	}
	return list
}

func attrKey(a xml.Attr) string { return a.Name.Local[strings.IndexByte(a.Name.Local, ':')+1:] }

// xmlKey returns the name of an element of data. content:encoded is the full text of an item of
// RSS.
func xmlKey(n *markupNode) string {
	if n.name == "content:encoded" {
		return "content"
	}
	return n.local()
}

// isMixed reports whether n has text beside elements.
func (x *xmlDoc) isMixed(n *markupNode) bool {
	for _, c := range n.children {
		if c.name == "" && !isBlank(c.text) {
			return true
		}
	}
	return n.name == "xhtml:div"
}

// plainWords returns the words of text that may be HTML. A text long enough to have blocks of its
// own stays as it is, for writeRecord.
func plainWords(text string) string {
	const shortHTML = 200
	if len(text) > shortHTML || !htmlTag.MatchString(text) {
		return text
	}
	return parseTree(text, 1, func() bool { return false }).line1()
}

// svg writes the texts of a drawing.
func (x *xmlDoc) svg(root *markupNode) {
	var write func(n *markupNode)
	write = func(n *markupNode) {
		if x.b.canceled() {
			return
		}
		switch n.local() {
		case "title":
			if x.b.title == "" {
				x.b.title = n.words()
			}
			x.b.puts(Figure, n.words(), x.line(n))
		case "desc":
			x.b.puts(Figure, n.words(), x.line(n))
		case "text", "flowRoot", "foreignObject":
			x.b.puts(Paragraph, n.words(), x.line(n))
		case "style", "script", "metadata":
		default:
			for _, c := range n.elements() {
				write(c)
			}
		}
	}
	write(root)
}
