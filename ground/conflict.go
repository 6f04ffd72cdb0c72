package ground

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// Two statements are about the same thing when they share minShared of each
// one's content words, numbers aside, and have minTerms of those or more.
const (
	minShared = 0.8
	minTerms  = 2
)

// Opposed reports whether two statements cannot both hold: their words are Contrary, and
// not of two subjects.
func Opposed(a, b string, about []string) bool {
	sa, sb := subject(a), subject(b)
	if sa != "" && sb != "" && (!plainTerms(b)[sa] || !plainTerms(a)[sb]) {
		return false
	}
	return Contrary(a, b, about)
}

// Contrary reports whether two statements say the same of the same names, but one number
// differs, or one negates and the other does not. about are the numbers that the question
// names: statements that differ in one of those, or in one that names something ("site
// 3"), are about different things.
//
// It is strict, and misses every contradiction in other words.
func Contrary(a, b string, about []string) bool {
	ta, tb := plainTerms(a), plainTerms(b)
	if len(ta) < minTerms || len(tb) < minTerms || share(ta, tb) < minShared || share(tb, ta) < minShared {
		return false
	}
	for _, name := range append(surface.Names(a), surface.Names(b)...) {
		if !covers(ta, name) || !covers(tb, name) {
			return false
		}
	}
	onlyA, onlyB := difference(surface.Numbers(a), surface.Numbers(b)), difference(surface.Numbers(b), surface.Numbers(a))
	negated := surface.Negations(a)%2 != surface.Negations(b)%2
	switch {
	case len(onlyA) == 0 && len(onlyB) == 0:
		return negated
	case len(onlyA) == 1 && len(onlyB) == 1:
		la, lb := labels(a), labels(b)
		if len(difference(la, lb))+len(difference(lb, la)) > 0 {
			return false
		}
		about = slices.Concat(about, la, lb)
		return !negated && !slices.Contains(about, onlyA[0]) && !slices.Contains(about, onlyB[0])
	}
	return false
}

// subject returns the term of the one word that a statement is about, by its place:
// "Beta is a battery"; empty: it is about something of more words.
func subject(text string) string {
	words := surface.Words(text)
	if len(words) < 2 || surface.Function(strings.ToLower(words[0])) || len(surface.Numbers(words[0])) > 0 || !surface.Function(strings.ToLower(words[1])) {
		return ""
	}
	for _, t := range analysis.Tokens(words[0], "") {
		return t.Term
	}
	return ""
}

// labels returns the numbers of a text that name something by their place: right
// behind a noun that begins the text, or that a preposition or an article stands before
// ("at site 3", "the room 12"; not "it costs 3 euros").
func labels(text string) []string {
	var out []string
	words := surface.Words(text)
	for i := 1; i < len(words); i++ {
		n := surface.Numbers(words[i])
		noun := !surface.Function(strings.ToLower(words[i-1])) && len(surface.Numbers(words[i-1])) == 0
		if len(n) == 1 && noun && (i == 1 || introduces[strings.ToLower(words[i-2])]) {
			out = append(out, n[0])
		}
	}
	return out
}

// introduces are the words that a noun follows.
var introduces = wordSet("the a an of in on at for from to by with and or per within this that each every")

// Opposing finds the first sentence of text that opposed, as Opposed to a claim, says is
// so. start == end when there is none.
func Opposing(text string, opposed func(sentence string) bool) (start, end int) {
	for _, sp := range sentence.Spans(text) {
		if opposed(text[sp.Start:sp.End]) {
			return sp.Start, sp.End
		}
	}
	return 0, 0
}

// plainTerms returns the content terms of a text without its numbers.
func plainTerms(text string) map[string]bool {
	terms := map[string]bool{}
	for _, t := range analysis.Tokens(text, "") {
		word := text[t.Start:t.End]
		digits := strings.IndexFunc(word, unicode.IsLetter) < 0
		if !digits && !surface.Function(strings.ToLower(word)) && len(surface.Numbers(word)) == 0 {
			terms[t.Term] = true
		}
	}
	return terms
}

// share returns the share of a's terms that b has.
func share(a, b map[string]bool) float64 {
	n := 0
	for t := range a {
		if b[t] {
			n++
		}
	}
	return float64(n) / float64(len(a))
}

// covers reports whether all terms of a name are held.
func covers(held map[string]bool, name string) bool {
	for _, t := range analysis.Tokens(name, "") {
		if !t.Part && !held[t.Term] {
			return coversParts(held, name)
		}
	}
	return true
}

// coversParts reports whether the words of a compound are all held, though the
// compound itself is not.
func coversParts(held map[string]bool, name string) bool {
	parts := 0
	for _, t := range analysis.Tokens(name, "") {
		if !t.Part {
			continue
		}
		if parts++; !held[t.Term] {
			return false
		}
	}
	return parts > 0
}

// difference returns what a has and b has not, each as often as it is more.
func difference(a, b []string) []string {
	left := map[string]int{}
	for _, x := range b {
		left[x]++
	}
	var out []string
	for _, x := range a {
		if left[x]--; left[x] < 0 {
			out = append(out, x)
		}
	}
	return out
}
