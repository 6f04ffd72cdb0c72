package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A piece is the bytes [Start, End) of an answer's text that belong to one claim, to one citation number
// or to neither. The pieces of a text cover each of its bytes once, in order.
type piece struct {
	Start, End int
	Claim      int // index into the claims; -1: none
	Mark       int // citation number; 0: none
}

// cutAnswer cuts a text at its claims and, outside of them, at the citation numbers of its sources. A
// claim whose offsets are not those of characters, or inside another claim, is left out, so that its
// words look like words that were not checked.
func cutAnswer(text string, claims []assay.Claim, numbers map[int]bool) []piece {
	order := make([]int, len(claims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(claims[a].Start, claims[b].Start) })
	var pieces []piece
	at := 0
	for _, i := range order {
		c := claims[i]
		if c.Start < at || c.Start == c.End || !isTextSpan(text, c.Start, c.End) {
			continue
		}
		pieces = append(cutMarks(pieces, text, at, c.Start, numbers), piece{c.Start, c.End, i, 0})
		at = c.End
	}
	return cutMarks(pieces, text, at, len(text), numbers)
}

// isTextSpan reports whether [start, end) is a part of a text that begins and ends between characters.
func isTextSpan(text string, start, end int) bool {
	boundary := func(i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
	inside := 0 <= start && start <= end && end <= len(text)
	return inside && boundary(start) && boundary(end)
}

// cutMarks appends the pieces of text[start:end], which has no claims.
func cutMarks(pieces []piece, text string, start, end int, numbers map[int]bool) []piece {
	from := start
	for i := start; i < end; i++ {
		if text[i] != '[' {
			continue
		}
		n := strings.IndexByte(text[i:end], ']')
		if n < 2 || text[i+1] == '0' || text[i+1] == '+' {
			continue
		}
		number, err := strconv.Atoi(text[i+1 : i+n])
		if err != nil || !numbers[number] {
			continue
		}
		if from < i {
			pieces = append(pieces, piece{from, i, -1, 0})
		}
		from = i + n + 1
		pieces = append(pieces, piece{i, from, -1, number})
		i = from - 1
	}
	if from < end {
		pieces = append(pieces, piece{from, end, -1, 0})
	}
	return pieces
}

// A blockKind is how a block of an answer is laid out.
type blockKind string

const (
	paragraphBlock blockKind = "paragraph"
	headingBlock   blockKind = "heading"
	listBlock      blockKind = "list"
	tableBlock     blockKind = "table"
	codeBlock      blockKind = "code"
)

// A span is the bytes [Start, End) of an answer's text.
type span struct{ Start, End int }

// A textBlock is a block of an answer's text.
type textBlock struct {
	Kind  blockKind
	Items []span   // of a list; one for a paragraph, a heading and code
	Rows  [][]span // of a table: the cells of each row, the head first
}

// blocksOf divides the text of an answer into blocks, in the form in which package strategy writes it:
// paragraphs, items that begin with "- ", headings that begin with "## ", and tables. Lines inside a
// claim belong to the block in which the claim begins.
func blocksOf(text string, pieces []piece) []textBlock {
	p := blockParser{text: text, pieces: pieces}
	for start := 0; start < len(text); {
		end := start + strings.IndexByte(text[start:]+"\n", '\n')
		p.line(start, end)
		start = end + 1
	}
	return p.blocks
}

type blockParser struct {
	text   string
	pieces []piece
	blocks []textBlock
	open   bool // the last block may go on
}

// line adds the line text[start:end].
func (p *blockParser) line(start, end int) {
	line := p.text[start:end]
	switch {
	case p.insideClaim(start):
		p.extend(end)
	case strings.TrimSpace(line) == "":
		p.open = false
	case strings.HasPrefix(line, "## "):
		p.add(headingBlock, span{start + len("## "), end})
		p.open = false
	case strings.HasPrefix(line, "- "):
		p.item(span{start + len("- "), end})
	case p.rowOf(tableBlock) && isRow(line):
		p.row(start, end)
	case isRow(line) && p.isHead(end):
		p.blocks, p.open = append(p.blocks, textBlock{Kind: tableBlock}), true
		p.row(start, end)
	case p.rowOf(paragraphBlock):
		p.extend(end)
	default:
		p.add(paragraphBlock, span{start, end})
	}
}

// insideClaim reports whether a claim begins before an offset and ends behind it.
func (p *blockParser) insideClaim(offset int) bool {
	i, _ := slices.BinarySearchFunc(p.pieces, offset, func(c piece, at int) int { return cmp.Compare(c.End, at+1) })
	return len(p.blocks) > 0 && i < len(p.pieces) && p.pieces[i].Claim >= 0 && p.pieces[i].Start < offset
}

// rowOf reports whether the last block is of a kind and goes on.
func (p *blockParser) rowOf(kind blockKind) bool {
	return p.open && len(p.blocks) > 0 && p.blocks[len(p.blocks)-1].Kind == kind
}

func (p *blockParser) add(kind blockKind, s span) {
	p.blocks, p.open = append(p.blocks, textBlock{Kind: kind, Items: []span{s}}), true
}

func (p *blockParser) item(s span) {
	if n := len(p.blocks); n > 0 && p.blocks[n-1].Kind == listBlock {
		p.blocks[n-1].Items, p.open = append(p.blocks[n-1].Items, s), true
		return
	}
	p.add(listBlock, s)
}

// extend lets the last block go on to end. A paragraph with a line break inside a claim is code if it
// has its characters.
func (p *blockParser) extend(end int) {
	b := &p.blocks[len(p.blocks)-1]
	if b.Kind == tableBlock {
		row := b.Rows[len(b.Rows)-1]
		row[len(row)-1].End = end
		return
	}
	last := &b.Items[len(b.Items)-1]
	last.End = end
	if b.Kind == paragraphBlock && strings.ContainsAny(p.text[last.Start:end], "={};`") && p.insideClaim(last.End-1) {
		b.Kind = codeBlock
	}
}

// isRow reports whether a line looks like a row of a table.
func isRow(line string) bool { return strings.HasPrefix(line, "| ") && strings.HasSuffix(line, "|") }

// isHead reports whether the line after the one that ends at end is the rule below a table's head.
func (p *blockParser) isHead(end int) bool {
	rest, found := strings.CutPrefix(p.text[end:], "\n| ---")
	line, _, _ := strings.Cut(rest, "\n")
	return found && strings.Trim(line, "-| ") == ""
}

// row adds the cells of the row text[start:end]. The rule below the head has none.
func (p *blockParser) row(start, end int) {
	b := &p.blocks[len(p.blocks)-1]
	if strings.Trim(p.text[start:end], "-| ") == "" && len(b.Rows) == 1 {
		return
	}
	var cells []span
	for at := start + 1; at < end; {
		stop := at + strings.IndexByte(p.text[at:end], '|')
		cells = append(cells, trimmed(p.text, span{at, stop}))
		at = stop + 1
	}
	b.Rows = append(b.Rows, cells)
}

// trimmed returns a span without the spaces around its text.
func trimmed(text string, s span) span {
	for s.Start < s.End && text[s.Start] == ' ' {
		s.Start++
	}
	for s.Start < s.End && text[s.End-1] == ' ' {
		s.End--
	}
	return s
}

// An answerText is the text of an answer for the page.
type answerText struct {
	Blocks []shownBlock
	Claims []shownClaim
}

// A shownBlock is a textBlock with its texts.
type shownBlock struct {
	Kind  blockKind
	Items [][]inline
	Head  [][]inline
	Rows  [][][]inline
}

// An inline is a part of a block: plain text, a part of a claim, or a citation number.
type inline struct {
	Text  string
	Claim *shownClaim // nil: none
	First bool        // the claim begins here
	Mark  int         // citation number; 0: none
}

// A shownClaim is a claim with the words and the class of its verdict.
type shownClaim struct {
	Number  int // from 1
	Class   string
	Word    string // for screen readers: "supported claim"
	Legend  string // after "2 claims"
	Says    string // one sentence
	Numbers []int
}

// answerTextOf returns the text of an answer for the page.
func answerTextOf(a assay.Answer) answerText {
	numbers := map[int]bool{}
	for _, c := range a.Citations {
		numbers[c.Number] = true
	}
	pieces := cutAnswer(a.Text, a.Claims, numbers)
	t := answerText{Claims: make([]shownClaim, len(a.Claims))}
	for i, c := range a.Claims {
		t.Claims[i] = shownClaimOf(i, c)
	}
	seen := map[int]bool{}
	show := func(s span) []inline { return inlinesOf(a.Text, pieces, s, t.Claims, seen) }
	for _, b := range blocksOf(a.Text, pieces) {
		shown := shownBlock{Kind: b.Kind}
		for _, s := range b.Items {
			shown.Items = append(shown.Items, show(s))
		}
		for i, row := range b.Rows {
			cells := make([][]inline, len(row))
			for j, s := range row {
				cells[j] = show(s)
			}
			if i == 0 {
				shown.Head = cells
				continue
			}
			shown.Rows = append(shown.Rows, cells)
		}
		t.Blocks = append(t.Blocks, shown)
	}
	return t
}

// inlinesOf returns the parts of a span. seen are the claims that have begun.
func inlinesOf(text string, pieces []piece, s span, claims []shownClaim, seen map[int]bool) []inline {
	var parts []inline
	for _, p := range pieces {
		start, end := max(p.Start, s.Start), min(p.End, s.End)
		if start >= end {
			continue
		}
		in := inline{Text: text[start:end], Mark: p.Mark}
		if p.Claim >= 0 {
			in.Claim, in.First = &claims[p.Claim], !seen[p.Claim]
			seen[p.Claim] = true
		}
		parts = append(parts, in)
	}
	return parts
}

// shownClaimOf returns how a claim is shown. A claim is called supported only if its verdict is.
func shownClaimOf(i int, c assay.Claim) shownClaim {
	s := shownClaim{Number: i + 1, Numbers: c.Citations}
	switch {
	case c.Reviewer != "":
		s.Class, s.Word, s.Legend, s.Says = "reviewer", "statement of a reviewer", "stated by a reviewer", "A reviewer states this. The documents do not support it."
	case c.Verdict == assay.Contradicted:
		s.Class, s.Word, s.Legend, s.Says = "contradicted", "contradicted claim", "contradicted", "The cited words contradict this claim."
	case c.Verdict != assay.Supported:
		s.Class, s.Word, s.Legend, s.Says = "unsupported", "unsupported claim", "not supported", "The cited words do not support this claim."
	case c.Quoted:
		s.Class, s.Word, s.Legend, s.Says = "quoted", "quoted claim", "quoted", "A sentence of the source, in place of a statement that was rejected."
	case c.Repaired:
		s.Class, s.Word, s.Legend, s.Says = "repaired", "supported claim with a corrected source", "supported, source corrected", "Supported by another source than the writer had named."
	default:
		s.Class, s.Word, s.Legend, s.Says = "supported", "supported claim", "supported", "Supported by the words that it cites."
	}
	return s
}

// Sources names the sources of a claim: "Source 1", "Sources 1 and 3".
func (c shownClaim) Sources() string {
	if len(c.Numbers) == 0 {
		return "No source"
	}
	words := make([]string, len(c.Numbers))
	for i, n := range c.Numbers {
		words[i] = strconv.Itoa(n)
	}
	if len(words) == 1 {
		return "Source " + words[0]
	}
	return fmt.Sprintf("Sources %s and %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

// verdictCounts counts the claims of an answer by how they are shown, in the order of first occurrence.
func verdictCounts(claims []shownClaim) []verdictCount {
	var counts []verdictCount
	for _, c := range claims {
		i := slices.IndexFunc(counts, func(v verdictCount) bool { return v.Class == c.Class })
		if i < 0 {
			i, counts = len(counts), append(counts, verdictCount{Class: c.Class, Words: c.Legend, Says: c.Says})
		}
		counts[i].Count++
	}
	return counts
}

// A verdictCount is an entry of the legend below an answer.
type verdictCount struct {
	Class, Words, Says string
	Count              int
}
