package ui

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A long document is shown in parts.
const (
	partBlocks = 200      // blocks of a part, at most
	partBytes  = 48 << 10 // bytes of a part, at most
)

// cutParts returns the offsets at which the parts of a text start, the first of which is 0. Parts end
// between blocks, and inside a block only if it is longer than a part.
func cutParts(text string, blocks []assay.Block) []int {
	starts := []int{0}
	last, count := 0, 0
	begin := func(at int) {
		if at > last && at < len(text) {
			starts = append(starts, at)
			last, count = at, 0
		}
	}
	place := 0 // end of the last block
	for _, b := range append(slices.Clip(blocks), assay.Block{Start: len(text), End: len(text)}) {
		if b.Start < place || b.End < b.Start || b.End > len(text) {
			continue
		}
		if b.Start-last > partBytes { // text before it that is in no block
			begin(runeStart(text, place))
		}
		for b.Start-last > partBytes {
			begin(cutLong(text, last))
		}
		if count == partBlocks || b.End-last > partBytes {
			begin(runeStart(text, b.Start))
		}
		for b.End-last > partBytes {
			begin(cutLong(text, last))
		}
		place, count = b.End, count+1
	}
	return starts
}

// cutLong returns where a part ends that starts at an offset and would be too long: after a line, a
// word, or a character.
func cutLong(text string, from int) int {
	limit := runeStart(text, from+partBytes)
	for _, separator := range []string{"\n", " "} {
		if i := strings.LastIndex(text[from:limit], separator); i > 0 {
			return from + i + 1
		}
	}
	return limit
}

// runeStart returns the start of the character at an offset.
func runeStart(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// partAt returns the index of the part that contains an offset.
func partAt(starts []int, offset int) int {
	return max(0, sort.Search(len(starts), func(i int) bool { return starts[i] > offset })-1)
}

// A markedSpan is the quoted part of a text, or empty.
type markedSpan struct{ start, end int }

// A docRun is a piece of text that is quoted or not.
type docRun struct {
	Text  string
	Mark  bool
	First bool // of the quoted ones
}

// A docBlock is a block as the page shows it.
type docBlock struct {
	Kind     string // template that shows it: heading, paragraph, list, code, table, caption, figure, formula, footnote
	ID       string // anchor; empty: none
	Level    int    // of the HTML heading
	Depth    int    // of the document's heading
	Runs     []docRun
	Items    []docItem
	Table    *docTable
	Obtained string // how the text was obtained, if the source does not contain it
	Model    bool   // a model wrote it
	Page     int    // page that begins before it; 0: none does
}

// A docItem is an item of a list.
type docItem struct {
	Depth  int
	Bullet bool // its text had a bullet, which the page draws
	Runs   []docRun
}

// A docTable is a table, or the rows of it that are in a part.
type docTable struct {
	Head, Body [][]docCell
	Continued  bool // rows before these are in the part before
}

// A docCell is a cell of a table.
type docCell struct {
	Runs             []docRun
	RowSpan, ColSpan int // at least 1
	Header           bool
	Scope            string // of a header: col or row
}

// A partView makes the blocks of one part of a document.
type partView struct {
	d        *assay.Document
	from, to int
	quoted   markedSpan

	heading int  // level of the last HTML heading
	page    int  // of the last block
	marked  bool // a quoted piece was shown
	at      int  // offset up to which text is shown
	blocks  []docBlock
}

// headingOffset is the level of the HTML heading above the text.
const headingOffset = 2

// showPart returns the blocks of Text[from:to]. page is the page of the text before it.
func showPart(d *assay.Document, from, to int, quoted markedSpan, page int) []docBlock {
	v := &partView{d: d, from: from, to: to, quoted: quoted, heading: headingOffset, page: page, at: from}
	blocks := d.Structure.Blocks
	first := sort.Search(len(blocks), func(i int) bool { return blocks[i].End > from })
	for i := first; i < len(blocks) && blocks[i].Start < to; {
		v.gap(blocks[i].Start)
		i += v.block(blocks[i:])
	}
	v.gap(to)
	return v.blocks
}

// gap shows text that is in no block as a paragraph.
func (v *partView) gap(until int) {
	until = min(until, v.to)
	if v.at < until && strings.TrimSpace(v.d.Text[v.at:until]) != "" {
		v.add(docBlock{Kind: "plain", Runs: v.runs(v.at, until)}, v.at)
	}
	v.at = max(v.at, until)
}

// block shows the first of some blocks, with those that belong to it, and returns their number.
func (v *partView) block(blocks []assay.Block) int {
	b := blocks[0]
	switch b.Kind {
	case assay.BlockListItem:
		return v.list(blocks)
	case assay.BlockTableHead, assay.BlockTableRow:
		return v.table(blocks)
	}
	s := docBlock{Kind: string(b.Kind)}
	start, end := b.Start, b.End
	switch b.Kind {
	case assay.BlockHeading:
		s.ID, s.Depth = anchorOf(b), max(1, b.Level)
		s.Level = min(s.Depth+headingOffset, v.heading+1, 6)
		v.heading = s.Level
		start, end = labelIn(v.d.Text, b)
	case assay.BlockCode:
		start, end = withoutFence(v.d.Text, b)
	case assay.BlockParagraph, assay.BlockCaption, assay.BlockFigure, assay.BlockFormula, assay.BlockFootnote:
	default:
		s.Kind = "plain"
	}
	s.Runs = v.runs(start, end)
	v.add(s, b.Start)
	v.at = max(v.at, b.End)
	return 1
}

// add adds a block that starts at an offset, with how its text was obtained and the page that it begins.
func (v *partView) add(s docBlock, start int) {
	end := start + 1
	for _, r := range s.Runs {
		end += len(r.Text)
	}
	p := v.d.Structure.ProvenanceOf(start, end)
	s.Obtained, s.Model = p.Kind.Label(p.Confidence, p.Model), p.Kind == assay.ProvenanceDescribed
	if _, page := v.d.Position(max(start, v.from)); page > 0 && page != v.page {
		s.Page, v.page = page, page
	}
	v.blocks = append(v.blocks, s)
}

// runs returns the text of a span within the part, divided where the quoted part starts and ends.
func (v *partView) runs(start, end int) []docRun {
	start, end = max(start, v.from), min(end, v.to)
	if start >= end {
		return nil
	}
	q := v.quoted
	from, to := max(start, q.start), min(end, q.end)
	if from >= to {
		return []docRun{{Text: v.d.Text[start:end]}}
	}
	runs := []docRun{{Text: v.d.Text[start:from]}, {Text: v.d.Text[from:to], Mark: true, First: !v.marked}, {Text: v.d.Text[to:end]}}
	v.marked = true
	return slices.DeleteFunc(runs, func(r docRun) bool { return r.Text == "" })
}

// list shows consecutive items of a list.
func (v *partView) list(blocks []assay.Block) int {
	s := docBlock{Kind: "list"}
	n := 0
	for ; n < len(blocks) && blocks[n].Kind == assay.BlockListItem && blocks[n].Start < v.to; n++ {
		b := blocks[n]
		start := b.Start
		marker := bulletOf(v.d.Text[b.Start:b.End])
		s.Items = append(s.Items, docItem{Depth: min(max(1, b.Level), 6), Bullet: marker > 0, Runs: v.runs(start+marker, b.End)})
	}
	v.add(s, blocks[0].Start)
	v.at = max(v.at, blocks[n-1].End)
	return n
}

// bulletOf returns the bytes of the bullet that an item starts with; 0: it has none.
func bulletOf(text string) int {
	for _, bullet := range []string{"- ", "* ", "+ ", "• ", "– ", "▪ ", "◦ "} {
		if strings.HasPrefix(text, bullet) && len(text) > len(bullet) {
			return len(bullet)
		}
	}
	return 0
}

// table shows the consecutive rows of a table that are in the part.
func (v *partView) table(blocks []assay.Block) int {
	tables := v.d.Structure.Tables
	i := sort.Search(len(tables), func(i int) bool { return tables[i].End > blocks[0].Start })
	t := assay.Table{Start: blocks[0].Start, End: blocks[0].End}
	if i < len(tables) && tables[i].Start <= blocks[0].Start {
		t = tables[i]
	}
	n := 0
	isRow := func(b assay.Block) bool { return b.Kind == assay.BlockTableHead || b.Kind == assay.BlockTableRow }
	for ; n < len(blocks) && isRow(blocks[n]) && blocks[n].Start < min(t.End, v.to); n++ {
	}
	n = max(n, 1)
	s := docBlock{Kind: "table", Table: &docTable{Continued: t.Start < v.from}}
	if len(t.Cells) > 0 {
		v.cells(s.Table, t)
	} else {
		for _, b := range blocks[:n] {
			row := []docCell{{Runs: v.runs(b.Start, b.End), RowSpan: 1, ColSpan: 1}}
			s.Table.Body = append(s.Table.Body, row)
		}
	}
	v.add(s, max(blocks[0].Start, v.from))
	v.at = max(v.at, min(blocks[n-1].End, v.to))
	return n
}

// cells adds the rows of a table that are in the part, with the rows of column names above them.
func (v *partView) cells(s *docTable, t assay.Table) {
	heads := headRows(t)
	row := -1
	var cells []docCell
	flush := func() {
		switch {
		case len(cells) == 0:
		case row < heads:
			s.Head = append(s.Head, cells)
		default:
			s.Body = append(s.Body, cells)
		}
		cells = nil
	}
	for _, c := range t.Cells {
		inside := c.Start < v.to && c.End > v.from || c.Start == c.End && v.from <= c.Start && c.Start < v.to
		repeated := c.Row < heads && t.Start < v.from
		if !inside && !repeated {
			continue
		}
		if c.Row != row {
			flush()
			row = c.Row
		}
		cell := docCell{RowSpan: spanOf(c.RowSpan), ColSpan: spanOf(c.ColSpan), Header: c.Header}
		if inside {
			cell.Runs = v.runs(c.Start, c.End)
		} else {
			cell.Runs = []docRun{{Text: v.d.Text[c.Start:c.End]}}
		}
		switch {
		case c.Header && c.Row < heads:
			cell.Scope = "col"
		case c.Header:
			cell.Scope = "row"
		}
		cells = append(cells, cell)
	}
	flush()
}

// maxSpan is the most rows or columns that a cell covers on a page.
const maxSpan = 1000

func spanOf(n int) int { return min(cmp.Or(max(n, 0), 1), maxSpan) }

// maxHeadRows is the most rows of column names.
const maxHeadRows = 5

// headRows returns the number of rows at the start of a table whose cells all name columns.
func headRows(t assay.Table) int {
	rows := 0
	for i := 0; i < len(t.Cells) && rows < maxHeadRows; rows++ {
		for row := t.Cells[i].Row; i < len(t.Cells) && t.Cells[i].Row == row; i++ {
			if !t.Cells[i].Header {
				return rows
			}
		}
	}
	return rows
}

// labelIn returns the span of a heading's label in its block, so that marks of the format are left out.
func labelIn(text string, b assay.Block) (start, end int) {
	if i := strings.Index(text[b.Start:b.End], b.Label); i >= 0 && b.Label != "" {
		return b.Start + i, b.Start + i + len(b.Label)
	}
	return b.Start, b.End
}

// withoutFence returns the span of the lines between the fences of a block of code.
func withoutFence(text string, b assay.Block) (start, end int) {
	code := text[b.Start:b.End]
	fence := "```"
	if strings.HasPrefix(code, "~~~") {
		fence = "~~~"
	}
	line := strings.IndexByte(code, '\n')
	last := strings.LastIndexByte(strings.TrimRight(code, "\n"), '\n')
	if !strings.HasPrefix(code, fence) || line < 0 || last <= line || !strings.HasPrefix(strings.TrimSpace(code[last:]), fence) {
		return b.Start, b.End
	}
	return b.Start + line + 1, b.Start + last
}
