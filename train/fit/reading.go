package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
)

// A ReadingFit is the quality of the order of the best hits as a function of the weight of the
// reader's relevance; see retrieve.ReadScore.
type ReadingFit struct {
	Weights []float64       `json:"weights"` // ascending from 0
	Sets    []ReadingFigure `json:"sets"`
	Best    float64         `json:"best"` // smallest one with the highest mean over the sets
}

// A ReadingFigure is the result on one set.
type ReadingFigure struct {
	Set     string    `json:"set"`
	Queries int       `json:"queries"`
	NDCG10  []float64 `json:"ndcg10"`   // by weight
	LeftOut float64   `json:"left_out"` // best weight on the other sets
}

// FitReading searches with the default ranking for at most the given number of queries of each set,
// runs the reader once on the best hits, and orders them with each weight. The result is
// deterministic. parts must have a reader.
func FitReading(ctx context.Context, sets []testset.Set, parts retrieval.Parts, queries int) (ReadingFit, error) {
	if parts.Reader == nil {
		return ReadingFit{}, fmt.Errorf("no reader is available to weigh: %w", assay.ErrInvalid)
	}
	var fit ReadingFit
	for i := range triedWeights {
		fit.Weights = append(fit.Weights, float64(i)/(triedWeights-1))
	}
	for _, set := range sets {
		set.Queries = testset.Sample(set.Queries, queries)
		figures, err := readingFigures(ctx, set, parts, fit.Weights)
		if err != nil {
			return fit, err
		}
		fit.Sets = append(fit.Sets, ReadingFigure{Set: set.Name, Queries: len(set.Queries), NDCG10: figures})
	}
	fit.Best = fit.best(-1)
	for i := range fit.Sets {
		fit.Sets[i].LeftOut = fit.best(i)
	}
	return fit, nil
}

// best returns the smallest weight with the highest sum over all sets except set but; -1 excludes
// none.
func (f ReadingFit) best(but int) float64 {
	sums := make([]float64, len(f.Weights))
	for i, s := range f.Sets {
		for k, x := range s.NDCG10 {
			if i != but {
				sums[k] += x
			}
		}
	}
	best := 0
	for k, x := range sums {
		if x > sums[best]+1e-9 {
			best = k
		}
	}
	return f.Weights[best]
}

// readingFigures returns the mean nDCG@10 of a set for each weight.
func readingFigures(ctx context.Context, set testset.Set, parts retrieval.Parts, weights []float64) (means []float64, err error) {
	o, err := retrieval.Open(ctx, set, parts)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	r := o.Retriever(retrieval.Ranking{Graph: true, Rerank: true})
	report := o.Stage("read")
	gains := make([][]float64, len(set.Queries))
	var done atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range set.Queries {
		g.Go(func() error {
			found, err := r.Retrieve(gctx, assay.Local().Access(), assay.Query{Text: q.Text, Limit: retrieval.Depth})
			if err != nil {
				return fmt.Errorf("%s: query %s: %w", set.Name, q.ID, err)
			}
			relevance, err := readings(gctx, parts.Reader, q.Text, found.Hits)
			if err != nil {
				return fmt.Errorf("%s: query %s: %w", set.Name, q.ID, err)
			}
			for _, w := range weights {
				gains[i] = append(gains[i], retrieval.Measure(reordered(found.Hits, relevance, w), q.Relevant).NDCG10)
			}
			report(int(done.Add(1)), len(set.Queries))
			return nil
		})
	}
	if err := errors.Join(g.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	means = make([]float64, len(weights))
	for _, of := range gains {
		for k, x := range of {
			means[k] += x / float64(len(gains))
		}
	}
	return means, nil
}

// readings returns the reader's relevance of the best hits that it can read, by index.
func readings(ctx context.Context, r llm.Reader, question string, hits []assay.Hit) (map[int]float64, error) {
	var at []int
	var passages []llm.Excerpt
	for i, h := range hits[:min(len(hits), retrieve.ReadHits)] {
		if retrieve.Readable(r, h) {
			at, passages = append(at, i), append(passages, llm.Excerpt{Heading: h.Under(), Text: h.Text})
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	read, err := r.Read(ctx, question, passages)
	if err != nil {
		return nil, err
	}
	if len(read) != len(at) {
		return nil, fmt.Errorf("%d readings for %d hits", len(read), len(at))
	}
	relevance := map[int]float64{}
	for i, x := range read {
		relevance[at[i]] = x.Relevance
	}
	return relevance, nil
}

// reordered returns the passage IDs of hits. The hits that were read swap places among themselves
// by their score.
func reordered(hits []assay.Hit, relevance map[int]float64, weight float64) []string {
	var at []int
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.URI
		if _, ok := relevance[i]; ok {
			at = append(at, i)
		}
	}
	order := slices.Clone(at)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(retrieve.ReadScore(hits[b], relevance[b], weight), retrieve.ReadScore(hits[a], relevance[a], weight))
	})
	for i, from := range order {
		ids[at[i]] = hits[from].URI
	}
	return ids
}
