package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
)

// A Training is what was learned from all sets, and for each set what was learned from the others.
type Training struct {
	Calibration Calibration
	Model       rerank.Model
	LeftOut     []LeftOut
}

// LeftOut has the models that were fitted without a set, with which that set is measured.
type LeftOut struct {
	Set       testset.Set
	Relevance retrieve.RelevanceModel
	Rerank    rerank.Model
}

// Parts returns parts with the models that were fitted without the set.
func (l LeftOut) Parts(parts retrieval.Parts) (retrieval.Parts, error) {
	ranker, err := rerank.New(l.Rerank)
	parts.Relevance, parts.Ranker = &l.Relevance, ranker
	return parts, err
}

// Train fits relevance (see Calibrate) and then the reranker's weight of a bridge to two or more
// sets. It chooses the weight of 0, 0.05, … 1 with the greatest mean of goal over the sets, and the
// least of equal ones. It is deterministic. The hits from which the reranker for a left-out set
// learns are ordered by the relevance that was fitted to all sets.
func Train(ctx context.Context, sets []testset.Set, parts retrieval.Parts) (Training, error) {
	cal, err := Calibrate(ctx, sets, parts)
	if err != nil {
		return Training{}, err
	}
	t := Training{Calibration: cal}
	parts.Relevance = &cal.Model
	reached := make([]reach, len(sets))
	for i, set := range sets {
		if reached[i], err = reachOf(ctx, set, parts); err != nil {
			return Training{}, err
		}
	}
	t.Model = rerankModel(sets, reached, "")
	for i, set := range sets {
		t.LeftOut = append(t.LeftOut, LeftOut{set, cal.Sets[i].Model, rerankModel(sets, reached, set.Name)})
	}
	return t, nil
}

// The weights that are tried.
const (
	triedWeights = 21
	weightStep   = 0.05
)

func triedWeight(i int) float64 { return float64(i) * weightStep }

// goal returns the quality of the ranking of one query. It is mainly the order, with a bonus for
// all the passages that a multi-hop question needs.
func goal(m retrieval.Metrics) float64 { return m.NDCG10 + 0.3*m.AllGold10 }

// A reach is the mean goal of a set for each weight that is tried.
type reach struct {
	queries        int
	words, vectors [triedWeights]float64
}

// reachOf searches a set and orders the hits by each weight.
func reachOf(ctx context.Context, set testset.Set, parts retrieval.Parts) (r reach, err error) {
	seen := &recorder{found: map[string]assay.Results{}}
	parts.Ranker = seen
	o, err := retrieval.Open(ctx, set, parts)
	if err != nil {
		return r, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	queries := testset.Sample(set.Queries, trainQueries)
	r.queries = len(queries)
	if r.words, err = reachIn(ctx, o, queries, assay.ModeText, seen); err == nil && o.Embedder != nil {
		r.vectors, err = reachIn(ctx, o, queries, assay.ModeHybrid, seen)
	}
	return r, err
}

// trainQueries is the greatest number of queries of a set that are used.
const trainQueries = 400

func reachIn(ctx context.Context, o *retrieval.Opened, queries []testset.Query, mode assay.Mode, seen *recorder) (sum [triedWeights]float64, err error) {
	r := o.Retriever(retrieval.Ranking{Graph: true, Rerank: true})
	goals := make([][triedWeights]float64, len(queries))
	report := o.Stage("train")
	var done atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		g.Go(func() error {
			if _, err := r.Retrieve(gctx, assay.Local().Access(), assay.Query{Text: q.Text, Mode: mode, Limit: retrieval.Depth}); err != nil {
				return fmt.Errorf("%s: query %s: %w", o.Set.Name, q.ID, err)
			}
			found := seen.of(q.Text)
			features := rerank.Features(found)
			for k := range goals[i] {
				goals[i][k] = goal(retrieval.Measure(ordered(found.Hits, features, triedWeight(k)), q.Relevant))
			}
			if n := done.Add(1); n == int64(len(queries)) {
				report(len(queries), len(queries))
			}
			return nil
		})
	}
	if err := errors.Join(g.Wait(), ctx.Err()); err != nil {
		return sum, err
	}
	for _, of := range goals {
		for k, x := range of {
			sum[k] += x / float64(len(queries))
		}
	}
	return sum, nil
}

// ordered returns the passage IDs of hits in the order of the reranker with a weight.
func ordered(hits []assay.Hit, features [][]float64, bridge float64) []string {
	at := make([]int, len(hits))
	for i := range at {
		at[i] = i
	}
	score := func(i int) float64 { return features[i][0] + bridge*features[i][1] }
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	ids := make([]string, len(at))
	for i, j := range at {
		ids[i] = hits[j].URI
	}
	return ids
}

// rerankModel fits a model to all sets except the one named but; "" excludes none.
func rerankModel(sets []testset.Set, reached []reach, but string) rerank.Model {
	m := rerank.Model{Features: rerank.FeatureNames, Trained: "go run ./train/fit rank", Licences: licences}
	var words, vectors [triedWeights]float64
	for i, set := range sets {
		if set.Name == but {
			continue
		}
		m.Sets = append(m.Sets, set.Name)
		m.Queries += reached[i].queries
		for k := range words {
			words[k] += reached[i].words[k]
			vectors[k] += reached[i].vectors[k]
		}
	}
	m.Words, m.Vector = weights(words), weights(vectors)
	return m
}

// weights returns the weights with the greatest sum, and the least of equal ones.
func weights(sums [triedWeights]float64) []float64 {
	best := 0
	for k, x := range sums {
		if x > sums[best]+1e-9 {
			best = k
		}
	}
	return []float64{1, float64(best*100/(triedWeights-1)) / 100}
}

// A recorder is a Ranker that keeps the order and records the results it was given.
type recorder struct {
	mu    sync.Mutex
	found map[string]assay.Results // by the query's text
}

// Rank implements retrieve.Ranker.
func (r *recorder) Rank(_ context.Context, q assay.Query, found assay.Results) ([]float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[q.Text] = found
	scores := make([]float64, len(found.Hits))
	for i := range scores {
		scores[i] = -float64(i)
	}
	return scores, nil
}

// of returns the results recorded for a query, or empty results if there are none.
func (r *recorder) of(text string) assay.Results {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[text]
}
