package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/graph"
	"github.com/assay-rag/assay/rerank"
	"github.com/assay-rag/assay/retrieve"
)

// trainQueries is how many queries of a set are learned from at most.
const trainQueries = 400

// A lesson is what a ranker sees for one query and which of the hits are relevant.
type lesson struct {
	features [][]float64
	relevant []bool
}

// lessons searches a set for its own queries, as a user would but without a
// Ranker, and keeps what one would see.
func (o *Opened) lessons(ctx context.Context, mode assay.Mode) ([]lesson, error) {
	seen := recorder{found: map[string]assay.Results{}}
	c := retrieve.Config{Index: o.Index, Content: o.Content, Embedder: o.Embedder, Graph: graph.New(o.Index, graph.Options{}), Ranker: &seen}
	r := retrieve.New(c)
	queries := sample(o.Set.Queries, trainQueries)
	out := make([]lesson, len(queries))
	report := o.stage("train")
	done := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		g.Go(func() error {
			query := assay.Query{Text: q.Text, Mode: mode, Limit: depth}
			if _, err := r.Retrieve(gctx, assay.Local().Access(), query); err != nil {
				return fmt.Errorf("%s: query %s: %w", o.Set.Name, q.ID, err)
			}
			found := seen.of(q.Text)
			out[i].features = rerank.Features(query, found)
			for _, h := range found.Hits {
				out[i].relevant = append(out[i].relevant, q.Relevant[h.URI] > 0)
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			done++
			report(done, len(queries))
			return nil
		})
	}
	return out, errors.Join(g.Wait(), ctx.Err())
}

// A recorder is a Ranker that keeps the order and remembers what it was shown.
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

func (r *recorder) of(text string) assay.Results {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[text]
}

// learn returns the weights under which a relevant hit is likeliest to be drawn
// from among those that are not: for each relevant hit the log loss of its softmax
// against all that are not, each set weighing the same, each of its queries too,
// plus a ridge on the weights in units of their features' spread. The loss is
// convex; Newton's method finds its one minimum.
func learn(sets [][]lesson) []float64 {
	const ridge, rounds = 1e-3, 50
	dim := len(rerank.FeatureNames)
	spread := spreads(sets)
	w := make([]float64, dim)
	for range rounds {
		gradient := make([]float64, dim)
		hessian := make([][]float64, dim)
		for i := range hessian {
			hessian[i] = make([]float64, dim)
			r := ridge * spread[i] * spread[i]
			gradient[i], hessian[i][i] = r*w[i], r+1e-12
		}
		for _, ls := range sets {
			for _, l := range ls {
				l.add(gradient, hessian, w, 1/float64(len(ls))/float64(len(sets)))
			}
		}
		step := solve(hessian, gradient)
		largest := 0.0
		for i := range w {
			w[i] -= step[i]
			largest = max(largest, math.Abs(step[i]))
		}
		if largest < 1e-9 {
			break
		}
	}
	for i := range w {
		w[i] = math.Round(w[i]*1e4) / 1e4
	}
	return w
}

// add adds the gradient and the Hessian of one query's loss under w.
func (l lesson) add(gradient []float64, hessian [][]float64, w []float64, weight float64) {
	scores := make([]float64, len(l.features))
	most, positives := math.Inf(-1), 0
	for i, f := range l.features {
		for j, x := range f {
			scores[i] += w[j] * x
		}
		if l.relevant[i] {
			positives++
		} else {
			most = max(most, scores[i])
		}
	}
	if positives == 0 || positives == len(scores) {
		return
	}
	// Mean and second moment of the features of those that are not relevant, by
	// their softmax.
	dim := len(w)
	sum := 0.0
	first := make([]float64, dim)
	second := make([][]float64, dim)
	for j := range second {
		second[j] = make([]float64, dim)
	}
	for i, f := range l.features {
		if l.relevant[i] {
			continue
		}
		e := math.Exp(scores[i] - most)
		sum += e
		for j, x := range f {
			first[j] += e * x
			for k, y := range f {
				second[j][k] += e * x * y
			}
		}
	}
	for j := range first {
		first[j] /= sum
		for k := range second[j] {
			second[j][k] /= sum
		}
	}
	for i, f := range l.features {
		if !l.relevant[i] {
			continue
		}
		// p is the chance that another is drawn; the loss is -log(1-p).
		p := 1 / (1 + math.Exp(scores[i]-most-math.Log(sum)))
		share := weight / float64(positives)
		for j := range dim {
			d := first[j] - f[j]
			gradient[j] += share * p * d
			for k := range dim {
				hessian[j][k] += share * (p*(second[j][k]-first[j]*first[k]) + p*(1-p)*d*(first[k]-f[k]))
			}
		}
	}
}

// spreads are the standard deviations of the features within a query, the means
// over all queries.
func spreads(sets [][]lesson) []float64 {
	dim := len(rerank.FeatureNames)
	out := make([]float64, dim)
	n := 0
	for _, l := range slices.Concat(sets...) {
		if len(l.features) == 0 {
			continue
		}
		n++
		for j := range dim {
			sum, squares := 0.0, 0.0
			for _, f := range l.features {
				sum += f[j]
				squares += f[j] * f[j]
			}
			m := sum / float64(len(l.features))
			out[j] += squares/float64(len(l.features)) - m*m
		}
	}
	for j := range out {
		out[j] = math.Sqrt(max(0, out[j]) / float64(max(n, 1)))
	}
	return out
}
