package parse

import (
	"strconv"
	"strings"
)

// An odfStyle is what a style says about the structure of the text that has it.
type odfStyle struct {
	parent  string
	role    string // "title", "subtitle", "caption", "code", "head" or ""
	outline int    // level of a heading; 0: not one
	raised  bool   // superscript
	hidden  bool
	size    float32 // of the font in points; 0: not stated
}

// An odfListStyle has the levels of a list style, from 1.
type odfListStyle struct{ levels map[int]odfListLevel }

type odfListLevel struct {
	numbered bool
	start    int
}

// odfRoles are the structural meanings of the names of paragraph styles.
var odfRoles = map[string]string{
	"Title": "title", "Subtitle": "subtitle", "Caption": "caption",
	"Illustration": "caption", "Drawing": "caption", "Figure": "caption", "Table": "caption", "Text": "caption",
	"Table_20_Heading":     "head",
	"Preformatted_20_Text": "code", "Source_20_Code": "code", "Code": "code",
}

// readStyles reads the styles below n.
func (o *odf) readStyles(n *markupNode) {
	for _, c := range n.children {
		switch c.name {
		case "style:style":
			o.readStyle(c)
		case "text:list-style":
			o.lists[c.attr("style:name")] = readODFList(c)
		case "style:page-layout":
			if p := c.child("style:page-layout-properties"); p != nil {
				o.setSize("layout "+c.attr("style:name"), odfSizes{odfLength(p.attr("xsl-fo:page-width")), odfLength(p.attr("xsl-fo:page-height"))})
			}
		case "style:master-page":
			o.setSize(c.attr("style:name"), o.sizes["layout "+c.attr("style:page-layout-name")])
		}
	}
}

func (o *odf) setSize(name string, size odfSizes) {
	if o.sizes == nil {
		o.sizes = map[string]odfSizes{}
	}
	o.sizes[name] = size
}

func (o *odf) readStyle(n *markupNode) {
	s := odfStyle{parent: n.attr("style:parent-style-name"), role: odfRoles[n.attr("style:name")]}
	if outline, err := strconv.Atoi(n.attr("style:default-outline-level")); err == nil {
		s.outline = min(max(outline, 0), 20)
	}
	if p := n.child("style:text-properties"); p != nil {
		position := p.attr("style:text-position")
		s.raised = strings.HasPrefix(position, "super") || position != "" && position[0] >= '1' && position[0] <= '9'
		s.hidden = p.attr("text:display") == "none"
		s.size = odfLength(p.attr("xsl-fo:font-size"))
	}
	o.styles[n.attr("style:family")+" "+n.attr("style:name")] = s
}

func readODFList(n *markupNode) odfListStyle {
	s := odfListStyle{levels: map[int]odfListLevel{}}
	for _, c := range n.children {
		level, err := strconv.Atoi(c.attr("text:level"))
		if err != nil {
			continue
		}
		form := odfListLevel{numbered: c.name == "text:list-level-style-number" && c.attr("style:num-format") != "", start: 1}
		if start, err := strconv.Atoi(c.attr("text:start-value")); err == nil {
			form.start = start
		}
		s.levels[level] = form
	}
	return s
}

// style returns a style with what it inherits.
func (o *odf) style(family, name string) odfStyle {
	const longest = 20 // chain of parents
	s := o.styles[family+" "+name]
	if s.role == "" {
		s.role = odfRoles[name]
	}
	parent := s.parent
	for range longest {
		if parent == "" {
			break
		}
		p := o.styles[family+" "+parent]
		if s.role == "" {
			s.role = p.role
		}
		if s.role == "" {
			s.role = odfRoles[parent]
		}
		if s.outline == 0 {
			s.outline = p.outline
		}
		if s.size == 0 {
			s.size = p.size
		}
		s.hidden = s.hidden || p.hidden
		parent = p.parent
	}
	return s
}

// odfUnits are the points of each unit of length.
var odfUnits = map[string]float64{"cm": 72 / 2.54, "mm": 7.2 / 2.54, "in": 72, "pt": 1, "pc": 12, "px": 0.75}

// odfLength returns a length such as "2.5cm" in points, or 0.
func odfLength(s string) float32 {
	if len(s) < 3 {
		return 0
	}
	v, err := strconv.ParseFloat(s[:len(s)-2], 64)
	if err != nil {
		return 0
	}
	v *= odfUnits[s[len(s)-2:]]
	if !(v > -1e6 && v < 1e6) {
		return 0
	}
	return float32(v)
}
