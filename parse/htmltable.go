package parse

import (
	"strconv"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay"
)

// table writes a data table row by row, with cells separated by " | ". A table that is used for
// layout, or whose cells contain documents, is written as the blocks in it.
func (w *htmlWriter) table(n *htmlNode) {
	if w.cells {
		w.children(n)
		return
	}
	w.finish()
	w.marker = ""
	rows := tableRows(n)
	if !isDataTable(n, rows) {
		w.children(n)
		w.finish()
		return
	}
	for c := n.first; c != nil; c = c.next {
		if c.tag == "caption" {
			w.flow(c)
			w.finish()
		}
	}
	large := len(rows) > largeTable
	if large {
		n.unlink()
	}
	t := &markedTable{b: w.b}
	for i, r := range rows {
		w.row(t, r, i == 0)
		t.row++
		if large {
			rows[i] = tableRow{}
			for _, c := range r.cells {
				*c = htmlNode{}
			}
		}
	}
	t.end()
}

// largeTable is the number of rows above which a table is removed from the tree as it is written, so
// that its memory is free for the text.
const largeTable = 10_000

// unlink cuts the rows of a table off from it and from each other.
func (n *htmlNode) unlink() {
	c := n.first
	n.first = nil
	for c != nil {
		next := c.next
		c.next = nil
		if c.tag == "thead" || c.tag == "tbody" || c.tag == "tfoot" {
			c.unlink()
		}
		c.first = nil
		c = next
	}
}

// A markedTable records where the cells of a table lie in the text that a format writes.
type markedTable struct {
	b     *builder
	table assay.Table
	row   int
	col   int
	taken map[[2]int]bool // cells that others above cover
	loose bool            // the text of a row was normalised, so that the places are not known
	first int             // cell of the row
}

// cell calls write to write the next cell of the row.
func (t *markedTable) cell(rowSpan, colSpan int, header bool, write func()) {
	const most = 100_000 // cells that are covered
	for t.taken[[2]int{t.row, t.col}] {
		t.col++
	}
	before, glued := len(t.b.text), len(t.b.pending)
	write()
	end := len(t.b.text)
	start := end
	if end > before {
		start = min(before+glued, end)
	}
	t.table.Cells = append(t.table.Cells, assay.Cell{Start: start, End: end, Row: t.row, Col: t.col,
		RowSpan: spanOf(rowSpan), ColSpan: spanOf(colSpan), Header: header})
	for r := 1; r < rowSpan && len(t.taken) < most; r++ {
		if t.taken == nil {
			t.taken = map[[2]int]bool{}
		}
		for c := range max(colSpan, 1) {
			t.taken[[2]int{t.row + r, t.col + c}] = true
		}
	}
	t.col += max(colSpan, 1)
}

// begin starts a row, whose block is open.
func (t *markedTable) begin() { t.first, t.col = len(t.table.Cells), 0 }

// endRow ends the block of a row.
func (t *markedTable) endRow() {
	body := t.b.text[t.b.cur.Start:]
	t.loose = t.loose || !isASCII(body) && !norm.NFC.IsNormal(body)
	blocks := len(t.b.blocks)
	t.b.end()
	if len(t.b.blocks) == blocks {
		t.table.Cells = t.table.Cells[:t.first]
		return
	}
	last := t.b.blocks[len(t.b.blocks)-1]
	if t.table.End == 0 {
		t.table.Start = last.Start
	}
	t.table.End = last.End
	for i := t.first; i < len(t.table.Cells); i++ {
		c := &t.table.Cells[i]
		c.Start, c.End = min(max(c.Start, last.Start), last.End), min(max(c.End, last.Start), last.End)
	}
}

// end adds the table to the document.
func (t *markedTable) end() {
	if t.table.End == 0 {
		return
	}
	if t.loose {
		t.table.Cells = nil
	}
	t.b.tables = append(t.b.tables, t.table)
}

// span returns the number of rows or columns that an attribute states, at least 1.
func (n *htmlNode) span(attr string) int {
	const most = 1000
	value := n.attr(attr)
	if value == "" {
		return 1
	}
	v, err := strconv.Atoi(value)
	if err != nil {
		return 1
	}
	return min(max(v, 1), most)
}

// A tableRow is a row's element and its cells.
type tableRow struct {
	cells []*htmlNode
	head  bool // in a thead
}

func tableRows(n *htmlNode) []tableRow {
	var rows []tableRow
	var walk func(n *htmlNode, head bool)
	walk = func(n *htmlNode, head bool) {
		for c := n.first; c != nil; c = c.next {
			switch c.tag {
			case "tr":
				row := tableRow{head: head}
				for d := c.first; d != nil; d = d.next {
					if (d.tag == "td" || d.tag == "th") && !d.hidden() {
						row.cells = append(row.cells, d)
					}
				}
				if !c.hidden() {
					rows = append(rows, row)
				}
			case "thead", "tbody", "tfoot":
				walk(c, c.tag == "thead")
			}
		}
	}
	walk(n, false)
	return rows
}

// isDataTable reports whether a table's rows are records rather than page layout.
func isDataTable(n *htmlNode, rows []tableRow) bool {
	const largestCell = 1500 // bytes of words; a larger cell is a text in itself
	if n.attr("role") == "presentation" {
		return false
	}
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r.cells))
		for _, c := range r.cells {
			if c.words > largestCell || len(c.find(isNestedBlock)) > 0 {
				return false
			}
		}
	}
	return columns > 1
}

func isNestedBlock(n *htmlNode) bool {
	switch n.tag {
	case "table":
		return len(tableRows(n)) > 1
	case "h1", "h2", "h3":
		return n.words > 0
	case "pre":
		return n.words > 200
	}
	return false
}

func (w *htmlWriter) row(t *markedTable, r tableRow, first bool) {
	words, heads := 0, 0
	for _, c := range r.cells {
		words += int(c.words)
		if c.tag == "th" {
			heads++
		}
	}
	if words == 0 {
		return
	}
	kind := TableRow
	if r.head || first && heads == len(r.cells) {
		kind = TableHead
	}
	if n := len(w.b.blocks); n > 0 && (w.b.blocks[n-1].Kind == TableRow || w.b.blocks[n-1].Kind == TableHead) && !first {
		w.b.beginTight(kind)
	} else {
		w.b.begin(kind)
	}
	w.open, w.cells, w.kind, w.column = true, true, kind, 0
	t.begin()
	for i, c := range r.cells {
		if i > 0 {
			w.b.glue(" | ")
		}
		w.blank, w.newline, w.column = false, false, 0
		t.cell(c.span("rowspan"), c.span("colspan"), r.head || c.tag == "th", func() { w.children(c) })
	}
	w.cells = false
	t.endRow()
	w.finish()
}
