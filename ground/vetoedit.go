package ground

import (
	"fmt"
	"slices"
	"strings"
)

// changed says what a claim that is nearly word for word a sentence of the source has
// changed in it: a name, a denial, or a word for its opposite. Empty: nothing, or it has
// words of its own.
func (s *comparison) changed(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) < 3 || untrue.MatchString(b.text) {
		return ""
	}
	pairs := align(c.words, b.words)
	if ratio(len(pairs), len(c.words)) < nearlyVerbatim {
		return ""
	}
	from, to := [2]int{-1, -1}, [2]int{}
	for k := 0; k <= len(pairs); k++ {
		if to = [2]int{len(c.words), len(b.words)}; k < len(pairs) {
			to = pairs[k]
		}
		mine, theirs := c.words[from[0]+1:to[0]], b.words[from[1]+1:to[1]]
		if n := len(theirs); from[0] < 0 && len(mine) == 0 && n > 0 && outright[theirs[n-1].lower] && saysNothingOf(c) {
			return "the source denies it"
		}
		short := false // an abbreviation, or what one stands for
		for i := range mine {
			short = short || shortened(c, from[0]+1+i, b)
		}
		outer := from[0] < 0 || k == len(pairs)
		from = to
		if short || outer && len(mine) == 0 || len(theirs) > 6 && len(mine) > 0 && outer {
			continue
		}
		if reason := edited(mine, theirs, s); reason != "" {
			return reason
		}
	}
	return ""
}

// saysNothingOf reports whether a sentence denies nothing.
func saysNothingOf(c *piece) bool {
	return !slices.ContainsFunc(c.words, func(w token) bool { return outright[w.lower] || strings.HasSuffix(w.lower, "n't") })
}

// edited says what is changed where a claim has some words and its source others.
func edited(mine, theirs []token, s *comparison) string {
	const short = 6
	mine, theirs = bare(mine), bare(theirs)
	count := func(words []token) int {
		n := 0
		for _, w := range words {
			if denial(w) || w.lower == "without" {
				n++
			}
		}
		return n
	}
	if n, m := count(mine), count(theirs); len(theirs) <= short && (n+m)%2 != 0 {
		return "one denies and the other does not"
	}
	if n, m := side(mine), side(theirs); n*m < 0 {
		return "it bounds on the other side"
	}
	for _, w := range mine {
		for _, o := range theirs {
			if turnedPairs[w.lower][o.lower] {
				return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
			}
		}
	}
	if len(mine) == 0 || len(mine) > 4 || len(theirs) == 0 || len(theirs) > short {
		return ""
	}
	isNumber := func(w token) bool { return w.kind == number }
	if i := slices.IndexFunc(mine, isNumber); i >= 0 && slices.ContainsFunc(theirs, isNumber) && !slices.ContainsFunc(theirs, func(o token) bool { return o.stem == mine[i].stem }) {
		return fmt.Sprintf("%q stands for %q", mine[i].raw, theirs[slices.IndexFunc(theirs, isNumber)].raw)
	}
	if len(mine) == 1 && len(theirs) == 1 && measures[mine[0].lower].dim != "" && measures[theirs[0].lower].dim != "" && measures[mine[0].lower] != measures[theirs[0].lower] {
		return fmt.Sprintf("%q stands for %q", mine[0].raw, theirs[0].raw)
	}
	isName := func(w token) bool { return w.kind == name || s.named(w, true) || shouted(w.raw) }
	if i := slices.IndexFunc(mine, isName); i >= 0 && slices.ContainsFunc(theirs, isName) &&
		!slices.ContainsFunc(theirs, func(o token) bool { return s.alikeHere(mine[i], o) }) {
		return fmt.Sprintf("%q stands for %q", mine[i].raw, theirs[0].raw)
	}
	return ""
}

// bare leaves out the articles of some words.
func bare(words []token) []token {
	return slices.DeleteFunc(slices.Clone(words), func(w token) bool { return w.lower == "a" || w.lower == "an" || w.lower == "the" })
}

// shouted reports whether a word is written in capitals alone: a value, as ON.
func shouted(raw string) bool {
	return len(raw) > 1 && strings.Trim(raw, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// alikeHere reports whether two words name the same in what is cited: not where one only
// begins as the other and that has both.
func (s *comparison) alikeHere(w, o token) bool {
	if w.stem == o.stem || !namesAlike(w, o) {
		return w.stem == o.stem
	}
	return !slices.ContainsFunc(s.evidence, func(p *piece) bool { return p.has(w.lower) })
}

// side is above 0 where words bound something from below, and below 0 where from above.
func side(words []token) int {
	n := 0
	for _, w := range words {
		switch w.lower {
		case "least", "more", "over", "above", "from":
			n++
		case "most", "up", "less", "fewer", "under", "below":
			n--
		}
	}
	return n
}
