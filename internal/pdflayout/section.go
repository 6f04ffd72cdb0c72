package pdflayout

import (
	"slices"

	"github.com/assay-rag/assay/internal/pdfium"
)

// A section is consecutive bands with the same gutters.
type section struct {
	bands   []band
	gutters []span // between columns; none: the bands are one column
}

// minGutter is the least width of a gutter between columns, in ems of the text around it. Narrower
// ones occur in tables and between words.
const minGutter = 0.9

// Bounds of a section. Real pages stay far below.
const (
	maxSection = 500 // bands
	maxGutters = 64
)

// bySections divides the fragments into sections, if there is more than one column in any of them.
func (d *divider) bySections(frags []fragment, depth int) bool {
	x0, x1 := extent(frags)
	sections := extendUp(sectionsOf(bandsOf(frags, x0, x1), typicalSize(frags)*minGutter))
	if len(sections) == 1 && len(sections[0].gutters) == 0 {
		return d.byTables(sections[0].bands)
	}
	var plain []fragment
	flush := func() {
		if len(plain) > 0 {
			d.divide(plain, maxDivisions)
		}
		plain = nil
	}
	for _, s := range sections {
		if len(s.gutters) == 0 {
			for _, b := range s.bands {
				plain = append(plain, b.frags...)
			}
			continue
		}
		flush()
		d.section(s, depth)
	}
	flush()
	return true
}

// byTables writes the bands of one column, in which tables interrupt the lines.
func (d *divider) byTables(bands []band) bool {
	if !slices.ContainsFunc(bands, func(b band) bool { return slices.ContainsFunc(b.frags, isTableFragment) }) {
		return false
	}
	var text []fragment
	for _, b := range bands {
		for _, f := range b.frags {
			if f.table == nil {
				text = append(text, f)
				continue
			}
			if len(text) > 0 {
				d.leaf(text)
				text = nil
			}
			d.divide([]fragment{f}, maxDivisions)
		}
	}
	if len(text) > 0 {
		d.leaf(text)
	}
	return true
}

func isTableFragment(f fragment) bool { return f.table != nil }

// section appends the columns of a section, or the tables and lines that it is. Gutters that the text
// was written along divide columns, the others cells.
func (d *divider) section(s section, depth int) {
	streamed := s.streamed()
	switch {
	case len(streamed) > 0:
		s.gutters = streamed
	case !isProse(s.columns()):
		d.rows(s.bands)
		return
	}
	columns := s.columns()
	if d.rtl {
		slices.Reverse(columns)
	}
	for _, c := range columns {
		d.divide(c, depth+1)
	}
}

// streamed returns the gutters that the text was written along. A program that writes columns of text
// crosses their gutter once; one that writes a table crosses it in every row.
func (s section) streamed() []span {
	var all []fragment
	for _, b := range s.bands {
		all = append(all, b.frags...)
	}
	slices.SortStableFunc(all, func(a, b fragment) int { return a.seq - b.seq })
	var out []span
	for _, g := range s.gutters {
		crossings := 0
		for i := 1; i < len(all); i++ {
			if (all[i].X0 < g.x0) != (all[i-1].X0 < g.x0) {
				crossings++
			}
		}
		rows := 0
		for _, b := range s.bands {
			if len(inner([]span{g}, []band{b})) > 0 {
				rows++
			}
		}
		if crossings <= 1 || 10*crossings <= 4*rows {
			out = append(out, g)
		}
	}
	return out
}

// maxDrawings is the number of curves in a table, such as ticks; with more it is a figure.
const maxDrawings = 12

// drawingsIn returns how many drawings have their middle in a box.
func (v *view) drawingsIn(box pdfium.Box) int {
	n := 0
	for _, d := range v.drawings {
		x, y := (d.X0+d.X1)/2, (d.Y0+d.Y1)/2
		if box.X0 <= x && x <= box.X1 && box.Y0 <= y && y <= box.Y1 {
			n++
		}
	}
	return n
}

// isProse reports whether columns are running text: two or three columns whose lines are long and
// fill them.
func isProse(columns [][]fragment) bool {
	if len(columns) > 3 {
		return false
	}
	for _, c := range columns {
		x0, x1 := extent(c)
		full, chars := 0, 0
		for _, f := range c {
			chars += f.chars
			if f.X1-f.X0 > 0.85*(x1-x0) {
				full++
			}
		}
		if len(c) < 4 || 2*full < len(c) || chars < 25*len(c) {
			return false
		}
	}
	return true
}

// columns returns the fragments between the gutters, from left to right.
func (s section) columns() [][]fragment {
	columns := make([][]fragment, len(s.gutters)+1)
	for _, b := range s.bands {
		for _, f := range b.frags {
			i := s.column(f)
			columns[i] = append(columns[i], f)
		}
	}
	return slices.DeleteFunc(columns, func(c []fragment) bool { return len(c) == 0 })
}

// column returns the index of the column of a fragment.
func (s section) column(f fragment) int {
	mid := (f.X0 + f.X1) / 2
	i := 0
	for i < len(s.gutters) && mid > s.gutters[i].x1 {
		i++
	}
	return i
}

// sectionsOf divides bands into sections, each as long as possible. A section with gutters has text
// on both sides of each in at least two bands.
func sectionsOf(bands []band, least float32) []section {
	var out []section
	plain := func(b band) {
		if n := len(out); n > 0 && len(out[n-1].gutters) == 0 {
			out[n-1].bands = append(out[n-1].bands, b)
			return
		}
		out = append(out, section{bands: []band{b}})
	}
	for i := 0; i < len(bands); {
		n, gutters := longestSection(bands[i:], least)
		if n < 2 {
			plain(bands[i])
			i++
			continue
		}
		out = append(out, section{bands: bands[i : i+n], gutters: gutters})
		i += n
	}
	return out
}

// extendUp moves the last bands of a section without gutters to the section of columns below if they
// do not cross its gutters, up to one that lies right of a gutter: the column beside it begins with a
// figure, or with nothing.
func extendUp(sections []section) []section {
	for i := 1; i < len(sections); i++ {
		s, above := &sections[i], &sections[i-1]
		if len(s.gutters) == 0 || len(above.gutters) > 0 {
			continue
		}
		streamed := s.streamed()
		if len(streamed) == 0 {
			continue
		}
		from := len(above.bands) // first band that moves
		for k := from - 1; k >= 0; k-- {
			shared := common(streamed, above.bands[k].gaps, 1)
			if len(shared) < len(streamed) {
				break
			}
			if streamed = shared; s.fillsColumn(above.bands[k], streamed) {
				from = k
			}
		}
		if from == len(above.bands) {
			continue
		}
		for _, b := range above.bands[from:] {
			s.gutters = common(s.gutters, b.gaps, 1)
		}
		s.bands = slices.Concat(above.bands[from:], s.bands)
		above.bands = above.bands[:from]
	}
	return slices.DeleteFunc(sections, func(s section) bool { return len(s.bands) == 0 })
}

// fillsColumn reports whether a band is a line of a column right of a gutter: it starts where the
// column starts and covers at least half of its width.
func (s section) fillsColumn(b band, gutters []span) bool {
	for _, f := range b.frags {
		c := section{gutters: gutters}.column(f)
		if c == 0 {
			continue
		}
		x0, x1, found := float32(0), float32(0), false
		for _, other := range s.bands {
			for _, o := range other.frags {
				if (section{gutters: gutters}).column(o) != c {
					continue
				}
				if !found {
					x0, x1, found = o.X0, o.X1, true
				}
				x0, x1 = min(x0, o.X0), max(x1, o.X1)
			}
		}
		if found && f.X0 < x0+3*f.size && f.X1-f.X0 > 0.5*(x1-x0) {
			return true
		}
	}
	return false
}

// longestSection returns how many bands from the first on have a common gutter, and the gutters. It
// is 0 if the first band has no gutter.
func longestSection(bands []band, least float32) (int, []span) {
	free := bands[0].gaps
	if len(inner(free, bands[:1])) == 0 {
		return 0, nil
	}
	n := 1
	left, right := bands[0].box.X0, bands[0].box.X1
	for n < min(len(bands), maxSection) {
		next := common(free, bands[n].gaps, least)
		l, r := min(left, bands[n].box.X0), max(right, bands[n].box.X1)
		if len(between(next, l, r)) == 0 {
			break
		}
		free, left, right = next, l, r
		n++
	}
	gutters := supported(inner(free, bands[:n]), bands[:n])
	if len(gutters) == 0 {
		return 0, nil
	}
	return withoutTail(bands, n, gutters), gutters
}

// withoutTail returns how many of the first n bands belong to a section. Bands at its end that lie on
// one side of all gutters belong to the next section if they are nearer to it.
func withoutTail(bands []band, n int, gutters []span) int {
	if n == len(bands) {
		return n
	}
	for k := n; k > 2 && len(inner(gutters, bands[k-1:k])) == 0; k-- {
		if gapAbove(bands, k-1) > 1.3*gapAbove(bands, n) {
			return k - 1
		}
	}
	return n
}

// supported returns the gutters that have text on both sides in at least two bands.
func supported(gutters []span, bands []band) []span {
	var out []span
	for i, g := range gutters {
		n := 0
		for _, b := range bands {
			if len(inner(gutters[i:i+1], []band{b})) > 0 {
				n++
			}
		}
		if n > 1 {
			out = append(out, g)
		}
	}
	return out
}

func gapAbove(bands []band, i int) float32 {
	if i == 0 || i >= len(bands) {
		return 0
	}
	return bands[i].box.Y0 - bands[i-1].box.Y1
}

// inner returns the spans that have fragments on both sides within the bands.
func inner(spans []span, bands []band) []span {
	if len(spans) == 0 {
		return nil
	}
	left, right := bands[0].box.X0, bands[0].box.X1
	for _, b := range bands {
		left, right = min(left, b.box.X0), max(right, b.box.X1)
	}
	return between(spans, left, right)
}

// between returns the spans inside a range, at most maxGutters.
func between(spans []span, left, right float32) []span {
	var out []span
	for _, s := range spans {
		if s.x0 >= left && s.x1 <= right && len(out) < maxGutters {
			out = append(out, s)
		}
	}
	return out
}

// typicalSize returns the size that most characters have.
func typicalSize(frags []fragment) float32 {
	count := map[float32]int{}
	for _, f := range frags {
		count[f.size] += f.chars
	}
	best := float32(0)
	for size, n := range count {
		if m := count[best]; n > m || n == m && size > best {
			best = size
		}
	}
	return max(best, 1)
}
