package parse

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Limits of packages and of the XML in them.
const (
	maxMemberBytes  = 128 << 20 // of one member of a package, uncompressed
	maxPackageBytes = 256 << 20 // of all members that are read
	maxMarkupDepth  = 256       // elements in elements
	maxNodes        = 2_000_000 // nodes of one tree
)

// A bundle is a ZIP package of XML documents, such as an EPUB or an OpenDocument file.
type bundle struct {
	files map[string]*zip.File
	left  int64 // bytes that members may still have
	stop  func() bool
}

// openBundle opens a ZIP package. stop reports whether reading a member should end.
func openBundle(data []byte, stop func() bool) (*bundle, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("the ZIP package cannot be opened (%w): %w", err, ErrDamaged)
	}
	p := &bundle{files: make(map[string]*zip.File, len(z.File)), left: maxPackageBytes, stop: stop}
	for _, f := range z.File {
		name := bundlePath("", f.Name)
		if _, ok := p.files[name]; !ok {
			p.files[name] = f
		}
	}
	return p, nil
}

// bundlePath returns the path of a member that a member in dir refers to.
func bundlePath(dir, name string) string {
	return strings.TrimPrefix(path.Clean("/"+dir+"/"+strings.ReplaceAll(name, "\\", "/")), "/")
}

func (p *bundle) has(name string) bool { return p.files[name] != nil }

// read returns the bytes of a member, or nil if there is none of that name.
func (p *bundle) read(name string) ([]byte, error) {
	f := p.files[name]
	if f == nil {
		return nil, nil
	}
	if f.Flags&1 != 0 {
		return nil, fmt.Errorf("its member %s is encrypted: %w", name, ErrPassword)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("its member %s cannot be opened (%w): %w", name, err, ErrDamaged)
	}
	defer r.Close()
	limit := min(maxMemberBytes, p.left)
	data, err := io.ReadAll(io.LimitReader(&stoppable{r, p.stop}, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("its member %s cannot be read (%w): %w", name, err, ErrDamaged)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("its member %s has more than %d MiB: %w", name, limit>>20, ErrLimit)
	}
	p.left -= int64(len(data))
	return data, nil
}

var errStopped = errors.New("stopped")

// A stoppable is a reader that fails once stop returns true.
type stoppable struct {
	io.Reader
	stop func() bool
}

func (r *stoppable) Read(p []byte) (int, error) {
	if r.stop() {
		return 0, errStopped
	}
	return r.Reader.Read(p)
}

// zipMimetype returns the content of the member "mimetype", by which EPUB and OpenDocument packages
// state their type. It is the first member and not compressed, so that it has a fixed place. If
// another member is first, the directory of the package is read.
//
// Source: EPUB Open Container Format 3.3, 4.2.2; OpenDocument 1.3 part 2, 3.3.
func zipMimetype(data []byte) string {
	const header = 30
	if len(data) < header || !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		return ""
	}
	name, extra := int(data[26])|int(data[27])<<8, int(data[28])|int(data[29])<<8
	if rest := data[header:]; bytes.HasPrefix(rest, []byte("mimetype")) && name == len("mimetype") && len(rest) > name+extra {
		rest = rest[name+extra:]
		end := bytes.IndexFunc(rest[:min(len(rest), 200)], func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789/.+-", r)
		})
		return string(rest[:max(end, 0)])
	}
	if !bytes.Contains(data, []byte("mimetype")) {
		return ""
	}
	p, err := openBundle(data, func() bool { return false })
	if err != nil || p.files["mimetype"] == nil || p.files["mimetype"].UncompressedSize64 > 200 {
		return ""
	}
	text, err := p.read("mimetype")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// A markupNode is an element of XML, or text if name is empty.
type markupNode struct {
	name     string // "prefix:local", with the prefix that spaceName gives; "local" without a name space
	text     string
	attrs    []xml.Attr // Name.Local has the form of name, Name.Space is empty
	children []*markupNode
	at       int64 // offset of the node in the document
}

// attr returns the value of an attribute, or "".
func (n *markupNode) attr(name string) string {
	for _, a := range n.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// local returns the name without its prefix.
func (n *markupNode) local() string { return n.name[strings.IndexByte(n.name, ':')+1:] }

// child returns the first child of a name, or nil.
func (n *markupNode) child(name string) *markupNode {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// find returns the first node of a name below n, in document order, or nil.
func (n *markupNode) find(name string) *markupNode {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
		if found := c.find(name); found != nil {
			return found
		}
	}
	return nil
}

// each calls f for all nodes of a name below n, in document order. A name without a prefix matches
// any.
func (n *markupNode) each(name string, f func(*markupNode)) {
	for _, c := range n.children {
		if c.name == name || c.name != "" && c.local() == name {
			f(c)
		}
		c.each(name, f)
	}
}

// words returns the text below n on one line.
func (n *markupNode) words() string {
	var out strings.Builder
	n.collect(&out)
	return strings.Join(strings.Fields(out.String()), " ")
}

func (n *markupNode) collect(out *strings.Builder) {
	out.WriteString(n.text)
	for _, c := range n.children {
		c.collect(out)
	}
}

// A markupReader reads elements of XML as trees. It expands no entities beyond those of HTML.
type markupReader struct {
	*xml.Decoder
	prefixes map[string]string // by name space
	nodes    int
	stop     func() bool
}

func newMarkupReader(data []byte, stop func() bool) *markupReader {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Entity = xml.HTMLEntity
	d.CharsetReader = markupCharset
	return &markupReader{Decoder: d, prefixes: map[string]string{}, stop: stop}
}

// readMarkup reads a whole document.
func readMarkup(data []byte, stop func() bool) (*markupNode, error) {
	r := newMarkupReader(data, stop)
	start, err := r.root()
	if err != nil {
		return nil, err
	}
	return r.element(start)
}

// root reads up to the start of the root element.
func (r *markupReader) root() (xml.StartElement, error) {
	for {
		token, err := r.token()
		if err != nil {
			return xml.StartElement{}, err
		}
		if start, ok := token.(xml.StartElement); ok {
			return start, nil
		}
	}
}

func (r *markupReader) token() (xml.Token, error) {
	if r.nodes++; r.nodes%1024 == 0 && r.stop() {
		return nil, errStopped
	}
	token, err := r.Token()
	if err != nil {
		return nil, fmt.Errorf("its XML is broken at byte %d (%w): %w", r.InputOffset(), err, ErrDamaged)
	}
	return token, nil
}

// open returns a node without children for a start tag.
func (r *markupReader) open(start xml.StartElement) *markupNode {
	n := &markupNode{name: r.name(start.Name), attrs: start.Attr, at: r.InputOffset()}
	for i, a := range n.attrs {
		n.attrs[i].Name = xml.Name{Local: r.name(a.Name)}
	}
	return n
}

// element reads the element of a start tag up to its end tag.
func (r *markupReader) element(start xml.StartElement) (*markupNode, error) {
	root := r.open(start)
	stack := []*markupNode{root}
	for nodes := 0; len(stack) > 0; {
		at := r.InputOffset()
		token, err := r.token()
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			n := r.open(t)
			top.children = append(top.children, n)
			stack = append(stack, n)
			nodes += 1 + len(t.Attr)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.children = append(top.children, &markupNode{text: string(t), at: at})
			nodes++
		}
		if len(stack) > maxMarkupDepth || nodes > maxNodes {
			return nil, fmt.Errorf("its XML has more than %d elements in elements or %d in all: %w", maxMarkupDepth, maxNodes, ErrLimit)
		}
	}
	return root, nil
}

func (r *markupReader) name(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	prefix, ok := r.prefixes[n.Space]
	if !ok {
		prefix = spaceName(n.Space)
		if len(r.prefixes) < 1000 {
			r.prefixes[strings.Clone(n.Space)] = prefix
		}
	}
	return prefix + ":" + n.Local
}

// spaceName returns a short name of a name space: the last of its parts that is not a version or
// an issue's year, such as "text" for "urn:oasis:names:tc:opendocument:xmlns:text:1.0".
func spaceName(space string) string {
	if name := spaceNames[space]; name != "" {
		return name
	}
	parts := strings.FieldsFunc(space, func(r rune) bool { return strings.ContainsRune(":/#", r) })
	for i := len(parts) - 1; i >= 0; i-- {
		if strings.Trim(parts[i], "0123456789.") != "" {
			return strings.TrimSuffix(parts[i], "-compatible")
		}
	}
	return cmp.Or(space, "none")
}

var spaceNames = map[string]string{
	"http://purl.org/dc/elements/1.1/":                  "dc",
	"http://www.w3.org/1998/Math/MathML":                "math",
	"urn:oasis:names:tc:opendocument:xmlns:drawing:1.0": "draw",
	"http://openoffice.org/2000/drawing":                "draw",
	"http://www.w3.org/1999/xhtml":                      "xhtml",
	"http://www.w3.org/XML/1998/namespace":              "xml",
	"http://www.w3.org/2000/svg":                        "svg",
	"http://www.w3.org/2005/Atom":                       "atom",
	"http://www.w3.org/1999/xlink":                      "xlink",
}
