package parse

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// isCellLine reports whether l is a row of cells outside a table's fences.
func isCellLine(l string) bool { return len(l) > 2 && l[0] == '|' && strings.Count(l, "|") > 1 }

// bareTable reads consecutive rows of cells without fences.
func (a *asciiDoc) bareTable(end int) {
	a.putTitle(Caption)
	var cells []gridCell
	for row := 0; a.at < end && isCellLine(a.get(a.at)); a.at++ {
		l := strings.TrimSpace(a.get(a.at))
		for col, text := range strings.Split(strings.TrimSuffix(l[1:], "|"), "|") {
			cells = append(cells, gridCell{text: a.inline(text), row: row, col: col, line: a.at + 1})
		}
		row++
	}
	a.b.table(cells, nil)
}

// An adCell is a cell of a table before it has a place.
type adCell struct {
	text             string
	rowSpan, colSpan int
	header           bool
	repeat           int
	line             int
	first            bool // the first of its line
}

// adSpec is the specification of a cell before its separator: spans or repetition, alignment,
// style.
var adSpec = lazyregexp.New(`(?:^|\s)((?:(\d{1,3})?(?:\.(\d{1,3}))?([+*]))?(?:[<^>])?(?:\.[<^>])?([adehlmsv])?)$`)

// tableBlock reads a table between fences.
func (a *asciiDoc) tableBlock(fence string, end int) {
	stop := a.fenceEnd(fence, end)
	separator := "|"
	switch {
	case fence[0] != '|':
		separator = fence[:1]
	case a.option("separator") != "":
		separator = a.option("separator")
	case a.option("format") == "csv" || a.option("format") == "tsv" || a.option("format") == "dsv":
		separator = map[string]string{"csv": ",", "tsv": "\t", "dsv": ":"}[a.option("format")]
	}
	a.putTitle(Caption)
	header := a.flag("header")
	from := a.at + 1
	var cells []adCell
	if separator == "|" || separator == "!" {
		cells = a.tableCells(from, stop, separator)
	} else {
		cells = a.separated(from, stop, separator)
	}
	if !header && !a.blank(from) && a.blank(from+1) && from+1 < stop && !a.flag("noheader") {
		header = len(cells) > 1
	}
	a.b.table(a.grid(cells, a.columns(cells), header), nil)
	a.at = min(stop+1, len(a.lines))
}

// option returns the value of a named attribute of the block, or "".
func (a *asciiDoc) option(name string) string {
	for _, o := range a.opts {
		if v, ok := strings.CutPrefix(strings.TrimSpace(o), name+"="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

// flag reports whether the block has an option: "%header" or options="header".
func (a *asciiDoc) flag(name string) bool {
	for _, o := range a.opts {
		if o == name {
			return true
		}
	}
	for _, key := range []string{"options", "opts"} {
		for word := range strings.SplitSeq(a.option(key), ",") {
			if strings.TrimSpace(word) == name {
				return true
			}
		}
	}
	return false
}

// columns returns the number of columns that the attributes state or else the first line has.
func (a *asciiDoc) columns(cells []adCell) int {
	n := 0
	if cols := a.option("cols"); cols != "" {
		for spec := range strings.FieldsFuncSeq(cols, func(r rune) bool { return r == ',' || r == ';' }) {
			times, _, ok := strings.Cut(strings.TrimSpace(spec), "*")
			if k, err := strconv.Atoi(times); ok && err == nil {
				n += min(max(k, 1), 1000)
				continue
			}
			n++
		}
		if k, err := strconv.Atoi(cols); err == nil && k > 0 && n == 1 { // cols=3 without quotes
			n = min(k, 1000)
		}
		return min(max(n, 1), 1000)
	}
	for i, c := range cells {
		if i > 0 && c.first {
			break
		}
		n += c.repeat * c.colSpan
	}
	return min(max(n, 1), 1000)
}

// tableCells splits the lines [from, stop) into cells.
func (a *asciiDoc) tableCells(from, stop int, separator string) []adCell {
	var cells []adCell
	spec := ""
	for i := from; i < stop && !a.b.canceled(); i++ {
		l := a.get(i)
		if strings.HasPrefix(l, "//") {
			continue
		}
		pieces := splitCells(l, separator[0])
		for k, piece := range pieces {
			text, next := piece, ""
			if k+1 < len(pieces) {
				if m := adSpec.FindStringSubmatchIndex(piece); m != nil {
					text, next = piece[:m[2]], piece[m[2]:m[3]]
				}
			}
			if k == 0 { // the end of the last cell of the line before
				if len(cells) > 0 && !isBlank(text) {
					cells[len(cells)-1].text += "\n" + text
				}
			} else {
				cells = append(cells, newADCell(spec, text, i+1, k == 1))
			}
			spec = next
		}
	}
	for i := range cells {
		cells[i].text = a.inline(strings.TrimSpace(cells[i].text))
	}
	return cells
}

// splitCells splits a line at the separators that no backslash precedes.
func splitCells(l string, separator byte) []string {
	var pieces []string
	from := 0
	for i := range len(l) {
		if l[i] == separator && (i == 0 || l[i-1] != '\\') {
			pieces = append(pieces, l[from:i])
			from = i + 1
		}
	}
	pieces = append(pieces, l[from:])
	for i, p := range pieces {
		pieces[i] = strings.ReplaceAll(p, `\`+string(separator), string(separator))
	}
	return pieces
}

// newADCell returns a cell with a specification such as "2.3+^.>s".
func newADCell(spec, text string, line int, first bool) adCell {
	c := adCell{text: text, rowSpan: 1, colSpan: 1, repeat: 1, line: line, first: first}
	m := adSpec.FindStringSubmatch(spec)
	if m == nil {
		return c
	}
	cols, err := strconv.Atoi(m[2])
	if err != nil {
		cols = 1
	}
	rows, err := strconv.Atoi(m[3])
	if err != nil {
		rows = 1
	}
	switch m[4] {
	case "+":
		c.colSpan, c.rowSpan = max(cols, 1), max(rows, 1)
	case "*":
		c.repeat = max(cols, 1)
	}
	c.header = m[5] == "h"
	return c
}

// separated splits lines at a separator, as CSV without line breaks in cells.
func (a *asciiDoc) separated(from, stop int, separator string) []adCell {
	var cells []adCell
	for i := from; i < stop; i++ {
		if a.blank(i) {
			continue
		}
		words := strings.Split(a.get(i), separator)
		if separator == "," {
			words = splitQuoted(a.get(i))
		}
		for k, word := range words {
			cells = append(cells, adCell{text: a.inline(strings.Trim(strings.TrimSpace(word), `"`)), rowSpan: 1, colSpan: 1, repeat: 1, line: i + 1, first: k == 0})
		}
	}
	return cells
}

// maxADCells is the most cells of a table that repetition may make.
const maxADCells = 1_000_000

// grid gives the cells their places in rows of n columns. If each line has a row of its own, a line
// with another number of cells starts a row too.
func (a *asciiDoc) grid(cells []adCell, n int, header bool) []gridCell {
	lines := a.rowPerLine(cells, n)
	var out []gridCell
	taken := map[[2]int]bool{} // by cells of rows above
	row, col := 0, 0
	for i, c := range cells {
		for range c.repeat {
			if len(out) > maxADCells {
				return out
			}
			if lines && c.first && i > 0 {
				row, col = row+1, 0
			}
			for taken[[2]int{row, col}] || !lines && col >= n {
				if col++; col >= n && !lines {
					row, col = row+1, 0
				}
			}
			out = append(out, gridCell{text: c.text, row: row, col: col, rowSpan: c.rowSpan, colSpan: c.colSpan,
				header: c.header || header && row == 0, line: c.line})
			if c.rowSpan > 1 && len(taken) < maxADCells {
				for r := 1; r < c.rowSpan; r++ {
					for k := range min(c.colSpan, n) {
						taken[[2]int{row + r, col + k}] = true
					}
				}
			}
			col += c.colSpan
		}
	}
	return out
}

// rowPerLine reports whether the source has one row on each line: most lines have n columns and
// none has one cell alone, or some are off by a cell.
func (a *asciiDoc) rowPerLine(cells []adCell, n int) bool {
	if n < 2 {
		return false
	}
	lines, exact, single := 0, 0, 0
	for i := 0; i < len(cells); {
		k, width := i+1, cells[i].colSpan*cells[i].repeat
		for ; k < len(cells) && !cells[k].first; k++ {
			width += cells[k].colSpan * cells[k].repeat
		}
		if lines++; width == n {
			exact++
		}
		if k == i+1 && width < n {
			single++
		}
		i = k
	}
	return single == 0 && exact*2 >= lines
}
