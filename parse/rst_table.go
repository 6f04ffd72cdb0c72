package parse

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
)

// gridTable reads a table drawn with "+---+" and "|". The lines of a cell are joined.
func (r *rst) gridTable(end int) {
	from := r.at
	for r.at < end {
		if l := strings.TrimSpace(r.line(r.at)); l == "" || l[0] != '+' && l[0] != '|' {
			break
		}
		r.at++
	}
	g := newGrid(r.lines[from:r.at])
	boxes := g.boxes(r.b.canceled)
	if len(boxes) == 0 { // not drawn well enough
		r.at = from
		r.put(Code, r.run(end))
		return
	}
	var tops, lefts []int
	for _, x := range boxes {
		tops, lefts = append(tops, x.top), append(lefts, x.left)
	}
	tops, lefts = uniqueInts(tops), uniqueInts(lefts)
	var cells []gridCell
	for _, x := range boxes {
		row, _ := slices.BinarySearch(tops, x.top)
		col, _ := slices.BinarySearch(lefts, x.left)
		last, _ := slices.BinarySearch(tops, x.bottom)
		right, _ := slices.BinarySearch(lefts, x.right)
		cells = append(cells, gridCell{text: r.inline(g.text(x)), row: row, col: col, rowSpan: last - row, colSpan: right - col,
			header: x.bottom <= g.head, line: from + x.top + 2})
	}
	r.b.table(cells, nil)
}

func uniqueInts(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// A grid is a drawn table.
type grid struct {
	lines [][]rune
	head  int // line of the rule below the head; 0: no head
	steps int // characters that may still be looked at
}

// A gridBox is a cell of a drawn table by the lines and columns of its borders.
type gridBox struct{ top, left, bottom, right int }

func newGrid(lines []string) *grid {
	g := &grid{steps: 1 << 22}
	indent := indentOf(lines[0])
	for i, l := range lines {
		row := []rune(strings.TrimRight(l[min(indent, indentOf(l)):], " \t"))
		g.lines = append(g.lines, row)
		if g.head == 0 && i > 0 && len(row) > 1 && row[0] == '+' && row[1] == '=' {
			g.head = i
		}
	}
	return g
}

func (g *grid) at(line, col int) rune {
	g.steps--
	if line < 0 || line >= len(g.lines) || col < 0 || col >= len(g.lines[line]) {
		return ' '
	}
	return g.lines[line][col]
}

// boxes returns the cells, each found from its top left corner. It returns nil if it has to look at
// too many characters.
func (g *grid) boxes(canceled func() bool) []gridBox {
	var found []gridBox
	for line := range g.lines {
		if canceled() || g.steps < 0 {
			return nil
		}
		for col := range g.lines[line] {
			if g.at(line, col) != '+' {
				continue
			}
			if x, ok := g.box(line, col); ok {
				found = append(found, x)
			}
		}
	}
	return found
}

// box returns the smallest box with a top left corner.
func (g *grid) box(top, left int) (gridBox, bool) {
	for right := left + 1; g.steps > 0; right++ {
		c := g.at(top, right)
		if c == '+' && right > left+1 {
			if bottom := g.down(top, left, right); bottom > 0 {
				return gridBox{top, left, bottom, right}, true
			}
			continue
		}
		if c != '-' && c != '=' && c != '+' {
			break
		}
	}
	return gridBox{}, false
}

// down returns the line of the bottom border of a box, or 0.
func (g *grid) down(top, left, right int) int {
	for line := top + 1; g.steps > 0; line++ {
		a, b := g.at(line, left), g.at(line, right)
		if b != '|' && b != '+' || a != '|' && a != '+' {
			return 0
		}
		if a == '+' && b == '+' && line > top+1 && g.ruled(line, left, right) {
			return line
		}
	}
	return 0
}

func (g *grid) ruled(line, left, right int) bool {
	for col := left + 1; col < right; col++ {
		if c := g.at(line, col); c != '-' && c != '=' && c != '+' {
			return false
		}
	}
	return true
}

// text returns the text inside a box.
func (g *grid) text(x gridBox) string {
	var words []string
	for line := x.top + 1; line < x.bottom; line++ {
		row := g.lines[line]
		if x.left+1 < len(row) {
			words = append(words, strings.TrimSpace(string(row[x.left+1:min(x.right, len(row))])))
		}
	}
	return strings.Join(words, " ")
}

// simpleTable reads a table with "=== ===" rules. A line whose first cell is empty continues the
// row above.
func (r *rst) simpleTable(end int) {
	stops := columnStops(r.line(r.at))
	r.at++
	last, rules := r.simpleEnd(end)
	head := rules == 3
	var cells []gridCell
	row := -1
	for ; r.at < last; r.at++ {
		l := r.line(r.at)
		if isSimpleRule(strings.TrimSpace(l)) {
			head = false
			continue
		}
		if isBlank(l) || strings.Trim(l, "- ") == "" && strings.Contains(l, "--") { // a rule below columns that are joined
			continue
		}
		parts := cutAt(l, stops)
		next := !isBlank(parts[0]) || row < 0
		if next {
			row++
		}
		for c, part := range parts {
			if part = strings.TrimSpace(part); part == `\` {
				part = ""
			}
			if next {
				cells = append(cells, gridCell{text: r.inline(part), row: row, col: c, header: head, line: r.at + 1})
			} else if part != "" {
				cells = continueCell(cells, row, c, r.inline(part), head, r.at+1)
			}
		}
	}
	r.b.table(cells, nil)
	if r.at < end && isSimpleRule(strings.TrimSpace(r.line(r.at))) {
		r.at++
	}
}

// continueCell appends text to a cell of the last row.
func continueCell(cells []gridCell, row, col int, text string, head bool, line int) []gridCell {
	for i := len(cells) - 1; i >= 0 && cells[i].row == row; i-- {
		if cells[i].col == col {
			cells[i].text += " " + text
			return cells
		}
	}
	return append(cells, gridCell{text: text, row: row, col: col, header: head, line: line})
}

// simpleEnd returns the line of the last rule of a table and the number of its rules: three with
// column names, two without.
func (r *rst) simpleEnd(end int) (last, rules int) {
	last, rules = r.at, 1
	for i := r.at; i < end && rules < 3; i++ {
		if l := strings.TrimSpace(r.line(i)); isSimpleRule(l) {
			rules++
			last = i
			if r.blank(i + 1) {
				break
			}
		} else if l == "" && rules > 1 && r.blank(i+1) {
			break
		}
	}
	return last, rules
}

// listTable reads a table written as a list of lists.
func (r *rst) listTable(end int) {
	heads, err := strconv.Atoi(r.options["header-rows"])
	if err != nil {
		heads = 0
	}
	var cells []gridCell
	row, col := -1, 0
	for ; r.at < end && !r.b.canceled(); r.at++ {
		l := strings.TrimSpace(r.line(r.at))
		if rest, ok := strings.CutPrefix(l, "* -"); ok {
			row, col, l = row+1, 0, rest
		} else if rest, ok := strings.CutPrefix(l, "- "); ok && row >= 0 {
			col++
			l = rest
		} else if l == "-" {
			col++
			l = ""
		} else if n := len(cells); n > 0 {
			cells[n-1].text += " " + r.inline(l)
			continue
		}
		cells = append(cells, gridCell{text: r.inline(strings.TrimSpace(l)), row: max(row, 0), col: col, header: row < heads, line: r.at + 1})
	}
	r.b.table(cells, nil)
}

// csvTable reads a table of comma-separated values.
func (r *rst) csvTable(end, line int) {
	var cells []gridCell
	add := func(text string, line int, header bool) {
		reader := csv.NewReader(strings.NewReader(text))
		reader.LazyQuotes, reader.TrimLeadingSpace, reader.FieldsPerRecord = true, true, -1
		records, err := reader.ReadAll()
		if err != nil {
			records = [][]string{{text}}
		}
		row := 0
		if n := len(cells); n > 0 {
			row = cells[n-1].row + 1
		}
		for _, record := range records {
			for col, c := range record {
				cells = append(cells, gridCell{text: r.inline(c), row: row, col: col, header: header, line: line})
			}
			row++
		}
	}
	if header := r.options["header"]; header != "" {
		add(header, line+1, true)
	}
	heads, err := strconv.Atoi(r.options["header-rows"])
	if err != nil {
		heads = 0
	}
	for ; r.at < end; r.at++ {
		from := r.at
		text := r.line(r.at)
		for strings.Count(text, `"`)%2 == 1 && r.at+1 < end && r.at-from < 20 {
			r.at++
			text += "\n" + r.line(r.at)
		}
		if !isBlank(text) {
			add(strings.TrimSpace(text), from+1, heads > 0)
			heads--
		}
	}
	r.b.table(cells, nil)
}
