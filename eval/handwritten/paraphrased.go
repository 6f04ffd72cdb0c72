package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// measureParaphrased asks each question in whole runs in which a scripted model grades all passages
// as relevant and writes the paraphrased answer. One run uses the local verifier. The other uses a
// scripted verifier that supports every claim and quotes its source, which is correct because the
// answers are right.
func (w Sets) measureParaphrased(ctx context.Context, m *meter, rows []int) (err error) {
	var files []file
	for _, folder := range []string{"everyday-docs", "statements"} {
		of, err := w.documents(folder)
		if err != nil {
			return err
		}
		files = append(files, of...)
	}
	statements := map[string][]scripted.Line{}
	for _, p := range w.Paraphrased {
		if statements[p.Question] != nil {
			return fmt.Errorf("two paraphrased answers to %q: %w", p.Question, assay.ErrInvalid)
		}
		statements[p.Question] = statementsOf(p)
	}
	writer, checker := scripted.Paraphraser(statements), scripted.HonestChecker()
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
func (w Sets) paraphrased(ctx context.Context, s *dataDir, set string, models engine.Models, rows []int) (err error) {
	e, err := s.open(ctx, models)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return s.m.each(ctx, set, rows, func(ctx context.Context, row int) (Outcome, error) {
		p := w.Paraphrased[row]
		folder, document := path.Dir(p.Document), strings.TrimSuffix(path.Base(p.Document), ".md")
		answer, o, err := ask(ctx, e, "", collectionOf(folder, document), p.Question)
		if err != nil {
			return o, err
		}
		text := strings.ToLower(metric.Uncited(answer.Text))
		said, shown := statementsOf(p), 0
		for _, st := range said {
			shown += stat.One(strings.Contains(text, strings.ToLower(strings.TrimRight(st.Text, "."))))
		}
		o.Kind = folder
		o.mark(markWhole, shown == len(said))
		o.markSome(markSentences, shown, len(said))
		return o, nil
	})
}

var (
	afterCited = lazyregexp.New(`\]\.(?:\s+|$)`)
	citedOne   = lazyregexp.New(`\s*\[(\d+)\]`)
	yesOrNo    = lazyregexp.New(`^(?:Yes|No)\. `)
)

// statementsOf splits an answer after its citing sentences and drops a leading "Yes." or "No.",
// because prompts ask models to write statements this way.
func statementsOf(p ParaphrasedAnswer) []scripted.Line {
	var statements []scripted.Line
	from := 0
	for _, at := range afterCited.FindAllStringIndex(p.Answer, -1) {
		sentence := p.Answer[from : at[0]+2]
		from = at[1]
		st := scripted.Line{Text: yesOrNo.ReplaceAllString(citedOne.ReplaceAllString(sentence, ""), "")}
		for _, m := range citedOne.FindAllStringSubmatch(sentence, -1) {
			if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(p.Sources) {
				st.Sources = append(st.Sources, p.Sources[n-1])
			}
		}
		statements = append(statements, st)
	}
	return statements
}
