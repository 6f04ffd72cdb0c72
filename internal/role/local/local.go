// Package local implements the roles without a language model: deterministic, free and
// offline. A small learned model, an [llm.Reader], reads a question and a passage together.
// It gives the probability that the passage answers the question, and the spans that do.
//
// Grader and the other roles that judge use this probability. Generator quotes the best
// answer with its context: the whole list, an entry with its term, a row with the heads of
// its columns, a section that the question names by its heading. Planner and Rewriter know a
// little grammar. If there is no reader, or it does not know the language of the passages,
// the roles compare the words of question and passage instead.
//
// The roles are the default if no language model is configured, and the fallback if one is
// down.
package local

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lexical"
)

// A question is a question with its weighted content words.
type question struct {
	text  string
	terms []assay.Term
}

// read returns a question with its content words. Terms are those of a search for the
// question, with their weights. If they are nil, all content words have the same weight.
func read(text string, terms []assay.Term) question {
	q := question{text: text}
	if terms == nil {
		for _, t := range analysis.Tokens(text, "") {
			if !t.Part && !slices.ContainsFunc(terms, func(o assay.Term) bool { return o.Stem == t.Term }) {
				terms = append(terms, assay.Term{Text: text[t.Start:t.End], Stem: t.Term, Weight: 0.5})
			}
		}
	}
	asking := lexical.Asking(text)
	for _, t := range terms {
		if word := strings.ToLower(t.Text); !lexical.Function(word) && !asking[word] {
			q.terms = append(q.terms, t)
		}
	}
	return q
}

// holds reports whether a term is among stems, in any of its forms.
func holds(held map[string]bool, t assay.Term) bool {
	return held[t.Stem] || slices.ContainsFunc(t.Forms, func(form string) bool { return held[form] })
}

// coverage returns the share of the question's weight whose terms are held, in [0, 1]. It is 0
// for a question without content words.
func (q question) coverage(held map[string]bool) float64 {
	sum, all := 0.0, 0.0
	for _, t := range q.terms {
		all += t.Weight
		if holds(held, t) {
			sum += t.Weight
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// missing lists the question's words that are not held.
func (q question) missing(held map[string]bool) []string {
	out := []string{}
	for _, t := range q.terms {
		if !holds(held, t) {
			out = append(out, t.Text)
		}
	}
	return out
}

// stems returns the terms that texts hold in their language, and as English: names are
// compared in English.
func stems(language string, texts ...string) map[string]bool {
	held := map[string]bool{}
	for _, text := range texts {
		for _, in := range slices.Compact([]string{"", strings.TrimPrefix(language, "en")}) {
			for _, t := range analysis.Tokens(text, in) {
				held[t.Term] = true
			}
		}
	}
	return held
}

// around returns the headings, title and text of a hit.
func around(h assay.Hit) []string {
	return append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)
}

// contentWords returns the words of a text without function words and the words after "how",
// as in "how long".
func contentWords(text string) []string {
	asking := lexical.Asking(text)
	return slices.DeleteFunc(lexical.Words(text), func(w string) bool {
		w = strings.ToLower(w)
		return lexical.Function(w) || asking[w]
	})
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
