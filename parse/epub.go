package parse

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// isEPUB reports whether src is an EPUB package.
func isEPUB(src *source) bool { return zipMimetype(src.data) == "application/epub+zip" }

// parseEPUB parses an EPUB publication: the metadata of its package document and the chapters in
// the order of its spine. The table of contents is left out.
//
// Source: W3C EPUB 3.3, 4 (open container) and 5 (package document).
func parseEPUB(src *source, b *builder) bool {
	b.unlined = true
	e := &epub{b: b}
	b.err = e.read(src.data)
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return true
}

// An epub writes a publication.
type epub struct {
	b     *builder
	pkg   *bundle
	dir   string // of the package document
	items map[string]epubItem
	spine []string // identifiers of items
}

type epubItem struct {
	path      string
	mediaType string
	nav       bool
}

func (e *epub) read(data []byte) error {
	var err error
	if e.pkg, err = openBundle(data, e.b.canceled); err != nil {
		return err
	}
	opf, err := e.packagePath()
	if err != nil {
		return err
	}
	member, err := e.pkg.read(opf)
	if err == nil && member == nil {
		err = fmt.Errorf("the EPUB has no package document %s: %w", opf, ErrDamaged)
	}
	if err != nil {
		return err
	}
	root, err := readLooseMarkup(member, e.b.canceled)
	if err != nil {
		return fmt.Errorf("%s: %w", opf, err)
	}
	e.dir = path.Dir("/" + opf)
	e.packageDocument(root)
	if err := e.protected(); err != nil {
		return err
	}
	return e.chapters()
}

// packagePath returns the path of the package document that the container names first.
func (e *epub) packagePath() (string, error) {
	data, err := e.pkg.read("META-INF/container.xml")
	if err != nil {
		return "", err
	}
	if data != nil {
		root, err := readMarkup(data, e.b.canceled)
		if err != nil {
			return "", fmt.Errorf("META-INF/container.xml: %w", err)
		}
		full := ""
		root.each("rootfile", func(n *markupNode) {
			full = cmp.Or(full, n.attr("full-path"))
		})
		if full != "" {
			return bundlePath("", full), nil
		}
	}
	first := ""
	for name := range e.pkg.files { // the least name, so that the order of the map does not matter
		if strings.HasSuffix(name, ".opf") && (first == "" || name < first) {
			first = name
		}
	}
	if first == "" {
		return "", fmt.Errorf("the EPUB names no package document: %w", ErrDamaged)
	}
	return first, nil
}

// packageDocument reads the metadata, the manifest and the spine.
func (e *epub) packageDocument(root *markupNode) {
	e.items = map[string]epubItem{}
	for _, part := range root.children {
		switch part.local() {
		case "metadata":
			e.metadata(part)
		case "manifest":
			part.each("item", func(n *markupNode) {
				href, err := url.PathUnescape(n.attr("href"))
				if err != nil {
					href = n.attr("href")
				}
				e.items[n.attr("id")] = epubItem{bundlePath(e.dir, href), n.attr("media-type"),
					strings.Contains(" "+n.attr("properties")+" ", " nav ")}
			})
		case "spine":
			part.each("itemref", func(n *markupNode) { e.spine = append(e.spine, n.attr("idref")) })
		}
	}
}

// metadata reads the Dublin Core elements.
func (e *epub) metadata(n *markupNode) {
	roles := map[string]string{} // of creators, by identifier
	n.each("meta", func(m *markupNode) {
		if m.attr("property") == "role" {
			roles[strings.TrimPrefix(m.attr("refines"), "#")] = m.words()
		}
		if m.attr("property") == "dcterms:modified" {
			if v, ok := metaValue(m.words()); ok {
				e.b.set(assay.MetaModified, v)
			}
		}
	})
	var authors, subjects []string
	n.each("dc:creator", func(c *markupNode) {
		role := cmp.Or(c.attr("opf:role"), roles[c.attr("id")], "aut")
		if text := c.words(); text != "" && role == "aut" {
			authors = append(authors, text)
		}
	})
	n.each("dc:subject", func(c *markupNode) {
		if text := c.words(); text != "" {
			subjects = append(subjects, text)
		}
	})
	for _, c := range []struct{ name, key string }{
		{"dc:date", assay.MetaCreated}, {"dc:publisher", "publisher"}, {"dc:identifier", "identifier"}, {"dc:rights", "rights"},
	} {
		if m := n.find(c.name); m != nil && m.words() != "" {
			if v, ok := metaValue(m.words()); ok {
				e.b.set(c.key, v)
			}
		}
	}
	if t := n.find("dc:title"); t != nil {
		e.b.title = t.words()
	}
	if l := n.find("dc:language"); l != nil && l.words() != "" {
		e.b.set(assay.MetaLanguage, assay.StringValue(languageCode(l.words())))
	}
	switch len(authors) {
	case 0:
	case 1:
		e.b.set(assay.MetaAuthor, assay.StringValue(authors[0]))
	default:
		e.b.set(assay.MetaAuthor, assay.ListValue(authors...))
	}
	if len(subjects) > 0 {
		e.b.set("keywords", assay.ListValue(subjects...))
	}
}

// protected returns an ErrPassword if a chapter is encrypted. Fonts may be: their obfuscation is no
// protection of the text.
func (e *epub) protected() error {
	data, err := e.pkg.read("META-INF/encryption.xml")
	if err != nil || data == nil {
		return err
	}
	root, err := readMarkup(data, e.b.canceled)
	if err != nil {
		return fmt.Errorf("META-INF/encryption.xml: %w", err)
	}
	encrypted := map[string]bool{}
	root.each("CipherReference", func(n *markupNode) {
		if uri, err := url.PathUnescape(n.attr("URI")); err == nil {
			encrypted[bundlePath("", uri)] = true
		}
	})
	scheme := "digital rights management"
	switch {
	case e.pkg.has("META-INF/license.lcpl"):
		scheme = "Readium LCP"
	case e.pkg.has("META-INF/rights.xml"):
		scheme = "Adobe ADEPT"
	case e.pkg.has("META-INF/sinf.xml"):
		scheme = "Apple FairPlay"
	}
	for _, id := range e.spine {
		if encrypted[e.items[id].path] {
			return fmt.Errorf("the EPUB is protected by %s: %w", scheme, ErrPassword)
		}
	}
	return nil
}

// chapters writes the documents of the spine. A chapter that cannot be found is an error, because
// its text would be missing.
func (e *epub) chapters() error {
	done := map[string]bool{}
	for _, id := range e.spine {
		item, ok := e.items[id]
		switch {
		case e.b.canceled():
			return nil
		case !ok || !e.pkg.has(item.path):
			return fmt.Errorf("the EPUB lacks its chapter %q: %w", cmp.Or(item.path, id), ErrDamaged)
		case item.nav || done[item.path] || strings.HasPrefix(item.mediaType, "image/") && item.mediaType != "image/svg+xml":
			continue
		}
		done[item.path] = true
		data, err := e.pkg.read(item.path)
		if err != nil {
			return err
		}
		text, err := decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", item.path, err)
		}
		e.chapter(text, path.Dir("/"+item.path))
	}
	return nil
}

// emptyElement is an element of XML without content. HTML takes it for a start tag.
var emptyElement = lazyregexp.New(`<([A-Za-z][A-Za-z0-9]*)((?:\s+[^<>"']*(?:"[^"]*"|'[^']*'))*\s*)/>`)

// chapter writes an XHTML document in the folder dir.
func (e *epub) chapter(text, dir string) {
	text = emptyElement.ReplaceAllStringFunc(text, func(tag string) string {
		m := emptyElement.FindStringSubmatch(tag)
		if voidTags[strings.ToLower(m[1])] {
			return tag
		}
		return "<" + m[1] + m[2] + "></" + m[1] + ">"
	})
	tree := parseTree(text, 1, e.b.canceled)
	tree.measure(false, false)
	w := &htmlWriter{b: e.b}
	if e.b.ocr != nil || e.b.wantImages {
		w.images = func(src string) []byte { return e.image(dir, src) }
	}
	w.flow(tree)
	w.flush()
}

// image returns an image that a chapter in dir refers to, or nil.
func (e *epub) image(dir, src string) []byte {
	name, err := url.PathUnescape(src)
	if err != nil || strings.Contains(name, ":") {
		return nil
	}
	data, err := e.pkg.read(bundlePath(dir, name))
	if err != nil && !e.b.canceled() {
		e.b.note("an image is not read: " + err.Error())
	}
	return data
}

// readLooseMarkup reads a document that may have small errors, such as undeclared prefixes and
// entities.
func readLooseMarkup(data []byte, stop func() bool) (*markupNode, error) {
	r := newMarkupReader(data, stop)
	r.Strict = false
	start, err := r.root()
	if err != nil {
		return nil, err
	}
	return r.element(start)
}
