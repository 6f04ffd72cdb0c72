package layout

import (
	"slices"
	"strings"
)

// A Part is a row of a table or an entry of a definition list, written so that it can be
// understood without the rest of the passage.
type Part struct {
	Quote
	Text string // cells behind their heads, a definition behind its term
	At   []int  // the offset in the passage of each byte of Text
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

// entryPart returns an entry on one line, with a colon after its term.
func (l Layout) entryPart(b Block) Part {
	p := Part{Quote: Quote{Start: b.Start, End: b.End}}
	var text strings.Builder
	write := func(s string, at int) {
		text.WriteString(s)
		p.At = append(p.At, slices.Repeat([]int{at}, len(s))...)
	}
	term := b.Start + max(0, strings.IndexByte(l.textOf(b), '\n'))
	blank := false
	for i := b.Start; i < b.End; i++ {
		c := l.text[i]
		isMark := c == ':' && i > term && strings.TrimSpace(l.text[term:i]) == "" // of the definition
		switch {
		case i == term && i > b.Start:
			write(":", i)
			blank = true
		case isMark, strings.IndexByte(" \t\n", c) >= 0:
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

// row returns a row with each cell behind its head. The bytes of a head have the offset of
// its cell.
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
