package ground

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreignName returns a name of a claim's sentence that the sentence nearest to it does not
// have, while that has another name, of which the claim knows nothing, in its place. What a
// heading names, or the sentences before, where it points back at them, is no such name.
func (s *comparison) foreignName(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOfPlain(part, b) < sureOfName {
		return ""
	}
	known := s.spokenOf(b)
	rivals := slices.ContainsFunc(b.words, func(w token) bool {
		return w.kind == name && !slices.ContainsFunc(c.words, func(o token) bool { return namesAlike(w, o) })
	})
	if !rivals {
		return ""
	}
	for i, w := range c.words {
		if !s.named(w, i == 0) || slices.ContainsFunc(known, func(o token) bool { return namesAlike(w, o) }) {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(w.raw); unicode.IsDigit(r) || s.elsewhere(part, b, func(p *piece) bool {
			return slices.ContainsFunc(p.words, func(o token) bool { return namesAlike(w, o) })
		}) {
			continue
		}
		if _, unit := measures[w.lower]; unit || calendar[w.lower] || len(w.raw) < 2 || roman(w.raw) {
			continue
		}
		return w.raw
	}
	return ""
}

// sureOfName is the share of a claim's words, names and numbers aside, that the nearest
// sentence has to have before a name is missed in it.
const sureOfName = 0.5

// elsewhere reports whether another sentence has something with other words of the claim
// that the nearest one lacks: then both say it together.
func (s *comparison) elsewhere(part int, b *piece, has func(*piece) bool) bool {
	return slices.ContainsFunc(s.evidence, func(p *piece) bool {
		if p == b || !has(p) {
			return false
		}
		more := map[string]bool{}
		for _, w := range s.claim[part].words {
			if w.kind == plain && p.stems[w.stem] > 0 && b.stems[w.stem] == 0 {
				more[w.stem] = true
			}
		}
		return len(more) >= moreWords
	})
}

// moreWords is how many of a claim's words another sentence has to add.
const moreWords = 2

// calendar are names that quantities take care of.
var calendar = wordSet("january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday mondays sundays thursdays tuesdays")

// named reports whether a word is a name: by its form, or, at the beginning of a claim,
// because what is cited has it as one.
func (s *comparison) named(w token, first bool) bool {
	if w.kind == name {
		return true
	}
	r, _ := utf8.DecodeRuneInString(w.raw)
	return first && w.kind == plain && unicode.IsUpper(r) && slices.ContainsFunc(s.evidence, func(p *piece) bool {
		return slices.ContainsFunc(p.words, func(o token) bool { return o.kind == name && o.lower == w.lower })
	})
}

// spokenOf are the words of a sentence, of the headings, and of the two sentences before it
// where it points back at what they name.
func (s *comparison) spokenOf(b *piece) []token {
	known := slices.Clone(b.words)
	at := slices.Index(s.evidence, b)
	for i, p := range s.evidence {
		switch {
		case p.passage < 0:
			known = append(known, p.words...)
		case i < at && (i >= at-2 || i == s.firstOf(b)) && p.passage == b.passage && pointsBack(b):
			known = append(known, p.words...)
		}
	}
	return known
}

// firstOf is the index of the first sentence of the passage that a sentence stands in: what
// it names the whole passage may speak of.
func (s *comparison) firstOf(b *piece) int {
	return slices.IndexFunc(s.evidence, func(p *piece) bool { return p.passage == b.passage })
}

// pointsBack reports whether a sentence has a pronoun that may stand for a name before it.
func pointsBack(p *piece) bool {
	return slices.ContainsFunc(p.words, func(w token) bool { return backward[w.lower] })
}

var backward = wordSet("he she it they his her its their him them this these that those such there former latter who")

// namesAlike reports whether two words may name the same: by their stems, by how they
// begin, as "Norwegians" and "Norway", or by their letters.
func namesAlike(a, b token) bool {
	if a.stem == b.stem || strings.EqualFold(a.raw, b.raw) {
		return true
	}
	if i, j := strings.LastIndexByte(a.raw, '.'), strings.LastIndexByte(b.raw, '.'); i > 0 || j > 0 { // "WaitGroup.Go"
		return a.raw[i+1:] == b.raw[j+1:]
	}
	x, y := a.lower, b.lower
	if peoples[x] != "" && peoples[x] == peoples[y] {
		return true
	}
	if short, long := strings.TrimSuffix(a.raw, "s"), b.raw; acronym(short) && strings.Contains(long, short) {
		return true
	}
	if short, long := strings.TrimSuffix(b.raw, "s"), a.raw; acronym(short) && strings.Contains(long, short) {
		return true
	}
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	const least = 4 // letters
	return n >= least && 2*n >= min(len(x), len(y)) && !mixed(a.raw) && !mixed(b.raw)
}

// peoples are countries and who or what is of them, where one does not begin as the other.
var peoples = func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(`netherlands dutch holland dutchman
france french frenchman frenchmen
spain spanish spaniard spaniards
switzerland swiss
denmark danish dane danes
poland polish pole poles
greece greek greeks
wales welsh
britain british uk
turkey turkish turk turks
ireland irish
sweden swedish swede swedes
finland finnish finn finns
china chinese
iraq iraqi
usa american america americans us
`) {
		words := strings.Fields(line)
		for _, w := range words {
			m[w] = words[0]
		}
	}
	return m
}()

// roman reports whether a word is a number from II to XXXIX in Roman letters.
func roman(word string) bool { return len(word) >= 2 && strings.Trim(word, "IVX") == "" }

// acronym reports whether a word is three capitals or more.
func acronym(word string) bool {
	return len(word) >= 3 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// otherName says which name of a claim is not the source's; empty: none.
func (s *comparison) otherName(part int, c *piece) string {
	if reason := s.otherInPlace(part, c); reason != "" {
		return reason
	}
	if n := s.foreignName(part, c); n != "" {
		return fmt.Sprintf("what says the rest names another than %s", n)
	}
	return ""
}
