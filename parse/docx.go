package parse

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// parseDOCX parses a Word document: its paragraphs, tables, text boxes, charts, formulas, notes and
// comments, in the order in which they are read. Insertions count as accepted and deletions as
// made. Hidden text is left out. Headers and footers are written only if the document has no
// other text. Embedded files are parts.
func parseDOCX(src *source, b *builder) bool {
	b.err = officeError(readDOCX(src, b))
	return true
}

func readDOCX(src *source, b *builder) error {
	o, err := openOffice(src, b)
	if err != nil {
		return err
	}
	d := &docxReader{officeReader: o, notes: map[string]*ooxml.Node{}, noted: map[string]bool{}}
	if err := d.load(); err != nil {
		return err
	}
	if err := d.body(); err != nil {
		return err
	}
	if err := d.rest(); err != nil {
		return err
	}
	if len(b.blocks) == 0 {
		return d.furniture()
	}
	if b.title == "" {
		b.title = firstTitle(b)
	}
	return nil
}

// A docxReader is the state of reading a Word document.
type docxReader struct {
	*officeReader
	styles    docxStyles
	numbering *docxNumbering
	notes     map[string]*ooxml.Node // footnotes, endnotes and comments, by kind and ID
	comments  []string               // keys of comments, in the order of the source
	noted     map[string]bool        // written notes
	footnotes int                    // written ones
	endnotes  int

	part   ooxml.Relationships // of the part that is read
	titled bool                // a title was written, so headings are below it
	fields []bool              // open fields; whether each shows its result now
	cell   *strings.Builder    // inside a table's cell: its text
	later  []func() error      // write the notes and drawings of the open paragraph or table
	code   []string            // paragraphs of code that are not written yet
	inNote bool
	depth  int
}

// load reads the parts that the document's body refers to.
func (d *docxReader) load() error {
	styles, err := d.tree(d.rels, "styles")
	if err != nil {
		return err
	}
	numbering, err := d.tree(d.rels, "numbering")
	if err != nil {
		return err
	}
	d.styles, d.numbering = readStyles(styles), readNumbering(numbering)
	for _, kind := range []string{"footnote", "endnote", "comment"} {
		root, err := d.tree(d.rels, kind+"s")
		if kind == "comment" {
			err = d.optional("comments", err)
		}
		if err != nil {
			return err
		}
		for _, n := range root.All("w:" + kind) {
			key := kind + n.Attr("w:id")
			d.notes[key] = simplify(n)
			if kind == "comment" {
				d.comments = append(d.comments, key)
			}
		}
	}
	return nil
}

// body reads the main part block by block.
func (d *docxReader) body() error {
	x, err := d.pkg.Decoder(d.main, 8*ooxml.MaxPart)
	if err != nil {
		return err
	}
	defer x.Close()
	d.part = d.rels
	root, err := x.Root()
	if err != nil {
		return err
	}
	if root.Name != "w:document" {
		return fmt.Errorf("%w: its main part is a %q element", ooxml.ErrDamaged, root.Name)
	}
	err = x.Children(func(n *ooxml.Node) error {
		if n.Name != "w:body" {
			return nil
		}
		return x.Children(func(n *ooxml.Node) error {
			if err := d.b.ctx.Err(); err != nil {
				return err
			}
			n, err := x.Tree(n)
			if err != nil {
				return err
			}
			return d.blocks(simplify(&ooxml.Node{Children: []*ooxml.Node{n}}).Children)
		})
	})
	if err != nil {
		return err
	}
	d.flushCode()
	return nil
}

// rest writes the comments without a place in the text.
func (d *docxReader) rest() error {
	for _, key := range d.comments {
		if err := d.note(key, ""); err != nil {
			return err
		}
	}
	return nil
}

// furniture writes headers and footers.
func (d *docxReader) furniture() error {
	for _, kind := range []string{"header", "footer"} {
		for _, r := range d.rels {
			if r.Type != kind || r.External || !d.pkg.Has(r.Target) {
				continue
			}
			root, err := d.pkg.Tree(r.Target)
			if err != nil {
				return err
			}
			if d.part, err = d.pkg.Relationships(r.Target); err != nil {
				return err
			}
			if err := d.blocks(simplify(root).Children); err != nil {
				return err
			}
		}
	}
	d.flushCode()
	return nil
}

// simplify removes deleted content and elements that only wrap others from the tree of n.
func simplify(n *ooxml.Node) *ooxml.Node {
	kept := make([]*ooxml.Node, 0, len(n.Children))
	for _, c := range n.Children {
		kept = append(kept, simplified(c)...)
	}
	n.Children = kept
	return n
}

// simplified returns the elements that replace n in its parent.
func simplified(n *ooxml.Node) []*ooxml.Node {
	switch n.Name {
	case "w:del", "w:moveFrom", "w:proofErr", "w:bookmarkStart", "w:bookmarkEnd", "w:rPrChange", "w:pPrChange", "w:tblPrChange", "w:tcPrChange", "w:trPrChange", "w:sectPrChange":
		return nil
	case "mc:AlternateContent":
		return simplify(&ooxml.Node{Children: alternative(n)}).Children
	case "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:hyperlink", "w:dir", "w:bdo", "w:fldSimple", "w:sdtContent":
		return simplify(n).Children
	case "w:sdt":
		return contentControl(n)
	case "w:tr":
		if p := n.Child("w:trPr"); p.Child("w:del") != nil {
			return nil
		}
	case "w:ruby":
		return rubyText(n)
	}
	return []*ooxml.Node{simplify(n)}
}

// contentControl returns the content of a w:sdt element. That of a check box is "[x]" or "[ ]".
func contentControl(n *ooxml.Node) []*ooxml.Node {
	box := n.Child("w:sdtPr", "w14:checkbox")
	content := n.Child("w:sdtContent")
	if content == nil {
		return nil
	}
	content = simplify(content)
	if box == nil {
		return content.Children
	}
	mark := "[ ] "
	if v := box.Child("w14:checked").Attr("w14:val"); v == "1" || v == "true" {
		mark = "[x] "
	}
	content.Walk(func(c *ooxml.Node) bool {
		if c.Name != "w:r" {
			return true
		}
		c.Children = []*ooxml.Node{{Name: "w:t", Text: mark}}
		mark = ""
		return false
	})
	return content.Children
}

// rubyText returns the base of a w:ruby element with its reading in parentheses.
func rubyText(n *ooxml.Node) []*ooxml.Node {
	runs := append([]*ooxml.Node{}, simplify(n).Child("w:rubyBase").All("w:r")...)
	if reading := n.Child("w:rt").All("w:r"); len(reading) > 0 {
		runs = append(runs, &ooxml.Node{Name: "w:t", Text: "("})
		runs = append(runs, reading...)
		runs = append(runs, &ooxml.Node{Name: "w:t", Text: ")"})
	}
	return runs
}

// blocks reads paragraphs and tables. It must be called with simplified elements.
func (d *docxReader) blocks(nodes []*ooxml.Node) error {
	const deepest = 100
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > deepest {
		return fmt.Errorf("tables and text boxes are nested more than %d deep: %w", deepest, ErrLimit)
	}
	for _, n := range nodes {
		if err := d.b.ctx.Err(); err != nil {
			return err
		}
		switch n.Name {
		case "w:p":
			d.paragraph(n)
		case "w:tbl":
			if err := d.table(n); err != nil {
				return err
			}
		case "m:oMathPara", "m:oMath":
			d.write(Formula, 0, ommlText(n))
		case "w:altChunk":
			d.addEmbedded(d.part, n.Attr("r:id"))
		}
		if err := d.flushLater(); err != nil {
			return err
		}
	}
	return nil
}

// flushLater writes the notes and drawings of the blocks written last, unless a table is being read.
func (d *docxReader) flushLater() error {
	for len(d.later) > 0 && d.cell == nil {
		later := d.later
		d.later = nil
		d.flushCode()
		for _, f := range later {
			if err := f(); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a block, or adds its text to the open cell.
func (d *docxReader) write(kind BlockKind, level int, text string) {
	if isBlank(text) {
		return
	}
	if d.cell != nil {
		d.cell.WriteString(text + "\n")
		return
	}
	d.flushCode()
	if n := len(d.b.blocks); kind == ListItem && n > 0 && d.b.blocks[n-1].Kind == ListItem {
		d.b.beginTight(kind)
	} else {
		d.b.begin(kind)
	}
	d.b.cur.Level = level
	d.b.put(text, 0)
	d.b.end()
}

// flushCode writes the collected paragraphs of code as one block.
func (d *docxReader) flushCode() {
	if len(d.code) == 0 {
		return
	}
	text := strings.Join(d.code, "\n")
	d.code = nil
	d.b.puts(Code, text, 0)
}

// note writes the footnote, endnote or comment with a key, once.
func (d *docxReader) note(key, mark string) error {
	n := d.notes[key]
	if n == nil || d.noted[key] {
		return nil
	}
	d.noted[key] = true
	text, err := d.story(n.Children)
	if err != nil {
		return err
	}
	if strings.HasPrefix(key, "comment") {
		author := n.Attr("w:author")
		if initials := n.Attr("w:initials"); author != "" && initials != "" {
			author += " (" + initials + ")"
		}
		d.comment("", author, n.Attr("w:date"), text)
		return nil
	}
	if !isBlank(text) {
		d.b.puts(Footnote, mark+" "+text, 0)
	}
	return nil
}

// story returns the text of blocks that are outside the body, such as a note.
func (d *docxReader) story(nodes []*ooxml.Node) (string, error) {
	cell, fields, inNote := d.cell, d.fields, d.inNote
	d.cell, d.fields, d.inNote = &strings.Builder{}, nil, true
	err := d.blocks(nodes)
	text := strings.TrimSpace(d.cell.String())
	d.cell, d.fields, d.inNote = cell, fields, inNote
	return text, err
}
