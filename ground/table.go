package ground

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A sourceTable is a table as it stands in a passage: a line for each row, with bars
// between its cells, of which the first has the heads.
type sourceTable struct {
	heads []string
	rows  []sourceRow
	start int // bytes of the line of heads
	end   int
}

type sourceRow struct {
	cells      []string
	start, end int
}

// tablesOf finds the tables of a text. A table has a line of heads, and one of cells.
func tablesOf(text string) []sourceTable {
	var tables []sourceTable
	var open *sourceTable
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		start := at + strings.Index(line, trimmed)
		at += len(line)
		cells := cellsOfLine(trimmed)
		switch {
		case cells == nil:
			open = nil
		case rule.MatchString(trimmed): // between the heads and the rows
		case open == nil:
			tables = append(tables, sourceTable{heads: cells, start: start, end: start + len(trimmed)})
			open = &tables[len(tables)-1]
		case len(cells) == len(open.heads):
			open.rows = append(open.rows, sourceRow{cells, start, start + len(trimmed)})
		}
	}
	return slices.DeleteFunc(tables, func(t sourceTable) bool { return len(t.rows) == 0 })
}

// cellsOfLine are the cells of a line of a table; nil: it is none.
func cellsOfLine(line string) []string {
	if !strings.Contains(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "| "), "|")
	if len(cells) < 2 {
		return nil
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// judgeTableRow judges a row by the tables of a passage: it is supported where each of its
// cells stands in one of their rows, under the head that it has. The first may name the row
// under any head. What the row says besides, in its sentence, has to be of these cells,
// their heads and the headings. ok is false where no table says so.
func judgeTableRow(row Row, p Passage, passage int) (j Judgement, ok bool) {
	if len(row.Cells) < 2 {
		return j, false
	}
	for _, t := range tablesOf(p.Context) {
		for _, r := range t.rows {
			held, ok := t.holds(row, r)
			if !ok || !onlyOf(row, held, p.Heading) {
				continue
			}
			return Judgement{
				Verdict: assay.Supported, Score: 0.95, Reason: "its cells stand in a row of a table, under these heads",
				Spans: []Span{{passage, t.start, t.end}, {passage, r.start, r.end}},
			}, true
		}
	}
	return j, false
}

// holds returns the heads and cells of a row of the table that a claimed row is a part of.
func (t sourceTable) holds(row Row, r sourceRow) (held []string, ok bool) {
	for i, cell := range row.Cells {
		if strings.TrimSpace(cell) == "" {
			continue
		}
		head := ""
		if i < len(row.Columns) {
			head = row.Columns[i]
		}
		column := t.column(head)
		if i == 0 && column < 0 {
			column = 0
		}
		if column < 0 || !sameCell(cell, head, r.cells[column]) {
			return nil, false
		}
		held = append(held, t.heads[column], r.cells[column])
	}
	return held, len(held) > 2
}

// column returns the column of a head: that of the same words, or the only one that has all
// of its words; -1: none, or several.
func (t sourceTable) column(head string) int {
	want := read(head).terms
	if !checkable(want) || marked(want, isNot|isOnly) {
		return -1
	}
	found := -1
	for i, h := range t.heads {
		have := read(h).terms
		if !heldIn(want, have) {
			continue
		}
		if heldIn(have, want) {
			return i
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// sameCell reports whether a cell is one of the source, but for what its head says: "30"
// under "Price in euros" is "30 euros".
func sameCell(cell, head, source string) bool {
	want, have := read(cell).terms, read(source).terms
	if !checkable(want) || placed(have, want) < 0 {
		return false
	}
	return heldIn(have, append(slices.Clone(want), read(head).terms...))
}

// onlyOf reports whether a row's sentence says nothing but what the cells say.
func onlyOf(row Row, held, headings []string) bool {
	said := read(row.Sentence).terms
	known := read(strings.Join(held, ". ")).terms
	for _, h := range slices.Concat(headings, row.Cells, row.Columns) {
		known = append(known, read(h).terms...)
	}
	bound := isAtMost | isAtLeast | isMore | isLess | isAbout | isNot | isOnly
	for _, t := range said {
		if t.marks&bound != 0 && !marked(known, t.marks&bound) {
			return false
		}
	}
	return heldIn(said, known)
}

// judgeTableClaim judges a statement by the tables of a passage: it is supported where it
// names a row by its first cell, has one of the row's other cells whole or several, and says
// nothing else but their heads, that of the first, and the headings. ok is false where no row
// says so.
func judgeTableClaim(claim string, p Passage, passage int) (j Judgement, ok bool) {
	if !strings.Contains(p.Context, "|") {
		return j, false
	}
	bare, answer := withoutLeadIn(claim, topicOf(p.Heading))
	said := read(bare)
	if answer == yes || answer == no || said.asks || said.again || len(said.terms) > maxTerms || marked(said.terms, ^(isIn|isFor|isTo|isAnd|isBy)) {
		return j, false
	}
	for _, t := range tablesOf(p.Context) {
		for _, r := range t.rows {
			if t.says(said.terms, r, p.Heading) {
				return Judgement{
					Verdict: assay.Supported, Score: 0.95, Reason: "a row of a table says it",
					Spans: []Span{{passage, t.start, t.end}, {passage, r.start, r.end}},
				}, true
			}
		}
	}
	return j, false
}

// says reports whether a row says all that a statement does.
func (t sourceTable) says(said []term, r sourceRow, headings []string) bool {
	covered := make([]bool, len(said))
	cover := func(cell string) bool {
		terms := read(cell).terms
		if !checkable(terms) {
			return false
		}
		at := placed(said, terms)
		for i := 0; at >= 0 && i < len(terms); i++ {
			covered[at+i] = true
		}
		return at >= 0
	}
	if !cover(r.cells[0]) {
		return false
	}
	known, cells := read(t.heads[0]).terms, 0
	for i, cell := range r.cells[1:] {
		if cover(cell) {
			known = append(known, read(t.heads[i+1]).terms...)
			cells++
		}
	}
	priced := slices.ContainsFunc(known, func(k term) bool { return prices[k.stem] })
	for _, h := range headings {
		known = append(known, read(h).terms...)
	}
	for i, s := range said {
		switch {
		case covered[i] || s.stem == "":
		case s.number, prices[s.stem] && !priced:
			return false
		case !prices[s.stem] && !heldIn([]term{s}, known):
			return false
		}
	}
	return cells > 0
}

// prices are words for what something costs, which a head or a verb says.
var prices = stemsOf("price prices cost costs fee fees charge charges")

// heldIn reports whether each word and number of some terms is among others.
func heldIn(terms, others []term) bool {
	for _, t := range terms {
		if t.stem == "" || plainVerbs[t.stem] {
			continue
		}
		if !slices.ContainsFunc(others, func(o term) bool { return o.stem == t.stem && o.number == t.number }) {
			return false
		}
	}
	return true
}

// plainVerbs are those of a sentence that says of a row what its cells are.
var plainVerbs = stemsOf("has have is are comes includes offers gets")

// stemsOf are the stems of words.
func stemsOf(words string) map[string]bool {
	stems := map[string]bool{}
	for _, t := range read(words).terms {
		stems[t.stem] = true
	}
	return stems
}
