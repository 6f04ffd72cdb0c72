package parse

import "strings"

// table carries out the control words of tables. It reports whether word is one.
func (r *rtf) table(word string) bool {
	if r.state.dest != "" || r.state.skip {
		return false
	}
	def := rtfCellDef{}
	if n := len(r.defs); n > 0 {
		def = r.defs[n-1]
	}
	switch word {
	case "trowd":
		r.defs, r.header = append(r.defs[:0], rtfCellDef{}), false
	case "trhdr":
		r.header = true
	case "clmgf":
		def.first = true
	case "clmrg":
		def.merged = true
	case "clvmgf":
		def.vfirst = true
	case "clvmrg":
		def.vmerged = true
	case "cellx":
		if len(r.defs) < 1000 {
			r.defs = append(r.defs, rtfCellDef{})
		}
		return true
	case "intbl":
		r.state.table = true
	case "cell":
		r.endCell()
	case "nestcell":
		r.cell.WriteString(r.out.String() + " ")
		r.out.Reset()
	case "row":
		r.endRow()
	case "nestrow":
		r.cell.WriteString("\n")
	default:
		return false
	}
	if n := len(r.defs); n > 0 && word != "trowd" {
		r.defs[n-1] = def
	}
	return true
}

func (r *rtf) endCell() {
	r.cell.WriteString(r.out.String())
	r.out.Reset()
	r.marker = ""
	r.row = append(r.row, rtfCell{strings.TrimSpace(r.cell.String())})
	r.cell.Reset()
}

// endRow adds the cells of a row. A merged cell extends the span of the one to its left or above.
func (r *rtf) endRow() {
	if r.cell.Len() > 0 || r.out.Len() > 0 {
		if strings.TrimSpace(r.cell.String()+r.out.String()) != "" {
			r.endCell()
		}
		r.cell.Reset()
		r.out.Reset()
	}
	for i, c := range r.row {
		def := rtfCellDef{}
		if i < len(r.defs) {
			def = r.defs[i]
		}
		if def.merged && c.text == "" && len(r.cells) > 0 && r.cells[len(r.cells)-1].row == r.rows {
			left := &r.cells[len(r.cells)-1]
			left.colSpan = max(left.colSpan, 1) + 1
			continue
		}
		if def.vmerged && c.text == "" && r.extend(i) {
			continue
		}
		r.cells = append(r.cells, gridCell{text: c.text, row: r.rows, col: i, header: r.header})
	}
	r.row = r.row[:0]
	r.rows++
}

// extend extends the cell of a column that reaches to the row above. It reports whether there is
// one.
func (r *rtf) extend(col int) bool {
	const farthest = 5000 // cells
	for i := len(r.cells) - 1; i >= max(0, len(r.cells)-farthest); i-- {
		c := &r.cells[i]
		if c.col == col {
			if c.row+max(c.rowSpan, 1) != r.rows {
				return false
			}
			c.rowSpan = max(c.rowSpan, 1) + 1
			return true
		}
	}
	return false
}

// endTable writes the open table.
func (r *rtf) endTable() {
	if len(r.row) > 0 || r.cell.Len() > 0 {
		r.endRow()
	}
	if len(r.cells) == 0 {
		return
	}
	r.b.table(r.cells, nil)
	r.cells, r.rows = nil, 0
}
