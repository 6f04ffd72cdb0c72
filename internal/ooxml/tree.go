package ooxml

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Limits of a tree.
const (
	maxDepth = 256
	maxAttrs = 100
	maxTree  = 192 << 20 // bytes of memory, about
)

// A Node is an element. Names have the usual prefix of their namespace, such as "w:p", whatever
// prefix the source uses and whether it is of the transitional or the strict form. The elements of
// the default namespaces of packages, spreadsheets and unknown vocabularies have no prefix.
type Node struct {
	Name     string
	Attrs    []Attr
	Children []*Node
	Text     string // the text directly inside, all pieces together
}

// An Attr is an attribute. Its name has a prefix if it had one.
type Attr struct{ Name, Value string }

// Attr returns the value of an attribute, or "".
func (n *Node) Attr(name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// HasAttr reports whether n has an attribute.
func (n *Node) HasAttr(name string) bool {
	if n == nil {
		return false
	}
	for _, a := range n.Attrs {
		if a.Name == name {
			return true
		}
	}
	return false
}

// Child returns the element at the end of a path of names below n, each the first of its name, or
// nil. n may be nil.
func (n *Node) Child(path ...string) *Node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		var next *Node
		for _, c := range n.Children {
			if c.Name == name {
				next = c
				break
			}
		}
		n = next
	}
	return n
}

// All returns the children of n with a name.
func (n *Node) All(name string) []*Node {
	if n == nil {
		return nil
	}
	var all []*Node
	for _, c := range n.Children {
		if c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// Find returns the first element with a name in the tree of n, or nil.
func (n *Node) Find(name string) *Node {
	var found *Node
	n.Walk(func(c *Node) bool {
		if found == nil && c.Name == name {
			found = c
		}
		return found == nil
	})
	return found
}

// Walk calls f for n and the elements below it, in the order of the source. It skips the children
// of an element for which f returns false.
func (n *Node) Walk(f func(*Node) bool) {
	if n == nil || !f(n) {
		return
	}
	for _, c := range n.Children {
		c.Walk(f)
	}
}

// Tree returns the root element of a part, without limits of its own.
func (p *Package) Tree(name string) (*Node, error) {
	d, err := p.Decoder(name, MaxPart)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	root, err := d.Root()
	if err != nil {
		return nil, err
	}
	tree, err := d.Tree(root)
	if err != nil {
		return nil, err
	}
	if err := d.drain(); err != nil {
		return nil, err
	}
	return tree, nil
}

// A Decoder reads a part element by element, so that a large part needs little memory.
type Decoder struct {
	name  string
	r     io.Closer
	xml   *xml.Decoder
	names map[xml.Name]string
	depth int
}

// Decoder returns a decoder of a part of at most limit bytes. The caller closes it.
func (p *Package) Decoder(name string, limit int64) (*Decoder, error) {
	r, err := p.Open(name, limit)
	if err != nil {
		return nil, err
	}
	text, err := utf8Reader(r)
	if err != nil {
		r.Close()
		return nil, err
	}
	x := xml.NewDecoder(&tagReader{r: text, name: name})
	x.CharsetReader = charset.NewReaderLabel
	return &Decoder{name: name, r: r, xml: x, names: map[xml.Name]string{}}, nil
}

// utf8Reader converts r from UTF-16 if it starts with a byte order mark.
func utf8Reader(r io.Reader) (io.Reader, error) {
	start := make([]byte, 2)
	n, err := io.ReadFull(r, start)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(start[:n]), r)
	if !bytes.Equal(start, []byte("\xff\xfe")) && !bytes.Equal(start, []byte("\xfe\xff")) {
		return r, nil
	}
	r = transform.NewReader(r, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder())
	return &relabelled{r: r}, nil
}

// A relabelled removes the encoding from the declaration of a document that was converted to UTF-8.
type relabelled struct {
	r    io.Reader
	rest []byte
	done bool
}

func (r *relabelled) Read(b []byte) (int, error) {
	if !r.done {
		r.done = true
		start := make([]byte, 200)
		n, err := io.ReadFull(r.r, start)
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		r.rest = start[:n]
		if i := bytes.Index(r.rest, []byte("?>")); i >= 0 && bytes.HasPrefix(r.rest, []byte("<?xml")) {
			r.rest = r.rest[i+2:]
		}
	}
	if len(r.rest) > 0 {
		n := copy(b, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	return r.r.Read(b)
}

// Close closes the part.
func (d *Decoder) Close() error { return d.r.Close() }

// Next returns the next start element, without its children, at any depth. At the end of the part
// it returns io.EOF.
func (d *Decoder) Next() (*Node, error) {
	for {
		t, err := d.token()
		if err != nil {
			return nil, err
		}
		if start, ok := t.(xml.StartElement); ok {
			return d.node(start)
		}
	}
}

// Children calls f for each child of the element that Next or Children has just returned. f may
// read the child by Tree or Children; otherwise it is skipped.
func (d *Decoder) Children(f func(*Node) error) error {
	at := d.depth
	for {
		t, err := d.token()
		if err != nil {
			return d.wrap(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			n, err := d.node(t)
			if err != nil {
				return err
			}
			if err := f(n); err != nil {
				return err
			}
			if err := d.skipTo(at); err != nil {
				return err
			}
		case xml.EndElement:
			if d.depth < at {
				return nil
			}
		}
	}
}

func (d *Decoder) skipTo(depth int) error {
	for d.depth > depth {
		if _, err := d.token(); err != nil {
			return d.wrap(err)
		}
	}
	return nil
}

// drain reads the rest of the part, so that its checksum is verified.
func (d *Decoder) drain() error {
	for {
		switch _, err := d.token(); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return d.wrap(err)
		}
	}
}

// Tree reads the children of the element that Next or Children has just returned, and returns it.
func (d *Decoder) Tree(root *Node) (*Node, error) {
	stack := []*Node{root}
	texts := []textBuffer{{}}
	size := 0
	for {
		t, err := d.token()
		if err != nil {
			return nil, d.wrap(err)
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			n, err := d.node(t)
			if err != nil {
				return nil, err
			}
			top.Children = append(top.Children, n)
			stack, texts = append(stack, n), append(texts, textBuffer{})
			size += n.size()
		case xml.CharData:
			texts[len(texts)-1].add(t)
			size += len(t)
		case xml.EndElement:
			top.Text = texts[len(texts)-1].text(len(top.Children) > 0)
			stack, texts = stack[:len(stack)-1], texts[:len(texts)-1]
			if len(stack) == 0 {
				return root, nil
			}
		}
		if size > maxTree {
			return nil, fmt.Errorf("part %q has an element of more than %d MiB: %w", d.name, maxTree>>20, ErrLimit)
		}
	}
}

// A textBuffer joins the pieces of an element's text.
type textBuffer struct{ b []byte }

func (t *textBuffer) add(s []byte) { t.b = append(t.b, s...) }

// text returns the text. White space between elements is not text.
func (t *textBuffer) text(hasChildren bool) string {
	if hasChildren && len(bytes.TrimSpace(t.b)) == 0 {
		return ""
	}
	return string(t.b)
}

// size returns the memory that n takes without its text and children, about.
func (n *Node) size() int {
	const node, attr = 120, 32
	size := node
	for _, a := range n.Attrs {
		size += attr + len(a.Value)
	}
	return size
}

// token returns the next token. A document type declaration is an error, because it could define
// entities.
func (d *Decoder) token() (xml.Token, error) {
	t, err := d.xml.Token()
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case xml.StartElement:
		d.depth++
		if d.depth > maxDepth {
			return nil, fmt.Errorf("part %q nests elements more than %d deep: %w", d.name, maxDepth, ErrLimit)
		}
	case xml.EndElement:
		d.depth--
	case xml.Directive:
		return nil, fmt.Errorf("%w: part %q has a document type declaration", ErrDamaged, d.name)
	}
	return t, nil
}

// wrap gives errors of XML and of its encoding the kind ErrDamaged.
func (d *Decoder) wrap(err error) error {
	switch {
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrLimit), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: part %q: %v", ErrDamaged, d.name, err)
}

func (d *Decoder) node(t xml.StartElement) (*Node, error) {
	if len(t.Attr) > maxAttrs {
		return nil, fmt.Errorf("part %q has an element with %d attributes: %w", d.name, len(t.Attr), ErrLimit)
	}
	n := &Node{Name: d.intern(t.Name)}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		if n.Attrs == nil {
			n.Attrs = make([]Attr, 0, len(t.Attr))
		}
		n.Attrs = append(n.Attrs, Attr{d.intern(a.Name), a.Value})
	}
	return n, nil
}

func (d *Decoder) intern(name xml.Name) string {
	if s, ok := d.names[name]; ok {
		return s
	}
	s := name.Local
	if p := prefixOf(name.Space); p != "" {
		s = p + ":" + s
	}
	if len(d.names) < 10_000 {
		d.names[name] = s
	}
	return s
}

const (
	transitional = "http://schemas.openxmlformats.org/"
	strict       = "http://purl.oclc.org/ooxml/"
)

// prefixOf returns the prefix of a namespace, or "".
func prefixOf(space string) string {
	rest, ok := strings.CutPrefix(space, transitional)
	if !ok {
		rest, ok = strings.CutPrefix(space, strict)
	}
	if ok {
		return schemaPrefixes[strings.Replace(rest, "/2006/", "/", 1)]
	}
	return otherPrefixes[space]
}

// schemaPrefixes has the namespaces that have a transitional and a strict form, without the year.
var schemaPrefixes = map[string]string{
	"wordprocessingml/main":            "w",
	"officeDocument/relationships":     "r",
	"officeDocument/math":              "m",
	"drawingml/main":                   "a",
	"drawingml/chart":                  "c",
	"drawingml/diagram":                "dgm",
	"drawingml/picture":                "pic",
	"drawingml/wordprocessingDrawing":  "wp",
	"drawingml/spreadsheetDrawing":     "xdr",
	"presentationml/main":              "p",
	"package/metadata/core-properties": "cp",
	"markup-compatibility/2006":        "mc",
}

// otherPrefixes has the namespaces with one form.
var otherPrefixes = map[string]string{
	"urn:schemas-microsoft-com:vml":                                       "v",
	"urn:schemas-microsoft-com:office:office":                             "o",
	"urn:schemas-microsoft-com:office:word":                               "w10",
	"urn:schemas-microsoft-com:office:excel":                              "x",
	"http://schemas.microsoft.com/office/word/2010/wordml":                "w14",
	"http://schemas.microsoft.com/office/word/2012/wordml":                "w15",
	"http://schemas.microsoft.com/office/word/2010/wordprocessingShape":   "wps",
	"http://schemas.microsoft.com/office/word/2010/wordprocessingGroup":   "wpg",
	"http://schemas.microsoft.com/office/word/2010/wordprocessingCanvas":  "wpc",
	"http://schemas.microsoft.com/office/word/2010/wordprocessingDrawing": "wp14",
	"http://schemas.microsoft.com/office/drawing/2008/diagram":            "dsp",
	"http://schemas.microsoft.com/office/drawing/2010/main":               "a14",
	"http://schemas.microsoft.com/office/drawing/2014/chartex":            "cx",
	"http://schemas.microsoft.com/office/drawing/2017/decorative":         "adec",
	"http://schemas.microsoft.com/office/powerpoint/2010/main":            "p14",
	"http://schemas.microsoft.com/office/powerpoint/2012/main":            "p15",
	"http://schemas.microsoft.com/office/powerpoint/2018/8/main":          "p188",
	"http://purl.org/dc/elements/1.1/":                                    "dc",
	"http://purl.org/dc/terms/":                                           "dcterms",
	"http://www.w3.org/XML/1998/namespace":                                "xml",
	"xml":                                                                 "xml",
}

// String returns the text directly inside n, or "" if n is nil.
func (n *Node) String() string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Root returns the first element of the part, without its children.
func (d *Decoder) Root() (*Node, error) {
	n, err := d.Next()
	if err != nil {
		return nil, d.wrap(err)
	}
	return n, nil
}
