package layout

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lexical"
)

// maxLabel is the length of the longest label, in words.
const maxLabel = 12

// isEntry reports whether a block is a term over its definition, which is indented further or
// begins with a colon. A passage does not have the indentation of its first line. There the
// definition must begin in upper case, since prose continues in lower case.
func (l Layout) isEntry(b Block) bool {
	term, definition, ok := strings.Cut(l.textOf(b), "\n")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(definition, ": "):
		return true
	case endsSentence(term), lexical.Code(oneLine(definition)), !indented(l.textOf(b), b.indent):
		return false
	}
	begins, _ := utf8.DecodeRuneInString(strings.TrimSpace(definition))
	return b.Start > 0 || !unicode.IsLower(begins)
}

// joinEntries joins each term with the paragraphs after it that are indented further, as in
// definition lists of plain text. A term is a label, or a line like "--depth <n>".
func (l *Layout) joinEntries() {
	var out []Block
	for _, b := range l.Blocks {
		if b.Kind == Paragraph && len(out) > 0 {
			last := len(out) - 1
			if terms := l.termsOver(b, out); terms > 0 {
				first := len(out) - terms
				out[first].Kind, out[first].End = Entry, b.End
				out = out[:first+1]
				continue
			}
			if out[last].Kind == Entry && b.indent > out[last].indent {
				out[last].End = b.End // another paragraph of the definition
				continue
			}
		}
		out = append(out, b)
	}
	l.Blocks = out
}

// termsOver returns how many of the last blocks are the terms of a definition: one, or several
// options. Of two labels the first is a heading.
func (l Layout) termsOver(definition Block, blocks []Block) int {
	n := 0
	for _, b := range slices.Backward(blocks) {
		if !l.isTerm(b) || b.indent >= definition.indent {
			break
		}
		if n > 0 && !(l.isOption(b) && l.isOption(blocks[len(blocks)-n])) {
			break
		}
		n++
	}
	return n
}

// isTerm reports whether a block may be a term.
func (l Layout) isTerm(b Block) bool {
	text := l.textOf(b)
	isLine := b.Kind == Code && !strings.Contains(text, "\n")
	return b.Kind == Label || isLine && len(lexical.Words(text)) <= maxLabel
}

// isOption reports whether a block begins with a sign, as "--depth" does.
func (l Layout) isOption(b Block) bool {
	first, _ := utf8.DecodeRuneInString(l.text[b.Start:])
	return !unicode.IsLetter(first)
}

// indented reports whether a line of a text after its first is indented further.
func indented(text string, indent int) bool {
	_, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if columns(line[:len(line)-len(strings.TrimLeft(line, " \t"))]) > indent {
			return true
		}
	}
	return false
}

// entry quotes a term with its definition. From a long definition it takes the sentences that
// [start, end) touches.
func (l Layout) entry(i, start, end int) []Quote {
	b := l.Blocks[i]
	if len(lexical.Words(l.textOf(b))) <= maxEntry {
		return []Quote{{Start: b.Start, End: b.End}}
	}
	term := b.Start + strings.IndexByte(l.textOf(b), '\n')
	spans := l.Sentences(Block{Start: term, End: b.End})
	out := []Quote{{Start: b.Start, End: spans[0].End}}
	for _, s := range spans[1:] {
		if s.Start < end && s.End > start {
			out = append(out, Quote{Start: s.Start, End: s.End})
		}
	}
	return out
}
