package parse

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
)

// A gridCell is a cell of a table that a format has found, with its place in the grid.
type gridCell struct {
	text             string // white space is collapsed when it is written
	row, col         int    // from 0
	rowSpan, colSpan int    // 0 means 1
	header           bool
	line             int // source line, 0: the format has no lines
}

// table writes a table: each row of cells with text is a block, its cells separated by " | ". The
// first row is the table's head if all its cells are headers. Cells are in any order. A rectangle
// of each row may be added by box, which may be nil.
func (b *builder) table(cells []gridCell, box func(row int)) {
	b.end()
	slices.SortStableFunc(cells, func(a, c gridCell) int {
		if a.row != c.row {
			return a.row - c.row
		}
		return a.col - c.col
	})
	t := assay.Table{Start: -1, Cells: make([]assay.Cell, 0, len(cells))}
	for len(cells) > 0 && !b.canceled() {
		n := 1
		for n < len(cells) && cells[n].row == cells[0].row {
			n++
		}
		b.gridRow(&t, cells[:n], box)
		cells = cells[n:]
	}
	if t.Start >= 0 {
		b.tables = append(b.tables, t)
	}
}

// gridRow writes one row of a table and adds its cells to t.
func (b *builder) gridRow(t *assay.Table, row []gridCell, box func(row int)) {
	blocks := len(b.blocks)
	kind := TableRow
	if t.Start < 0 && !slices.ContainsFunc(row, func(c gridCell) bool { return !c.header }) {
		kind = TableHead
	}
	if t.Start < 0 {
		b.begin(kind)
	} else {
		b.beginTight(kind)
	}
	first := len(t.Cells)
	for i, c := range row {
		text := cellText(c.text)
		if i > 0 && len(b.text) > b.cur.Start {
			b.glue(" | ")
		}
		if text != "" {
			b.put(text, c.line)
		}
		end := len(b.text)
		t.Cells = append(t.Cells, assay.Cell{Start: end - len(text), End: end, Row: c.row, Col: c.col,
			RowSpan: spanOf(c.rowSpan), ColSpan: spanOf(c.colSpan), Header: c.header})
	}
	if box != nil {
		box(row[0].row)
	}
	b.end()
	if len(b.blocks) == blocks {
		t.Cells = t.Cells[:first]
		return
	}
	last := b.blocks[len(b.blocks)-1]
	for i := first; i < len(t.Cells); i++ { // end has removed blanks after the last word
		t.Cells[i].Start = min(max(t.Cells[i].Start, last.Start), last.End)
		t.Cells[i].End = min(max(t.Cells[i].End, last.Start), last.End)
	}
	if t.Start < 0 {
		t.Start = last.Start
	}
	t.End = last.End
}

// cellText returns the text of a cell on one line. It is in NFC, so that the row is too and end
// does not move the cells.
func cellText(s string) string {
	return norm.NFC.String(strings.Join(strings.Fields(visible.Text(s)), " "))
}

// spanOf returns a span in the form of assay.Cell, in which 0 means 1.
func spanOf(n int) int {
	if n <= 1 {
		return 0
	}
	return n
}
