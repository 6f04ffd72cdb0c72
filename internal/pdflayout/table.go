package pdflayout

import "slices"

// rows appends bands that were written row by row: tables, and the lines between them.
func (d *divider) rows(bands []band) {
	var text []fragment
	flush := func() {
		if len(text) > 0 {
			d.leaf(text)
		}
		text = nil
	}
	for i := 0; i < len(bands); {
		t, n := tableAt(bands[i:])
		if n > 0 && d.isTable(t) {
			flush()
			d.out = append(d.out, gridOf(t).area())
			i += n
			continue
		}
		for range max(n, 1) {
			text = append(text, bands[i].frags...)
			i++
		}
	}
	flush()
}

// isTable reports whether a section is a table rather than code or the labels of a figure.
func (d *divider) isTable(s section) bool {
	box := s.bands[0].box
	for _, b := range s.bands {
		box = union(box, b.box)
	}
	return !s.isCode(d.view) && d.view.drawingsIn(box) < maxDrawings
}

// A tableRun is the bands of a table so far.
type tableRun struct {
	section
	multi int     // bands with several cells
	gap   float32 // the largest between its bands
	left  float32
	right float32
}

// tableAt returns the table that starts with the first band, and its number of bands, or 0. It needs
// three bands with several cells, or two if there are at least three columns.
func tableAt(bands []band) (section, int) {
	first := bands[0]
	if slices.ContainsFunc(first.frags, isTableFragment) {
		return section{}, 0
	}
	t := tableRun{section: section{gutters: inner(first.gaps, bands[:1])}, left: first.box.X0, right: first.box.X1}
	if len(t.gutters) == 0 {
		return section{}, 0
	}
	t.add(first)
	for i := 1; i < len(bands) && t.accepts(bands[i], bands[i+1:]); i++ {
		t.add(bands[i])
	}
	for n := len(t.bands); n > 0 && t.cells(t.bands[n-1]) < 2 && !t.wraps(n-1); n-- {
		t.bands = t.bands[:n-1]
	}
	if t.multi < 2 || t.multi == 2 && len(t.gutters) < 2 {
		return section{}, 0
	}
	return t.section, len(t.bands)
}

func (t *tableRun) add(b band) {
	if n := len(t.bands); n > 0 {
		t.gap = max(t.gap, b.box.Y0-t.bands[n-1].box.Y1)
	}
	t.bands = append(t.bands, b)
	t.left, t.right = min(t.left, b.box.X0), max(t.right, b.box.X1)
	if t.cells(b) > 1 {
		t.multi++
	}
}

// cells returns in how many columns a band has text.
func (t *tableRun) cells(b band) int {
	n, last := 0, -1
	for _, f := range b.frags {
		if c := t.column(f); c != last {
			n++
			last = c
		}
	}
	return n
}

// wraps reports whether a band only continues cells of the band above.
func (t *tableRun) wraps(i int) bool {
	b := t.bands[i]
	return i > 0 && b.box.Y0-t.bands[i-1].box.Y1 < 0.6*b.frags[0].size && len(b.frags) < len(t.bands[0].frags)
}

// accepts reports whether a band continues the table. It may replace the gutters by finer ones while
// only a header is known.
func (t *tableRun) accepts(b band, after []band) bool {
	last := t.bands[len(t.bands)-1]
	size := b.frags[0].size
	gap := b.box.Y0 - last.box.Y1
	switch {
	case len(t.bands) >= maxSection || slices.ContainsFunc(b.frags, isTableFragment):
		return false
	case gap > max(2*size, 1.5*t.gap) || len(t.bands) > 2 && gap > 2.2*t.gap+0.5*size:
		return false
	case captionName.MatchString(b.frags[0].text) && len(b.frags) == 1:
		return false
	}
	own := inner(b.gaps, []band{b})
	if len(own) == 0 {
		return t.acceptsLine(b, after, gap)
	}
	shared := common(t.gutters, b.gaps, 1)
	if len(own) > len(t.gutters) && t.multi <= 2 {
		if finer := t.refined(own); finer != nil {
			t.gutters = finer
			return true
		}
	}
	if t.multi > 1 && t.doubled(b) {
		return false
	}
	if len(shared) == len(t.gutters) {
		t.gutters = shared
		return true
	}
	return 2*len(shared) >= len(t.gutters) && len(shared) > 0 && len(t.bands) > 1
}

// refined returns the gutters of a band if each of those known so far is among them.
func (t *tableRun) refined(own []span) []span {
	if len(common(t.gutters, own, 1)) < len(t.gutters) {
		return nil
	}
	return own
}

// doubled reports whether a band has fragments far apart in one column: it has other columns.
func (t *tableRun) doubled(b band) bool {
	for i := 1; i < len(b.frags); i++ {
		f, g := b.frags[i-1], b.frags[i]
		if t.column(f) == t.column(g) && max(g.X0-f.X1, f.X0-g.X1) > 1.5*f.size {
			return true
		}
	}
	return false
}

// acceptsLine reports whether a band without a gap continues the table: it is inside one column, and
// either continues a cell or is followed by a row.
func (t *tableRun) acceptsLine(b band, after []band, gap float32) bool {
	size := b.frags[0].size
	if len(common(t.gutters, b.gaps, 1)) < len(t.gutters) || b.box.X0 < t.left-size || b.box.X1 > t.right+size {
		return false
	}
	if gap < 0.6*size {
		return true
	}
	if len(after) == 0 || after[0].box.Y0-b.box.Y1 > 1.5*max(t.gap, 0.6*size) {
		return false
	}
	return len(inner(after[0].gaps, after[:1])) > 0 && len(common(t.gutters, after[0].gaps, 1)) == len(t.gutters)
}

// isCode reports whether most characters of a section are of a fixed width, on a page where they are
// the exception.
func (s section) isCode(v *view) bool {
	fixed, all := 0, 0
	for _, b := range s.bands {
		for _, f := range b.frags {
			fixed += f.fixed
			all += f.chars
		}
	}
	return 4*fixed > 3*all && !v.fixed
}
