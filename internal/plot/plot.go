// Package plot draws small plots as SVG for use in an HTML page: histograms, lines, points, bars
// and intervals. They are drawn at the width of a phone and scale with the page. Colours come from
// CSS, for light and dark schemes. Equal input gives equal bytes.
//
// Values that are not finite numbers are left out of a plot and counted in its description.
package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An SVG is a complete <svg> element. Its text is escaped, so it can be embedded in HTML unchanged.
// It has no style attribute, no script and no external reference.
type SVG string

// A Frame holds the properties common to all plots.
type Frame struct {
	Title    string
	Says     string // text description of the plot; empty: generated
	X, Y     Axis
	Diagonal bool // Points: draw a line from corner to corner, where the two axes are equal
}

// An Axis is one of the two axes of a plot.
type Axis struct {
	Label     string   // with its unit: "latency, ms"
	Low, High float64  // ends; both 0: from the values
	Log       bool     // logarithmic; values that are not positive are left out
	Names     []string // names of the values 0, 1, 2, …, such as days; empty: numbers
}

// CSS styles the classes used in plots. It follows the page's colour scheme.
const CSS = `.plot{display:block;width:100%;height:auto;max-width:25rem;--p-ink:#1d2430;--p-soft:#5b6472;--p-grid:#e3e6eb;--p-main:#2457c5;--p-fill:#7ea2ec;--p-mark:#b3261e}
.plot text{font:11px system-ui,sans-serif;fill:var(--p-soft)}
.plot .title{font-weight:600;font-size:12px;fill:var(--p-ink)}
.plot .name{fill:var(--p-ink)}
.plot .grid{stroke:var(--p-grid)}
.plot .axis{stroke:var(--p-soft)}
.plot .bar{fill:var(--p-fill)}
.plot .dot{fill:var(--p-main)}
.plot .line{fill:none;stroke:var(--p-main);stroke-width:2}
.plot .span{stroke:var(--p-main);stroke-width:1.5}
.plot .other{fill:none;stroke:var(--p-soft);stroke-width:1.5;stroke-dasharray:2 3}
.plot .mark{stroke:var(--p-mark);stroke-width:1.5;stroke-dasharray:5 3}
.plot .lead{stroke:var(--p-soft);stroke-width:.5}
@media (prefers-color-scheme:dark){.plot{--p-ink:#e8eaee;--p-soft:#a9b1be;--p-grid:#333a46;--p-main:#8fb4ff;--p-fill:#4c74c9;--p-mark:#ff8a80}}
@media print{.plot{--p-ink:#000;--p-soft:#333;--p-grid:#ddd;--p-main:#2457c5;--p-fill:#7ea2ec;--p-mark:#b3261e}}
`

// The layout of a plot, in units that are pixels if the page has the same width.
const (
	width  = 340.0
	left   = 44.0 // position of the vertical axis
	right  = 12.0
	top    = 24.0 // below the title
	head   = 20.0 // additional space if the vertical axis has a label
	bottom = 36.0 // for the horizontal axis
	height = 210.0
	line   = 18.0 // height of a row of names
	letter = 6.4  // approximate width of a letter
	whole  = 52   // number of letters that fit into the width
)

// canvas is an SVG under construction.
type canvas struct {
	b      strings.Builder
	height float64
}

func newCanvas(height float64) *canvas { return &canvas{height: height} }

// place formats a coordinate, rounded to hundredths so that equal plots have equal bytes.
func place(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, place(x1), place(y1), place(x2), place(y2))
}

func (c *canvas) rect(class, says string, x, y, w, h float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		class, place(x), place(y), place(max(w, 0)), place(max(h, 0)), html.EscapeString(clean(says)))
}

func (c *canvas) dot(says string, x, y, r float64) {
	fmt.Fprintf(&c.b, `<circle class="dot" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`, place(x), place(y), place(r), html.EscapeString(clean(says)))
}

func (c *canvas) path(class string, points [][2]float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="`, class)
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		c.b.WriteString(command + place(p[0]) + " " + place(p[1]))
	}
	c.b.WriteString(`"/>`)
}

// text writes text at a position; anchor is "start", "middle" or "end".
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, place(x), place(y), html.EscapeString(clean(s)))
}

// finish returns the complete element.
func (c *canvas) finish(f Frame, says string) SVG {
	label := f.Title
	if says = cmp.Or(f.Says, says); says != "" {
		label += ": " + says
	}
	return SVG(fmt.Sprintf(`<svg class="plot" role="img" viewBox="0 0 %s %s" aria-label="%s">`, place(width), place(c.height), html.EscapeString(clean(label))) +
		c.b.String() + `</svg>`)
}

// clean replaces characters that must not be in a page: control characters, bidirectional overrides
// and noncharacters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfffe, r == 0xffff:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// short truncates a name to the given number of letters. The page's text and the description have
// the whole name.
func short(s string, letters int) string {
	if utf8.RuneCountInString(s) <= letters {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(letters-1, 1)]) + "…"
}

// Number formats a number briefly, as on an axis: 0.25, 1,200, 45k, 3.2M.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 1e9:
		return trim(v/1e9, 1) + "G"
	case a >= 1e6:
		return trim(v/1e6, 1) + "M"
	case a >= 1e4:
		return trim(v/1e3, 1) + "k"
	case a >= 1e3:
		s := trim(v, 0)
		return s[:len(s)-3] + "," + s[len(s)-3:]
	case a >= 10:
		return trim(v, 1)
	case a >= 0.01 || a == 0:
		return trim(v, 2)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// trim formats a number with at most the given number of decimals.
func trim(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
