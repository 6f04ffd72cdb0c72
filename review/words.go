package review

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxEdits bounds the words that Words compares one by one; where two texts differ by more, the whole
// part that differs is replaced.
const maxEdits = 1000

// Words compares two texts word by word. The pieces that are the same or removed are before, and those
// that are the same or added are after, byte for byte.
func Words(before, after string) []Change {
	a, b := words(before), words(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var d wordDiff
	for _, w := range a[:head] {
		d.add("same", w)
	}
	d.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	for _, w := range a[len(a)-tail:] {
		d.add("same", w)
	}
	return d.changes()
}

// words cuts a text into words, spaces, and single other characters.
func words(text string) []string {
	var all []string
	for len(text) > 0 {
		first, n := utf8.DecodeRuneInString(text)
		if kind := kindOfRune(first); kind != otherRune {
			for n < len(text) {
				r, size := utf8.DecodeRuneInString(text[n:])
				if kindOfRune(r) != kind {
					break
				}
				n += size
			}
		}
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

const (
	otherRune = iota
	wordRune
	spaceRune
)

func kindOfRune(r rune) int {
	switch {
	case r == utf8.RuneError:
		return otherRune
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return wordRune
	case unicode.IsSpace(r):
		return spaceRune
	}
	return otherRune
}

// A wordDiff collects the words of a comparison.
type wordDiff struct {
	ops, words []string
}

func (d *wordDiff) add(op, word string) {
	d.ops, d.words = append(d.ops, op), append(d.words, word)
}

// middle adds the shortest edit script from a to b.
//
// Source: Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1986.
func (d *wordDiff) middle(a, b []string) {
	path, ok := shortestEdit(a, b)
	if !ok {
		path = nil
		for range a {
			path = append(path, "removed")
		}
		for range b {
			path = append(path, "added")
		}
	}
	i, j := 0, 0
	for _, op := range path {
		switch op {
		case "same":
			d.add(op, a[i])
			i, j = i+1, j+1
		case "removed":
			d.add(op, a[i])
			i++
		default:
			d.add(op, b[j])
			j++
		}
	}
}

// shortestEdit returns the operations that make b of a; ok is false if there are more than maxEdits.
func shortestEdit(a, b []string) (ops []string, ok bool) {
	limit := min(len(a)+len(b), maxEdits)
	furthest := make([]int, 2*limit+3) // of each diagonal
	at := func(k int) *int { return &furthest[k+limit+1] }
	var trace [][]int
	for edits := 0; edits <= limit; edits++ {
		trace = append(trace, slices.Clone(furthest[limit+1-edits:limit+2+edits])) // diagonals -edits to edits
		for k := -edits; k <= edits; k += 2 {
			x := *at(k - 1) + 1
			if k == -edits || k != edits && *at(k - 1) < *at(k + 1) {
				x = *at(k + 1)
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			*at(k) = x
			if x >= len(a) && y >= len(b) {
				return backtrack(trace, len(a), len(b)), true
			}
		}
	}
	return nil, false
}

// backtrack returns the operations of the path that ends at (x, y). trace[n] has the furthest places
// before the n-th edit.
func backtrack(trace [][]int, x, y int) []string {
	var ops []string
	for edits := len(trace) - 1; edits >= 0; edits-- {
		before := func(k int) int { return trace[edits][k+edits] }
		k := x - y
		previous := k - 1
		if k == -edits || k != edits && before(k-1) < before(k+1) {
			previous = k + 1
		}
		fromX, fromY := 0, 0
		if edits > 0 {
			fromX = before(previous)
			fromY = fromX - previous
		}
		for x > fromX && y > fromY {
			ops, x, y = append(ops, "same"), x-1, y-1
		}
		if edits > 0 {
			op := "removed"
			if x == fromX {
				op = "added"
			}
			ops = append(ops, op)
		}
		x, y = fromX, fromY
	}
	slices.Reverse(ops)
	return ops
}

// A wordRun is a piece that both texts have, or a replacement.
type wordRun struct{ same, removed, added string }

func (r wordRun) size() int { return max(len(r.removed), len(r.added)) }

// swallows reports whether a piece between two replacements becomes part of them. That is so if it is
// not longer than either and not between two insertions or two deletions.
func swallows(before wordRun, same string, after wordRun) bool {
	replaces := before.removed+after.removed != "" && before.added+after.added != ""
	return replaces && (strings.TrimSpace(same) == "" || len(same) <= min(before.size(), after.size()))
}

// changes joins the words so that replaced phrases stay whole.
func (d *wordDiff) changes() []Change {
	all := []Change{}
	for _, r := range joined(d.runs()) {
		for _, c := range []Change{{"same", r.same}, {"removed", r.removed}, {"added", r.added}} {
			if c.Text != "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// runs returns the words as runs, pieces that are the same and replacements in turn.
func (d *wordDiff) runs() []wordRun {
	var all []wordRun
	same := false
	for i, op := range d.ops {
		if is := op == "same"; i == 0 || is != same {
			all, same = append(all, wordRun{}), is
		}
		r := &all[len(all)-1]
		switch op {
		case "same":
			r.same += d.words[i]
		case "removed":
			r.removed += d.words[i]
		default:
			r.added += d.words[i]
		}
	}
	return all
}

// joined joins replacements with the short pieces between them.
func joined(runs []wordRun) []wordRun {
	var out []wordRun
	for _, r := range runs {
		out = append(out, r)
		for n := len(out); n >= 3 && r.same == ""; n = len(out) {
			before, same, after := out[n-3], out[n-2].same, out[n-1]
			if !swallows(before, same, after) {
				break
			}
			r = wordRun{removed: before.removed + same + after.removed, added: before.added + same + after.added}
			out = append(out[:n-3], r)
		}
	}
	return out
}
