package parse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/ooxml"
)

// maxColumns is the most columns of a table in a document or on a slide; Word has 63.
const maxColumns = 1000

// table reads a w:tbl element. A table of one cell is a frame around its content. A table inside a
// cell is part of the cell's text.
func (d *docxReader) table(n *ooxml.Node) error {
	rows := n.All("w:tr")
	if len(rows) == 1 && d.cell == nil && len(rows[0].All("w:tc")) == 1 {
		return d.blocks(rows[0].All("w:tc")[0].Children)
	}
	cells, err := d.cells(n, rows)
	if err != nil {
		return err
	}
	if d.cell != nil {
		d.cell.WriteString(plainTable(cells) + "\n")
		return nil
	}
	d.flushCode()
	d.b.table(cells, nil)
	return nil
}

// cells returns the cells of a table with their places in the grid.
func (d *docxReader) cells(table *ooxml.Node, rows []*ooxml.Node) ([]gridCell, error) {
	var cells []gridCell
	above := map[int]int{} // by column: the index of the cell that a vertical span continues
	heads := headerRows(table, rows)
	for row, tr := range rows {
		col := gridSpan(tr.Child("w:trPr", "w:gridBefore"), 0)
		for _, tc := range tr.All("w:tc") {
			if col >= maxColumns {
				return nil, fmt.Errorf("a table has more than %d columns: %w", maxColumns, ErrLimit)
			}
			props := tc.Child("w:tcPr")
			span := min(gridSpan(props.Child("w:gridSpan"), 1), maxColumns-col)
			text, err := d.cellStory(tc)
			if err != nil {
				return nil, err
			}
			merge := props.Child("w:vMerge")
			at, open := above[col]
			if merge != nil && merge.Attr("w:val") != "restart" && open && cells[at].row+cells[at].rowSpan == row {
				cells[at].rowSpan++
				cells[at].text = strings.TrimSpace(cells[at].text + "\n" + text)
				col += span
				continue
			}
			delete(above, col)
			if merge != nil {
				above[col] = len(cells)
			}
			cells = append(cells, gridCell{text: text, row: row, col: col, rowSpan: 1, colSpan: span, header: row < heads})
			col += span
		}
	}
	return cells, nil
}

// gridSpan returns the number of columns in n, or other.
func gridSpan(n *ooxml.Node, other int) int {
	v, err := strconv.Atoi(n.Attr("w:val"))
	if err != nil || v < 0 {
		return other
	}
	return min(v, maxColumns)
}

// headerRows returns the number of rows at the start of a table that are its head: those that are
// repeated on each page, or the first row if the table's style has it stand out.
func headerRows(table *ooxml.Node, rows []*ooxml.Node) int {
	heads := 0
	for heads < len(rows) && isPresentAndOn(rows[heads].Child("w:trPr", "w:tblHeader")) {
		heads++
	}
	if heads > 0 || len(rows) < 2 {
		return heads
	}
	look := table.Child("w:tblPr", "w:tblLook")
	if look == nil {
		return 1
	}
	bits, err := strconv.ParseUint(look.Attr("w:val"), 16, 32)
	const firstRow = 0x20
	if first := look.Attr("w:firstRow"); first == "1" || first == "true" || err == nil && bits&firstRow != 0 {
		return 1
	}
	return 0
}

func isPresentAndOn(n *ooxml.Node) bool { return n != nil && isOn(n) }

// cellStory returns the text of a w:tc element.
func (d *docxReader) cellStory(tc *ooxml.Node) (string, error) {
	cell := d.cell
	d.cell = &strings.Builder{}
	err := d.blocks(tc.Children)
	text := strings.TrimSpace(d.cell.String())
	d.cell = cell
	return text, err
}

// plainTable returns a table inside a cell as text.
func plainTable(cells []gridCell) string {
	var out strings.Builder
	for i, c := range cells {
		switch {
		case i == 0:
		case c.row != cells[i-1].row:
			out.WriteString("; ")
		default:
			out.WriteString(", ")
		}
		out.WriteString(cellText(c.text))
	}
	return strings.Trim(out.String(), " ,;")
}
