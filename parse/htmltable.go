package parse

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
	for _, c := range n.children {
		if c.tag == "caption" {
			w.flow(c)
			w.finish()
		}
	}
	for i, r := range rows {
		w.row(r, i == 0)
	}
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
		for _, c := range n.children {
			switch c.tag {
			case "tr":
				row := tableRow{head: head}
				for _, d := range c.children {
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

func (w *htmlWriter) row(r tableRow, first bool) {
	words, heads := 0, 0
	for _, c := range r.cells {
		words += c.words
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
	for i, c := range r.cells {
		if i > 0 {
			w.b.glue(" | ")
		}
		w.blank, w.newline, w.column = false, false, 0
		w.children(c)
	}
	w.cells = false
	w.finish()
}
