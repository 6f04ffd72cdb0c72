package pdflayout

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A placedTable is a table with its place on the page.
type placedTable struct {
	Table
	box   pdfium.Box
	size  float32
	seq   int
	chars int
}

func (t *placedTable) area() area {
	return area{table: &t.Table, x0: t.box.X0, x1: t.box.X1, box: t.box, size: t.size, chars: t.chars}
}

// gridOf returns the table that a section is: its columns are between the gaps that most of its
// bands have, and its rows are bands, without those that continue a cell.
func gridOf(s section) *placedTable {
	s.gutters = usualGutters(s)
	t := &placedTable{box: s.bands[0].box, seq: 1 << 30}
	rows := s.rows()
	for r, bands := range rows {
		box := bands[0].box
		cells := map[int][]fragment{} // by column
		spans := map[int]int{}
		for _, b := range bands {
			box = union(box, b.box)
			for _, f := range b.frags {
				c, n := s.columnsOf(f)
				cells[c] = append(cells[c], f)
				spans[c] = max(spans[c], n)
				t.seq = min(t.seq, f.seq)
				t.chars += f.chars
			}
		}
		t.box = union(t.box, box)
		t.Rows = append(t.Rows, Box{Box: box})
		for c := 0; c <= len(s.gutters); c++ {
			n := max(spans[c], 1)
			t.Cells = append(t.Cells, Cell{Text: textOf(cells[c]), Row: r, Col: c, RowSpan: 1, ColSpan: n})
			c += n - 1
		}
	}
	all := slices.Concat(s.columns()...)
	t.size = typicalSize(all)
	t.turn(all)
	t.markHeader()
	return t
}

// columnsOf returns the first column that a fragment covers, and how many.
func (s section) columnsOf(f fragment) (column, n int) {
	first, last := 0, 0
	for _, g := range s.gutters {
		if f.X0 >= (g.x0+g.x1)/2 {
			first++
		}
		if f.X1 > (g.x0+g.x1)/2 {
			last++
		}
	}
	return first, max(1, last-first+1)
}

// usualGutters returns the gutters of the bands with the most gaps. Those of a header that spans
// columns are fewer.
func usualGutters(s section) []span {
	most := 0
	for _, b := range s.bands {
		most = max(most, len(b.gaps))
	}
	var all []band
	for _, b := range s.bands {
		if 10*len(b.gaps) >= 7*most {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return s.gutters
	}
	free := all[0].gaps
	for _, b := range all[1:] {
		free = common(free, b.gaps, 1)
	}
	if g := inner(free, all); len(g) > len(s.gutters) {
		return g
	}
	return s.gutters
}

// rows groups the bands of a table to rows. A band continues the row above if one of its fragments
// was written directly after that above it, in a row with more columns, and it is near.
func (s section) rows() [][]band {
	type place struct{ band, column int }
	before := map[int]place{} // by the sequence number of the fragment that was written next
	var all []fragment
	where := map[int]place{}
	for i, b := range s.bands {
		for _, f := range b.frags {
			c, _ := s.columnsOf(f)
			where[f.seq] = place{i, c}
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b fragment) int { return a.seq - b.seq })
	for i := 1; i < len(all); i++ {
		before[all[i].seq] = where[all[i-1].seq]
	}
	var rows [][]band
	for i, b := range s.bands {
		continues := i > 0 && b.box.Y0-s.bands[i-1].box.Y1 < 0.6*typicalSize(b.frags) && slices.ContainsFunc(b.frags, func(f fragment) bool {
			p, ok := before[f.seq]
			return ok && p.band == i-1 && p.column == where[f.seq].column && fragmentsIn(rows[len(rows)-1]) > 1
		})
		if continues {
			rows[len(rows)-1] = append(rows[len(rows)-1], b)
			continue
		}
		rows = append(rows, []band{b})
	}
	return rows
}

func fragmentsIn(bands []band) int {
	n := 0
	for _, b := range bands {
		n += len(b.frags)
	}
	return n
}

// textOf joins the lines of a cell.
func textOf(frags []fragment) string {
	if len(frags) == 0 {
		return ""
	}
	var b strings.Builder
	hyphen := false
	for i, l := range lines(frags) {
		text := l.text
		if i > 0 && !hyphen {
			b.WriteByte(' ')
		}
		if hyphen = l.hyphen; hyphen {
			text = strings.TrimSuffix(text, "-")
		}
		b.WriteString(text)
	}
	return b.String()
}

// turn numbers the columns from the right if most of the text runs to the left.
func (t *placedTable) turn(frags []fragment) {
	if !isMostlyRTL(frags) {
		return
	}
	columns := 0
	for _, c := range t.Cells {
		columns = max(columns, c.Col+c.ColSpan)
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		c.Col = columns - c.Col - c.ColSpan
	}
	slices.SortStableFunc(t.Cells, func(a, b Cell) int { return cmp.Or(a.Row-b.Row, a.Col-b.Col) })
}

// markHeader marks the cells of the first row as headers if at least two have text and none is a
// number, apart from years.
func (t *placedTable) markHeader() {
	named := 0
	for _, c := range t.Cells {
		if c.Row > 0 || c.Text == "" {
			continue
		}
		if isNumber(c.Text) && !year.MatchString(c.Text) {
			return
		}
		named++
	}
	if named < 2 && len(t.Rows) > 1 || len(t.Rows) < 2 {
		return
	}
	for i := range t.Cells {
		if t.Cells[i].Row == 0 {
			t.Cells[i].Header = true
		}
	}
}

var year = lazyregexp.New(`^(19|20)[0-9]{2}$`)

// isNumber reports whether a text has digits and no more letters than a unit.
func isNumber(s string) bool {
	digits, letters := 0, 0
	for _, c := range s {
		switch {
		case unicode.IsDigit(c):
			digits++
		case unicode.IsLetter(c):
			letters++
		}
	}
	return digits > 0 && letters < 3 && letters <= digits
}
