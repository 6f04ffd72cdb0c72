package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
)

// filling is a scripted model that overrides some forms.
type filling struct {
	Rule
	forms map[string]func(p shown) any
}

// Generate implements llm.Model.
func (f filling) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	fill := f.forms[formOf(req)]
	if fill == nil {
		return f.Rule.Generate(ctx, req, stream)
	}
	form, err := json.Marshal(fill(shownIn(req)))
	if err != nil || ctx.Err() != nil {
		return llm.Response{}, cmp.Or(ctx.Err(), err)
	}
	return f.says(req, string(form), nil, stream), nil
}

// A Line is a sentence to write with the texts that it cites.
type Line struct {
	Text    string
	Sources []string
}

// Paraphraser returns a model that grades all passages as relevant and answers each of the given
// questions with its statements. It omits a statement if no passage has its sources. It replies to
// all other prompts like the models of Scripted.
func Paraphraser(statements map[string][]Line) llm.Model {
	return &filling{"scripted/writer", map[string]func(shown) any{
		"grade": func(p shown) any {
			relevant := []int{}
			for _, of := range p.passages {
				relevant = append(relevant, of.number)
			}
			return map[string]any{"reason": "by rule", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""}
		},
		"answer": func(p shown) any {
			written := []map[string]any{}
			for _, st := range statements[strings.Join(strings.Fields(p.question), " ")] {
				if from := p.holding(st.Sources); len(from) > 0 {
					written = append(written, map[string]any{"text": st.Text, "sources": from, "item": false, "cells": []string{}, "section": ""})
				}
			}
			return map[string]any{"shape": "prose", "columns": []string{}, "statements": written, "conflicts": []any{}, "open": []string{}}
		},
	}}
}

// HonestChecker returns a verifier that supports every claim and quotes its source.
func HonestChecker() llm.Model {
	return &filling{"scripted/checker", map[string]func(shown) any{"verdicts": honestVerdicts}}
}

// holding returns, for each source, the number of the passage that contains it or at least 80% of
// its content words.
func (p shown) holding(sources []string) []int {
	const most = 0.8
	var numbers []int
	for _, source := range sources {
		best, has := 0, 0.0
		for _, of := range p.passages {
			share := covers(of.text, source)
			if metric.Contains(of.text, []string{source}) == 1 {
				share = 2
			}
			if share > has {
				best, has = of.number, share
			}
		}
		if has >= most && !slices.Contains(numbers, best) {
			numbers = append(numbers, best)
		}
	}
	return numbers
}

var ofClaim = lazyregexp.New(` (?:number|of_claim)="(\d+)"`)

// honestVerdicts supports each claim and quotes the sentence of its sources that has most of its
// words.
func honestVerdicts(p shown) any {
	claims, quotes := map[string]string{}, map[string]string{}
	for _, m := range fencedData.FindAllStringSubmatch(p.asked, -1) {
		n := ofClaim.FindStringSubmatch(m[2])
		switch {
		case n == nil:
		case m[1] == "claim":
			claims[n[1]] = m[3]
		case m[1] == "source":
			_, text, _ := strings.Cut(m[3], "\n") // without its heading
			quotes[n[1]] = nearest(claims[n[1]], quotes[n[1]], text)
		}
	}
	return map[string]any{"verdicts": each(len(claims), func(i int) map[string]any {
		return map[string]any{"claim": i + 1, "reason": "by rule", "quotes": []string{quotes[strconv.Itoa(i+1)]}, "verdict": "supported", "score": 0.95}
	})}
}

// nearest returns the sentence of a text that has more of a claim's words than best, or best if
// there is none.
func nearest(claim, best, text string) string {
	for _, sp := range sentence.Spans(text) {
		if s := strings.TrimSpace(text[sp.Start:sp.End]); best == "" || covers(s, claim) > covers(best, claim) {
			best = s
		}
	}
	return best
}
