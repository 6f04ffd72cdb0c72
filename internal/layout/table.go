package layout

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// recordField matches a line that is a field of a record.
var recordField = lazyregexp.New(`^\s*[^\s:;|][^:;|]{0,60}: [^;|]*$`)

// isTable reports whether a text is two or more lines with bars.
func isTable(text string) bool {
	lines := strings.Split(text, "\n")
	return len(lines) > 1 && !slices.ContainsFunc(lines, func(s string) bool { return !strings.Contains(s, " | ") })
}

// rows quotes the rows of a table that [start, end) touches, each with the heads of its
// columns. A record that has a line for each field is quoted as a whole.
func (l Layout) rows(b Block, start, end int) []Quote {
	lines := strings.SplitAfter(l.textOf(b), "\n")
	isRecord := !slices.ContainsFunc(lines, func(s string) bool { return !recordField.MatchString(strings.TrimSpace(s)) })
	if isRecord {
		return []Quote{{Start: b.Start, End: b.End}}
	}
	heads := headsOf(lines)
	var out []Quote
	at := b.Start
	for i, line := range lines {
		row := strings.TrimSpace(line)
		q := Quote{Start: at + strings.Index(line, row), Item: true}
		q.End = q.Start + len(row)
		at += len(line)
		isHead := i == 0 && heads != nil
		if touched := q.Start < end && q.End > start; row == "" || isHead || !touched {
			continue
		}
		if len(Cells(row)) == len(heads) {
			q.Item, q.Heads = false, heads
		}
		out = append(out, q)
	}
	if len(out) == 0 && len(lines) > 1 { // heads without a row have no meaning
		return l.rows(b, b.Start, b.End)
	}
	return out
}

// headsOf returns the cells of the first row if it certainly holds the heads of the columns.
// A piece of a table may begin with any row, so there must be a difference to all other rows:
// they have numbers, or there are at least two and a column begins in lower case.
func headsOf(rows []string) []string {
	heads := Cells(rows[0])
	if len(rows) < 2 || len(heads) < 2 || slices.Contains(heads[1:], "") || !unnumbered(rows[0]) {
		return nil
	}
	if !slices.ContainsFunc(rows[1:], unnumbered) {
		return heads
	}
	for i, head := range heads {
		other := func(row string) bool { return i >= len(Cells(row)) || capital(Cells(row)[i]) }
		if len(rows) > 2 && capital(head) && !slices.ContainsFunc(rows[1:], other) {
			return heads
		}
	}
	return nil
}

func unnumbered(row string) bool { return !strings.ContainsAny(row, "0123456789") }

// capital reports whether a text begins in upper case.
func capital(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.IsUpper(first)
}

// Cells returns the cells of a row, a line with bars between its cells.
func Cells(row string) []string {
	cells := strings.Split(strings.TrimSpace(row), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// Labelled writes the cells of a row behind the heads of their columns.
func Labelled(heads, cells []string) string {
	var pairs []string
	for i, cell := range cells {
		if i < len(heads) && heads[i] != "" {
			cell = heads[i] + ": " + cell
		}
		pairs = append(pairs, cell)
	}
	return strings.Join(pairs, "; ")
}
