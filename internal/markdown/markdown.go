// Package markdown renders a document's text and structure as Markdown: CommonMark with the tables
// of GitHub Flavored Markdown (https://github.github.com/gfm/).
//
// Headings, list items, code, formulas and tables get their markup. Captions and footnotes are
// paragraphs, and the text of a figure is a block quote. Text that Markdown would read as markup is
// escaped, so that the words of the result are the words of the document.
package markdown

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// Render returns the Markdown of a document: its text and the structure of that text. Blocks are
// separated by blank lines, consecutive list items and table rows by line breaks. The result is
// empty if there are no blocks, and otherwise ends with a line break.
//
// A table has a header row in Markdown. It is empty if the first row of the table is not a header.
// A cell that spans rows or columns is repeated in each of them.
func Render(text string, s assay.Structure) string {
	r := renderer{text: text}
	for i, tables := 0, s.Tables; i < len(s.Blocks); {
		b := s.Blocks[i]
		for len(tables) > 0 && tables[0].End <= b.Start {
			tables = tables[1:]
		}
		if !isTable(b.Kind) {
			r.block(b)
			i++
			continue
		}
		n, cells := 1, []assay.Cell(nil)
		if len(tables) > 0 && tables[0].Start <= b.Start {
			for i+n < len(s.Blocks) && s.Blocks[i+n].Start < tables[0].End {
				n++
			}
			cells = tables[0].Cells
		} else {
			for i+n < len(s.Blocks) && s.Blocks[i+n].Kind == assay.BlockTableRow {
				n++
			}
		}
		r.table(s.Blocks[i:i+n], cells)
		i += n
	}
	return r.out.String()
}

func isTable(k assay.BlockKind) bool { return k == assay.BlockTableHead || k == assay.BlockTableRow }

type renderer struct {
	text string
	out  strings.Builder
	last assay.BlockKind // of the block written last
}

// begin separates a block from the one before it.
func (r *renderer) begin(k assay.BlockKind) {
	if r.out.Len() > 0 && (k != r.last || k != assay.BlockListItem) {
		r.out.WriteString("\n")
	}
	r.last = k
}

func (r *renderer) block(b assay.Block) {
	body := r.text[b.Start:b.End]
	r.begin(b.Kind)
	switch b.Kind {
	case assay.BlockHeading:
		r.line(strings.Repeat("#", min(max(b.Level, 1), 6)) + " " + inline(oneLine(body)))
	case assay.BlockListItem:
		r.item(b.Level, body)
	case assay.BlockCode:
		r.code(body)
	case assay.BlockFormula:
		r.line("$$\n" + body + "\n$$")
	case assay.BlockFigure:
		for l := range strings.SplitSeq(body, "\n") {
			r.line(strings.TrimRight("> "+paragraph(l), " "))
		}
	default:
		for l := range strings.SplitSeq(body, "\n") {
			r.line(paragraph(l))
		}
	}
}

func (r *renderer) line(s string) { r.out.WriteString(s + "\n") }

// code writes a fenced code block. The fence is longer than any run of backticks in the code.
func (r *renderer) code(body string) {
	longest, run := 2, 0
	for i := range len(body) {
		if body[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	r.line(fence + "\n" + body + "\n" + fence)
}

// item writes a list item. Its marker in the text is kept if Markdown has it, and otherwise
// replaced if it is a bullet. Level 0 takes the level from the indentation.
func (r *renderer) item(level int, body string) {
	trimmed := strings.TrimLeft(body, " \t")
	indent := len(body) - len(trimmed)
	if level > 0 {
		indent = 2 * (level - 1)
	}
	marker, rest := cutMarker(trimmed)
	pad := strings.Repeat(" ", min(indent, maxIndent))
	for i, l := range strings.Split(rest, "\n") {
		l = strings.TrimLeft(l, " \t")
		if i == 0 {
			r.line(pad + marker + paragraph(l))
			continue
		}
		if l != "" {
			l = pad + strings.Repeat(" ", len(marker)) + paragraph(l)
		}
		r.line(l)
	}
}

// maxIndent is the most spaces before a list marker.
const maxIndent = 32

// bullets are the characters that documents begin list items with.
const bullets = "-*+•‣⁃●○◦▪▫■□◆◇❖➢➤✓✔·∙–—"

// cutMarker splits an item into its marker in Markdown, with the space after it, and its text.
func cutMarker(s string) (marker, rest string) {
	word, rest, _ := strings.Cut(s, " ")
	rest = strings.TrimLeft(rest, " ")
	if isNumber(word) {
		return word + " ", rest
	}
	if n := len([]rune(word)); n == 1 && strings.Contains(bullets, word) {
		if word == "*" || word == "+" {
			return word + " ", rest
		}
		return "- ", rest
	}
	return "- ", s
}

// isNumber reports whether s is the marker of a numbered item in Markdown, such as "1." or "12)".
func isNumber(s string) bool {
	digits := strings.TrimRight(s, ".)")
	if len(s) != len(digits)+1 || len(digits) == 0 || len(digits) > 9 {
		return false
	}
	return !strings.ContainsFunc(digits, func(c rune) bool { return c < '0' || '9' < c })
}

// table writes the blocks of a table, which has no cells if they are not known.
func (r *renderer) table(rows []assay.Block, cells []assay.Cell) {
	r.begin(assay.BlockTableRow)
	grid := r.grid(cells)
	if len(cells) == 0 {
		for _, b := range rows {
			grid = append(grid, strings.Split(oneLine(r.text[b.Start:b.End]), " | "))
		}
	}
	columns := 1
	for _, row := range grid {
		columns = max(columns, len(row))
	}
	if rows[0].Kind != assay.BlockTableHead {
		grid = slices.Insert(grid, 0, []string{})
	}
	for i, row := range grid {
		for len(row) < columns {
			row = append(row, "")
		}
		for k, cell := range row {
			row[k] = strings.ReplaceAll(inline(cell), "|", `\|`)
		}
		r.line("| " + strings.Join(row, " | ") + " |")
		if i == 0 {
			r.line("|" + strings.Repeat(" --- |", columns))
		}
	}
}

// Bounds of a grid. Cells beyond them are left out of the repetition of spans, never out of the
// table.
const (
	maxSpan    = 1_000
	maxColumns = 20_000
)

// grid returns the texts of cells by row and column. Rows without a cell are left out.
func (r *renderer) grid(cells []assay.Cell) [][]string {
	rows := map[int][]string{}
	set := func(row, col int, text string) {
		cols := rows[row]
		for len(cols) <= col {
			cols = append(cols, "")
		}
		if cols[col] == "" {
			cols[col] = text
		}
		rows[row] = cols
	}
	starts := map[int]bool{} // rows in which a cell starts
	for _, c := range cells {
		starts[c.Row] = true
	}
	for _, c := range cells {
		text := oneLine(r.text[c.Start:c.End])
		for row := c.Row; row < c.Row+min(max(c.RowSpan, 1), maxSpan); row++ {
			if !starts[row] {
				continue
			}
			for col := c.Col; col < min(c.Col+min(max(c.ColSpan, 1), maxSpan), max(maxColumns, c.Col+1)); col++ {
				set(row, col, text)
			}
		}
	}
	numbers := make([]int, 0, len(rows))
	for row := range rows {
		numbers = append(numbers, row)
	}
	slices.Sort(numbers)
	grid := make([][]string, 0, len(rows))
	for _, row := range numbers {
		grid = append(grid, rows[row])
	}
	return grid
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
