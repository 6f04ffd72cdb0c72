package parse

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// slide writes a page of a presentation or drawing: its title, its shapes in their order and the
// speaker notes.
func (o *odf) slide(n *markupNode) {
	o.page++
	o.b.page = o.page
	blocks := len(o.b.blocks)
	title := o.slideTitle(n)
	if title != nil {
		o.area = odfAreaOf(title)
		o.begin(Heading, false)
		o.b.cur.Level = 1
		o.b.put(o.flat(title), 0)
		o.b.end()
	}
	for _, c := range n.children {
		if c != title && c.name != "presentation:notes" {
			o.block(c)
		}
	}
	o.flushAfter()
	o.area = odfArea{}
	if notes := n.child("presentation:notes"); notes != nil {
		o.speakerNotes(notes)
	}
	size := o.sizes[n.attr("draw:master-page-name")]
	page := assay.Page{Number: o.page, Outcome: assay.PageText, Width: size.width, Height: size.height}
	if len(o.b.blocks) == blocks {
		page.Outcome, page.Detail = assay.PageNoText, "the page has no text"
	}
	o.b.addPage(page)
}

func (o *odf) flushAfter() {
	inside := o.after
	o.after = nil
	for _, write := range inside {
		write()
	}
}

// slideTitle returns the shape that is the title of a slide: the one of that class, or else the
// topmost one with text if that is one short paragraph. It returns nil if there is none.
func (o *odf) slideTitle(n *markupNode) *markupNode {
	const longest = 120 // characters
	var top *markupNode
	shapes := 0
	for _, c := range n.children {
		if !strings.HasPrefix(c.name, "draw:") || c.words() == "" {
			continue
		}
		if c.attr("presentation:class") == "title" {
			return c
		}
		shapes++
		if odfAreaOf(c) != (odfArea{}) && (top == nil || odfAreaOf(c).y0 < odfAreaOf(top).y0) {
			top = c
		}
	}
	if top == nil || shapes < 2 && n.attr("presentation:presentation-page-layout-name") == "" {
		return nil
	}
	paragraphs := 0
	for _, name := range []string{"text:p", "text:h"} {
		top.each(name, func(p *markupNode) {
			if p.words() != "" {
				paragraphs++
			}
		})
	}
	if paragraphs != 1 || top.find("text:list") != nil || top.find("table:table") != nil || utf8.RuneCountInString(top.words()) > longest {
		return nil
	}
	return top
}

// speakerNotes writes the notes of a slide.
func (o *odf) speakerNotes(n *markupNode) {
	first := true
	for _, c := range n.children {
		if class := c.attr("presentation:class"); class != "notes" && class != "" {
			continue
		}
		if c.words() == "" {
			continue
		}
		if first {
			o.b.puts(Paragraph, "Notes:", 0)
			first = false
		}
		o.block(c)
	}
	o.flushAfter()
}

// odfAreaOf returns the rectangle of a shape; it is empty if the shape does not state one.
func odfAreaOf(n *markupNode) odfArea {
	x, y := odfLength(n.attr("svg:x")), odfLength(n.attr("svg:y"))
	w, h := odfLength(n.attr("svg:width")), odfLength(n.attr("svg:height"))
	if n.attr("svg:x") == "" || w <= 0 || h <= 0 {
		return odfArea{}
	}
	return odfArea{x, y, x + w, y + h}
}

// odfFurniture are the classes of shapes that repeat on each slide or have no content.
var odfFurniture = tagSet("header footer date-time page-number page handout")

// shape writes a frame or another shape: its alternative text, and the text, table, chart or
// formula in it.
func (o *odf) shape(n *markupNode) {
	if odfFurniture[n.attr("presentation:class")] || n.attr("presentation:placeholder") == "true" || odfDropped[n.name] || o.b.canceled() {
		return
	}
	if o.depth++; o.depth > maxObjectDepth {
		o.depth--
		o.b.puts(Paragraph, n.words(), 0)
		return
	}
	outer := o.area
	if area := odfAreaOf(n); area != (odfArea{}) {
		o.area = area
	}
	defer func() { o.area, o.depth = outer, o.depth-1 }()
	if formula := o.formula(n); formula != "" {
		o.figure(Formula, formula)
		return
	}
	object := o.object(n)
	if object == nil {
		o.b.picture(picture{alt: odfAlt(n), data: o.image(n), box: o.place})
	}
	if object != nil {
		o.embedded(object, n)
		return
	}
	for _, c := range n.children {
		switch {
		case strings.HasPrefix(c.name, "svg:") || c.name == "draw:object" || c.name == "draw:object-ole":
		case c.name == "draw:text-box", c.name == "draw:image":
			o.blocks(c)
		default:
			o.block(c)
		}
	}
}

func (o *odf) figure(kind BlockKind, text string) {
	o.begin(kind, false)
	o.b.put(text, 0)
	o.b.end()
}

// image returns the image in a frame, or nil if the document is to be read without its images.
func (o *odf) image(n *markupNode) []byte {
	c := n.child("draw:image")
	if c == nil || o.pkg == nil || o.b.ocr == nil && !o.b.wantImages {
		return nil
	}
	data, err := o.pkg.read(bundlePath("", c.attr("xlink:href")))
	if err != nil && !o.b.canceled() {
		o.b.note("an image is not read: " + err.Error())
	}
	return data
}

// odfAlt returns the alternative text of a shape: its title and its description.
func odfAlt(n *markupNode) string {
	var parts []string
	for _, name := range []string{"svg:title", "svg:desc"} {
		if c := n.child(name); c != nil && c.words() != "" {
			parts = append(parts, c.words())
		}
	}
	return strings.Join(slices.Compact(parts), ". ")
}

// object returns the document element of the object in a frame, or nil. An object that cannot be
// read leaves its alternative text.
func (o *odf) object(n *markupNode) *markupNode {
	c := n.child("draw:object")
	if c == nil {
		return nil
	}
	for _, inner := range c.children {
		if inner.name == "math:math" || inner.name == "office:document" {
			return inner
		}
	}
	href := c.attr("xlink:href")
	if o.pkg == nil || href == "" || o.b.err != nil {
		return nil
	}
	if o.lastObject != nil && o.lastHref == href {
		return o.lastObject
	}
	data, err := o.pkg.read(bundlePath("", href) + "/content.xml")
	if err != nil || data == nil {
		o.b.err = err
		return nil
	}
	root, err := readMarkup(data, o.b.canceled)
	if err != nil {
		o.b.err = err
		return nil
	}
	o.lastHref, o.lastObject = href, root
	return root
}

// formula returns the text of the formula in a frame, or "".
func (o *odf) formula(n *markupNode) string {
	if object := o.object(n); object != nil && object.name == "math:math" {
		return cmp.Or(mathText(object), odfAlt(n))
	}
	return ""
}

// odfCharts are the names of the classes of charts.
var odfCharts = map[string]string{
	"chart:bar": "Bar chart", "chart:line": "Line chart", "chart:circle": "Pie chart", "chart:ring": "Donut chart", "chart:area": "Area chart",
	"chart:scatter": "Scatter chart", "chart:bubble": "Bubble chart", "chart:radar": "Radar chart", "chart:filled-radar": "Radar chart",
	"chart:stock": "Stock chart", "chart:gantt": "Gantt chart", "chart:surface": "Surface chart",
}

// embedded writes an object in a frame: a chart with its titles and its data, or another document.
func (o *odf) embedded(root, frame *markupNode) {
	chart := root.find("chart:chart")
	if chart == nil {
		if alt := odfAlt(frame); alt != "" {
			o.figure(Figure, alt)
		}
		if body := root.find("office:body"); body != nil {
			for _, c := range body.children {
				o.blocks(c)
			}
		}
		return
	}
	parts := []string{cmp.Or(odfCharts[chart.attr("chart:class")], "Chart")}
	for _, name := range []string{"chart:title", "chart:subtitle"} {
		if c := chart.child(name); c != nil && c.words() != "" {
			parts = append(parts, c.words())
		}
	}
	chart.each("chart:axis", func(axis *markupNode) {
		if c := axis.child("chart:title"); c != nil && c.words() != "" {
			parts = append(parts, c.words())
		}
	})
	if alt := odfAlt(frame); alt != "" {
		parts = append(parts, alt)
	}
	o.figure(Figure, strings.Join(parts, ". "))
	if data := chart.child("table:table"); data != nil {
		o.table(data)
	}
}
