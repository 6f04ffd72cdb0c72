package layout

import (
	"slices"

	"github.com/assay-rag/assay/internal/lexical"
)

// List returns the bytes of the list around the byte at offset, with the sentence that
// announces it; of the list that its paragraph announces; or of its entry in a definition
// list. Ok is false if there is none. Any block that a colon announces counts as a list.
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

// Together reports whether the bytes at two offsets belong to the same list or table, or to
// the sentence that announces it.
func (l Layout) Together(a, b int) bool {
	group := l.group(a)
	return group >= 0 && group == l.group(b)
}

// Whole quotes the list, definition list or table around the byte at offset: the sentence
// that announces it, and its members. Both are empty if there is none.
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

// group returns the index of the first block of the list or table around the byte at offset,
// or of the list that its sentence announces. It is -1 if there is none.
func (l Layout) group(offset int) int {
	i := l.At(offset)
	if i < 0 {
		return -1
	}
	kind := l.Blocks[i].Kind
	switch kind {
	case Paragraph:
		spans := l.Sentences(l.Blocks[i])
		isLast := offset >= spans[len(spans)-1].Start
		if i+1 < len(l.Blocks) && isLast && len(l.lead(i+1)) > 0 && l.group(l.Blocks[i+1].Start) == i+1 {
			return i + 1
		}
		return -1
	case Code:
		return -1
	case Table:
		return i
	case Item:
		i = l.firstItem(i)
	default:
		for i > 0 && l.Blocks[i-1].Kind == kind {
			i--
		}
	}
	if len(l.items(i)) == 0 {
		return -1
	}
	return i
}

// firstItem returns the index of the first item of the list that item i belongs to.
func (l Layout) firstItem(i int) int {
	for i > 0 && (l.Blocks[i-1].Kind == Item || l.interrupted(i)) {
		i--
	}
	return i
}

// Paragraphs after a colon are a list that lost its marks if at least minItems of them have
// at most maxItem words.
const (
	maxItem  = 25
	minItems = 3
)

// items returns the blocks of the list that begins with block i: items with the paragraphs
// between them that belong to them, two or more entries, or two or more labels, which are
// items that lost their marks.
func (l Layout) items(i int) []int {
	var out []int
	kind := l.Blocks[i].Kind
	isMember := func(j int) bool {
		switch kind {
		case Item:
			return l.Blocks[j].Kind == Item || j+1 < len(l.Blocks) && l.continues(out, j+1)
		case Entry:
			return l.Blocks[j].Kind == Entry
		case Label:
			return l.Blocks[j].Kind == Label && !l.isHeading(j)
		}
		return false
	}
	for j := i; j < len(l.Blocks) && isMember(j); j++ {
		out = append(out, j)
	}
	if len(out) == 1 && kind != Item {
		return nil
	}
	return out
}

// shortParagraphs returns the paragraphs of such a list from block i on, or nil if there are too
// few.
func (l Layout) shortParagraphs(i int) []int {
	var out []int
	for ; i < len(l.Blocks); i++ {
		b := l.Blocks[i]
		if text := l.textOf(b); b.Kind != Paragraph || Announces(text) || len(lexical.Words(text)) > maxItem {
			break
		}
		out = append(out, i)
	}
	if len(out) < minItems {
		return nil
	}
	return out
}

// isHeading reports whether a label is a heading: it stands by itself over a paragraph.
func (l Layout) isHeading(i int) bool {
	alone := i > 0 && l.Blocks[i-1].Kind != Label
	return alone && i+1 < len(l.Blocks) && l.Blocks[i+1].Kind == Paragraph
}

// continues reports whether block i is the next item of a list, by its number or because the
// block before it is indented.
func (l Layout) continues(list []int, i int) bool {
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
	if n := l.Blocks[i].number; i > 1 && n > 1 {
		return l.Blocks[i-2].Kind == Item && l.Blocks[i-2].number == n-1
	}
	return false
}

// list quotes blocks as the items of a list.
func (l Layout) list(blocks []int) []Quote {
	words := 0
	for _, i := range blocks {
		words += len(lexical.Words(l.textOf(l.Blocks[i])))
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

// firstSentence returns the end of the first sentence of a block. A term is not a sentence.
func (l Layout) firstSentence(b Block) int {
	spans := l.Sentences(b)
	if len(spans) > 1 && !endsSentence(l.text[spans[0].Start:spans[0].End]) {
		return spans[1].End
	}
	return spans[0].End
}

// unmarked returns a quote without the mark of its list item.
func (l Layout) unmarked(q Quote) Quote {
	q.Start += len(itemMark.FindString(l.text[q.Start:q.End]))
	return q
}

// item quotes an item with its parent items, its deeper items, and the sentence that
// announces the list. If whole is set, it quotes the whole list.
func (l Layout) item(i int, whole bool) []Quote {
	first := l.firstItem(i)
	lead := l.lead(first)
	if whole {
		return append(lead, l.list(l.items(first))...)
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

// Announcing returns the start of the item that announces, with a colon, the deeper items around
// the byte at offset. It reports false if there is none.
func (l Layout) Announcing(offset int) (start int, ok bool) {
	i := l.At(offset)
	if i < 0 {
		return 0, false
	}
	for j := i - 1; j >= 0 && l.Blocks[j].Kind == Item; j-- {
		if b := l.Blocks[j]; b.indent < l.Blocks[i].indent {
			return b.Start, Announces(l.textOf(b))
		}
	}
	return 0, false
}

// lead quotes the sentence that announces block i. It ends with a colon, or without a mark if
// block i is an item.
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

// labelled quotes a label that is an item without a mark with the sentence that announces its
// list. For any other label it quotes the first sentence or the list after it.
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
