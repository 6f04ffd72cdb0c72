package layout

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// A Quote is the bytes [Start, End) of a passage, to be shown as one statement.
type Quote struct {
	Start, End int
	Item       bool     // shown on a line of its own
	Verbatim   bool     // code, whose line breaks are kept
	Heads      []string // of the columns, if the quote is a row of a table with known heads
}

// The bounds of quotations.
const (
	maxList  = 300 // words of a list; of a longer one the first sentence of each item is quoted
	maxEntry = 120 // words of an entry; of a longer one some sentences are quoted behind its term
	maxCode  = 12  // lines of code; of longer code some lines are quoted
)

// Around quotes the bytes [start, end) of the passage with all that a reader needs to
// understand them: whole sentences, the list that a sentence announces, the sentence that
// announces a list item, whole rows of a table. If whole is set, the list of an item is
// quoted as a whole.
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

// sentences quotes the sentences of a paragraph that [start, end) touches. A question is
// quoted with the answer after it, and a sentence that announces a list with the list.
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
	switch {
	case last+1 < len(spans):
		return out
	case strings.HasSuffix(l.text[out[0].Start:out[0].End], "?"):
		return l.opening(i + 1)
	}
	return append(out, l.announced(i)...)
}

// announced quotes the list, table, code or sentence that block i announces. A block with a
// colon at its end announces the next one; a block without a mark at its end announces a list.
func (l Layout) announced(i int) []Quote {
	text := l.textOf(l.Blocks[i])
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

// opening quotes the first sentence of a paragraph, and any other block as a whole. It
// quotes nothing if there is no block i.
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

// Shown returns the text of a quote on one line, or verbatim if it is code.
func (l Layout) Shown(q Quote) string {
	if q.Verbatim {
		return strings.TrimRightFunc(l.text[q.Start:q.End], unicode.IsSpace)
	}
	return oneLine(l.text[q.Start:q.End])
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Gist quotes the beginning of the passage: its sentences up to a number of words, at least
// one of them, and the list that the last one announces. Lists are quoted as a whole.
func (l Layout) Gist(words int) []Quote {
	var out []Quote
	for i := 0; i < len(l.Blocks) && words > 0; i++ {
		b := l.Blocks[i]
		if b.Kind != Paragraph {
			if _, members := l.Whole(b.Start); len(members) > 0 {
				out = append(out, members...)
				words -= l.words(members)
				i = l.At(members[len(members)-1].End - 1)
			}
			continue
		}
		q := Quote{Start: b.Start}
		for _, s := range l.Sentences(b) {
			n := len(lexical.Words(l.text[s.Start:s.End]))
			first := len(out) == 0 && q.End == 0
			if n > words && !first {
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

// words counts the words of quotes.
func (l Layout) words(quotes []Quote) int {
	n := 0
	for _, q := range quotes {
		n += len(lexical.Words(l.text[q.Start:q.End]))
	}
	return n
}
