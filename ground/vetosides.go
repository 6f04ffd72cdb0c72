package ground

import (
	"fmt"
	"slices"
	"strings"
)

// mixed says that a claim takes a part of each of two things that its source sets side by
// side, and says of the one what is said of the other: "the blue light means A; the green
// one means B" does not say that green means A. It is asked of claims alone that have hardly
// a word of their own. Empty: it does not.
func (s *comparison) mixed(part int, c *piece) string { return s.mixedOf(part, c, setBeside) }

// mixedSurely is mixed of what is set against one another in so many words, or has a number
// on both sides: short parts of a sentence are often neither.
func (s *comparison) mixedSurely(part int, c *piece) string { return s.mixedOf(part, c, setAgainst) }

func (s *comparison) mixedOf(part int, c *piece, apart func(p *piece, c stretch) bool) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOf(part, b) < leastMixed || saysBoth(c) {
		return ""
	}
	sides := sidesOf(b)
	for x, one := range sides {
		for _, other := range sides[x+1:] {
			if !apart(b, other) {
				continue
			}
			if w, ok := crossing(c, b, one, other); ok {
				return fmt.Sprintf("%q is said of something else", w.raw)
			}
			if w, ok := crossing(c, b, other, one); ok {
				return fmt.Sprintf("%q is said of something else", w.raw)
			}
		}
	}
	return ""
}

// leastMixed is the share of its content words that such a claim has from the source.
const leastMixed = 0.8

// saysBoth reports whether a claim has clauses, or itself sets two things side by side.
func saysBoth(c *piece) bool {
	return strings.Contains(c.text, ",") || slices.ContainsFunc(c.words, func(w token) bool {
		return w.lower == "and" || w.lower == "both" || w.lower == "while" || w.lower == "whereas" || w.lower == "but" || w.lower == "or" || w.lower == "than"
	})
}

// sidesOf cuts a sentence where it sets things side by side: at its punctuation and at "and",
// "but", "while" and "whereas".
func sidesOf(p *piece) []stretch {
	var out []stretch
	from := 0
	for k := 1; k < len(p.words); k++ {
		gap := p.text[p.words[k-1].end:p.words[k].start]
		w := p.words[k].lower
		if strings.ContainsAny(gap, ",;:—–()") || w == "and" || w == "but" || w == "while" || w == "whereas" {
			out = append(out, stretch{from, k})
			from = k
		}
	}
	return append(out, stretch{from, len(p.words)})
}

// setBeside reports whether a side stands beside the ones before it, and does not say more of what
// they say: it is set against them, or short.
func setBeside(p *piece, c stretch) bool {
	gap := p.text[p.words[c.from-1].end:p.words[c.from].start]
	first := p.words[c.from].lower
	switch {
	case pronouns[first] || first == "which" || first == "who" || first == "a" || first == "an":
		return false
	case first == "while" || first == "whereas" || first == "but" || strings.Contains(gap, ";"):
		return c.from+1 < c.to && !pronouns[p.words[c.from+1].lower]
	}
	const short = 8
	return c.to-c.from <= short && !strings.ContainsAny(gap, ":()—–")
}

// setAgainst reports whether a side is set against the ones before it, or tells a number as
// they do.
func setAgainst(p *piece, c stretch) bool {
	gap := p.text[p.words[c.from-1].end:p.words[c.from].start]
	first := p.words[c.from].lower
	contrast := first == "while" || first == "whereas" || first == "but" || strings.Contains(gap, ";")
	numbers := func(words []token) bool {
		return slices.ContainsFunc(words, func(w token) bool {
			_, counted := numberWords[w.lower]
			return counted || w.kind == number
		})
	}
	return setBeside(p, c) && (contrast || numbers(p.words[:c.from]) && numbers(p.words[c.from:c.to]))
}

// crossing reports whether a claim has a word of one side in the place of a word of the other
// that it has not, and leaves out of the one side what stands in the place of what it has
// from the other.
func crossing(c, b *piece, one, other stretch) (token, bool) {
	held := func(i int) bool { return c.stems[b.words[i].stem] > 0 }
	only := func(i int, o stretch) bool {
		return !slices.ContainsFunc(b.words[o.from:o.to], func(w token) bool { return w.stem == b.words[i].stem })
	}
	own, mine := 0, 0
	for i := one.from; i < one.to; i++ {
		if _, counted := numberWords[b.words[i].lower]; (counted || b.words[i].kind != small) && only(i, other) {
			own++
			mine += int(oneIf(held(i)))
		}
	}
	if own > 1 && 2*mine > own {
		return token{}, false // it is said of the one side
	}
	for i := one.from; i < one.to; i++ {
		if b.words[i].kind == small || !held(i) || !only(i, other) {
			continue
		}
		for j := other.from; j < other.to; j++ {
			if b.words[j].kind == small || held(j) || (b.words[i].kind == number) != (b.words[j].kind == number) || !only(j, one) || !samePlace(b, one, i, other, j) {
				continue
			}
			if deniedAlone(b, one) || leavesOut(c, b, one, other, i, j) {
				return b.words[i], true
			}
		}
	}
	return token{}, false
}

// leavesOut reports whether a word of one side that the claim has not stands in the place of
// one of the other that it has, beside the words i and j that stand in one place.
func leavesOut(c, b *piece, one, other stretch, i, j int) bool {
	for k := one.from; k < one.to; k++ {
		if k == i || b.words[k].kind == small || c.stems[b.words[k].stem] > 0 {
			continue
		}
		for l := other.from; l < other.to; l++ {
			if l != j && b.words[l].kind != small && c.stems[b.words[l].stem] > 0 && (b.words[k].kind == number) == (b.words[l].kind == number) && samePlace(b, one, k, other, l) {
				return true
			}
		}
	}
	return false
}

// deniedAlone reports whether a side only denies of its subject what the other says: "users
// may not".
func deniedAlone(b *piece, c stretch) bool {
	return outright[b.words[c.to-1].lower]
}

// samePlace reports whether two words stand in the same place of two sides: as the first
// that has content, or behind or before the same word.
func samePlace(b *piece, one stretch, i int, other stretch, j int) bool {
	if firstContent(b, one) == i && firstContent(b, other) == j {
		return true
	}
	before := func(c stretch, k int) string {
		for k--; k >= c.from; k-- {
			if w := b.words[k].lower; w != "the" && w != "a" && w != "an" {
				return w
			}
		}
		return ""
	}
	next := func(c stretch, k int) string {
		if k+1 < c.to {
			return b.words[k+1].lower
		}
		return ""
	}
	x, y := before(one, i), before(other, j)
	if x != "" && x == y {
		return true
	}
	x, y = next(one, i), next(other, j)
	return x != "" && x == y
}

func firstContent(b *piece, c stretch) int {
	for i := c.from; i < c.to; i++ {
		if b.words[i].kind != small {
			return i
		}
	}
	return -1
}
