package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Histogram draws how many values fall into each part of the horizontal axis. There are ten parts
// if the axis is given as 0 to 1, one per value for a few whole numbers, and otherwise twenty. The
// label of Y names what is counted.
func Histogram(f Frame, values []float64) SVG {
	kept, lost := finite(values, f.X.Log)
	c := newCanvas(height)
	n := bins(f.X)
	if low, high, whole := wholes(kept); whole && !f.X.Log && f.X.Low == 0 && f.X.High == 0 {
		f.X.Low, f.X.High, n = low-0.5, high+0.5, int(high-low)+1
	}
	x := newScale(f.X, kept, false, left, width-right)
	counts := tally(x, kept, n)
	highest := slices.Max(counts)
	y := newScale(Axis{High: float64(max(highest, 1))}, nil, true, height-bottom, top+head)
	y.marks, y.names = []float64{0, float64(highest)}, []string{"0", Number(float64(highest))}
	if highest == 0 {
		y.marks, y.names = y.marks[:1], y.names[:1]
	}
	c.text("title", "start", 2, 12, short(f.Title, 54))
	c.vertical(y, f.Y.Label)
	c.horizontal(x, f.X.Label, height-bottom, top+head)
	wide := (x.to - x.from) / float64(len(counts))
	for i, n := range counts {
		if n == 0 {
			continue
		}
		from, to := x.value(x.from+float64(i)*wide), x.value(x.from+float64(i+1)*wide)
		c.rect("bar", fmt.Sprintf("%s to %s: %d", Number(from), Number(to), n), x.from+float64(i)*wide+0.5, y.at(float64(n)), wide-1, y.from-y.at(float64(n)))
	}
	if len(kept) == 0 {
		c.empty()
	}
	return c.finish(f, spread(kept, lost))
}

// bins returns the number of bars of a histogram.
func bins(a Axis) int {
	if a.Low == 0 && a.High == 1 && !a.Log {
		return 10
	}
	return 20
}

// wholes returns the least and greatest of values that are whole numbers in a small range.
func wholes(values []float64) (low, high float64, whole bool) {
	low, high = bounds(values, false)
	whole = len(values) > 0 && high-low <= 30
	for _, v := range values {
		whole = whole && v == math.Trunc(v)
	}
	if whole {
		low, high = slices.Min(values), slices.Max(values)
	}
	return low, high, whole
}

// value is the inverse of at.
func (s scale) value(place float64) float64 {
	share := (place - s.from) / (s.to - s.from)
	if s.log {
		return math.Exp(math.Log(s.low) + share*(math.Log(s.high)-math.Log(s.low)))
	}
	return s.low + share*(s.high-s.low)
}

// tally counts the values in n equal parts of a scale. The last part includes its upper end.
func tally(s scale, values []float64, n int) []int {
	counts := make([]int, n)
	for _, v := range values {
		i := int((s.at(v) - s.from) / (s.to - s.from) * float64(n) * (1 + 1e-12))
		counts[min(max(i, 0), n-1)]++
	}
	return counts
}

// finite returns the values that can be drawn, and the number of the others.
func finite(values []float64, positive bool) (kept []float64, lost int) {
	for _, v := range values {
		if drawn(v, positive) {
			kept = append(kept, v)
		} else {
			lost++
		}
	}
	return kept, lost
}

// spread describes the distribution of values in words.
func spread(values []float64, lost int) string {
	if len(values) == 0 {
		return "no values"
	}
	sorted := slices.Sorted(slices.Values(values))
	says := fmt.Sprintf("%d values from %s to %s, median %s", len(sorted), Number(sorted[0]), Number(sorted[len(sorted)-1]), Number(sorted[len(sorted)/2]))
	if lost > 0 {
		says += fmt.Sprintf("; %d more cannot be drawn", lost)
	}
	return says
}

// empty writes a note that there are no values.
func (c *canvas) empty() {
	c.text("name", "middle", (left+width-right)/2, c.height/2, "nothing to show")
}

// A Bar is a length with a name.
type Bar struct {
	Name  string
	Value float64
	Says  string // text beside it; empty: the value
}

// Bars draws lengths from zero, one below the other, in the order given.
func Bars(f Frame, bars []Bar) SVG {
	bars = slices.Clone(bars)
	var values []float64
	names, room := make([]string, len(bars)), 0
	for i, b := range bars {
		bars[i].Says = cmp.Or(b.Says, Number(b.Value))
		values, names[i] = append(values, b.Value), b.Name
		room = max(room, min(utf8.RuneCountInString(bars[i].Says), 16))
	}
	rows := newRows(f, names, values, true, letter*float64(room))
	for i, b := range bars {
		if !drawn(b.Value, false) {
			continue
		}
		zero, end := rows.x.at(0), rows.x.at(b.Value)
		rows.rect("bar", b.Name+": "+b.Says, min(zero, end), rows.y(i)-6, max(math.Abs(end-zero), 1), 12)
		rows.text("tick", "start", max(zero, end)+4, rows.y(i)+4, short(b.Says, 16))
	}
	return rows.finish(f, "")
}

// An Interval is a value with its bounds and a name.
type Interval struct {
	Name             string
	Value, Low, High float64
}

// Intervals draws values with their bounds, one below the other, in the order given. If the axis
// spans 0, or has a computed end at 0, a line is drawn there. An interval that crosses it may be
// due to chance.
func Intervals(f Frame, all []Interval) SVG {
	var values []float64
	names := make([]string, len(all))
	for i, v := range all {
		values, names[i] = append(values, v.Value, v.Low, v.High), v.Name
	}
	rows := newRows(f, names, values, f.X.Low == 0 && f.X.High == 0, 0)
	if rows.x.low < 0 && rows.x.high >= 0 {
		rows.line("mark", rows.x.at(0), top, rows.x.at(0), rows.height-bottom)
	}
	for i, v := range all {
		if !drawn(v.Value, false) {
			continue
		}
		if drawn(v.Low, false) && drawn(v.High, false) {
			rows.line("span", rows.x.at(v.Low), rows.y(i), rows.x.at(v.High), rows.y(i))
		}
		rows.dot(fmt.Sprintf("%s: %s (%s to %s)", v.Name, Number(v.Value), Number(v.Low), Number(v.High)), rows.x.at(v.Value), rows.y(i), 3.5)
	}
	return rows.finish(f, "")
}

// rows is a plot of names, one below the other, with a horizontal axis and space at the right.
type rows struct {
	*canvas
	x scale
}

func newRows(f Frame, names []string, values []float64, zero bool, room float64) *rows {
	longest := 4
	for _, n := range names {
		longest = max(longest, utf8.RuneCountInString(n))
	}
	letters := min(longest, 22)
	from := letter*float64(letters) + 10
	r := &rows{newCanvas(top + line*float64(max(len(names), 1)) + bottom), newScale(f.X, values, zero, from, width-right-4-room)}
	r.text("title", "start", 2, 12, short(f.Title, 54))
	r.horizontal(r.x, f.X.Label, r.height-bottom, top-6)
	for i, n := range names {
		r.text("name", "end", from-6, r.y(i)+4, short(n, letters))
	}
	if len(names) == 0 {
		r.empty()
	}
	return r
}

// y returns the middle of row i.
func (r *rows) y(i int) float64 { return top + line*(float64(i)+0.5) - 3 }

// A Point is a named position. Bounds equal to the value are not drawn.
type Point struct {
	Name      string
	X, Y      float64
	Low, High float64 // of Y
	Size      float64 // radius from 2 to 8; 0: 4
}

// Points draws named points with their vertical bounds. Names that would overlap are moved apart.
func Points(f Frame, points []Point) SVG {
	var xs, ys []float64
	for _, p := range points {
		xs, ys = append(xs, p.X), append(ys, p.Y, p.Low, p.High)
	}
	c := newCanvas(height + 20)
	base := c.height - bottom
	x, y := newScale(f.X, xs, true, left, width-right), newScale(f.Y, ys, false, base, top+head)
	c.text("title", "start", 2, 12, short(f.Title, 54))
	c.vertical(y, f.Y.Label)
	c.horizontal(x, f.X.Label, base, top+head)
	if f.Diagonal {
		c.line("other", x.from, y.from, x.to, y.to)
	}
	var shown []Point
	for _, p := range points {
		if !drawn(p.X, f.X.Log) || !drawn(p.Y, f.Y.Log) {
			continue
		}
		shown = append(shown, p)
		if p.Low != p.High && drawn(p.Low, false) && drawn(p.High, false) {
			c.line("span", x.at(p.X), y.at(p.Low), x.at(p.X), y.at(p.High))
		}
		c.dot(strings.TrimPrefix(fmt.Sprintf("%s: %s, %s", p.Name, Number(p.X), Number(p.Y)), ": "), x.at(p.X), y.at(p.Y), min(max(cmp.Or(p.Size, 4), 2), 8))
	}
	if len(shown) <= 40 { // more names would hide the points
		c.nameAll(shown, x, y)
	}
	if len(shown) == 0 {
		c.empty()
	}
	return c.finish(f, pointsInWords(points))
}

// nameAll writes the names of points beside them, from the highest down. A name that would overlap
// the one before is moved at least a line below it.
func (c *canvas) nameAll(points []Point, x, y scale) {
	ordered := slices.Clone(points)
	slices.SortStableFunc(ordered, func(a, b Point) int { return cmp.Compare(y.at(a.Y), y.at(b.Y)) })
	type box struct{ left, right, y float64 }
	var taken []box
	for _, p := range ordered {
		if p.Name == "" {
			continue
		}
		name := short(p.Name, 18)
		wide := letter * float64(utf8.RuneCountInString(name))
		px, py := x.at(p.X), y.at(p.Y)
		at, anchor := box{px + 7, px + 7 + wide, py + 4}, "start"
		if at.right > width {
			at, anchor = box{px - 7 - wide, px - 7, py + 4}, "end"
		}
		for moved := true; moved; {
			moved = false
			for _, t := range taken {
				if at.left < t.right && t.left < at.right && math.Abs(at.y-t.y) < 11 {
					at.y, moved = t.y+11, true
				}
			}
		}
		taken = append(taken, at)
		start := at.left
		if anchor == "end" {
			start = at.right
		}
		if at.y > py+8 {
			c.line("lead", px, py, start, at.y-4)
		}
		c.text("name", anchor, start, at.y, name)
	}
}

// pointsInWords describes up to twenty points.
func pointsInWords(points []Point) string {
	if len(points) == 0 {
		return "no points"
	}
	var says []string
	for i, p := range points {
		if i == 20 {
			says = append(says, fmt.Sprintf("and %d more", len(points)-i))
			break
		}
		says = append(says, strings.TrimSpace(fmt.Sprintf("%s %s, %s", p.Name, Number(p.X), Number(p.Y))))
	}
	return strings.Join(says, "; ")
}

// A Series is a line.
type Series struct {
	Name string // the first series is the main one; others are drawn thinner
	X, Y []float64
	Mark bool // a limit, drawn as such
}

// Lines draws series over the same axes. A line is broken where a value is not a number.
func Lines(f Frame, all []Series) SVG {
	var xs, ys []float64
	for _, s := range all {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	const under = 12 // space between the axis and the legend
	room := 0.0
	if len(all) > 1 {
		room = under + 14*float64((len(all)+1)/2)
	}
	c := newCanvas(height + room)
	x, y := newScale(f.X, xs, false, left, width-right), newScale(f.Y, ys, true, height-bottom, top+head)
	c.text("title", "start", 2, 12, short(f.Title, 54))
	c.vertical(y, f.Y.Label)
	c.horizontal(x, f.X.Label, height-bottom, top+head)
	points := 0
	for i, s := range all {
		class := "other"
		switch {
		case s.Mark:
			class = "mark"
		case i == 0:
			class = "line"
		}
		points += c.series(class, s, x, y)
		if len(all) > 1 {
			lx, ly := left+150*float64(i%2), height+under+14*float64(i/2)
			c.line(class, lx, ly-4, lx+18, ly-4)
			c.text("name", "start", lx+23, ly, short(s.Name, 20))
		}
	}
	if points == 0 {
		c.empty()
	}
	return c.finish(f, linesInWords(all))
}

// series draws one line and returns how many of its points were drawn.
func (c *canvas) series(class string, s Series, x, y scale) (drawnPoints int) {
	var run [][2]float64
	flush := func() {
		switch {
		case len(run) == 1 && class == "line":
			c.dot("", run[0][0], run[0][1], 2.5)
		case len(run) > 1:
			c.path(class, run)
		}
		run = nil
	}
	for i := range min(len(s.X), len(s.Y)) {
		if !drawn(s.X[i], x.log) || !drawn(s.Y[i], y.log) {
			flush()
			continue
		}
		drawnPoints++
		run = append(run, [2]float64{x.at(s.X[i]), y.at(s.Y[i])})
		if class == "line" && len(s.X) <= 60 {
			c.dot(Number(s.Y[i]), x.at(s.X[i]), y.at(s.Y[i]), 2.5)
		}
	}
	flush()
	return drawnPoints
}

// linesInWords describes the ends and bounds of the lines.
func linesInWords(all []Series) string {
	var says []string
	for _, s := range all {
		kept, _ := finite(s.Y, false)
		if len(kept) == 0 {
			continue
		}
		low, high := bounds(kept, false)
		says = append(says, strings.TrimSpace(fmt.Sprintf("%s from %s to %s, between %s and %s", s.Name, Number(kept[0]), Number(kept[len(kept)-1]), Number(low), Number(high))))
	}
	return strings.Join(says, "; ")
}
