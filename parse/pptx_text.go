package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// text writes the paragraphs of a shape: a heading for a title, list items where a bullet or number
// is set or inherited, else paragraphs.
func (p *pptxReader) text(s pptxShape, body *ooxml.Node) {
	paras := body.All("a:p")
	if s.title {
		text := trimLines(bodyText(body))
		if p.b.title == "" {
			p.b.title = text
		}
		p.b.begin(Heading)
		p.b.cur.Level = 1
		p.b.put(text, 0)
		p.box(s)
		p.b.end()
		return
	}
	lists := p.listStyles(s.node, body)
	var count [9]int
	item := false // the block before is an item of this shape
	for _, para := range paras {
		text := trimLines(drawingText(para))
		level := levelOf(para.Child("a:pPr").Attr("lvl"))
		if text == "" {
			continue
		}
		lead := bulletOf(para.Child("a:pPr"), lists, level, &count)
		switch {
		case lead == "":
			p.b.begin(Paragraph)
		case item:
			p.b.beginTight(ListItem)
		default:
			p.b.begin(ListItem)
		}
		item = lead != ""
		if item {
			p.b.cur.Level = level + 1
			text = strings.Repeat("  ", level) + lead + " " + text
		}
		p.b.put(text, 0)
		p.box(s)
		p.b.end()
	}
}

// listStyles returns the elements that may set the bullets of a shape's text, by level, the nearest
// first: of the shape, of the placeholders it inherits from, and of the master.
func (p *pptxReader) listStyles(shape, body *ooxml.Node) []*ooxml.Node {
	styles := []*ooxml.Node{body.Child("a:lstStyle")}
	ph := placeholder(shape)
	if ph == nil {
		return styles
	}
	for _, h := range p.layout.holdersOf(ph) {
		styles = append(styles, h.Child("p:txBody", "a:lstStyle"))
	}
	if kind := holderKind(ph.Attr("type")); kind == "body" || kind == "" {
		styles = append(styles, p.layout.styles.Child("p:bodyStyle"))
	}
	return styles
}

// bulletOf returns the bullet or number of a paragraph, or "". It counts numbered paragraphs.
func bulletOf(props *ooxml.Node, styles []*ooxml.Node, level int, count *[9]int) string {
	name := "a:lvl" + string(rune('1'+level)) + "pPr"
	sources := []*ooxml.Node{props}
	for _, s := range styles {
		sources = append(sources, s.Child(name))
	}
	for i := level + 1; i < len(count); i++ {
		count[i] = 0
	}
	for _, s := range sources {
		if s == nil {
			continue
		}
		for _, c := range s.Children {
			switch c.Name {
			case "a:buNone":
				count[level] = 0
				return ""
			case "a:buChar", "a:buBlip":
				count[level] = 0
				return "-"
			case "a:buAutoNum":
				if count[level] == 0 {
					count[level] = number(c.Attr("startAt"), 1) - 1
				}
				count[level]++
				return autoNumber(count[level], c.Attr("type"))
			}
		}
	}
	count[level] = 0
	return ""
}

// autoNumber returns a number in a scheme of DrawingML, such as "arabicPeriod".
func autoNumber(n int, scheme string) string {
	format, before, after := scheme, "", ""
	for _, s := range []struct{ suffix, before, after string }{
		{"ParenBoth", "(", ")"}, {"ParenR", "", ")"}, {"Period", "", "."}, {"Plain", "", ""}, {"Minus", "", "-"},
	} {
		if f, ok := strings.CutSuffix(scheme, s.suffix); ok {
			format, before, after = f, s.before, s.after
			break
		}
	}
	return before + numeral(n, format) + after
}
