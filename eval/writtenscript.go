package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// measureParaphrased asks each question in whole runs in which a scripted model grades all passages
// as relevant and writes the paraphrased answer. One run uses the local verifier. The other uses a
// scripted verifier that supports every claim and quotes its source, which is correct because the
// answers are right.
func (w WrittenSets) measureParaphrased(ctx context.Context, m *writtenMeter, rows []int) (err error) {
	var files []writtenFile
	for _, folder := range []string{"everyday-docs", "statements"} {
		of, err := w.documents(folder)
		if err != nil {
			return err
		}
		files = append(files, of...)
	}
	writer, err := paraphraser(w.Paraphrased)
	if err != nil {
		return err
	}
	checker := &filling{"scripted/checker", map[string]func(shown) any{"verdicts": honestVerdicts}}
	s, err := m.store(ctx, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, run := range []struct {
		set    string
		models engine.Models
	}{
		{"paraphrased, local verifier", engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: writer, role.GraderRole: writer}, LocalVerifier: true}},
		{"paraphrased, model verifier", engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: writer, role.GraderRole: writer, role.VerifierRole: checker}}},
	} {
		if err := w.paraphrased(ctx, s, run.set, run.models, rows); err != nil {
			return err
		}
	}
	return nil
}

// paraphrased asks the questions with the given models.
func (w WrittenSets) paraphrased(ctx context.Context, s *writtenStore, set string, models engine.Models, rows []int) (err error) {
	e, err := s.open(ctx, models)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return s.m.each(ctx, set, rows, func(ctx context.Context, row int) (WrittenOutcome, error) {
		p := w.Paraphrased[row]
		folder, document := path.Dir(p.Document), strings.TrimSuffix(path.Base(p.Document), ".md")
		answer, o, err := ask(ctx, e, "", collectionOf(folder, document), p.Question)
		if err != nil {
			return o, err
		}
		text := strings.ToLower(uncited(answer.Text))
		said, shown := statementsOf(p), 0
		for _, st := range said {
			shown += one(strings.Contains(text, strings.ToLower(strings.TrimRight(st.text, "."))))
		}
		o.Kind = folder
		o.mark(markWhole, shown == len(said))
		o.markSome(markSentences, shown, len(said))
		return o, nil
	})
}

// A paraphrasedStatement is a sentence of a ParaphrasedAnswer with the sources it cites.
type paraphrasedStatement struct {
	text    string
	sources []string
}

var (
	afterCited = lazyregexp.New(`\]\.(?:\s+|$)`)
	citedOne   = lazyregexp.New(`\s*\[(\d+)\]`)
	yesOrNo    = lazyregexp.New(`^(?:Yes|No)\. `)
)

// statementsOf splits an answer after its citing sentences and drops a leading "Yes." or "No.",
// because prompts ask models to write statements this way.
func statementsOf(p ParaphrasedAnswer) []paraphrasedStatement {
	var statements []paraphrasedStatement
	from := 0
	for _, at := range afterCited.FindAllStringIndex(p.Answer, -1) {
		sentence := p.Answer[from : at[0]+2]
		from = at[1]
		st := paraphrasedStatement{text: yesOrNo.ReplaceAllString(citedOne.ReplaceAllString(sentence, ""), "")}
		for _, m := range citedOne.FindAllStringSubmatch(sentence, -1) {
			if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(p.Sources) {
				st.sources = append(st.sources, p.Sources[n-1])
			}
		}
		statements = append(statements, st)
	}
	return statements
}

// filling is a scripted model that overrides some forms.
type filling struct {
	scripted
	forms map[string]func(p shown) any
}

// Generate implements llm.Model.
func (f filling) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	fill := f.forms[formOf(req)]
	if fill == nil {
		return f.scripted.Generate(ctx, req, stream)
	}
	form, err := json.Marshal(fill(shownIn(req)))
	if err != nil || ctx.Err() != nil {
		return llm.Response{}, cmp.Or(ctx.Err(), err)
	}
	return f.says(req, string(form), nil, stream), nil
}

// paraphraser returns a model that writes the paraphrased answer to each question.
func paraphraser(set []ParaphrasedAnswer) (llm.Model, error) {
	byQuestion := map[string][]paraphrasedStatement{}
	for _, p := range set {
		if byQuestion[p.Question] != nil {
			return nil, fmt.Errorf("two paraphrased answers to %q: %w", p.Question, assay.ErrInvalid)
		}
		byQuestion[p.Question] = statementsOf(p)
	}
	return &filling{"scripted/writer", map[string]func(shown) any{
		"grade": func(p shown) any {
			relevant := []int{}
			for _, of := range p.passages {
				relevant = append(relevant, of.number)
			}
			return map[string]any{"reason": "by rule", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""}
		},
		"answer": func(p shown) any {
			statements := []map[string]any{}
			for _, st := range byQuestion[oneLine(p.question)] {
				if from := p.holding(st.sources); len(from) > 0 {
					statements = append(statements, map[string]any{"text": st.text, "sources": from, "item": false, "cells": []string{}, "section": ""})
				}
			}
			return map[string]any{"shape": "prose", "columns": []string{}, "statements": statements, "conflicts": []any{}, "open": []string{}}
		},
	}}, nil
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
