// Package layout cuts a passage into blocks (paragraphs, list items, entries of definition
// lists, tables, Code) and says what has to be quoted with a part of it for that to be
// understood: a list with the sentence that announces it, an item with its lead, a
// definition with its term, a row with the heads of its columns. It goes by line breaks,
// indentation and punctuation, and knows no language.
package layout

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A Layout is a passage cut into its blocks, in order.
type Layout struct {
	text   string
	Blocks []Block
}

// A Block is the bytes [Start, End) of a passage.
type Block struct {
	Start, End int
	Kind       Kind
	indent     int // of its first line
	number     int // of a numbered list item; 0: none
}

// A Kind is the kind of a block.
type Kind int

// The kinds.
const (
	Paragraph Kind = iota
	Item           // of a list, with its mark: "-", "2."
	Entry          // of a definition list: a term and, further indented, its definition
	Table          // lines with bars, or the fields of records
	Code
	Label // a few words that end no sentence: a heading, a term, an item that lost its mark
)

// itemMark matches the mark of a list item.
var itemMark = regexp.MustCompile(`^(?:[-*•+]|(\d{1,3})[.)]|\(?[a-z]\))\s+`)

// recordField matches a line that is one field of a record.
var recordField = regexp.MustCompile(`^\s*[^\s:;|][^:;|]{0,60}: [^;|]*$`)

// Of cuts a passage into blocks.
func Of(text string, kind assay.ChunkKind) Layout {
	l := Layout{text: text}
	open := false
	for start := 0; start < len(text); {
		end := start + strings.IndexByte(text[start:], '\n')
		if end < start {
			end = len(text)
		}
		line := text[start:end]
		if strings.TrimSpace(line) == "" {
			open = false
		} else {
			b := lineBlock(start, line)
			if open && !l.beginsBlock(b, line) {
				l.Blocks[len(l.Blocks)-1].End = b.End
			} else {
				l.Blocks, open = append(l.Blocks, b), true
			}
		}
		start = end + 1
	}
	for i := range l.Blocks {
		l.Blocks[i].Kind = l.kindOf(l.Blocks[i], kind)
	}
	l.joinEntries()
	return l
}

// lineBlock is the block that begins with a line.
func lineBlock(start int, line string) Block {
	bare := strings.TrimLeftFunc(line, unicode.IsSpace)
	blank := len(line) - len(bare)
	b := Block{indent: columns(line[:blank])}
	b.Start, b.End = start+blank, start+len(strings.TrimRightFunc(line, unicode.IsSpace))
	if m := itemMark.FindStringSubmatch(bare); m != nil {
		b.Kind = Item
		b.number, _ = strconv.Atoi(m[1]) // 0 for a bullet
	}
	return b
}

// columns is how wide blanks are, with a tab stop at every eighth column.
func columns(blanks string) int {
	n := 0
	for _, r := range blanks {
		if n++; r == '\t' {
			n = (n + 7) / 8 * 8
		}
	}
	return n
}

// beginsBlock reports whether a line after the last block begins another one.
func (l Layout) beginsBlock(b Block, line string) bool {
	last := l.Blocks[len(l.Blocks)-1]
	head := l.text[last.Start:last.End]
	switch {
	case b.Kind == Item:
		return b.number == 0 || last.Kind == Item || endsSentence(head)
	case last.Kind == Item || strings.Contains(line, " | "):
		return false
	}
	nested := strings.Contains(head, "\n") && b.indent <= last.indent && indented(head, last.indent)
	return nested && !surface.Code(head) // the next term of a definition list
}

// indented reports whether a line of a block after its first is indented further.
func indented(text string, indent int) bool {
	_, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if columns(line[:len(line)-len(strings.TrimLeft(line, " \t"))]) > indent {
			return true
		}
	}
	return false
}

func (l Layout) kindOf(b Block, kind assay.ChunkKind) Kind {
	text := l.text[b.Start:b.End]
	first, rest, lines := strings.Cut(text, "\n")
	switch {
	case kind == assay.ChunkTable || lines && !slices.ContainsFunc(strings.Split(text, "\n"), func(s string) bool { return !strings.Contains(s, " | ") }):
		return Table
	case kind == assay.ChunkCode:
		return Code
	case b.Kind == Item:
		return Item
	case lines && strings.HasPrefix(rest, ": "), lines && l.overDefinition(b, first, rest) && !surface.Code(oneLine(rest)):
		return Entry
	case surface.Code(oneLine(text)): // by lines wrapped prose may look like it
		return Code
	case !endsSentence(text) && len(surface.Words(text)) <= maxLabel:
		return Label
	}
	return Paragraph
}

// overDefinition reports whether the first line of a block is a term over its definition. At
// the beginning of a passage, whose indentation is lost, a definition begins in upper case:
// prose goes on in lower case.
func (l Layout) overDefinition(b Block, first, rest string) bool {
	if endsSentence(first) || !indented(l.text[b.Start:b.End], b.indent) {
		return false
	}
	begins, _ := utf8.DecodeRuneInString(strings.TrimSpace(rest))
	return b.Start > 0 || !unicode.IsLower(begins)
}

// maxLabel is how many words a label has at most.
const maxLabel = 12

// joinEntries joins terms with the further indented paragraph after them to entries, as
// definition lists in plain text have them. A term is a label, or a line like "--depth <n>".
func (l *Layout) joinEntries() {
	var out []Block
	for _, b := range l.Blocks {
		from := len(out)
		for from > 0 && l.term(out[from-1]) && out[from-1].indent < b.indent && (from == len(out) || l.option(out[from-1]) && l.option(out[from])) {
			from--
		}
		if b.Kind == Paragraph && from < len(out) {
			out[from].Kind, out[from].End = Entry, b.End
			out = out[:from+1]
			continue
		}
		if last := len(out) - 1; b.Kind == Paragraph && last >= 0 && out[last].Kind == Entry && b.indent > out[last].indent {
			out[last].End = b.End // the definition goes on
			continue
		}
		out = append(out, b)
	}
	l.Blocks = out
}

func (l Layout) term(b Block) bool {
	text := l.text[b.Start:b.End]
	return b.Kind == Label || b.Kind == Code && !strings.Contains(text, "\n") && len(surface.Words(text)) <= maxLabel
}

// option reports whether a block begins with a mark, as "--depth" does: several of them may
// stand over one definition, where one of two labels is a heading.
func (l Layout) option(b Block) bool {
	first, _ := utf8.DecodeRuneInString(l.text[b.Start:])
	return !unicode.IsLetter(first)
}

// endsSentence reports whether a text ends with a stop, or announces what follows.
func endsSentence(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, " \t\n\"')]}”’»*_`"))
	return strings.ContainsRune(".!?:;。！？：", last)
}

// Announces reports whether a text ends with a colon.
func Announces(text string) bool {
	text = strings.TrimRight(text, " \t\n*_")
	return strings.HasSuffix(text, ":") || strings.HasSuffix(text, "：")
}

// A Quote is the bytes [Start, End) of a passage, to be shown as one statement.
type Quote struct {
	Start, End int
	Item       bool     // on a line of its own
	Verbatim   bool     // code: line breaks stay
	Heads      []string // of the columns of a table's row; nil: it is none, or they are not known
}

// The bounds of what is quoted, in words.
const (
	maxList  = 300 // a list; of a longer one the first sentence of each item
	maxEntry = 120 // an entry; of a longer one the sentence that is asked for, behind its term
	maxCode  = 12  // lines of code; of longer code those that are asked for
)

// Around returns what has to be quoted for the bytes [start, end) of the passage to be
// understood: their sentences; of a sentence that announces a list the list, too; of a
// list item what announces it; of a table its rows. Whole has the list of an item quoted
// as a whole.
func (l Layout) Around(start, end int, whole bool) []Quote {
	first, last := l.At(start), l.At(max(start, end-1))
	if first < 0 {
		return nil
	}
	var out []Quote
	for i := first; i <= last; i++ {
		b := l.Blocks[i]
		from, to := max(start, b.Start), min(end, b.End)
		var quotes []Quote
		switch b.Kind {
		case Item:
			quotes = l.item(i, whole || first < last)
		case Entry:
			quotes = l.entry(i, from, to)
			if lead, entries := l.Whole(b.Start); whole && len(entries) > 0 {
				quotes = append(lead, entries...)
			}
		case Table:
			quotes = l.rows(b, from, to)
		case Code:
			quotes = l.lines(i, from, to)
		case Label:
			quotes = l.labelled(i, whole || first < last)
		default:
			quotes = l.sentences(i, from, to)
		}
		out = append(out, quotes...)
	}
	return Distinct(out)
}

// At returns the block that holds a byte, else the one before it; -1: there is none.
func (l Layout) At(offset int) int {
	for i, b := range slices.Backward(l.Blocks) {
		if b.Start <= offset {
			return i
		}
	}
	return min(0, len(l.Blocks)-1)
}

// Distinct returns the quotes without those that lie in others, in the order of the
// passage.
func Distinct(all []Quote) []Quote {
	slices.SortStableFunc(all, func(a, b Quote) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	var out []Quote
	for _, q := range all {
		if q.Start < q.End && (len(out) == 0 || q.End > out[len(out)-1].End) {
			out = append(out, q)
		}
	}
	return out
}

// Sentences returns the sentences of a block, as bytes of the passage.
func (l Layout) Sentences(b Block) []sentence.Span {
	spans := sentence.Spans(l.text[b.Start:b.End])
	for i := range spans {
		spans[i].Start += b.Start
		spans[i].End += b.Start
	}
	return spans
}

// sentences quotes the sentences of a paragraph that [start, end) touches. After a
// question comes its answer, and after what announces a list the list.
func (l Layout) sentences(i, start, end int) []Quote {
	spans := l.Sentences(l.Blocks[i])
	first := slices.IndexFunc(spans, func(s sentence.Span) bool { return s.End > start })
	if first < 0 {
		return nil
	}
	last := first
	for last+1 < len(spans) && (spans[last+1].Start < end || strings.HasSuffix(l.text[spans[first].Start:spans[last].End], "?")) {
		last++
	}
	out := []Quote{{Start: spans[first].Start, End: spans[last].End}}
	text := l.text[out[0].Start:out[0].End]
	switch {
	case last+1 < len(spans):
	case strings.HasSuffix(text, "?"):
		out = l.opening(i + 1)
	default:
		out = append(out, l.announced(i)...)
	}
	return out
}

// announced quotes what a block announces: the list after it, else, where it ends with a
// colon, the block after it. A block that ends otherwise than with a stop announces a list.
func (l Layout) announced(i int) []Quote {
	text := l.text[l.Blocks[i].Start:l.Blocks[i].End]
	if i+1 == len(l.Blocks) || !Announces(text) && endsSentence(text) {
		return nil
	}
	if items := l.items(i + 1); len(items) > 0 {
		return l.list(items)
	}
	if !Announces(text) {
		return nil
	}
	switch next := l.Blocks[i+1]; next.Kind {
	case Table:
		return l.rows(next, next.Start, next.End)
	case Code:
		return l.code(next, next.Start, next.End)
	}
	if items := l.shortParagraphs(i + 1); len(items) > 0 {
		return l.list(items)
	}
	return l.opening(i + 1)
}

// Paragraphs of at most maxItem words, at least minItems of them, are a list that lost its
// marks where a colon announces them.
const (
	maxItem  = 25
	minItems = 3
)

// shortParagraphs returns such paragraphs from block i on; nil: there are too few.
func (l Layout) shortParagraphs(i int) []int {
	var out []int
	for ; i < len(l.Blocks); i++ {
		b := l.Blocks[i]
		if text := l.text[b.Start:b.End]; b.Kind != Paragraph || Announces(text) || len(surface.Words(text)) > maxItem {
			break
		}
		out = append(out, i)
	}
	if len(out) < minItems {
		return nil
	}
	return out
}

// opening quotes the first sentence of a block, of a label with what follows it.
func (l Layout) opening(i int) []Quote {
	if i >= len(l.Blocks) {
		return nil
	}
	b := l.Blocks[i]
	if spans := l.Sentences(b); b.Kind == Paragraph && len(spans) > 0 {
		return l.sentences(i, spans[0].Start, spans[0].Start+1)
	}
	return []Quote{{Start: b.Start, End: b.End}}
}

// items returns the blocks of the list that begins with block i: its items and, between
// numbered ones, paragraphs that go on with them; where they have no marks, two labels or more.
func (l Layout) items(i int) []int {
	var out []int
	kind := l.Blocks[i].Kind
	for j := i; j < len(l.Blocks); j++ {
		b := l.Blocks[j]
		switch {
		case b.Kind == kind && (kind == Item || kind == Entry || kind == Label && !l.heads(j)):
			out = append(out, j)
		case kind == Item && j+1 < len(l.Blocks) && l.goesOn(out, j+1):
			out = append(out, j)
		default:
			j = len(l.Blocks)
		}
	}
	if len(out) == 1 && kind != Item {
		return nil
	}
	return out
}

// heads reports whether a label stands over a paragraph, as a heading does.
func (l Layout) heads(i int) bool {
	return i+1 < len(l.Blocks) && l.Blocks[i+1].Kind == Paragraph && i > 0 && l.Blocks[i-1].Kind != Label
}

// goesOn reports whether block i is the next item of a list, by its number or because the
// one before it is indented.
func (l Layout) goesOn(list []int, i int) bool {
	b, before := l.Blocks[i], l.Blocks[i-1]
	if b.Kind != Item {
		return false
	}
	number := 0
	for _, j := range list {
		number = max(number, l.Blocks[j].number)
	}
	return b.number > 0 && b.number == number+1 || before.indent > b.indent
}

// interrupted reports whether a block stands between numbered item i and the one before it.
func (l Layout) interrupted(i int) bool {
	n := l.Blocks[i].number
	return i > 1 && n > 1 && l.Blocks[i-2].Kind == Item && l.Blocks[i-2].number == n-1
}

// list quotes blocks as the items of a list.
func (l Layout) list(blocks []int) []Quote {
	words := 0
	for _, i := range blocks {
		words += len(surface.Words(l.text[l.Blocks[i].Start:l.Blocks[i].End]))
	}
	var out []Quote
	for _, i := range blocks {
		b := l.Blocks[i]
		q := Quote{Start: b.Start, End: b.End, Item: true}
		if words > maxList {
			q.End = l.firstSentence(b)
		}
		out = append(out, l.unmarked(q))
	}
	return out
}

// firstSentence returns where the first sentence of a block ends, behind its term.
func (l Layout) firstSentence(b Block) int {
	spans := l.Sentences(b)
	if len(spans) > 1 && !endsSentence(l.text[spans[0].Start:spans[0].End]) {
		return spans[1].End
	}
	return spans[0].End
}

// unmarked is a quote without the mark of its list item.
func (l Layout) unmarked(q Quote) Quote {
	q.Start += len(itemMark.FindString(l.text[q.Start:q.End]))
	return q
}

// item quotes an item with the items that it belongs to, and what announces its list.
// Deeper items after it are its own. Whole quotes the list as a whole.
func (l Layout) item(i int, whole bool) []Quote {
	first := i
	for first > 0 && (l.Blocks[first-1].Kind == Item || l.interrupted(first)) {
		first--
	}
	all, lead := l.items(first), l.lead(first)
	if whole {
		return append(lead, l.list(all)...)
	}
	depth := l.Blocks[i].indent
	keep := []int{i}
	for j := i - 1; j >= first; j-- {
		if b := l.Blocks[j]; b.Kind == Item && b.indent < depth {
			keep, depth = append(keep, j), b.indent
		}
	}
	for j := i + 1; j < len(l.Blocks) && l.Blocks[j].Kind == Item && l.Blocks[j].indent > l.Blocks[i].indent; j++ {
		keep = append(keep, j)
	}
	slices.Sort(keep)
	return append(lead, l.list(keep)...)
}

// lead quotes the sentence that announces block i: it ends with a colon, or, before a list
// with marks, without a stop.
func (l Layout) lead(i int) []Quote {
	if i == 0 || l.Blocks[i-1].Kind != Paragraph && l.Blocks[i-1].Kind != Label {
		return nil
	}
	spans := l.Sentences(l.Blocks[i-1])
	last := spans[len(spans)-1]
	text := l.text[last.Start:last.End]
	if Announces(text) || l.Blocks[i].Kind == Item && !endsSentence(text) {
		return []Quote{{Start: last.Start, End: last.End}}
	}
	return nil
}

// entry quotes a term with its definition.
func (l Layout) entry(i, start, end int) []Quote {
	b := l.Blocks[i]
	if len(surface.Words(l.text[b.Start:b.End])) <= maxEntry {
		return []Quote{{Start: b.Start, End: b.End}}
	}
	term := b.Start + strings.IndexByte(l.text[b.Start:b.End], '\n')
	spans := l.Sentences(Block{Start: term, End: b.End})
	out := []Quote{{Start: b.Start, End: spans[0].End}}
	for _, s := range spans[1:] {
		if s.Start < end && s.End > start {
			out = append(out, Quote{Start: s.Start, End: s.End})
		}
	}
	return out
}

// labelled quotes what a label stands over: a list that lost its marks with what announces
// it, or the first sentence of the paragraph after it. A label over nothing is quoted itself.
func (l Layout) labelled(i int, whole bool) []Quote {
	first := i
	for first > 0 && l.Blocks[first-1].Kind == Label {
		first--
	}
	if lead := l.lead(first); len(lead) > 0 {
		if items := l.items(first); whole && len(items) > 0 {
			return append(lead, l.list(items)...)
		}
		return append(lead, Quote{Start: l.Blocks[i].Start, End: l.Blocks[i].End, Item: true})
	}
	switch {
	case i+1 == len(l.Blocks):
	case l.Blocks[i+1].Kind == Paragraph:
		return l.opening(i + 1)
	case l.Blocks[i+1].Kind == Item:
		return l.item(i+1, true)
	}
	return []Quote{{Start: l.Blocks[i].Start, End: l.Blocks[i].End}}
}

// rows quotes the rows of a table that [start, end) touches, each with the heads of its
// columns; of records with a line for each field the record.
func (l Layout) rows(b Block, start, end int) []Quote {
	lines := strings.SplitAfter(l.text[b.Start:b.End], "\n")
	if !slices.ContainsFunc(lines, func(s string) bool { return !recordField.MatchString(strings.TrimSpace(s)) }) {
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
		if row == "" || i == 0 && heads != nil || q.End <= start || q.Start >= end {
			continue
		}
		if len(Cells(row)) == len(heads) {
			q.Item, q.Heads = false, heads
		}
		out = append(out, q)
	}
	if len(out) == 0 && len(lines) > 1 { // the heads alone say nothing
		return l.rows(b, b.Start, b.End)
	}
	return out
}

// headsOf returns the cells of the first of some rows, if it is surely one of heads: it has
// no number, as each row below it has, or begins in upper case where each of two or more
// rows below it does not. A piece of a table may begin with any of its rows.
func headsOf(rows []string) []string {
	cells := Cells(rows[0])
	if len(rows) < 2 || len(cells) < 2 || numbered(rows[0]) || slices.Contains(cells[1:], "") {
		return nil
	}
	if !slices.ContainsFunc(rows[1:], func(row string) bool { return !numbered(row) }) {
		return cells
	}
	for i, head := range cells {
		lower := func(row string) bool { return i < len(Cells(row)) && !capital(Cells(row)[i]) }
		if len(rows) > 2 && capital(head) && !slices.ContainsFunc(rows[1:], func(row string) bool { return !lower(row) }) {
			return cells
		}
	}
	return nil
}

func numbered(row string) bool { return strings.ContainsAny(row, "0123456789") }

// capital reports whether a text begins in upper case.
func capital(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.IsUpper(first)
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

// A Part is a row of a table, with the heads of its columns, or an entry of a definition
// list, as it reads by itself.
type Part struct {
	Quote
	Text string // cells behind their heads, a definition behind its term
	At   []int  // for each byte of Text the offset in the passage that it comes from
}

// Parts returns the entries of the passage's definition lists, and the rows of its tables
// whose heads are known.
func (l Layout) Parts() []Part {
	var out []Part
	for _, b := range l.Blocks {
		switch b.Kind {
		case Entry:
			out = append(out, l.entryPart(b))
		case Table:
			for _, q := range l.rows(b, b.Start, b.End) {
				if q.Heads != nil {
					out = append(out, l.row(q))
				}
			}
		}
	}
	return out
}

// entryPart is an entry on one line, with a colon behind its term.
func (l Layout) entryPart(b Block) Part {
	p := Part{Quote: Quote{Start: b.Start, End: b.End}}
	var text strings.Builder
	write := func(s string, at int) {
		text.WriteString(s)
		p.At = append(p.At, slices.Repeat([]int{at}, len(s))...)
	}
	term := b.Start + max(0, strings.IndexByte(l.text[b.Start:b.End], '\n'))
	blank := false
	for i := b.Start; i < b.End; i++ {
		switch c := l.text[i]; {
		case i == term && i > b.Start:
			write(":", i)
			blank = true
		case c == ' ' || c == '\t' || c == '\n' || c == ':' && i > term && strings.TrimSpace(l.text[term:i]) == "":
			blank = true
		default:
			if blank {
				write(" ", i)
			}
			blank = false
			write(l.text[i:i+1], i)
		}
	}
	p.Text = text.String()
	return p
}

// row is a row with its cells behind their heads. The bytes of a head come from its cell.
func (l Layout) row(q Quote) Part {
	r := Part{Quote: q}
	var text strings.Builder
	end := q.Start
	for i, cell := range Cells(l.text[q.Start:q.End]) {
		from := end + strings.Index(l.text[end:q.End], cell)
		label := q.Heads[i] + ": "
		if i > 0 {
			label = "; " + label
		}
		text.WriteString(label + cell)
		r.At = append(r.At, slices.Repeat([]int{min(from, q.End-1)}, len(label))...)
		for end = from; end < from+len(cell); end++ {
			r.At = append(r.At, end)
		}
	}
	r.Text = text.String()
	return r
}

// Cells returns the cells of a row that is a line with bars.
func Cells(row string) []string {
	cells := strings.Split(strings.TrimSpace(row), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// lines quotes code with the sentence that announces it.
func (l Layout) lines(i, start, end int) []Quote {
	return append(l.lead(i), l.code(l.Blocks[i], start, end)...)
}

// code quotes a block of code, of a long one the lines that [start, end) touches.
func (l Layout) code(b Block, start, end int) []Quote {
	q := Quote{Start: b.Start, End: b.End, Verbatim: true}
	if text := l.text[b.Start:b.End]; strings.Count(text, "\n") >= maxCode {
		start, end = max(start, b.Start), min(end, b.End)
		q.Start = b.Start + strings.LastIndexByte(l.text[b.Start:start], '\n') + 1
		if n := strings.IndexByte(l.text[max(q.Start, end-1):b.End], '\n'); n >= 0 {
			q.End = max(q.Start, end-1) + n
		}
		if n := strings.Count(l.text[q.Start:q.End], "\n"); n >= maxCode {
			q.End = q.Start + nthLine(l.text[q.Start:q.End], maxCode)
		}
	}
	return []Quote{q}
}

// nthLine returns where the first n lines of a text end.
func nthLine(text string, n int) int {
	at := 0
	for range n {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return len(text)
		}
		at += next + 1
	}
	return at - 1
}

// Shown is a quote's text as it is shown: on one line, but for code.
func (l Layout) Shown(q Quote) string {
	if q.Verbatim {
		return strings.TrimRightFunc(l.text[q.Start:q.End], unicode.IsSpace)
	}
	return oneLine(l.text[q.Start:q.End])
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// List returns the bytes of the list that the byte at offset is of, with what announces it,
// or those of the list that its paragraph announces, or those of its entry in a definition
// list; ok is false where there is none. What else a colon announces counts as a list.
func (l Layout) List(offset int) (start, end int, ok bool) {
	i := l.At(offset)
	if i < 0 {
		return 0, 0, false
	}
	var quotes []Quote
	switch b := l.Blocks[i]; b.Kind {
	case Item:
		quotes = l.item(i, true)
	case Label:
		quotes = l.labelled(i, true)
	case Entry:
		return b.Start, b.End, true
	case Paragraph:
		quotes = l.announced(i)
	}
	if len(quotes) == 0 {
		return 0, 0, false
	}
	if start, end = l.Blocks[i].Start, l.Blocks[i].End; l.Blocks[i].Kind == Paragraph {
		start = quotes[0].Start
	}
	for _, q := range quotes {
		start, end = min(start, q.Start), max(end, q.End)
	}
	return start, end, true
}

// Together reports whether the bytes at two offsets are of one list or one table, or of the
// sentence that announces it.
func (l Layout) Together(a, b int) bool {
	group := l.group(a)
	return group >= 0 && group == l.group(b)
}

// Whole quotes all of the list, definition list or table that the byte at offset is of: what
// announces it, and its members. It has no members where the byte is of none.
func (l Layout) Whole(offset int) (lead, members []Quote) {
	first := l.group(offset)
	if first < 0 {
		return nil, nil
	}
	if b := l.Blocks[first]; b.Kind == Table {
		return l.lead(first), l.rows(b, b.Start, b.End)
	}
	return l.lead(first), l.list(l.items(first))
}

// group returns the first block of the list or table that the byte at offset is of, or that
// its sentence announces; -1: there is none.
func (l Layout) group(offset int) int {
	i := l.At(offset)
	if i < 0 {
		return -1
	}
	kind := l.Blocks[i].Kind
	switch kind {
	case Paragraph:
		spans := l.Sentences(l.Blocks[i])
		if i+1 == len(l.Blocks) || offset < spans[len(spans)-1].Start || len(l.lead(i+1)) == 0 || l.group(l.Blocks[i+1].Start) != i+1 {
			return -1
		}
		return i + 1
	case Code:
		return -1
	case Table:
		return i
	}
	for i > 0 && (l.Blocks[i-1].Kind == kind || kind == Item && l.interrupted(i)) {
		i--
	}
	if len(l.items(i)) == 0 {
		return -1
	}
	return i
}

// Gist quotes the beginning of the passage: its sentences up to a number of words, at least
// one of them, and what they announce. A list is quoted as a whole.
func (l Layout) Gist(words int) []Quote {
	var out []Quote
	for i := 0; i < len(l.Blocks) && words > 0; i++ {
		b := l.Blocks[i]
		if _, members := l.Whole(b.Start); b.Kind != Paragraph && len(members) > 0 {
			out = append(out, members...)
			words -= l.words(members)
			i = l.At(members[len(members)-1].End - 1)
			continue
		}
		if b.Kind != Paragraph {
			continue
		}
		q := Quote{Start: b.Start}
		for _, s := range l.Sentences(b) {
			n := len(surface.Words(l.text[s.Start:s.End]))
			if len(out) > 0 && n > words || q.End > 0 && n > words {
				words = 0
				break
			}
			q.End, words = s.End, words-n
		}
		if q.End > 0 {
			out = append(out, q)
			if words <= 0 && q.End == b.End {
				out = append(out, l.announced(i)...)
			}
		}
	}
	return Distinct(out)
}

func (l Layout) words(quotes []Quote) int {
	n := 0
	for _, q := range quotes {
		n += len(surface.Words(l.text[q.Start:q.End]))
	}
	return n
}
