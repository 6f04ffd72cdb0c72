// Package layout cuts a passage into blocks (paragraphs, list items, entries of definition
// lists, tables, code) and completes quotations: a list comes with the sentence that
// announces it, an item with its lead, a definition with its term, a row with the heads of
// its columns. The package looks at line breaks, indentation and punctuation, and knows no
// language.
package layout

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// A Layout is a passage cut into its blocks, in order.
type Layout struct {
	text   string
	Blocks []Block
}

// A Block is the byte range [Start, End) of a passage.
type Block struct {
	Start, End int
	Kind       Kind
	indent     int // of its first line
	number     int // of a numbered list item; 0: none
}

// A Kind is the kind of a block.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Item           // of a list, with its mark: "-", "2."
	Entry          // of a definition list: a term and, further indented, its definition
	Table          // lines with bars, or the fields of records
	Code
	Label // a few words that end no sentence: a heading, a term, an item that lost its mark
)

// itemMark matches the mark of a list item.
var itemMark = lazyregexp.New(`^(?:[-*•+]|(\d{1,3})[.)]|\(?[a-z]\))\s+`)

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

// lineBlock returns the block that begins with a line.
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

// columns returns the width of blanks, with a tab stop at every eighth column.
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
	head := l.textOf(last)
	switch {
	case b.Kind == Item:
		return b.number == 0 || last.Kind == Item || endsSentence(head)
	case last.Kind == Item || strings.Contains(line, " | "):
		return false
	}
	definition := strings.Contains(head, "\n") && indented(head, last.indent) && !lexical.Code(head)
	return definition && b.indent <= last.indent // the next term of a definition list
}

// kindOf returns the kind of a block, given the kind of its chunk.
func (l Layout) kindOf(b Block, chunk assay.ChunkKind) Kind {
	text := l.textOf(b)
	switch {
	case chunk == assay.ChunkTable || isTable(text):
		return Table
	case chunk == assay.ChunkCode:
		return Code
	case b.Kind == Item:
		return Item
	case l.isEntry(b):
		return Entry
	case lexical.Code(oneLine(text)): // on one line, since wrapped prose may look like code
		return Code
	case !endsSentence(text) && len(lexical.Words(text)) <= maxLabel:
		return Label
	}
	return Paragraph
}

// textOf returns the text of a block.
func (l Layout) textOf(b Block) string { return l.text[b.Start:b.End] }

// endsSentence reports whether a text ends with a full stop, another mark that ends a
// sentence, or a colon.
func endsSentence(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, " \t\n\"')]}”’»*_`"))
	return strings.ContainsRune(".!?:;。！？：", last)
}

// Announces reports whether a text ends with a colon.
func Announces(text string) bool {
	text = strings.TrimRight(text, " \t\n*_")
	return strings.HasSuffix(text, ":") || strings.HasSuffix(text, "：")
}

// At returns the index of the block that holds a byte, or of the block before it. It is -1
// if the passage has no blocks.
func (l Layout) At(offset int) int {
	for i, b := range slices.Backward(l.Blocks) {
		if b.Start <= offset {
			return i
		}
	}
	return min(0, len(l.Blocks)-1)
}

// Sentences returns the sentences of a block, as bytes of the passage.
func (l Layout) Sentences(b Block) []sentence.Span {
	spans := sentence.Spans(l.textOf(b))
	for i := range spans {
		spans[i].Start += b.Start
		spans[i].End += b.Start
	}
	return spans
}
