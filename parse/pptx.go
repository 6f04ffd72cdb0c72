package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ooxml"
)

// parsePPTX parses a presentation slide by slide: titles, texts and lists, tables, charts, diagrams
// and alternative texts from top to bottom, then the speaker's notes and the comments. Each slide is
// a page. Hidden slides are read too; the metadata has their numbers as "hidden_slides". Slide
// numbers, dates and footers are left out.
func parsePPTX(src *source, b *builder) bool {
	b.err = officeError(readPPTX(src, b))
	return true
}

// maxSlides is the most slides of a presentation.
const maxSlides = 10_000

// emu is the number of English metric units in a point.
const emu = 12700

func readPPTX(src *source, b *builder) error {
	o, err := openOffice(src, b)
	if err != nil {
		return err
	}
	root, err := o.pkg.Tree(o.main)
	if err != nil {
		return err
	}
	p := &pptxReader{officeReader: o, layouts: map[string]*pptxLayout{}, authors: map[string]string{}}
	size := root.Child("p:sldSz")
	p.width, p.height = points(size.Attr("cx")), points(size.Attr("cy"))
	if err := p.readAuthors(); err != nil {
		return err
	}
	ids := root.Child("p:sldIdLst").All("p:sldId")
	if len(ids) > maxSlides {
		return fmt.Errorf("it has %d slides, more than %d: %w", len(ids), maxSlides, ErrLimit)
	}
	failed := 0
	var last error
	for i, id := range ids {
		err := p.slide(i+1, id.Attr("r:id"))
		if b.canceled() {
			return b.ctx.Err()
		}
		if err != nil {
			last = err
			failed++
		}
	}
	if failed > 0 && failed == len(ids) {
		return last
	}
	if len(p.hidden) > 0 {
		b.set("hidden_slides", assay.ListValue(p.hidden...))
	}
	return nil
}

// points returns a length in points.
func points(s string) float32 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return float32(v) / emu
}

// A pptxReader is the state of reading a presentation.
type pptxReader struct {
	*officeReader
	width, height float32
	layouts       map[string]*pptxLayout // by part
	authors       map[string]string      // of comments, by ID
	hidden        []string               // numbers of hidden slides

	number int
	rels   ooxml.Relationships // of the slide
	layout *pptxLayout
	shapes []pptxShape
}

// A pptxLayout is a layout with its master: where placeholders are and how their lists look.
type pptxLayout struct {
	holders []*ooxml.Node // placeholders of the layout, then of the master
	styles  *ooxml.Node   // p:txStyles of the master
}

// A pptxShape is a shape with its place on the slide.
type pptxShape struct {
	node           *ooxml.Node
	x0, y0, x1, y1 float32
	placed         bool
	title          bool
}

// slide reads one slide. A damaged slide is a failed page; the error is returned, too.
func (p *pptxReader) slide(number int, id string) error {
	p.b.page, p.number = number, number
	page := assay.Page{Number: number, Outcome: assay.PageText, Width: p.width, Height: p.height}
	blocks, recognized := len(p.b.blocks), len(p.b.provenance)
	err := p.readSlide(id)
	switch {
	case p.b.canceled():
		return p.b.ctx.Err()
	case err != nil:
		p.b.end()
		page.Outcome, page.Detail = assay.PageFailed, officeError(err).Error()
	case len(p.b.blocks) == blocks:
		page.Outcome, page.Detail = assay.PageNoText, "the slide has no text"
	case len(p.b.blocks)-blocks == len(p.b.provenance)-recognized:
		page.Outcome = assay.PageRecognized
	}
	p.b.addPage(page)
	return err
}

func (p *pptxReader) readSlide(id string) error {
	r, ok := p.pkg.ID(p.officeReader.rels, id)
	if !ok {
		return fmt.Errorf("%w: slide %d is missing", ooxml.ErrDamaged, p.number)
	}
	root, err := p.pkg.Tree(r.Target)
	if err != nil {
		return err
	}
	if show := root.Attr("show"); show == "0" || show == "false" {
		p.hidden = append(p.hidden, strconv.Itoa(p.number))
	}
	if p.rels, err = p.pkg.Relationships(r.Target); err != nil {
		return err
	}
	if p.layout, err = p.readLayout(); err != nil {
		return err
	}
	p.shapes = nil
	p.collect(root.Child("p:cSld", "p:spTree"), identity, 0)
	p.sortShapes()
	for _, s := range p.shapes {
		if err := p.shape(s); err != nil {
			return err
		}
	}
	if err := p.notes(); err != nil {
		return err
	}
	return p.comments()
}

// readLayout returns the layout of the slide, which may be empty.
func (p *pptxReader) readLayout() (*pptxLayout, error) {
	r, ok := p.pkg.First(p.rels, "slideLayout")
	if !ok {
		return &pptxLayout{}, nil
	}
	if l := p.layouts[r.Target]; l != nil {
		return l, nil
	}
	l := &pptxLayout{}
	root, err := p.pkg.Tree(r.Target)
	if err != nil {
		return nil, err
	}
	l.addHolders(root)
	rels, err := p.pkg.Relationships(r.Target)
	if err != nil {
		return nil, err
	}
	master, err := p.tree(rels, "slideMaster")
	if err != nil {
		return nil, err
	}
	l.addHolders(master)
	l.styles = master.Child("p:txStyles")
	p.layouts[r.Target] = l
	return l, nil
}

func (l *pptxLayout) addHolders(root *ooxml.Node) {
	for _, sp := range root.Child("p:cSld", "p:spTree").All("p:sp") {
		if placeholder(sp) != nil {
			l.holders = append(l.holders, sp)
		}
	}
}

// placeholder returns the p:ph element of a shape, or nil.
func placeholder(n *ooxml.Node) *ooxml.Node {
	for _, c := range n.Children {
		if strings.HasPrefix(c.Name, "p:nv") {
			return c.Child("p:nvPr", "p:ph")
		}
	}
	return nil
}

// holdersOf returns the placeholders that a placeholder inherits from, the nearest first.
func (l *pptxLayout) holdersOf(ph *ooxml.Node) []*ooxml.Node {
	if ph == nil {
		return nil
	}
	var found []*ooxml.Node
	kind := cmp.Or(ph.Attr("type"), "body")
	for _, h := range l.holders {
		have := placeholder(h)
		sameIndex := ph.HasAttr("idx") && have.Attr("idx") == ph.Attr("idx")
		if sameIndex || holderKind(cmp.Or(have.Attr("type"), "body")) == holderKind(kind) {
			found = append(found, h)
		}
	}
	slices.SortStableFunc(found, func(a, b *ooxml.Node) int {
		return rank(placeholder(a), ph) - rank(placeholder(b), ph)
	})
	return found
}

// rank orders placeholders by how well they fit ph.
func rank(have, ph *ooxml.Node) int {
	if ph.HasAttr("idx") && have.Attr("idx") == ph.Attr("idx") {
		return 0
	}
	return 1
}

func holderKind(kind string) string {
	switch kind {
	case "ctrTitle":
		return "title"
	case "obj", "subTitle", "tbl", "chart", "dgm", "media", "clipArt", "pic":
		return "body"
	}
	return kind
}

// A transform maps the coordinates inside groups to those of the slide, in points.
type transform struct{ sx, sy, dx, dy float32 }

var identity = transform{1, 1, 0, 0}

// inside returns the transform of the content of a group.
func (t transform) inside(xfrm *ooxml.Node) transform {
	off, ext, childOff, childExt := xfrm.Child("a:off"), xfrm.Child("a:ext"), xfrm.Child("a:chOff"), xfrm.Child("a:chExt")
	w, h := points(childExt.Attr("cx")), points(childExt.Attr("cy"))
	if w <= 0 || h <= 0 {
		return t
	}
	sx, sy := points(ext.Attr("cx"))/w, points(ext.Attr("cy"))/h
	dx := points(off.Attr("x")) - points(childOff.Attr("x"))*sx
	dy := points(off.Attr("y")) - points(childOff.Attr("y"))*sy
	return transform{t.sx * sx, t.sy * sy, t.sx*dx + t.dx, t.sy*dy + t.dy}
}

// collect appends the shapes below a tree or group.
func (p *pptxReader) collect(tree *ooxml.Node, t transform, depth int) {
	const deepest = 50
	if tree == nil || depth > deepest {
		return
	}
	nodes := tree.Children
	for len(nodes) > 0 {
		n := nodes[0]
		nodes = nodes[1:]
		switch n.Name {
		case "mc:AlternateContent":
			nodes = append(slices.Clone(alternative(n)), nodes...)
		case "p:grpSp":
			p.collect(n, t.inside(n.Child("p:grpSpPr", "a:xfrm")), depth+1)
		case "p:nvGrpSpPr", "p:grpSpPr", "p:extLst":
		default:
			p.add(n, t)
		}
	}
}

// add appends a shape unless it is furniture.
func (p *pptxReader) add(n *ooxml.Node, t transform) {
	ph := placeholder(n)
	kind := ph.Attr("type")
	switch kind {
	case "dt", "ftr", "hdr", "sldNum":
		return
	}
	s := pptxShape{node: n, title: kind == "title" || kind == "ctrTitle"}
	xfrm := n.Child("p:spPr", "a:xfrm")
	if n.Name == "p:graphicFrame" {
		xfrm = n.Child("p:xfrm")
	}
	if xfrm == nil {
		for _, h := range p.layout.holdersOf(ph) {
			if xfrm = h.Child("p:spPr", "a:xfrm"); xfrm != nil {
				break
			}
		}
	}
	if xfrm != nil {
		off, ext := xfrm.Child("a:off"), xfrm.Child("a:ext")
		s.placed = true
		s.x0, s.y0 = t.sx*points(off.Attr("x"))+t.dx, t.sy*points(off.Attr("y"))+t.dy
		s.x1, s.y1 = s.x0+t.sx*points(ext.Attr("cx")), s.y0+t.sy*points(ext.Attr("cy"))
	}
	p.shapes = append(p.shapes, s)
}

// sortShapes puts the shapes in reading order: the title, then rows from top to bottom, each from
// left to right. Shapes are in one row if their tops differ by less than a quarter inch. A shape
// without a place follows the one before it in the source.
func (p *pptxReader) sortShapes() {
	const row = 18
	for i := range p.shapes {
		if s := &p.shapes[i]; !s.placed && i > 0 {
			s.x0, s.y0 = p.shapes[i-1].x0, p.shapes[i-1].y0
		}
	}
	slices.SortStableFunc(p.shapes, func(a, b pptxShape) int {
		if a.title != b.title {
			if a.title {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.y0, b.y0)
	})
	for i := 0; i < len(p.shapes); {
		n := i + 1
		for n < len(p.shapes) && p.shapes[n].title == p.shapes[i].title && p.shapes[n].y0-p.shapes[i].y0 < row {
			n++
		}
		slices.SortStableFunc(p.shapes[i:n], func(a, b pptxShape) int { return cmp.Compare(a.x0, b.x0) })
		i = n
	}
}

// box adds the rectangle of a shape to the open block.
func (p *pptxReader) box(s pptxShape) {
	if s.placed && p.b.open {
		p.b.box(p.number, s.x0, s.y0, s.x1, s.y1)
	}
}

// shape writes one shape.
func (p *pptxReader) shape(s pptxShape) error {
	if err := p.b.ctx.Err(); err != nil {
		return err
	}
	n := s.node
	p.picture(p.rels, n.Child("p:blipFill", "a:blip").Attr("r:embed"), p.shapeAlt(n), func() { p.box(s) })
	body := n.Child("p:txBody")
	if body == nil && n.Name != "p:graphicFrame" {
		body = n.Find("p:txBody")
	}
	if body != nil {
		p.text(s, body)
		return nil
	}
	return p.graphic(s, n)
}

// shapeAlt returns the alternative text of a picture or graphic.
func (p *pptxReader) shapeAlt(n *ooxml.Node) string {
	for _, c := range n.Children {
		if strings.HasPrefix(c.Name, "p:nv") {
			return altText(c.Child("p:cNvPr"))
		}
	}
	return ""
}

// graphic writes the table, chart, diagram or embedded file of a frame.
func (p *pptxReader) graphic(s pptxShape, n *ooxml.Node) error {
	if tbl := n.Child("a:graphic", "a:graphicData", "a:tbl"); tbl != nil {
		return p.table(s, tbl)
	}
	var err error
	data := n.Child("a:graphic", "a:graphicData")
	if n.Name == "p:contentPart" || data == nil {
		return nil
	}
	queue := slices.Clone(data.Children)
	for len(queue) > 0 && err == nil {
		c := queue[0]
		queue = queue[1:]
		switch c.Name {
		case "mc:AlternateContent":
			queue = append(slices.Clone(alternative(c)), queue...)
		case "c:chart":
			err = p.chart(p.rels, c.Attr("r:id"))
		case "cx:chart":
			err = p.chartEx(p.rels, c.Attr("r:id"))
		case "dgm:relIds":
			err = p.diagram(p.rels, c.Attr("r:dm"))
		case "p:oleObj":
			p.addEmbedded(p.rels, c.Attr("r:id"))
			if alt := altText(c.Find("p:cNvPr")); alt != "" {
				p.b.puts(Figure, alt, 0)
			}
		}
	}
	return err
}

// table writes an a:tbl element.
func (p *pptxReader) table(s pptxShape, tbl *ooxml.Node) error {
	props := tbl.Child("a:tblPr")
	headRow, headCol := isTrue(props.Attr("firstRow")), isTrue(props.Attr("firstCol"))
	var cells []gridCell
	rows := tbl.All("a:tr")
	for i, tr := range rows {
		for j, tc := range tr.All("a:tc") {
			if j >= maxColumns {
				return fmt.Errorf("a table has more than %d columns: %w", maxColumns, ErrLimit)
			}
			if isTrue(tc.Attr("hMerge")) || isTrue(tc.Attr("vMerge")) {
				continue
			}
			var lines []string
			for _, para := range tc.Child("a:txBody").All("a:p") {
				lines = append(lines, drawingText(para))
			}
			cells = append(cells, gridCell{
				text: strings.Join(lines, "\n"), row: i, col: j,
				rowSpan: min(gridNumber(tc.Attr("rowSpan")), len(rows)-i), colSpan: gridNumber(tc.Attr("gridSpan")),
				header: headRow && i == 0 || headCol && j == 0,
			})
		}
	}
	p.b.table(cells, func(int) { p.box(s) })
	return nil
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// gridNumber returns a span of at least 1.
func gridNumber(s string) int {
	v, err := strconv.Atoi(s)
	if err != nil {
		return 1
	}
	return min(max(v, 1), maxColumns)
}

// notes writes the speaker's notes of the slide.
func (p *pptxReader) notes() error {
	root, err := p.tree(p.rels, "notesSlide")
	if err != nil || root == nil {
		return p.optional("the notes of a slide", err)
	}
	var lines []string
	for _, sp := range root.Child("p:cSld", "p:spTree").All("p:sp") {
		if placeholder(sp).Attr("type") != "body" {
			continue
		}
		for _, para := range sp.Child("p:txBody").All("a:p") {
			if text := strings.TrimSpace(drawingText(para)); text != "" {
				lines = append(lines, text)
			}
		}
	}
	if len(lines) > 0 {
		p.b.puts(Paragraph, "Notes: "+strings.Join(lines, "\n"), 0)
	}
	return nil
}

// readAuthors reads the authors of comments of the old and the new form.
func (p *pptxReader) readAuthors() error {
	for _, kind := range []string{"commentAuthors", "authors"} {
		root, err := p.tree(p.officeReader.rels, kind)
		if err != nil {
			return err
		}
		if root == nil {
			continue
		}
		for _, a := range root.Children {
			name := a.Attr("name")
			if initials := a.Attr("initials"); initials != "" && name != "" {
				name += " (" + initials + ")"
			}
			p.authors[a.Attr("id")] = name
		}
	}
	return nil
}

// comments writes the comments on the slide.
func (p *pptxReader) comments() error {
	for _, r := range p.rels {
		if r.Type != "comments" || r.External || !p.pkg.Has(r.Target) {
			continue
		}
		root, err := p.pkg.Tree(r.Target)
		if err != nil {
			return p.optional("comments", err)
		}
		root.Walk(func(c *ooxml.Node) bool {
			switch c.Name {
			case "p:cm":
				p.comment("", p.authors[c.Attr("authorId")], c.Attr("dt"), c.Child("p:text").String())
			case "p188:cm", "p188:reply":
				p.comment("", p.authors[c.Attr("authorId")], c.Attr("created"), bodyText(c.Child("p188:txBody")))
			}
			return true
		})
	}
	return nil
}

// bodyText returns the paragraphs of a text body.
func bodyText(body *ooxml.Node) string {
	var lines []string
	for _, para := range body.All("a:p") {
		lines = append(lines, drawingText(para))
	}
	return strings.Join(lines, "\n")
}
