package ground

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// Local is the verifier that needs no model. It reads surfaces: a claim is
// supported when the cited words contain it as whole sentences, or when they
// hold nearly all of its content words, all of its numbers and names, and
// negate as often as it does. It is contradicted when the words are the same
// but a number or a negation is not. Everything else is unsupported.
//
// What it cannot do: recognise a paraphrase in other words (it says
// unsupported), or notice a change that keeps every word, number and name (roles
// swapped, a word replaced by a near one within the tolerance).
type Local struct{}

// minCoverage is the share of a claim's content words that the cited words must
// hold. Of the claims that it then calls supported, 89% are in SciFact's training
// set and 93% in WiCE's development set (at 0.8: 64% and 80%), and it calls few
// so: 8% and 11% of those that are. It does not see the small edits of SummEdits.
// minContradiction is the share from which on a differing number or negation is a
// contradiction rather than another topic.
const (
	minCoverage      = 0.9
	minContradiction = 0.7
)

// Verify implements Verifier. It returns an error only when ctx has ended.
func (Local) Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error) {
	if err := ctx.Err(); err != nil {
		return Judgement{}, err
	}
	best := Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
	for i, p := range cited {
		j := judge(claim, p)
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
	around := p.Quote + "\n" + strings.Join(p.Heading, "\n")
	want := termSet(claim)
	if len(want) == 0 {
		return Judgement{Verdict: assay.Unsupported, Reason: "holds no checkable word"}
	}
	held := termSet(around)
	n := 0
	for t := range want {
		if held[t] {
			n++
		}
	}
	coverage := float64(n) / float64(len(want))
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
	for _, name := range surface.Names(claim) {
		if !covers(held, name) {
			return Judgement{Verdict: assay.Unsupported, Score: coverage / 2, Reason: fmt.Sprintf("the name %q is not in the source", name)}
		}
	}
	if coverage < minCoverage {
		return Judgement{Verdict: assay.Unsupported, Score: coverage / 2, Reason: fmt.Sprintf("%.0f%% of its words are in the source", 100*coverage)}
	}
	return Judgement{Verdict: assay.Supported, Score: coverage, Reason: fmt.Sprintf("%.0f%% of its words, all numbers and names are in the source", 100*coverage)}
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
