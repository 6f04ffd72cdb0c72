package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/abstention"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/internal/role/local"
)

// An AnswerabilityFit is a model of the probability that passages answer a question. For each set it
// has the figures of a model that was fitted to the other sets.
type AnswerabilityFit struct {
	Model local.AnswerabilityModel `json:"model"`
	Sets  []AnswerabilityFigures   `json:"sets"`
}

// AnswerabilityFigures measure a model on a set that it was not fitted to.
type AnswerabilityFigures struct {
	Set         string           `json:"set"`
	Questions   int              `json:"questions"` // with and without their answer
	AUC         float64          `json:"auc"`
	ECE         float64          `json:"ece"`
	AtMostFalse abstention.Point `json:"at_most_false"`
	AtDefault   abstention.Point `json:"at_default"` // at local.DefaultMinAnswerability
}

// The size of the data that a model is fitted to, and the ridge of the fit.
const (
	fitQuestions = 200 // questions per set, each with or without its passages
	fitNear      = 200 // questions per set that have no relevant passage
	fitHits      = 8   // hits that are read for each question
	fitSplits    = 2
	fitRidge     = 0.01
)

// A fitRow is one question, with or without its answer among the passages.
type fitRow struct {
	abstention.Rated
	features []float64
}

// FitAnswerability fits local.Answerability to the sets. parts must have a reader.
func FitAnswerability(ctx context.Context, sets []testset.Set, parts retrieval.Parts) (AnswerabilityFit, error) {
	if parts.Reader == nil {
		return AnswerabilityFit{}, fmt.Errorf("no reader is available to fit: %w", assay.ErrInvalid)
	}
	rows := make([][]fitRow, len(sets))
	var names []string
	for i, set := range sets {
		for k := range fitSplits {
			more, err := fitRowsOf(ctx, set, k, parts)
			if err != nil {
				return AnswerabilityFit{}, err
			}
			rows[i] = append(rows[i], more...)
		}
		names = append(names, set.Name)
	}
	all := slices.Concat(rows...)
	fit := AnswerabilityFit{Model: local.AnswerabilityModel{
		Features: local.AnswerabilityFeatures, Line: fitLine(all), Reader: parts.Reader.Model(), Sets: names, Rows: len(all),
		Fitted: "go run ./train/fit answerability", Licences: "see docs/evaluation.md, Abstention",
	}}
	for i, set := range sets {
		line := fit.Model.Line
		if len(sets) > 1 {
			line = fitLine(slices.Concat(slices.Delete(slices.Clone(rows), i, i+1)...))
		}
		fit.Sets = append(fit.Sets, figuresOf(set.Name, line, rows[i]))
	}
	return fit, nil
}

// fitLine fits a logistic regression with non-negative weights, because a passage that is more
// answerable must not make the question less so. A feature whose weight would be negative is
// dropped.
func fitLine(rows []fitRow) *learn.Linear {
	examples := make([]learn.Row, len(rows))
	for i, r := range rows {
		examples[i] = learn.Row{Features: slices.Clone(r.features), Positive: r.Answerable, Weight: 1}
	}
	for {
		line := learn.Logistic(examples, fitRidge)
		if len(line.Weights) == 0 {
			return line // there are no rows
		}
		worst := slices.Index(line.Weights, slices.Min(line.Weights))
		if line.Weights[worst] >= 0 {
			return line
		}
		for i := range examples {
			examples[i].Features[worst] = 0
		}
	}
}

func figuresOf(set string, line *learn.Linear, rows []fitRow) AnswerabilityFigures {
	const bins = 10
	var all []abstention.Rated
	var scores []float64
	var holds []bool
	for _, r := range rows {
		r.Probability = learn.Sigmoid(line.LogOdds(r.features))
		all, scores, holds = append(all, r.Rated), append(scores, r.Probability), append(holds, r.Answerable)
	}
	area, _ := stat.AUC(scores, holds)
	return AnswerabilityFigures{
		Set: set, Questions: len(rows), AUC: area, ECE: stat.ECE(stat.Bins(scores, holds, bins)),
		AtMostFalse: abstention.AtMost(all, abstention.MostFalse), AtDefault: abstention.PointAt(all, local.DefaultMinAnswerability),
	}
}

// fitRowsOf removes some passages of a set, searches for its questions, and runs the reader on the
// hits. A question is answerable if at least one of its relevant passages is left; a query without
// relevant passages is not. A question is right if its most answerable passage is relevant.
func fitRowsOf(ctx context.Context, set testset.Set, k int, parts retrieval.Parts) ([]fitRow, error) {
	set.Queries = testset.Sample(set.Queries, fitQuestions)
	gone, queries := abstention.Halves(set.Queries, k)
	set.Passages = slices.DeleteFunc(slices.Clone(set.Passages), func(p testset.Passage) bool { return gone[p.ID] })
	for i, q := range testset.Sample(set.Unanswered, fitNear) {
		if i%fitSplits == k {
			queries = append(queries, q)
		}
	}
	set.Queries = queries
	left := map[string]bool{}
	for _, p := range set.Passages {
		left[p.ID] = true
	}
	o, err := retrieval.Open(ctx, set, parts)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	retriever := o.Retriever(retrieval.Ranking{Rerank: true, Read: true})
	rows := make([]fitRow, len(queries))
	began := time.Now()
	step := eval.InTurn(len(queries), func(done, all int) {
		if parts.Progress != nil && done%20 == 0 {
			parts.Progress(eval.Progress{Set: set.Name, What: fmt.Sprintf("split %d", k), Done: done, All: all, Elapsed: time.Since(began)})
		}
	})
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		g.Go(func() error {
			found, err := retriever.Retrieve(gctx, assay.Local().Access(), assay.Query{Text: q.Text, Limit: 20})
			if err != nil {
				return err
			}
			slices.SortStableFunc(found.Hits, func(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) })
			hits := found.Hits[:min(len(found.Hits), fitHits)]
			readings, err := local.ReadHits(gctx, parts.Reader, q.Text, hits)
			if err != nil {
				return err
			}
			for id := range q.Relevant {
				rows[i].Answerable = rows[i].Answerable || left[id]
			}
			if best := local.MostAnswerable(readings); best >= 0 {
				rows[i].Right = q.Relevant[hits[best].URI] > 0
			}
			rows[i].features = local.FeaturesOf(q.Text, found.Terms, hits, readings)
			step()
			return nil
		})
	}
	return rows, g.Wait()
}
