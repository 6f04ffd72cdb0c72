package ground

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// otherInPlace says which name stands in the claim where the sentence that says the rest has
// another one, of which the claim knows nothing: behind or before the same word, as who does
// the same, or as an example of it. Empty: none.
func (s *comparison) otherInPlace(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOfPlain(part, b) < sureOfName {
		return ""
	}
	for i := 0; i < len(c.words); i++ {
		w := c.words[i]
		if !s.named(w, i == 0) || calendar[w.lower] || roman(w.raw) || shortened(c, i, b) || spokenIn(c.words[i:i+1], b.words) {
			continue
		}
		if _, unit := measures[w.lower]; unit {
			continue
		}
		from, to := nameAround(c, i)
		if spokenIn(c.words[from:to], b.words) {
			continue
		}
		if r, ok := rivalInPlace(c, from, to, b); ok {
			return fmt.Sprintf("%q stands where the source has %q", w.raw, r.raw)
		}
	}
	if w, ok := s.otherDoer(c, b); ok {
		return fmt.Sprintf("the source has another one than %q do it", w.raw)
	}
	if w, ok := s.otherExample(c, b); ok {
		return fmt.Sprintf("%q is no example of the source's", w.raw)
	}
	return ""
}

// spokenIn reports whether one of some words names what one of others names.
func spokenIn(some, others []token) bool {
	return slices.ContainsFunc(some, func(w token) bool {
		return slices.ContainsFunc(others, func(o token) bool { return namesAlike(w, o) })
	})
}

// nameAround are the words of the name that has word i: those with a capital beside it.
func nameAround(p *piece, i int) (from, to int) {
	from, to = i, i+1
	for from > 0 && p.words[from-1].kind == name && beside(p, from-1) {
		from--
	}
	for to < len(p.words) && p.words[to].kind == name && beside(p, to-1) {
		to++
	}
	return from, to
}

// beside reports whether only a blank or hyphen stands between word k and the next.
func beside(p *piece, k int) bool {
	return strings.Trim(p.text[p.words[k].end:p.words[k+1].start], " -’'s.") == ""
}

// slotReach is how many words lie at most between a name and the word that says its place.
const slotReach = 3

// rivalInPlace is a name of a sentence, not in the claim, that stands behind or before the
// same word as the claim's name, its words [from, to), does.
func rivalInPlace(c *piece, from, to int, b *piece) (token, bool) {
	for _, step := range []int{-1, 1} {
		at := from - 1
		if step > 0 {
			at = to
		}
		k := contentBeside(c, at, step)
		if k < 0 || c.words[k].kind != plain {
			continue
		}
		for j, o := range b.words {
			if !sameWord(o, c.words[k]) {
				continue
			}
			if n := contentBeside(b, j-step, -step); n >= 0 && isName(b.words[n]) && !calendar[b.words[n].lower] && !spokenIn(b.words[n:n+1], c.words) && samePath(c, k, at, b, j, j-step) {
				f, t := nameAround(b, n)
				if !spokenIn(b.words[f:t], c.words) && !initials(b.words[f:t], c.words[from:to]) {
					return b.words[n], true
				}
			}
		}
	}
	return token{}, false
}

// samePath reports whether the same small word, or on one side none, stands between a name
// and the word that says its place: "sold to" is not "sold by".
func samePath(c *piece, k, at int, b *piece, j, start int) bool {
	small1 := func(p *piece, a, z int) string {
		if a > z {
			a, z = z, a
		}
		out := ""
		for i := max(a, 0); i <= z && i < len(p.words); i++ {
			if w := p.words[i]; w.kind == small && roleWord[w.lower] {
				out = w.lower
				if placing[out] {
					out = "in"
				}
			}
		}
		return out
	}
	return small1(c, k, at) == small1(b, j, start+sign(start-j)*slotReach)
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// placing are small words for where something is or is from.
var placing = wordSet("in at of from on")

// roleWord are small words that say what part a name has.
var roleWord = wordSet("by to from with without for in on at of under over against into than as")

// contentBeside is the first content word from word k on in a direction, within slotReach
// words and no comma between; -1: none.
func contentBeside(p *piece, k, step int) int {
	for n := 0; n <= slotReach && k >= 0 && k < len(p.words); n++ {
		if p.words[k].kind != small {
			return k
		}
		next := k + step
		if next < 0 || next >= len(p.words) || strings.ContainsAny(p.text[p.words[min(k, next)].end:p.words[max(k, next)].start], ",;:()") {
			return -1
		}
		k = next
	}
	return -1
}

func isName(w token) bool {
	r, _ := utf8.DecodeRuneInString(w.raw)
	return w.kind == name && !unicode.IsDigit(r)
}

// initials reports whether one of two names is the first letters of the other.
func initials(a, b []token) bool {
	first := func(words []token) string {
		var out strings.Builder
		for _, w := range words {
			r, _ := utf8.DecodeRuneInString(w.raw)
			out.WriteRune(unicode.ToUpper(r))
		}
		return out.String()
	}
	return len(b) == 1 && len(a) > 1 && first(a) == b[0].raw || len(a) == 1 && len(b) > 1 && first(b) == a[0].raw
}

// otherDoer is who does something by the claim, where the source has another do it whom the
// claim does not name.
func (s *comparison) otherDoer(c, b *piece) (token, bool) {
	for i, w := range c.words {
		if !verbal(w) && !(w.kind == plain && participle(w.lower)) {
			continue
		}
		from, to, ok := s.doer(c, i)
		if !ok || spokenIn(c.words[from:to], b.words) {
			continue
		}
		for j, o := range b.words {
			if !sameWord(o, w) {
				continue
			}
			if f, t, ok := s.doer(b, j); ok && !spokenIn(b.words[f:t], c.words) {
				return c.words[from], true
			}
		}
	}
	return token{}, false
}

// doer is the name of who does what the verb at i says: behind "by", or before the verb.
func (s *comparison) doer(p *piece, i int) (from, to int, ok bool) {
	const reach = 8
	for k := i + 1; k+1 < len(p.words) && k < i+reach; k++ {
		if p.words[k].lower == "by" {
			n := contentBeside(p, k+1, 1)
			if n < 0 || !isName(p.words[n]) || calendar[p.words[n].lower] {
				return 0, 0, false
			}
			from, to = nameAround(p, n)
			return from, to, true
		}
	}
	if passiveAt(p, i) {
		return 0, 0, false
	}
	n := contentBeside(p, i-1, -1)
	if n < 0 || !s.named(p.words[n], n == 0) || calendar[p.words[n].lower] {
		return 0, 0, false
	}
	from, to = nameAround(p, n)
	return from, to, from == 0 || !roleWord[p.words[from-1].lower]
}

// otherExample is the example that a claim gives, where the source gives others and has
// nowhere that one.
func (s *comparison) otherExample(c, b *piece) (token, bool) {
	i, j := exampleIn(c), exampleIn(b)
	if i < 0 || j < 0 {
		return token{}, false
	}
	w := c.words[i]
	known := slices.ContainsFunc(s.evidence, func(p *piece) bool { return spokenIn([]token{w}, p.words) })
	if known && !isName(w) || spokenIn(c.words[i:i+1], b.words) || spokenIn(b.words[j:j+1], c.words) {
		return token{}, false
	}
	return w, true
}

// exampleIn is the word behind "such as", "for example" or "for instance"; -1: none.
func exampleIn(p *piece) int {
	for i := 1; i+1 < len(p.words); i++ {
		pair := p.words[i-1].lower + " " + p.words[i].lower
		if pair == "such as" || pair == "for example" || pair == "for instance" {
			return contentBeside(p, i+1, 1)
		}
	}
	return -1
}
