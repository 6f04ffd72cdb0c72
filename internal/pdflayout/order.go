package pdflayout

import (
	"cmp"
	"context"
	"slices"

	"github.com/assay-rag/assay/internal/pdfium"
)

// areas returns the columns and tables of a view in reading order.
func (v *view) areas(ctx context.Context) ([]area, error) {
	if v.angle == skewed {
		return v.asWritten(), ctx.Err()
	}
	tables, rest, err := v.ruledTables(ctx)
	if err != nil {
		return nil, err
	}
	frags := joinMarkers(fragments(rest, v.page.Structure != nil))
	for _, t := range tables {
		frags = append(frags, fragment{Box: t.box, base: t.box.Y1, size: t.size, table: t, seq: t.seq, chars: t.chars})
	}
	d := divider{ctx: ctx, view: v, rtl: isMostlyRTL(frags)}
	d.divide(frags, 0)
	figures := v.figures()
	for i := range d.out {
		a := &d.out[i]
		a.angle = v.angle
		for _, l := range a.lines {
			l.figure = slices.ContainsFunc(figures, func(f pdfium.Box) bool { return contains(f, l.Box) })
			l.shown = back(l.Box, v.angle, v.page.Width, v.page.Height)
		}
		if a.table != nil {
			for k := range a.table.Rows {
				a.table.Rows[k] = Box{v.page.Number, back(a.table.Rows[k].Box, v.angle, v.page.Width, v.page.Height)}
			}
		}
	}
	return d.out, ctx.Err()
}

// asWritten returns the text of a view in the order of the stream, for text at an angle.
func (v *view) asWritten() []area {
	a := area{angle: v.angle}
	for start, i := 0, 0; i < len(v.chars); i++ {
		if i+1 < len(v.chars) && !v.chars[i].end {
			continue
		}
		f := fragmenter{}
		for k := start; k <= i; k++ {
			f.add(&v.chars[k])
		}
		if frag, ok := f.fragment(); ok {
			l := lineOf([]fragment{frag})
			l.shown = l.Box
			a.lines = append(a.lines, l)
		}
		start = i + 1
	}
	return []area{a}
}

func isMostlyRTL(frags []fragment) bool {
	rtl, all := 0, 0
	for _, f := range frags {
		rtl += f.rtl
		all += f.chars
	}
	return 2*rtl > all
}

// joinMarkers joins the markers of list items, and leaders with page numbers, with the text that
// follows on their line, so that the gaps between them divide nothing.
func joinMarkers(frags []fragment) []fragment {
	var out []fragment
	for _, row := range rowsOf(frags) {
		for _, f := range row {
			n := len(out)
			if n == 0 || !sharesRow(out[n-1:], f) || f.X0 < out[n-1].X0 {
				out = append(out, f)
				continue
			}
			last := &out[n-1]
			gap := f.X0 - last.X1
			leads := isMarker(last.text) && gap < 4*f.size
			trails := f.rtl > 0 && isMarker(f.text) && gap < 4*f.size
			leader := gap < 3*f.size && (hasLeader(last.text) && !contents.MatchString(last.text) || hasLeader(f.text) && !hasLeader(last.text))
			if !leads && !trails && !leader || gap < 0 {
				out = append(out, f)
				continue
			}
			*last = joinFragments(*last, f)
		}
	}
	slices.SortStableFunc(out, func(a, b fragment) int { return a.seq - b.seq })
	return out
}

// joinFragments joins two fragments of a line.
func joinFragments(a, b fragment) fragment {
	row := []fragment{a, b}
	if a.rtl+b.rtl > 0 && 3*(a.rtl+b.rtl) > a.chars+b.chars {
		row = []fragment{b, a}
	}
	out := a
	if b.chars > a.chars {
		out = b
	}
	out.Box = union(a.Box, b.Box)
	out.text = joinRow(row)
	out.chars, out.bold, out.italic = a.chars+b.chars, a.bold+b.bold, a.italic+b.italic
	out.fixed, out.rtl = a.fixed+b.fixed, a.rtl+b.rtl
	out.seq, out.space, out.hyphen = min(a.seq, b.seq), row[1].space, row[1].hyphen
	out.indent = cmp.Or(b.indent, b.X0)
	return out
}

// A divider divides fragments into columns, rows and tables.
type divider struct {
	ctx  context.Context
	view *view
	rtl  bool
	out  []area
}

// maxDivisions is the depth of the recursion. Real pages need three or four.
const maxDivisions = 24

// divide appends the areas of the fragments in reading order.
func (d *divider) divide(frags []fragment, depth int) {
	if len(frags) == 0 || d.ctx.Err() != nil {
		return
	}
	if len(frags) == 1 && frags[0].table != nil {
		t := frags[0].table
		d.out = append(d.out, t.area())
		return
	}
	if depth < maxDivisions {
		if d.bySections(frags, depth) {
			return
		}
	}
	d.leaf(frags)
}

// leaf appends a column of lines.
func (d *divider) leaf(frags []fragment) {
	text := frags[:0:0]
	for _, f := range frags {
		if f.table == nil {
			text = append(text, f)
			continue
		}
		d.leaf(text)
		text = nil
		d.divide([]fragment{f}, 0)
	}
	if len(text) == 0 {
		return
	}
	a := area{lines: lines(text)}
	a.x0, a.x1 = extent(text)
	d.out = append(d.out, a)
}

func extent(frags []fragment) (x0, x1 float32) {
	x0, x1 = frags[0].X0, frags[0].X1
	for _, f := range frags {
		x0, x1 = min(x0, f.X0), max(x1, f.X1)
	}
	return x0, x1
}

// A band is fragments that overlap vertically: a line of text, or a table beside lines.
type band struct {
	frags []fragment
	box   pdfium.Box
	gaps  []span // free of fragments, from the left edge of the region to its right edge
}

// A span is a range of x.
type span struct{ x0, x1 float32 }

// bandsOf divides fragments into bands, from top to bottom.
func bandsOf(frags []fragment, x0, x1 float32) []band {
	sorted := slices.Clone(frags)
	slices.SortStableFunc(sorted, func(a, b fragment) int { return compare(a.mid(), b.mid()) })
	var bands []band
	for _, f := range sorted {
		if n := len(bands); n > 0 && inBand(&bands[n-1], f) {
			bands[n-1].frags = append(bands[n-1].frags, f)
			bands[n-1].box = union(bands[n-1].box, f.Box)
			continue
		}
		bands = append(bands, band{frags: []fragment{f}, box: f.Box})
	}
	for i := range bands {
		bands[i].gaps = gapsOf(bands[i].frags, x0, x1)
	}
	return bands
}

func (f fragment) mid() float32 { return (f.Y0 + f.Y1) / 2 }

// inBand reports whether a fragment belongs to a band: it overlaps the band by more than half of the
// lower of both.
func inBand(b *band, f fragment) bool {
	overlap := min(b.box.Y1, f.Y1) - max(b.box.Y0, f.Y0)
	return overlap > 0.5*min(b.box.Y1-b.box.Y0, f.Y1-f.Y0)
}

// gapsOf returns the free spans of fragments between x0 and x1.
func gapsOf(frags []fragment, x0, x1 float32) []span {
	sorted := slices.Clone(frags)
	slices.SortStableFunc(sorted, func(a, b fragment) int { return compare(a.X0, b.X0) })
	var gaps []span
	at := x0 - 1 // so that fragments at the edge leave a gap
	for _, f := range sorted {
		if f.X0 > at {
			gaps = append(gaps, span{at, f.X0})
		}
		at = max(at, f.X1)
	}
	return append(gaps, span{at, max(at, x1) + 1})
}

// common returns the spans that are free in both.
func common(a, b []span, least float32) []span {
	var out []span
	for i, k := 0, 0; i < len(a) && k < len(b); {
		s := span{max(a[i].x0, b[k].x0), min(a[i].x1, b[k].x1)}
		if s.x1-s.x0 >= least {
			out = append(out, s)
		}
		if a[i].x1 < b[k].x1 {
			i++
		} else {
			k++
		}
	}
	return out
}
