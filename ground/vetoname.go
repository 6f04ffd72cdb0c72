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
		if !s.named(w, i == 0) || shortened(c, i, b) || slices.ContainsFunc(known, func(o token) bool { return namesAlike(w, o) }) {
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
	if a.stem == b.stem || strings.EqualFold(strings.ReplaceAll(a.raw, ".", ""), strings.ReplaceAll(b.raw, ".", "")) { // "U.S."
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

// shortened reports whether word i of one sentence is a part of what an abbreviation of
// another stands for, or is an abbreviation of words of that: by first letters.
func shortened(a *piece, i int, b *piece) bool {
	if short := strings.TrimSuffix(a.words[i].raw, "s"); capitals(short) {
		for j := range b.words {
			if _, ok := spelt(b.words[j:], short); ok {
				return true
			}
		}
	}
	for _, w := range b.words {
		short := strings.TrimSuffix(w.raw, "s")
		for from := max(0, i-longestName); capitals(short) && from <= i; from++ {
			if n, ok := spelt(a.words[from:], short); ok && from+n > i {
				return true
			}
		}
	}
	return false
}

const longestName = 8 // words

// capitals reports whether a word is two capitals or more.
func capitals(word string) bool {
	return len(word) >= 2 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// spelt reports whether some words begin with those whose first letters are an abbreviation,
// small words aside; n is how many there are.
func spelt(words []token, short string) (n int, ok bool) {
	at := 0
	for i, w := range words[:min(longestName, len(words))] {
		switch {
		case strings.EqualFold(w.raw[:1], short[at:at+1]):
			if at++; at == len(short) {
				return i + 1, i > 0
			}
		case i == 0 || w.kind != small:
			return 0, false
		}
	}
	return 0, false
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
usa american america americans us u.s united
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

// otherName says which name of a claim is not the source's, or that nothing of the claim is;
// empty: none.
func (s *comparison) otherName(part int, c *piece) string {
	if s.unheard(part, c) {
		return "nothing that is cited speaks of it"
	}
	if reason := s.otherInPlace(part, c); reason != "" {
		return reason
	}
	if n := s.foreignName(part, c); n != "" {
		return fmt.Sprintf("what says the rest names another than %s", n)
	}
	if r, n := s.otherRole(c); n != "" {
		return fmt.Sprintf("the source's %q is not %s", r, n)
	}
	return ""
}

// unheard reports whether what is cited speaks of something else: hardly a word of the claim
// has one like it there, and the nearest sentences are unlike it as wholes.
func (s *comparison) unheard(part int, c *piece) bool {
	b := s.bestOf(part)
	if b == nil || !s.encoded || c.mean == nil {
		return false
	}
	held, of := 0, 0
	for _, m := range s.words {
		if m.part == part && m.kind != small {
			of++
			held += int(oneIf(m.near || m.spelt > 0 || m.cosine >= alikeWord))
		}
	}
	likeness := 0.0
	for _, p := range s.near[part][:min(nearest4, len(s.near[part]))] {
		likeness = max(likeness, cosine(c.mean, p.mean))
	}
	share := ratio(held, of)
	return of > 1 && share <= hardlyHeld && likeness < unlikeSentence || share <= fewHeld && likeness < otherSentence
}

// The bounds of what is about something else, for the sentences of gte-small: of 513 right
// statements in other words one lies within them, in another language than its source, and
// 25 of 36 that cite another passage and that nothing else is seen of.
const (
	hardlyHeld     = 0.3 // share of words
	fewHeld        = 0.45
	unlikeSentence = 0.84 // cosine
	otherSentence  = 0.8
)

// otherRole says which name a claim gives somebody whom the source calls by another: the
// mayor, Erik Dahl, of "Mayor Liv Sandberg". Empty: none.
func (s *comparison) otherRole(c *piece) (role, who string) {
	for i, w := range c.words {
		k := roleBeside(c, i)
		if k < 0 || !isName(w) || calendar[w.lower] {
			continue
		}
		stem := c.words[k].stem
		rival, same := false, false
		for _, p := range s.evidence {
			for j, o := range p.words {
				if !isName(o) || calendar[o.lower] {
					continue
				}
				if r := roleBeside(p, j); r >= 0 && p.words[r].stem == stem {
					f, t := nameAround(p, j)
					same = same || spokenIn(p.words[f:t], c.words)
					rival = true
				}
			}
		}
		if rival && !same {
			return c.words[k].raw, w.raw
		}
	}
	return "", ""
}

// roleBeside is the word that says what the one is whom word i, the first of a name, names:
// "the mayor, Erik Dahl", "mayor Erik Dahl". -1: none.
func roleBeside(p *piece, i int) int {
	if from, _ := nameAround(p, i); from != i || i == 0 {
		return -1
	}
	if w := p.words[i-1]; w.kind == plain && beside1(p, i-1) && !verbal(w) && !strings.HasSuffix(w.lower, "ing") {
		return i - 1
	}
	return -1
}

// beside1 reports whether a blank, or a comma, stands between word k and the next.
func beside1(p *piece, k int) bool {
	gap := p.text[p.words[k].end:p.words[k+1].start]
	return gap == " " || gap == ", "
}
