package parse

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// An odfTable collects the cells of a table.
type odfTable struct {
	o     *odf
	cells []gridCell
	row   int
	sheet bool

	typed bool // sheets: a row after the first has a value that is not text
	plain bool // sheets: all cells of the first row are text
}

// table writes a table of a text or slide.
func (o *odf) table(n *markupNode) {
	if o.depth++; o.depth > maxObjectDepth {
		o.depth--
		o.b.puts(Paragraph, n.words(), 0)
		return
	}
	defer func() { o.depth-- }()
	outer := o.after
	o.after = nil
	t := &odfTable{o: o}
	t.rows(n, false)
	if n.attr("table:use-first-row-styles") == "true" {
		for i := range t.cells {
			t.cells[i].header = t.cells[i].header || t.cells[i].row == 0
		}
	}
	t.write()
	inside := o.after
	o.after = outer
	for _, write := range inside {
		write()
	}
}

// rows adds the rows below n.
func (t *odfTable) rows(n *markupNode, header bool) {
	for _, c := range n.children {
		switch c.name {
		case "table:table-row":
			t.addRow(c, header)
		case "table:table-header-rows", "table:table-rows", "table:table-row-group":
			t.rows(c, header || c.name == "table:table-header-rows")
		}
	}
}

// write writes the cells collected so far as a table.
func (t *odfTable) write() {
	if len(t.cells) == 0 || t.o.b.canceled() {
		return
	}
	if t.sheet && t.plain && t.typed {
		for i := range t.cells {
			t.cells[i].header = t.cells[i].header || t.cells[i].row == 0
		}
	}
	t.o.b.table(t.cells, func(int) { t.o.place() })
	t.cells = t.cells[:0]
	t.row, t.typed = 0, false
}

// odfCell is a cell of a row before its repetition.
type odfCell struct {
	gridCell
	repeat int
	typed  bool
}

// addRow adds a row, as often as it is repeated. Cells without text at the end of a row and rows
// without text are formatting: they repeat up to the size of a sheet and are left out.
func (t *odfTable) addRow(n *markupNode, header bool) {
	repeat := odfCount(n, "table:number-rows-repeated")
	var row []odfCell
	col, used := 0, 0
	for _, c := range n.children {
		if c.name != "table:table-cell" && c.name != "table:covered-table-cell" {
			continue
		}
		count := odfCount(c, "table:number-columns-repeated")
		if c.name == "table:table-cell" {
			cell := odfCell{repeat: count, typed: c.attr("office:value-type") != "" && c.attr("office:value-type") != "string"}
			cell.gridCell = gridCell{text: t.o.cell(c), col: col, header: header || t.o.isHeading(c),
				rowSpan: odfCount(c, "table:number-rows-spanned"), colSpan: odfCount(c, "table:number-columns-spanned")}
			row = append(row, cell)
			if cell.text != "" {
				used = len(row)
			}
		}
		col = min(col+count, 1<<20)
	}
	if used == 0 {
		if t.sheet { // an empty row separates tables
			t.write()
			return
		}
		t.row = min(t.row+repeat, 1<<30)
		return
	}
	if t.sheet {
		row = row[:used]
	}
	t.repeatRow(row, repeat)
}

// repeatRow adds a row with text as often as it is repeated. A repetition beyond the limit becomes
// a span.
func (t *odfTable) repeatRow(row []odfCell, repeat int) {
	expanded := t.expandCells(row)
	if t.row == 0 {
		t.plain = true
	}
	for _, c := range row {
		if t.row == 0 && c.typed {
			t.plain = false
		}
		t.typed = t.typed || t.row > 0 && c.typed
	}
	add := (repeat - 1) * len(expanded)
	span := 0
	if add > t.o.budget {
		repeat, span = 1, repeat
	} else {
		t.o.budget -= add
	}
	for range repeat {
		for _, c := range expanded {
			c.row = t.row
			if span > 0 {
				c.rowSpan = span
			}
			t.cells = append(t.cells, c)
		}
		t.row = min(t.row+max(span, 1), 1<<30)
	}
}

// expandCells repeats the cells of a row.
func (t *odfTable) expandCells(row []odfCell) []gridCell {
	var cells []gridCell
	for _, c := range row {
		switch {
		case c.repeat == 1:
			cells = append(cells, c.gridCell)
		case c.text == "" && t.sheet: // a gap
		case c.repeat-1 > t.o.budget || c.text == "" && c.repeat > 100:
			c.colSpan = c.repeat
			cells = append(cells, c.gridCell)
		default:
			t.o.budget -= c.repeat - 1
			for i := range c.repeat {
				again := c.gridCell
				again.col += i
				cells = append(cells, again)
			}
		}
	}
	return cells
}

// isHeading reports whether all paragraphs of a cell have the style of column names.
func (o *odf) isHeading(cell *markupNode) bool {
	paragraphs := 0
	for _, c := range cell.children {
		if c.name == "text:p" {
			if paragraphs++; o.style("paragraph", c.attr("text:style-name")).role != "head" {
				return false
			}
		}
	}
	return paragraphs > 0
}

// odfCount returns a count that an attribute states, at least 1.
func odfCount(n *markupNode, attr string) int {
	count, err := strconv.Atoi(n.attr(attr))
	if err != nil {
		return 1
	}
	return min(max(count, 1), 1<<20)
}

// cell returns the text of a cell as shown, or its value if it shows none.
func (o *odf) cell(n *markupNode) string {
	text := o.flat(n)
	if text != "" {
		return text
	}
	switch n.attr("office:value-type") {
	case "boolean":
		return n.attr("office:boolean-value")
	case "date":
		return n.attr("office:date-value")
	case "time":
		return n.attr("office:time-value")
	case "string":
		return n.attr("office:string-value")
	}
	return n.attr("office:value")
}

// sheet reads a sheet row by row: a heading with its name and the tables that empty rows separate.
func (o *odf) sheet(r *markupReader, start xml.StartElement) error {
	sheet := r.open(start)
	if name := strings.TrimSpace(sheet.attr("table:name")); name != "" {
		o.b.heading(1, name, 0)
	}
	t := &odfTable{o: o, sheet: true}
	headers := 0 // elements for header rows around the current row
	for depth := 1; depth > 0; {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch start := token.(type) {
		case xml.EndElement:
			depth--
			if r.name(start.Name) == "table:table-header-rows" {
				headers--
			}
		case xml.StartElement:
			switch name := r.name(start.Name); name {
			case "table:table-header-rows", "table:table-rows", "table:table-row-group", "table:table-columns", "table:table-column-group", "table:table-header-columns":
				depth++
				if name == "table:table-header-rows" {
					headers++
				}
			default:
				n, err := r.element(start)
				if err != nil {
					return err
				}
				o.sheetChild(t, n, headers > 0)
			}
		}
	}
	t.write()
	for _, write := range o.after {
		write()
	}
	o.after = nil
	return nil
}

// sheetChild reads a row or the shapes of a sheet.
func (o *odf) sheetChild(t *odfTable, n *markupNode, header bool) {
	switch n.name {
	case "table:table-row":
		t.addRow(n, header)
	case "table:shapes":
		o.after = append(o.after, func() { o.blocks(n) })
	}
}
