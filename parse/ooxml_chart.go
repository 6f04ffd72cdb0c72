package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// Limits of a chart.
const (
	maxSeries = 500
	maxPoints = 50_000 // of all series
)

// chartNames are the kinds of charts (ECMA-376 part 1, 21.2).
var chartNames = map[string]string{
	"c:areaChart": "area chart", "c:area3DChart": "area chart", "c:barChart": "bar chart", "c:bar3DChart": "bar chart", "c:bubbleChart": "bubble chart",
	"c:doughnutChart": "doughnut chart", "c:lineChart": "line chart", "c:line3DChart": "line chart", "c:ofPieChart": "pie chart", "c:pieChart": "pie chart",
	"c:pie3DChart": "pie chart", "c:radarChart": "radar chart", "c:scatterChart": "scatter chart", "c:stockChart": "stock chart", "c:surfaceChart": "surface chart",
	"c:surface3DChart": "surface chart",
}

// A chartSeries is a series of a chart: its values, and the categories, by index.
type chartSeries struct {
	name           string
	labels, values map[int]string
	points         int
	dates          numberFormats // whose date system the chart uses
}

// chart writes the chart that a relationship refers to: its titles as a caption, then its series as
// a table with a row for each category.
func (o *officeReader) chart(rels ooxml.Relationships, id string) error {
	r, ok := o.pkg.ID(rels, id)
	if !ok {
		return nil
	}
	root, err := o.pkg.Tree(r.Target)
	if err != nil {
		return o.optional("a chart", err)
	}
	plot := root.Child("c:chart", "c:plotArea")
	system := root.Child("c:date1904")
	date1904 := system != nil && system.Attr("val") != "0" && system.Attr("val") != "false"
	var kinds, axes []string
	var series []chartSeries
	if plot != nil {
		for _, c := range plot.Children {
			if name := chartNames[c.Name]; name != "" {
				kinds = appendNew(kinds, name)
				for _, s := range c.All("c:ser") {
					series = append(series, readSeries(s, date1904))
				}
			}
			if title := titleText(c.Child("c:title")); title != "" {
				axes = appendNew(axes, title)
			}
		}
	}
	title := titleText(root.Child("c:chart", "c:title"))
	axes = slices.DeleteFunc(axes, func(axis string) bool {
		return slices.ContainsFunc(series, func(s chartSeries) bool { return s.name == axis })
	})
	o.chartCaption(title, kinds, axes)
	return o.chartTable(series)
}

// appendNew appends s unless list has it.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// chartCaption writes the title, the kind and the titles of the axes of a chart.
func (o *officeReader) chartCaption(title string, kinds, axes []string) {
	kind := strings.Join(kinds, " and ")
	if kind == "" {
		kind = "chart"
	}
	text := strings.ToUpper(kind[:1]) + kind[1:]
	if len(axes) > 0 {
		kind += ": " + strings.Join(axes, ", ")
		text += ": " + strings.Join(axes, ", ")
	}
	if title != "" {
		text = title + " (" + kind + ")"
	}
	o.b.puts(Caption, text, 0)
}

// titleText returns the text of a c:title or c:tx element.
func titleText(n *ooxml.Node) string {
	if n == nil {
		return ""
	}
	var parts []string
	n.Walk(func(c *ooxml.Node) bool {
		switch c.Name {
		case "a:p":
			parts = append(parts, strings.Join(strings.Fields(drawingText(c)), " "))
			return false
		case "c:v":
			parts = append(parts, strings.TrimSpace(c.Text))
		}
		return true
	})
	return strings.TrimSpace(strings.Join(parts, " "))
}

// drawingText returns the text of a paragraph in DrawingML.
func drawingText(p *ooxml.Node) string {
	var out strings.Builder
	for _, c := range p.Children {
		switch c.Name {
		case "a:r", "a:fld":
			out.WriteString(c.Child("a:t").String())
		case "a:br":
			out.WriteByte('\n')
		case "mc:AlternateContent", "a14:m":
			out.WriteString(drawingMath(c))
		case "m:oMath", "m:oMathPara":
			out.WriteString(" " + ommlText(c) + " ")
		}
	}
	return out.String()
}

// drawingMath returns the formulas inside an element.
func drawingMath(n *ooxml.Node) string {
	if n.Name == "mc:AlternateContent" {
		n = &ooxml.Node{Children: alternative(n)}
	}
	var out strings.Builder
	n.Walk(func(c *ooxml.Node) bool {
		if c.Name == "m:oMath" {
			out.WriteString(" " + ommlText(c) + " ")
			return false
		}
		return true
	})
	return out.String()
}

func readSeries(n *ooxml.Node, date1904 bool) chartSeries {
	s := chartSeries{name: titleText(n.Child("c:tx")), labels: map[int]string{}, values: map[int]string{}, dates: numberFormats{date1904: date1904}}
	for _, name := range []string{"c:cat", "c:xVal"} {
		s.read(n.Child(name), s.labels)
	}
	for _, name := range []string{"c:val", "c:yVal"} {
		s.read(n.Child(name), s.values)
	}
	return s
}

// read reads the cached points of a reference or literal. The levels of a category are joined, the
// outermost first.
func (s *chartSeries) read(n *ooxml.Node, into map[int]string) {
	if n == nil {
		return
	}
	var format numberFormat
	n.Walk(func(c *ooxml.Node) bool {
		if c.Name == "c:formatCode" {
			format = readFormat(strings.TrimSpace(c.Text))
		}
		if c.Name != "c:pt" {
			return true
		}
		i, err := strconv.Atoi(c.Attr("idx"))
		if err != nil || i < 0 || i >= maxPoints {
			return false
		}
		v := s.dates.date(strings.TrimSpace(c.Child("c:v").String()), format)
		if have := into[i]; have != "" {
			v += " / " + have
		}
		into[i] = v
		s.points = max(s.points, i+1)
		return false
	})
}

// date returns a number in a format of dates as a date, and another as plainNumber does.
func (f *numberFormats) date(v string, format numberFormat) string {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !format.date || format.elapsed {
		return plainNumber(v)
	}
	return cmp.Or(f.isoTime(x, format), plainNumber(v))
}

// plainNumber returns a number with at most 15 significant digits, as Office shows it; other text
// is unchanged.
func plainNumber(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || len(s) < 16 {
		return s
	}
	return generalNumber(v)
}

// chartTable writes the series as the columns of a table.
func (o *officeReader) chartTable(series []chartSeries) error {
	points := 0
	for _, s := range series {
		points = max(points, s.points)
	}
	if len(series) > maxSeries || points*(len(series)+1) > 10*maxPoints {
		return fmt.Errorf("a chart has %d series of %d points: %w", len(series), points, ErrLimit)
	}
	if points == 0 {
		return nil
	}
	cells := make([]gridCell, 0, (points+1)*(len(series)+1))
	cells = append(cells, gridCell{header: true})
	for j, s := range series {
		cells = append(cells, gridCell{text: s.name, col: j + 1, header: true})
	}
	for i := range points {
		label := ""
		for _, s := range series {
			if label == "" {
				label = s.labels[i]
			}
		}
		cells = append(cells, gridCell{text: label, row: i + 1, header: true})
		for j, s := range series {
			cells = append(cells, gridCell{text: s.values[i], row: i + 1, col: j + 1})
		}
	}
	o.b.table(cells, nil)
	return nil
}

// chartEx writes a chart of the later kinds (waterfall, treemap, …): its title and its data.
func (o *officeReader) chartEx(rels ooxml.Relationships, id string) error {
	r, ok := o.pkg.ID(rels, id)
	if !ok {
		return nil
	}
	root, err := o.pkg.Tree(r.Target)
	if err != nil {
		return o.optional("a chart", err)
	}
	o.chartCaption(titleText(root.Find("cx:title")), nil, nil)
	var series []chartSeries
	root.Walk(func(n *ooxml.Node) bool {
		if n.Name != "cx:data" {
			return true
		}
		s := chartSeries{labels: map[int]string{}, values: map[int]string{}}
		for _, dim := range n.Children {
			into := s.labels
			if dim.Name == "cx:numDim" {
				into = s.values
			}
			for _, level := range dim.All("cx:lvl") {
				s.readEx(level, into)
			}
		}
		series = append(series, s)
		return false
	})
	return o.chartTable(series)
}

func (s *chartSeries) readEx(level *ooxml.Node, into map[int]string) {
	for _, p := range level.All("cx:pt") {
		i, err := strconv.Atoi(p.Attr("idx"))
		if err != nil || i < 0 || i >= maxPoints {
			continue
		}
		v := plainNumber(strings.TrimSpace(p.Text))
		if have := into[i]; have != "" {
			v += " / " + have
		}
		into[i] = v
		s.points = max(s.points, i+1)
	}
}

// diagram writes the texts of a SmartArt diagram as a list.
func (o *officeReader) diagram(rels ooxml.Relationships, id string) error {
	r, ok := o.pkg.ID(rels, id)
	if !ok {
		return nil
	}
	root, err := o.pkg.Tree(r.Target)
	if err != nil {
		return o.optional("a diagram", err)
	}
	points, below, order := map[string]string{}, map[string][]string{}, []string{}
	for _, p := range root.Child("dgm:ptLst").All("dgm:pt") {
		if t := p.Attr("type"); t != "" && t != "node" && t != "asst" && t != "doc" {
			continue
		}
		var lines []string
		for _, para := range p.Child("dgm:t").All("a:p") {
			if text := strings.TrimSpace(drawingText(para)); text != "" {
				lines = append(lines, text)
			}
		}
		points[p.Attr("modelId")] = strings.Join(lines, " ")
		order = append(order, p.Attr("modelId"))
	}
	for _, c := range root.Child("dgm:cxnLst").All("dgm:cxn") {
		if t := c.Attr("type"); t == "" || t == "parOf" {
			below[c.Attr("srcId")] = append(below[c.Attr("srcId")], c.Attr("destId"))
		}
	}
	seen := map[string]bool{}
	var write func(id string, level int)
	write = func(id string, level int) {
		text, ok := points[id]
		if !ok || seen[id] || o.b.canceled() {
			return
		}
		seen[id] = true
		if text != "" {
			o.item(level, "-", text)
			level = min(level+1, 8)
		}
		for _, child := range below[id] {
			write(child, level)
		}
	}
	child := map[string]bool{}
	for _, ids := range below {
		for _, id := range ids {
			child[id] = true
		}
	}
	for _, id := range order {
		if !child[id] {
			write(id, 0)
		}
	}
	for _, id := range order {
		write(id, 0)
	}
	return o.b.ctx.Err()
}

// item writes an item of a list at a level from 0.
func (o *officeReader) item(level int, lead, text string) {
	if isBlank(text) {
		return
	}
	if n := len(o.b.blocks); n > 0 && o.b.blocks[n-1].Kind == ListItem {
		o.b.beginTight(ListItem)
	} else {
		o.b.begin(ListItem)
	}
	o.b.cur.Level = level + 1
	o.b.put(strings.Repeat("  ", level)+lead+" "+strings.TrimSpace(text), 0)
	o.b.end()
}
