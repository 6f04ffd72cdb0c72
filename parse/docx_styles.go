package parse

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/ooxml"
)

// A docxStyle is a style with the properties that it inherits from the styles it is based on.
type docxStyle struct {
	title   bool
	heading int // 1 to 9; 0: none
	caption bool
	code    bool
	hidden  bool
	mono    bool
	numID   string // empty: not numbered
	level   int    // of the numbering, from 0
}

// docxStyles are the styles of a document, by ID.
type docxStyles map[string]*docxStyle

// readStyles resolves the styles of a w:styles element, which may be nil.
func readStyles(root *ooxml.Node) docxStyles {
	nodes := map[string]*ooxml.Node{}
	for _, n := range root.All("w:style") {
		nodes[n.Attr("w:styleId")] = n
	}
	styles := docxStyles{}
	for id := range nodes {
		styles[id] = resolveStyle(nodes, id)
	}
	return styles
}

// resolveStyle returns a style, the properties of the style itself over those of its bases.
func resolveStyle(nodes map[string]*ooxml.Node, id string) *docxStyle {
	const deepest = 20
	var chain []*ooxml.Node // the style, its base, …
	for n := nodes[id]; n != nil && len(chain) < deepest; n = nodes[n.Child("w:basedOn").Attr("w:val")] {
		chain = append(chain, n)
	}
	s := &docxStyle{}
	for i := len(chain) - 1; i >= 0; i-- {
		s.apply(chain[i])
	}
	return s
}

var (
	headingStyle = lazyregexp.New(`(?i)^(heading|überschrift|titre|título|titolo|kop|rubrik|nagłówek|заголовок|標題|标题|見出し) ?([1-9])$`)
	codeStyle    = lazyregexp.New(`(?i)^(source ?code|code([ -]?(block|listing|snippet|text|example|char))?|html (preformatted|code)|preformatted( text)?|verbatim( char)?|macro( text)?|program ?listing)$`)
)

// apply adds the properties that a w:style element sets.
func (s *docxStyle) apply(n *ooxml.Node) {
	name := strings.TrimSpace(n.Child("w:name").Attr("w:val"))
	switch lower := strings.ToLower(name); {
	case headingStyle.MatchString(name):
		s.heading, _ = strconv.Atoi(headingStyle.FindStringSubmatch(name)[2])
		s.title = false
	case lower == "title":
		s.title = true
	case lower == "caption":
		s.caption = true
	case codeStyle.MatchString(name):
		s.code = true
	}
	p, r := n.Child("w:pPr"), n.Child("w:rPr")
	if outline := p.Child("w:outlineLvl"); outline != nil {
		s.heading = outlineLevel(outline)
	}
	if num := p.Child("w:numPr"); num != nil {
		s.number(num)
	}
	if v := r.Child("w:vanish"); v != nil {
		s.hidden = isOn(v)
	}
	if f := r.Child("w:rFonts"); f != nil {
		s.mono = isMonospaced(f)
	}
}

func (s *docxStyle) number(num *ooxml.Node) {
	if id := num.Child("w:numId"); id != nil {
		s.numID = id.Attr("w:val")
	}
	if l := num.Child("w:ilvl"); l != nil {
		s.level = levelOf(l.Attr("w:val"))
	}
}

// outlineLevel returns the level of headings, from 1, of a w:outlineLvl element, or 0.
func outlineLevel(n *ooxml.Node) int {
	l, err := strconv.Atoi(n.Attr("w:val"))
	if err != nil || l < 0 || l > 8 {
		return 0
	}
	return l + 1
}

// levelOf returns the level of a list, from 0 to 8.
func levelOf(s string) int {
	l, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return min(max(l, 0), 8)
}

// isOn returns the value of a property that is on or off.
func isOn(n *ooxml.Node) bool {
	if n == nil {
		return false
	}
	switch n.Attr("w:val") {
	case "0", "false", "off":
		return false
	}
	return true
}

// isMonospaced reports whether a w:rFonts element names a font for code.
func isMonospaced(fonts *ooxml.Node) bool {
	name := strings.ToLower(fonts.Attr("w:ascii"))
	for _, mono := range []string{"courier", "consolas", "menlo", "monaco", "lucida console", "mono", "cascadia code", "source code", "fira code", "inconsolata"} {
		if strings.Contains(name, mono) {
			return true
		}
	}
	return false
}
