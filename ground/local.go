package ground

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// Local is the verifier that needs no model. It reads surfaces: a claim is supported
// when the cited words contain it as whole sentences, or when one sentence of them (or
// an item with what announces it, or a line of a table) holds all its content words
// and numbers in the same order, marked alike: as denied, allowed or demanded, as a
// bound, as always or only or some, and by the prepositions. What a claim leaves out
// must take nothing back. It is contradicted when seven in ten of the words are in the
// source but a number or a negation is not. Everything else is unsupported.
//
// It takes for the same: "five" and 5, spellings of units and dates, a place, time or
// condition put first or last, passive and active where the doer is named, "you must do
// X" and "X must be done", a pronoun and the subject of the sentence before or the
// heading, two sentences in a row about one subject that the claim joins, a row of a
// table whose cells stand in such sentences, and a sentence that says of a table's row
// nothing but what its cells and their heads are. A lead-in as "Yes," or "According to the
// policy," counts as nothing.
//
// It refuses every paraphrase in other words. It knows English: in other languages
// nearly only what is written in the same words in the same order. It does not see a
// change of tense by an ending, or what a sentence means only beside another one.
type Local struct{}

// minContradiction is the share of a claim's words from which on a differing number or
// negation is a contradiction rather than another topic.
const minContradiction = 0.7

// Verify implements Verifier. It returns an error only when ctx has ended.
func (Local) Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error) {
	if err := ctx.Err(); err != nil {
		return Judgement{}, err
	}
	best := Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
	for i, p := range cited {
		j := judge(claim, p)
		if j.Verdict != assay.Supported {
			if said, ok := judgeTableClaim(claim, p, i); ok {
				j = said
			}
		}
		if i == 0 || better(j, best) {
			best = j
		}
	}
	return best, nil
}

// better orders judgements of one claim against several passages: one that
// supports it decides, then one that contradicts it.
func better(a, b Judgement) bool {
	rank := map[assay.Verdict]int{assay.Supported: 2, assay.Contradicted: 1, assay.Unsupported: 0}
	if rank[a.Verdict] != rank[b.Verdict] {
		return rank[a.Verdict] > rank[b.Verdict]
	}
	return a.Score > b.Score
}

func judge(claim string, p Passage) Judgement {
	if says(p.Quote, claim) {
		return Judgement{Verdict: assay.Supported, Score: 1, Reason: "the source says it in these words"}
	}
	topic := topicOf(p.Heading)
	bare, answer := withoutLeadIn(claim, topic)
	r := read(bare)
	if !checkable(r.terms) {
		return Judgement{Verdict: assay.Unsupported, Reason: "holds no checkable word"}
	}
	sources := slices.DeleteFunc(sourcesOf(p), func(s source) bool { return deniedTogether(s.text, r.terms) })
	denies := marked(r.terms, isNot)
	cells := cellsOf(bare)
	switch {
	case answer == yes && denies || answer == no && !denies:
		return Judgement{Verdict: assay.Unsupported, Score: 0.2, Reason: "whether it is yes or no cannot be told"}
	case len(r.terms) > maxTerms:
		return Judgement{Verdict: assay.Unsupported, Score: 0.2, Reason: "is too long to be compared"}
	case slices.ContainsFunc(sources, func(s source) bool { return s.says(r, topic) }):
		return Judgement{Verdict: assay.Supported, Score: 0.95, Reason: "a sentence of the source says it in the same words"}
	case cells != nil && rowHolds(cells, sources, topic):
		return Judgement{Verdict: assay.Supported, Score: 0.9, Reason: "its cells stand together in the source"}
	case joined(r, sources, topic):
		return Judgement{Verdict: assay.Supported, Score: 0.9, Reason: "sentences of the source say its parts in the same words"}
	}
	return refused(claim, r, sources, p)
}

// checkable reports whether there is a content word among the terms.
func checkable(terms []term) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.stem != "" })
}

// refused says what is wrong with a claim that no source says.
func refused(claim string, r reading, sources []source, p Passage) Judgement {
	around := p.Quote + "\n" + strings.Join(p.Heading, "\n")
	want, held := termSet(claim), termSet(around)
	n := 0
	for t := range want {
		if held[t] {
			n++
		}
	}
	coverage := float64(n) / float64(max(len(want), 1))
	if coverage < minContradiction {
		return Judgement{Verdict: assay.Unsupported, Score: coverage / 2, Reason: fmt.Sprintf("%.0f%% of its words are in the source", 100*coverage)}
	}
	if number, ok := missing(surface.Numbers(claim), surface.Numbers(around)); !ok {
		if len(surface.Numbers(p.Quote)) > 0 {
			return Judgement{Verdict: assay.Contradicted, Score: 0, Reason: fmt.Sprintf("the source has another number than %s", number)}
		}
		return Judgement{Verdict: assay.Unsupported, Score: coverage / 2, Reason: fmt.Sprintf("the number %s is not in the source", number)}
	}
	if surface.Negations(claim)%2 != surface.Negations(p.Quote)%2 {
		return Judgement{Verdict: assay.Contradicted, Score: 0, Reason: "one negates and the other does not"}
	}
	return Judgement{Verdict: assay.Unsupported, Score: coverage / 2, Reason: unlike(r.terms, sources)}
}

// says reports whether quote contains claim as one or more whole sentences. A
// part of a sentence does not count: "it is wrong that water boils" contains
// "water boils" and does not say it.
func says(quote, claim string) bool {
	start, end, ok := contains(quote, claim)
	if !ok {
		return false
	}
	if strings.TrimSpace(quote[:start]) == "" && strings.TrimSpace(quote[end:]) == "" {
		return true
	}
	starts, ends := strings.TrimSpace(quote[:start]) == "", false
	for _, sp := range sentence.Spans(quote) {
		starts = starts || sp.Start == start
		ends = ends || sp.End == end
	}
	return starts && ends || wholeLines(quote, start, end)
}

// wholeLines reports whether [start, end) are whole lines of text: code and
// table rows have no sentences.
func wholeLines(text string, start, end int) bool {
	before := text[strings.LastIndexByte(text[:start], '\n')+1 : start]
	after, _, _ := strings.Cut(text[end:], "\n")
	return strings.Contains(text[start:end], "\n") && strings.TrimSpace(before) == "" && strings.TrimSpace(after) == ""
}

// missing returns the first of want that have lacks; ok when there is none.
func missing(want, have []string) (first string, ok bool) {
	held := make(map[string]bool, len(have))
	for _, h := range have {
		held[h] = true
	}
	for _, w := range want {
		if !held[w] {
			return w, false
		}
	}
	return "", true
}

// termSet returns the content terms of a text, compounds and their parts.
func termSet(text string) map[string]bool {
	terms := map[string]bool{}
	for _, t := range analysis.Tokens(text, "") {
		if !surface.Function(strings.ToLower(text[t.Start:t.End])) {
			terms[t.Term] = true
		}
	}
	return terms
}
