package pdflayout

import (
	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A tag is the role of a line in the structure tree. It is zero if the tree does not have the line.
type tag struct {
	element *pdfium.Element // the innermost block
	kind    assay.BlockKind // empty: not known
	heading int             // level
	list    int             // depth of lists around it
}

// pageTags are the tags of a page by marked content.
type pageTags map[int]tag

// maxTagDepth bounds the depth of the structure tree.
const maxTagDepth = 64

// tagsOf returns the tags of a page.
func tagsOf(p *pdfium.Page) pageTags {
	if len(p.Structure) == 0 {
		return nil
	}
	tags := pageTags{}
	for _, e := range p.Structure {
		tags.add(e, tag{}, 0)
	}
	return tags
}

func (t pageTags) add(e *pdfium.Element, outer tag, depth int) {
	if e == nil || depth > maxTagDepth {
		return
	}
	in := outer.inside(e)
	for _, c := range e.Children {
		if c.Element != nil {
			t.add(c.Element, in, depth+1)
			continue
		}
		t[c.MCID] = in
	}
}

// inside returns the tag of the children of an element.
func (t tag) inside(e *pdfium.Element) tag {
	switch e.Type {
	case "H1", "H2", "H3", "H4", "H5", "H6":
		return tag{element: e, kind: assay.BlockHeading, heading: int(e.Type[1] - '0'), list: t.list}
	case "H", "Title":
		return tag{element: e, kind: assay.BlockHeading, heading: 1}
	case "P", "BlockQuote", "TOCI", "BibEntry":
		if t.kind == "" || t.kind == assay.BlockParagraph {
			t.element, t.kind = e, assay.BlockParagraph
		}
	case "L":
		t.list++
	case "LI", "LBody":
		if e.Type == "LI" || t.kind != assay.BlockListItem {
			t.element = e
		}
		t.kind = assay.BlockListItem
	case "Caption":
		return tag{element: e, kind: assay.BlockCaption}
	case "Note", "FENote":
		return tag{element: e, kind: assay.BlockFootnote}
	case "Code":
		return tag{element: e, kind: assay.BlockCode}
	case "Formula":
		return tag{element: e, kind: assay.BlockFormula}
	}
	return t
}

// of returns the tag of a line: that of its first marked content that has one.
func (t pageTags) of(l *line) tag {
	for _, id := range l.mcids {
		if tag, ok := t[id]; ok {
			return tag
		}
	}
	return tag{}
}
