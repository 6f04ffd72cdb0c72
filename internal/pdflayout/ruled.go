package pdflayout

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/pdfium"
)

// Bounds of ruled tables.
const (
	near      = 3.0       // points between pieces of one line
	touch     = 0.75      // points between rules that meet, besides half of their widths
	maxWidth  = 4         // of a rule in points
	maxMeets  = 2_000_000 // pairs of rules that are compared
	maxLarge  = 200       // rectangles of one colour that others may be inside
	maxSlots  = 50_000    // of a grid
	maxGrids  = 500       // of a page, the largest
	maxEdges  = 5_000_000 // pairs of a rule and a slot
	proseCell = 800       // characters of a cell on average; longer: the grid holds a page's texts
)

// A rule is a horizontal or vertical line: at y from x0 to x1, or at x from y0 to y1.
type rule struct{ at, from, to, width float32 }

// ruledTables returns the tables that rules delimit, and the characters outside them.
func (v *view) ruledTables(ctx context.Context) ([]*placedTable, []char, error) {
	horizontal, vertical := v.split()
	var tables []*placedTable
	rest := v.chars
	for _, g := range gridsOf(horizontal, vertical) {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		inside, outside := g.cut(rest)
		turned := make([]turnedText, len(v.others))
		for i, o := range v.others {
			turned[i] = g.cutTurned(v, o)
		}
		if t := g.table(inside, turned, v.page.Structure != nil); t != nil {
			tables = append(tables, t)
			rest = outside
			for i, o := range v.others {
				o.chars = turned[i].outside
			}
		}
	}
	return tables, rest, nil
}

// split returns the horizontal and vertical rules. Pieces of one line are joined.
func (v *view) split() (horizontal, vertical []rule) {
	for _, r := range visible(v.rules) {
		switch w, h := r.X1-r.X0, r.Y1-r.Y0; {
		case w >= h && w > near:
			horizontal = append(horizontal, rule{(r.Y0 + r.Y1) / 2, r.X0, r.X1, r.Width})
		case h > w && h > near:
			vertical = append(vertical, rule{(r.X0 + r.X1) / 2, r.Y0, r.Y1, r.Width})
		}
	}
	return joinPieces(horizontal), joinPieces(vertical)
}

// visible returns the rules without the edges of filled rectangles that are not seen: of white ones,
// and of those inside another of the same colour, such as the shading of lines in a shaded cell.
func visible(rules []pdfium.Rule) []pdfium.Rule {
	const white = 0xffffffff
	boxes := map[int32]pdfium.Box{}
	colors := map[int32]uint32{}
	for _, r := range rules {
		if !r.Filled || r.Rectangle == 0 {
			continue
		}
		box, ok := boxes[r.Rectangle]
		if !ok {
			box = r.Box
		}
		boxes[r.Rectangle], colors[r.Rectangle] = union(box, r.Box), r.Color
	}
	large := map[uint32][]int32{} // rectangles of each color, the largest first
	for id := range boxes {
		large[colors[id]] = append(large[colors[id]], id)
	}
	area := func(id int32) float32 { b := boxes[id]; return (b.X1 - b.X0) * (b.Y1 - b.Y0) }
	for _, ids := range large {
		slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(compare(area(b), area(a)), int(a-b)) })
	}
	hidden := map[int32]bool{}
	for id, box := range boxes {
		for i, o := range large[colors[id]] {
			if o == id || i >= maxLarge {
				break
			}
			hidden[id] = hidden[id] || contains(boxes[o], box)
		}
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r pdfium.Rule) bool {
		return r.Filled && (r.Color == white || hidden[r.Rectangle])
	})
}

// contains reports whether a box contains another.
func contains(a, b pdfium.Box) bool {
	return a.X0 <= b.X0+1 && a.Y0 <= b.Y0+1 && b.X1 <= a.X1+1 && b.Y1 <= a.Y1+1
}

// joinPieces joins rules that continue each other.
func joinPieces(rules []rule) []rule {
	slices.SortFunc(rules, func(a, b rule) int { return compare(a.at, b.at) })
	var out []rule
	for len(rules) > 0 {
		n := 1
		for n < len(rules) && rules[n].at-rules[0].at < 1.5 {
			n++
		}
		group := rules[:n]
		rules = rules[n:]
		slices.SortFunc(group, func(a, b rule) int { return compare(a.from, b.from) })
		last := group[0]
		for _, r := range group[1:] {
			if r.from <= last.to+near {
				last.to, last.width = max(last.to, r.to), max(last.width, r.width)
				continue
			}
			out = append(out, last)
			last = r
		}
		out = append(out, last)
	}
	return out
}

// A grid is rules that touch each other.
type grid struct {
	horizontal, vertical []rule
	xs, ys               []float32 // the edges of columns and rows
}

// gridsOf returns the connected groups of rules that have at least two cells, small ones first.
func gridsOf(horizontal, vertical []rule) []grid {
	group := make([]int, len(horizontal)+len(vertical)) // union-find
	for i := range group {
		group[i] = i
	}
	find := func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	meets := 0
	for k, r := range vertical {
		first, _ := slices.BinarySearchFunc(horizontal, r.from-touch-maxWidth, func(h rule, y float32) int { return compare(h.at, y) })
		for i := first; i < len(horizontal) && horizontal[i].at <= r.to+touch+maxWidth && meets < maxMeets; i++ {
			meets++
			h := horizontal[i]
			reach := touch + (min(h.width, maxWidth)+min(r.width, maxWidth))/2
			if h.from-reach <= r.at && r.at <= h.to+reach && r.from-reach <= h.at && h.at <= r.to+reach {
				group[find(len(horizontal)+k)] = find(i)
			}
		}
	}
	grids := map[int]*grid{}
	of := func(i int) *grid {
		i = find(i)
		if grids[i] == nil {
			grids[i] = &grid{}
		}
		return grids[i]
	}
	for i, h := range horizontal {
		of(i).horizontal = append(of(i).horizontal, h)
	}
	for i, r := range vertical {
		of(len(horizontal) + i).vertical = append(of(len(horizontal)+i).vertical, r)
	}
	var out []grid
	for i := range group {
		if g := grids[i]; g != nil && g.edges() {
			out = append(out, *g)
		}
	}
	slices.SortStableFunc(out, func(a, b grid) int { return compare(b.area(), a.area()) })
	out = out[:min(len(out), maxGrids)]
	slices.Reverse(out)
	return out
}

func (g *grid) area() float32 {
	return (g.xs[len(g.xs)-1] - g.xs[0]) * (g.ys[len(g.ys)-1] - g.ys[0])
}

// edges sets the edges of the columns and rows. It is false if they make no table.
func (g *grid) edges() bool {
	if len(g.horizontal) < 2 || len(g.vertical) < 1 {
		return false
	}
	for _, r := range g.vertical {
		g.xs = append(g.xs, r.at)
		g.ys = append(g.ys, r.from, r.to)
	}
	for _, r := range g.horizontal {
		g.ys = append(g.ys, r.at)
		g.xs = append(g.xs, r.from, r.to)
	}
	g.xs, g.ys = distinct(g.xs), distinct(g.ys)
	columns, rows := len(g.xs)-1, len(g.ys)-1
	edges := len(g.vertical)*rows + len(g.horizontal)*columns
	return columns >= 1 && rows >= 1 && columns*rows >= 2 && columns*rows <= maxSlots && edges <= maxEdges
}

// distinct returns values at least 2·near apart, each the first of those near it.
func distinct(values []float32) []float32 {
	slices.Sort(values)
	out := values[:1]
	for _, v := range values[1:] {
		if v-out[len(out)-1] >= 1.5*near {
			out = append(out, v)
		}
	}
	return slices.Clone(out)
}

// cut divides characters into those inside the grid and the others. A blank goes with the character
// before it.
func (g *grid) cut(chars []char) (inside, outside []char) {
	box := pdfium.Box{X0: g.xs[0], Y0: g.ys[0], X1: g.xs[len(g.xs)-1], Y1: g.ys[len(g.ys)-1]}
	in := false
	for _, c := range chars {
		if !c.space {
			x, y := (c.X0+c.X1)/2, c.base-0.3*c.run.Size
			in = box.X0 <= x && x <= box.X1 && box.Y0 <= y && y <= box.Y1
		}
		if in {
			inside = append(inside, c)
		} else {
			outside = append(outside, c)
		}
	}
	return inside, outside
}

// A turnedText is the characters of a view in another direction, such as those of narrow headers.
type turnedText struct {
	slots   map[int][]char // inside a grid, by slot
	outside []char
}

// cutTurned divides the characters of another view of the page.
func (g *grid) cutTurned(main, o *view) turnedText {
	t := turnedText{slots: map[int][]char{}}
	columns := len(g.xs) - 1
	at := -1 // slot of the last character
	for _, c := range o.chars {
		if !c.space {
			b := main.turn(back(c.Box, o.angle, o.page.Width, o.page.Height))
			x, y := (b.X0+b.X1)/2, (b.Y0+b.Y1)/2
			at = -1
			if g.xs[0] <= x && x <= g.xs[columns] && g.ys[0] <= y && y <= g.ys[len(g.ys)-1] && o.angle != skewed {
				at = slot(g.ys, y)*columns + slot(g.xs, x)
			}
		}
		if at < 0 {
			t.outside = append(t.outside, c)
		} else {
			t.slots[at] = append(t.slots[at], c)
		}
	}
	return t
}

// table returns the table of the grid with the characters inside it, or nil if it is none.
func (g *grid) table(chars []char, turned []turnedText, tagged bool) *placedTable {
	columns, rows := len(g.xs)-1, len(g.ys)-1
	cellOf := g.merge()
	slots := make([][]char, columns*rows)
	last, cuts := 0, 0 // cuts are words with an edge of a cell in them
	used := map[int]bool{}
	for i, c := range chars {
		if !c.space {
			col := slot(g.xs, (c.X0+c.X1)/2)
			row := slot(g.ys, c.base-0.3*c.run.Size)
			cell := cellOf[row*columns+col]
			if i > 0 && cell != last && follows(&chars[i-1], &c) {
				cuts++
			}
			last = cell
			used[last] = true
		}
		slots[last] = append(slots[last], c)
	}
	if len(used) < 2 || len(chars)/len(used) > proseCell || cuts > max(2, len(used)/10) {
		return nil
	}
	frags := make([][]fragment, len(slots))
	for i := range slots {
		frags[i] = fragments(slots[i], tagged)
	}
	return g.build(cellOf, frags, turnedCells(cellOf, turned, tagged))
}

// turnedCells returns the turned text of each cell.
func turnedCells(cellOf []int, turned []turnedText, tagged bool) map[int]string {
	out := map[int]string{}
	for _, t := range turned {
		cells := map[int][]char{}
		for _, i := range slices.Sorted(maps.Keys(t.slots)) {
			cells[cellOf[i]] = append(cells[cellOf[i]], t.slots[i]...)
		}
		for cell, chars := range cells {
			out[cell] = strings.TrimSpace(out[cell] + " " + textOf(fragments(chars, tagged)))
		}
	}
	return out
}

// follows reports whether a character is in the same word as the one before it.
func follows(a, b *char) bool {
	return !a.space && !a.end && a.base == b.base && abs(b.X0-a.X1) < 0.1*b.run.Size
}

// slot returns the index of the interval that contains a value.
func slot(edges []float32, at float32) int {
	i, _ := slices.BinarySearch(edges, at)
	return min(max(i-1, 0), len(edges)-2)
}

// merge returns the cell of each slot of the grid: the first slot of the rectangle of slots that no
// rule divides.
func (g *grid) merge() []int {
	columns, rows := len(g.xs)-1, len(g.ys)-1
	right := make([]bool, columns*rows) // a rule right of the slot
	below := make([]bool, columns*rows)
	for _, r := range g.vertical {
		c := edge(g.xs, r.at) - 1
		for row := range rows {
			if c >= 0 && c < columns && covers(r, g.ys[row], g.ys[row+1]) {
				right[row*columns+c] = true
			}
		}
	}
	for _, r := range g.horizontal {
		row := edge(g.ys, r.at) - 1
		for c := range columns {
			if row >= 0 && row < rows && covers(r, g.xs[c], g.xs[c+1]) {
				below[row*columns+c] = true
			}
		}
	}
	cell := make([]int, columns*rows)
	for i := range cell {
		cell[i] = -1
	}
	for i := range cell {
		if cell[i] >= 0 {
			continue
		}
		row, col := i/columns, i%columns
		w := 1
		for col+w < columns && !right[i+w-1] && cell[i+w] < 0 {
			w++
		}
		h := 1
		for row+h < rows && g.open(below, right, cell, row+h, col, w) {
			h++
		}
		for y := range h {
			for x := range w {
				cell[i+y*columns+x] = i
			}
		}
	}
	return cell
}

// open reports whether the slots [col, col+w) of a row belong to the cell above them.
func (g *grid) open(below, right []bool, cell []int, row, col, w int) bool {
	columns := len(g.xs) - 1
	for c := col; c < col+w; c++ {
		i := row*columns + c
		if below[i-columns] || cell[i] >= 0 || c+1 < col+w && right[i] {
			return false
		}
	}
	return true
}

// edge returns the index of the edge nearest to a value.
func edge(edges []float32, at float32) int {
	i, _ := slices.BinarySearch(edges, at)
	if i > 0 && (i == len(edges) || at-edges[i-1] < edges[i]-at) {
		i--
	}
	return i
}

// covers reports whether a rule covers most of an interval.
func covers(r rule, from, to float32) bool {
	return min(r.to, to)-max(r.from, from) > 0.6*(to-from)
}

// build makes the table of the fragments of each cell. Rows and columns without text are left out.
func (g *grid) build(cellOf []int, frags [][]fragment, turned map[int]string) *placedTable {
	columns, rows := len(g.xs)-1, len(g.ys)-1
	cols, lns := g.occupied(cellOf, frags, turned)
	if len(cols) < 2 || len(lns) < 1 || len(cols)*len(lns) < 2 {
		return nil
	}
	t := &placedTable{box: pdfium.Box{X0: g.xs[0], Y0: g.ys[0], X1: g.xs[columns], Y1: g.ys[rows]}, seq: 1 << 30}
	var all []fragment
	at := 0 // row of the table
	for n, row := range lns {
		parts := g.parts(cellOf, frags, row, lns)
		for k := range max(parts, 1) {
			for c, col := range cols {
				i := row*columns + col
				if c > 0 && cellOf[i] == cellOf[row*columns+cols[c-1]] || n > 0 && cellOf[i] == cellOf[lns[n-1]*columns+col] {
					continue
				}
				cell := Cell{Row: at, Col: c, RowSpan: 1, ColSpan: 1}
				for c+cell.ColSpan < len(cols) && cellOf[row*columns+cols[c+cell.ColSpan]] == cellOf[i] {
					cell.ColSpan++
				}
				for n+cell.RowSpan < len(lns) && cellOf[lns[n+cell.RowSpan]*columns+col] == cellOf[i] {
					cell.RowSpan++
				}
				inside := frags[cellOf[i]]
				if parts > 1 {
					inside = rowsOf(inside)[k]
				}
				cell.Text = textOf(inside)
				if k == 0 {
					cell.Text = strings.TrimSpace(cell.Text + " " + turned[cellOf[i]])
				}
				all = append(all, inside...)
				t.Cells = append(t.Cells, cell)
			}
			y0, y1 := g.ys[row], g.ys[row+1]
			height := (y1 - y0) / float32(max(parts, 1))
			t.Rows = append(t.Rows, Box{Box: pdfium.Box{X0: t.box.X0, X1: t.box.X1, Y0: y0 + float32(k)*height, Y1: y0 + float32(k+1)*height}})
			at++
		}
	}
	t.size = typicalSize(all)
	for _, f := range all {
		t.seq = min(t.seq, f.seq)
		t.chars += f.chars
	}
	t.turn(all)
	t.markHeader()
	return t
}

// occupied returns the columns and rows of the grid in which a cell with text begins.
func (g *grid) occupied(cellOf []int, frags [][]fragment, turned map[int]string) (cols, rows []int) {
	columns := len(g.xs) - 1
	col, row := map[int]bool{}, map[int]bool{}
	for i, cell := range cellOf {
		if cell == i && (len(frags[i]) > 0 || turned[i] != "") {
			col[i%columns], row[i/columns] = true, true
		}
	}
	for c := range columns {
		if col[c] {
			cols = append(cols, c)
		}
	}
	for r := range len(g.ys) - 1 {
		if row[r] {
			rows = append(rows, r)
		}
	}
	return cols, rows
}

// parts returns how many rows of text a row of the grid has that no rules divide: the number of
// lines in each of its cells if that is the same, at least three, and their baselines are. It is 1
// otherwise, and in a grid whose rules divide more than a header from the rest.
func (g *grid) parts(cellOf []int, frags [][]fragment, row int, rows []int) int {
	columns := len(g.xs) - 1
	if len(rows) > 2 {
		return 1
	}
	var bases []float32
	cells := 0
	for c := range columns {
		i := row*columns + c
		if cellOf[i] != i {
			if cellOf[i]/columns != row {
				return 1
			}
			continue
		}
		if row+1 < len(g.ys)-1 && cellOf[i+columns] == i {
			return 1
		}
		lines := rowsOf(frags[i])
		if len(lines) < 3 || cells > 0 && len(lines) != len(bases) {
			return 1
		}
		for k, l := range lines {
			if cells > 0 && abs(l[0].base-bases[k]) > 0.3*l[0].size {
				return 1
			}
			if cells == 0 {
				bases = append(bases, l[0].base)
			}
		}
		cells++
	}
	if cells < 2 {
		return 1
	}
	return len(bases)
}
