package layout

import "strings"

// lines quotes code with the sentence that announces it.
func (l Layout) lines(i, start, end int) []Quote {
	return append(l.lead(i), l.code(l.Blocks[i], start, end)...)
}

// code quotes a block of code, or the lines that [start, end) touches if it is long.
func (l Layout) code(b Block, start, end int) []Quote {
	q := Quote{Start: b.Start, End: b.End, Verbatim: true}
	if strings.Count(l.textOf(b), "\n") < maxCode {
		return []Quote{q}
	}
	start, end = min(max(start, b.Start), b.End), min(end, b.End)
	q.Start = b.Start + strings.LastIndexByte(l.text[b.Start:start], '\n') + 1
	if n := strings.IndexByte(l.text[max(q.Start, end-1):b.End], '\n'); n >= 0 {
		q.End = max(q.Start, end-1) + n
	}
	if n := strings.Count(l.text[q.Start:q.End], "\n"); n >= maxCode {
		q.End = q.Start + endOfLines(l.text[q.Start:q.End], maxCode)
	}
	return []Quote{q}
}

// endOfLines returns the offset at which the first n lines of a text end.
func endOfLines(text string, n int) int {
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
