package parse

import (
	"cmp"
	"slices"
	"strconv"
)

// write writes each connected region of cells: a lone cell as a paragraph, others as tables. Cells
// are connected if they share an edge.
func (g *xlsxGrid) write(b *builder) error {
	g.sort()
	g.cover()
	for _, region := range g.regions() {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		g.writeRegion(b, region)
	}
	return nil
}

// sort puts the cells in the order of rows, then columns, and keeps the last of those at one place.
func (g *xlsxGrid) sort() {
	order := func(a, b xlsxCell) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
	}
	if !slices.IsSortedFunc(g.cells, order) {
		slices.SortStableFunc(g.cells, order)
	}
	kept := g.cells[:0]
	for _, c := range g.cells {
		if n := len(kept); n > 0 && order(kept[n-1], c) == 0 {
			kept = kept[:n-1]
		}
		kept = append(kept, c)
	}
	g.cells = kept
}

// cover adds the places that merged cells cover, so that they connect the cells next to them. Merged
// cells are cut at the last row and column with text. Cells below a merged one are kept: other
// programs than Office show them.
func (g *xlsxGrid) cover() {
	used := map[uint64]int32{} // of merged cells: the index of the first cell
	var last area
	tops := map[uint64]bool{}
	for _, m := range g.merged {
		tops[place(m.row0, m.col0)] = true
	}
	for i := range g.cells {
		c := &g.cells[i]
		c.owner = int32(i)
		last.row1, last.col1 = max(last.row1, c.row), max(last.col1, c.col)
		if tops[place(c.row, c.col)] {
			used[place(c.row, c.col)] = int32(i)
		}
	}
	g.spans = map[int32]area{}
	covered := 0
	for _, m := range g.merged {
		i, ok := used[place(m.row0, m.col0)]
		if !ok {
			continue
		}
		m.row1, m.col1 = min(m.row1, last.row1), min(m.col1, last.col1)
		size := int(m.row1-m.row0+1) * int(m.col1-m.col0+1)
		if covered += size; covered > maxMerged {
			break
		}
		g.spans[i] = m
	}
	g.fill()
}

// fill appends the covered places and sorts the cells again. Owners follow.
func (g *xlsxGrid) fill() {
	if len(g.spans) == 0 {
		return
	}
	owners := make([]int32, 0, len(g.spans))
	for i := range g.spans {
		owners = append(owners, i)
	}
	slices.Sort(owners)
	for _, i := range owners {
		m := g.spans[i]
		for row := m.row0; row <= m.row1; row++ {
			for col := m.col0; col <= m.col1; col++ {
				if row != m.row0 || col != m.col0 {
					g.cells = append(g.cells, xlsxCell{row: row, col: col, owner: i})
				}
			}
		}
	}
	texts := len(g.cells)
	index := make([]int32, texts) // sorted
	for i := range index {
		index[i] = int32(i)
	}
	slices.SortStableFunc(index, func(a, b int32) int {
		ca, cb := &g.cells[a], &g.cells[b]
		return cmp.Or(cmp.Compare(ca.row, cb.row), cmp.Compare(ca.col, cb.col))
	})
	moved := make([]int32, texts)
	cells := make([]xlsxCell, texts)
	for at, i := range index {
		moved[i] = int32(at)
		cells[at] = g.cells[i]
	}
	spans := make(map[int32]area, len(g.spans))
	for i, m := range g.spans {
		spans[moved[i]] = m
	}
	for i := range cells {
		cells[i].owner = moved[cells[i].owner]
	}
	g.cells, g.spans = cells, spans
}

func place(row, col int32) uint64 { return uint64(row)<<32 | uint64(col) }

// regions returns the indexes of the cells of each connected region, by the place of its first
// cell.
func (g *xlsxGrid) regions() [][]int32 {
	parent := make([]int32, len(g.cells))
	for i := range parent {
		parent[i] = int32(i)
	}
	find := func(i int32) int32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	union := func(i, j int32) {
		i, j = find(i), find(j)
		parent[max(i, j)] = min(i, j)
	}
	above := 0 // the first cell that is not before the place above the current one
	for i, c := range g.cells {
		union(int32(i), c.owner)
		if i > 0 && g.cells[i-1].row == c.row && g.cells[i-1].col >= c.col-1 {
			union(int32(i), int32(i-1))
		}
		for above < i && place(g.cells[above].row+1, g.cells[above].col) < place(c.row, c.col) {
			above++
		}
		if a := g.cells[above]; above < i && a.row == c.row-1 && a.col == c.col {
			union(int32(i), int32(above))
		}
	}
	sizes := make([]int32, len(g.cells))
	for i := range g.cells {
		sizes[find(int32(i))]++
	}
	var regions [][]int32
	at := make([]int32, len(g.cells)) // of roots: the region
	for i := range g.cells {
		root := find(int32(i))
		if root == int32(i) {
			at[i] = int32(len(regions))
			regions = append(regions, make([]int32, 0, sizes[i]))
		}
		regions[at[root]] = append(regions[at[root]], int32(i))
	}
	return regions
}

// writeRegion writes one region. Rows of one cell above a wider table are its captions.
func (g *xlsxGrid) writeRegion(b *builder, region []int32) {
	rows := g.rows(region)
	width := 0
	for _, r := range rows {
		width = max(width, len(r))
	}
	for len(rows) > 1 && width > 1 && len(rows[0]) == 1 {
		b.puts(Caption, g.cells[rows[0][0]].text, 0)
		rows = rows[1:]
	}
	if len(rows) == 1 && len(rows[0]) == 1 {
		b.puts(Paragraph, g.cells[rows[0][0]].text, 0)
		return
	}
	heads := g.headRows(rows)
	top, left := g.cells[rows[0][0]].row, g.cells[rows[0][0]].col
	n := 0
	for _, r := range rows {
		left = min(left, g.cells[r[0]].col)
		n += len(r)
	}
	cells := make([]gridCell, 0, n)
	for i, r := range rows {
		for _, at := range r {
			c := g.cells[at]
			cell := gridCell{text: c.text, row: int(c.row - top), col: int(c.col - left), header: i < heads}
			if m, ok := g.spans[at]; ok {
				cell.rowSpan, cell.colSpan = int(m.row1-m.row0+1), int(m.col1-m.col0+1)
			}
			cells = append(cells, cell)
		}
	}
	b.table(withBlanks(cells, heads), nil)
}

// rows returns the cells of a region with text, row by row.
func (g *xlsxGrid) rows(region []int32) [][]int32 {
	var rows [][]int32
	for i := 0; i < len(region); {
		n := i
		start := i
		for ; n < len(region) && g.cells[region[n]].row == g.cells[region[i]].row; n++ {
			if g.cells[region[n]].text != "" {
				region[start] = region[n]
				start++
			}
		}
		if start > i {
			rows = append(rows, region[i:start:start])
		}
		i = n
	}
	return rows
}

// withBlanks adds the empty cells between those of a small table, so that its rows show which column a
// value is in. A table of which most is empty stays without.
func withBlanks(cells []gridCell, heads int) []gridCell {
	rows, width := 0, 0
	for _, c := range cells {
		rows, width = max(rows, c.row+1), max(width, c.col+max(c.colSpan, 1))
	}
	if rows*width > 2*len(cells)+1000 {
		return cells
	}
	taken := make([]bool, rows*width)
	for _, c := range cells {
		for r := c.row; r < min(c.row+max(c.rowSpan, 1), rows); r++ {
			for col := c.col; col < c.col+max(c.colSpan, 1); col++ {
				taken[r*width+col] = true
			}
		}
	}
	for i, t := range taken {
		if !t {
			cells = append(cells, gridCell{row: i / width, col: i % width, header: i/width < heads})
		}
	}
	return cells
}

// headRows returns the number of rows of column names at the top of a region: those of a defined
// table, or a first row of different words above at least one row, with the row below it where it
// has cells that span columns.
func (g *xlsxGrid) headRows(rows [][]int32) int {
	first := g.cells[rows[0][0]]
	for _, h := range g.heads {
		if h.contains(first.row, first.col) {
			return 1
		}
	}
	if len(rows) < 2 || len(rows[0]) < 2 || !g.isNames(rows[0]) {
		return 0
	}
	for _, at := range rows[0] {
		if m, ok := g.spans[at]; ok && m.col1 > m.col0 && len(rows) > 2 && g.isNames(rows[1]) {
			return 2
		}
	}
	return 1
}

// isNames reports whether the cells of a row are different and are no numbers.
func (g *xlsxGrid) isNames(row []int32) bool {
	const longest = 200
	seen := map[string]bool{}
	for _, at := range row {
		text := g.cells[at].text
		if _, err := strconv.ParseFloat(text, 64); err == nil || seen[text] || len(text) > longest {
			return false
		}
		seen[text] = true
	}
	return true
}
