package ground

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bounding are words behind a denial that make it say something else: "not before", "no
// more than", "not only".
var bounding = wordSet(`more less fewer longer later earlier older younger larger shorter higher lower over under above below beyond before after until till exceed exceeds
	exceeding else other than unless without except`)

// partial are words right behind a denial that leave a part of what it denies: "not all".
var partial = wordSet("yet only even any all every always just merely matter doubt least necessarily both many much often entirely fully completely quite each everybody everyone")

// denialsIn are the words of a clause that deny what it says, by index: where what they deny
// is no bound.
func denialsIn(p *piece, c stretch) []int {
	var out []int
	for i := c.from; i < c.to; i++ {
		if !deniesAt(p, i) || p.words[i].lower == "nor" && len(out) > 0 {
			continue
		}
		if !bounds(p.words[i+1 : c.to]) {
			out = append(out, i)
		}
	}
	return out
}

// bounds reports whether the words behind a denial make a bound of it, or take it back.
func bounds(behind []token) bool {
	const reach, content = 6, 2 // words in which it is bounded; and with content, in which it is taken back
	n := 0
	for i, w := range behind[:min(reach, len(behind))] {
		if bounding[w.lower] || n < content && saysStrongly(w) || i == 0 && partial[w.lower] {
			return true
		}
		n += int(oneIf(w.kind != small))
	}
	return false
}

// deniesAt reports whether the word at i denies, and is neither part of a title nor the "No."
// of a number.
func deniesAt(p *piece, i int) bool {
	w := p.words[i]
	if !outright[w.lower] && !strings.HasSuffix(w.lower, "n't") {
		return false
	}
	r, _ := utf8.DecodeRuneInString(w.raw)
	return (i == 0 || !unicode.IsUpper(r)) && !(w.lower == "no" && numberFollows(p, i))
}

// numberFollows reports whether the word at i is the "No." of a number.
func numberFollows(p *piece, i int) bool {
	return i+1 < len(p.words) && p.words[i+1].kind == number && strings.HasPrefix(p.text[p.words[i].end:], ".")
}

// headsOf are the words that the denial at i denies: the content word behind it in its
// clause, or where there is none that before it.
func headOf(p *piece, c stretch, i int) (token, bool) {
	for _, w := range p.words[i+1 : c.to] {
		if w.kind != small && !strings.HasSuffix(w.lower, "ly") {
			return w, true
		}
	}
	for k := i - 1; k >= c.from; k-- {
		if w := p.words[k]; w.kind != small {
			return w, true
		}
	}
	return token{}, false
}

// denied says that one of a claim and the sentence that says it denies what the other does
// not; empty: they deny the same, or may do so in other words.
func (s *comparison) denied(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOfPlain(part, b) < leastSure {
		return ""
	}
	if s.reckoned(part, c) || untrue.MatchString(b.text) || inquires.MatchString(b.text) {
		return "" // those who did not finish are what is left of those who started
	}
	mine, theirs := clausesOf(c), clausesOf(b)
	if n := outrightIn(c); n > 0 && n%2 == 0 && outrightIn(b) == 0 {
		return "" // who has none cannot: who has one can
	}
	if permitted(c, mine, b, theirs) {
		return "one allows what the other forbids"
	}
	if w := headDenied(c, mine, b, theirs); w != "" && !s.deniedNext(part) {
		return fmt.Sprintf("it denies %q, which the source does not", w)
	}
	if w := headDenied(b, theirs, c, mine); w != "" {
		return fmt.Sprintf("the source denies %q, which it does not", w)
	}
	return s.deniedClause(part, c, mine, b, theirs)
}

// permitted reports whether of a claim and its source, in clauses with the same words, one
// says that something may be and the other that it may not.
func permitted(c *piece, mine []stretch, b *piece, theirs []stretch) bool {
	for _, m := range mine {
		a := allows(c, m)
		if a == 0 {
			continue
		}
		t, ok := likest(c, m, b, theirs)
		if ok && allows(b, t)*a < 0 && ratio(inBoth(c, m, b, t), contentIn(c, m)) >= sureOfName {
			return true
		}
	}
	return false
}

var (
	allowing   = wordSet("may can allowed permitted possible accepted allows permits")
	forbidding = wordSet("forbidden prohibited banned cannot impossible forbids prohibits can't")
	qualifying = wordSet("only unless except without if when whenever until before after than but still always other others more less all every")
)

// allows is above 0 where a clause says that something may be, below where that it may not,
// and 0 where it says neither, or with a condition.
func allows(p *piece, c stretch) int {
	found, sign := false, 1
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		switch {
		case qualifying[w.lower]:
			return 0
		case forbidding[w.lower]:
			found, sign = true, -sign
		case deniesAt(p, i):
			sign = -sign
		case allowing[w.lower]:
			found = true
		}
	}
	if !found || bounded(p, c) {
		return 0
	}
	return sign
}

// outrightIn counts the words of a sentence that deny.
func outrightIn(p *piece) int {
	n := 0
	for i := range p.words {
		n += int(oneIf(deniesAt(p, i) && p.words[i].lower != "nor"))
	}
	return n
}

// reckoned reports whether a number of a claim follows from others.
func (s *comparison) reckoned(part int, c *piece) bool {
	theirs := quantities(s.near[part][0].text)
	return slices.ContainsFunc(quantities(c.text), func(q quantity) bool {
		return !q.weak && !q.trivial() && !slices.ContainsFunc(theirs, q.same) && derived(c.text, q, [][]quantity{theirs})
	})
}

// headDenied is what one sentence denies, and nothing more, and the other says without a
// denial in the same clause.
func headDenied(p *piece, mine []stretch, other *piece, theirs []stretch) string {
	for _, c := range mine {
		list := denialsIn(p, c)
		if len(list) != 1 || ratio(sharedIn(p, c, other), contentIn(p, c)) < leastSure {
			continue
		}
		h, ok := headOf(p, c, list[0])
		if !ok || h.kind == name && p.words[list[0]].lower != "not" && p.words[list[0]].lower != "without" {
			continue // "neither Tesla nor Edison won": it is winning that is denied
		}
		found, free := false, p.words[list[0]].lower == "without" && excusesHead(other, stretch{0, len(other.words)}, p)
		for j, w := range other.words {
			if sameWord(w, h) {
				found = true
				free = free || excusesHead(other, clauseAt(theirs, j), p)
			}
		}
		if found && !free {
			return h.raw
		}
	}
	return ""
}

// deniedClause compares clauses that share most of their words, whatever is denied in them.
func (s *comparison) deniedClause(part int, c *piece, mine []stretch, b *piece, theirs []stretch) string {
	for _, m := range mine {
		list := denialsIn(c, m)
		if len(list) != 1 {
			continue
		}
		h, ok := headOf(c, m, list[0])
		if slices.ContainsFunc(c.words[list[0]:min(m.to, list[0]+2)], func(w token) bool { return obliging[w.lower] }) && !slices.ContainsFunc(theirs, func(t stretch) bool { return excusesNeed(b, t) }) {
			return "the source demands what it does not"
		}
		if ok && slices.ContainsFunc(b.words, func(w token) bool { return sameWord(w, h) }) || bounded(c, m) || c.words[list[0]].lower == "without" {
			continue // headDenied has seen it, or it is a condition
		}
		most := 0
		for _, t := range theirs {
			most = max(most, inBoth(c, m, b, t))
		}
		free := slices.ContainsFunc(theirs, func(t stretch) bool {
			n := 2 * inBoth(c, m, b, t)
			return n > most && excuses(b, t, c) || n == most && excusesHead(b, t, c) || deniesPlainly(b, t)
		})
		if !free && !s.deniedNext(part) {
			return "it denies what the source does not"
		}
	}
	if slices.ContainsFunc(mine, func(m stretch) bool { return excuses(c, m, b) }) {
		return ""
	}
	for _, t := range theirs {
		hard := len(denialsIn(b, t))
		soft := slices.ContainsFunc(b.words[t.from:t.to], func(w token) bool { return softly[w.lower] && c.stems[w.stem] == 0 })
		whole := stretch{0, len(c.words)}
		n := inBoth(c, whole, b, t)
		if bounded(b, t) {
			continue
		}
		if (hard == 1 || hard == 0 && soft) && ratio(n, contentIn(c, whole)) >= nearlyAll {
			return "the source denies what it does not"
		}
	}
	return ""
}

// deniesPlainly reports whether a clause denies something that is no name or number: "not in
// Frankfurt" does not say in other words what a claim denies.
func deniesPlainly(p *piece, c stretch) bool {
	return slices.ContainsFunc(denialsIn(p, c), func(i int) bool {
		h, ok := headOf(p, c, i)
		return !ok || h.kind == plain
	})
}

// nearlyAll is the share of a claim's words that a clause of its source has when it is that
// which says it.
const nearlyAll = 0.7

// deniedNext reports whether another of the nearest sentences denies outright, and has some
// of the claim's words.
func (s *comparison) deniedNext(part int) bool {
	for i, p := range s.near[part][:min(nearest4, len(s.near[part]))] {
		least := sureOfName / 2
		if i > 1 {
			least = leastSure
		}
		if i > 0 && deniesOutright.MatchString(p.text) && s.shareOfPlain(part, p) >= least {
			return true
		}
	}
	return false
}

// inquires matches a sentence that says what is to be found out.
var inquires = regexp.MustCompile(`(?i)\b(?:whether|aim(?:s|ed)?|objectives?|purpose|goal|(?:to|we) (?:evaluate|examine|assess|determine|investigate|explore|identify|test|study|analyse|analyze|compare)d?)\b|\?\s*$`)
