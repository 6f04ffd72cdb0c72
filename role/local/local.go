// Package local does the roles without a language model: deterministic, free and
// offline. It works on the surface of words, in English best: it recognises what
// shares words with the question, not what says the same in others.
//
// Planner splits by grammar, Grader judges relevance and coverage, Generator
// picks sentences. They are the default where no model is configured and the
// fallback where one is down.
package local

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/surface"
)

// A question is what the local roles see of one: its content words, weighted,
// and what it names.
type question struct {
	text  string
	whole string       // the question that this one is a part of
	terms []assay.Term // content terms, without function words, each once
	names []string     // names, identifiers and numbers in digits, as they stand
}

// read reads a question. The terms are those of a search for it, which carry
// the weights; without them every content word weighs the same.
func read(text string, terms []assay.Term) question {
	text = citationMark.ReplaceAllString(text, " ")
	q := question{text: text, whole: text}
	if terms == nil {
		seen := map[string]bool{}
		for _, t := range analysis.Tokens(text, "") {
			if word := text[t.Start:t.End]; !seen[t.Term] {
				seen[t.Term] = true
				terms = append(terms, assay.Term{Text: word, Stem: t.Term, Weight: 0.5})
			}
		}
	}
	asking, own, words := surface.Asking(text), stems("", text), wordsOf(text)
	for _, t := range terms {
		if !own[t.Stem] && !words[t.Text] {
			continue // of a citation
		}
		if word := strings.ToLower(t.Text); !surface.Function(word) && !asking[word] {
			q.terms = append(q.terms, t)
		}
	}
	q.names = surface.Names(surface.Quiet(text))
	for _, w := range surface.Words(text) {
		if digits := surface.Numbers(w); len(digits) > 0 && w[0] >= '0' && w[0] <= '9' {
			q.names = append(q.names, w)
		}
	}
	return q
}

// citationMark matches the brackets of a citation, which a pasted question may
// bring along.
var citationMark = regexp.MustCompile(`\[\d+\]`)

// weight is the sum of the weights of the question's terms.
func (q question) weight() float64 {
	sum := 0.0
	for _, t := range q.terms {
		sum += t.Weight
	}
	return sum
}

// holds reports whether the question has a term with this stem.
func (q question) holds(stem string) bool {
	return slices.ContainsFunc(q.terms, func(t assay.Term) bool { return t.Stem == stem || slices.Contains(t.Forms, stem) })
}

// holdsTerm reports whether a term is held, in any of its forms.
func holdsTerm(held map[string]bool, t assay.Term) bool {
	return held[t.Stem] || slices.ContainsFunc(t.Forms, func(form string) bool { return held[form] })
}

// speaksOf reports whether what is held speaks of something that the question
// names: it has the name's words as they stand, or each as a term of the question
// in the form of its language.
func (q question) speaksOf(held map[string]bool, name string) bool {
	if holdsName(held, name) {
		return true
	}
	words := wordsOf(name)
	for _, t := range q.terms {
		if words[t.Text] && holdsTerm(held, t) {
			delete(words, t.Text)
		}
	}
	return len(words) == 0
}

// coverage is the share of the question's weight whose terms held has, in
// [0, 1]; 0 for a question without content words.
func (q question) coverage(held map[string]bool) float64 {
	sum, all := 0.0, q.weight()
	for _, t := range q.terms {
		if holdsTerm(held, t) {
			sum += t.Weight
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// stems returns the terms that the texts hold in their language, compounds and
// parts. Names are compared in English: what the texts hold as English is there
// as well.
func stems(language string, texts ...string) map[string]bool {
	held := map[string]bool{}
	for _, text := range texts {
		for _, t := range analysis.Tokens(text, "") {
			held[t.Term] = true
		}
		if language == "" || language == "en" {
			continue
		}
		for _, t := range analysis.Tokens(text, language) {
			held[t.Term] = true
		}
	}
	return held
}

// wordsOf returns the words of a text as they stand there, without the parts of
// compounds.
func wordsOf(text string) map[string]bool {
	const anyLanguage = "und" // no stop words
	words := map[string]bool{}
	for _, t := range analysis.Tokens(text, anyLanguage) {
		if !t.Part {
			words[text[t.Start:t.End]] = true
		}
	}
	return words
}

// around returns what a hit is read with: its text, headings and title.
func around(h assay.Hit) []string {
	return append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)
}

// holdsName reports whether all words of a name are held.
func holdsName(held map[string]bool, name string) bool {
	whole, parts := true, 0
	for _, t := range analysis.Tokens(name, "") {
		switch {
		case !t.Part && !held[t.Term]:
			whole = false
		case t.Part && held[t.Term]:
			parts++
		case t.Part:
			return whole
		}
	}
	return whole || parts > 0
}
