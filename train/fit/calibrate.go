package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/internal/retrieve"
)

// The examples of one set are the best hits of its own queries and of queries of other sets, which
// its passages do not answer.
const (
	calibrateRanked  = 50  // hits of each query whose order is measured
	calibrateDepth   = 5   // hits of each query that become examples
	calibrateForeign = 400 // maximum number of queries of other sets
	calibrateOwn     = 400 // maximum number of its own queries
)

// An example is the features of a hit and whether the hit was relevant.
type example struct {
	features []float64
	relevant bool
}

// A decision holds the best hits of one query, from which its acceptance at a floor follows.
type decision struct {
	from       string // the query's set
	answerable bool
	words      []example // best hits by BM25
	vectors    []example // best hits of a default search; nil without an embedder

	// For answerable queries: all hits by BM25, and the relevant passages.
	ranked   []string
	features [][]float64 // nil for a hit that contains no content word
	relevant map[string]int
}

func (d decision) byWords() []example { return d.words }

func (d decision) byVectors() []example { return d.vectors }

// A Calibration is a fitted relevance model, with the results on each set of a model that was
// fitted to the other sets.
type Calibration struct {
	Model retrieve.RelevanceModel `json:"model"`
	Sets  []CalibrationReport     `json:"leave_one_set_out"`
}

// A CalibrationReport measures a model on a set that was left out of the fit, both its passages and
// its queries.
type CalibrationReport struct {
	Set       string     `json:"set"`
	Judgement            // of the best hits by BM25, from lexical features
	Vectors   *Judgement `json:"vectors,omitempty"` // of the best hits of a default search, from lexical and vector features
	// nDCG@10 of the best 50 hits by BM25, in BM25 order and by relevance.
	BM25NDCG10      float64 `json:"bm25_ndcg@10"`
	RelevanceNDCG10 float64 `json:"relevance_ndcg@10"`

	Model retrieve.RelevanceModel `json:"-"` // the measured model, fitted to the other sets
}

// A Judgement measures how well relevance separates relevant hits from others.
type Judgement struct {
	AUC   float64 `json:"auc"`   // over hits
	Brier float64 `json:"brier"` // mean squared error; a coin flip has 0.25
	// Shares at a floor of 0.5. Accepted is the share of answerable queries with a relevant hit
	// among the best five for which one of the five reaches the floor. Refused is the share of
	// queries of other sets for which no hit reaches it.
	Accepted float64 `json:"accepted"`
	Refused  float64 `json:"refused"`
	// RefusedNear is the share of the same answerable queries for which no irrelevant hit reaches
	// the floor. It estimates the refusals if the relevant passages were removed.
	RefusedNear float64 `json:"refused_near"`
}

// Calibrate fits the relevance model to the sets. The model is a logistic regression with a small
// ridge, fitted by Newton's method. Each set has the same weight. The fit is deterministic. If
// parts has an embedder, the model also has weights for its vectors.
func Calibrate(ctx context.Context, sets []testset.Set, parts retrieval.Parts) (Calibration, error) {
	if len(sets) < 2 {
		return Calibration{}, fmt.Errorf("calibrate: want at least two sets, because each set's queries are unanswerable from the others: %w", assay.ErrInvalid)
	}
	all := make([][]decision, len(sets))
	for i, set := range sets {
		var err error
		if all[i], err = decisions(ctx, set, sets, parts); err != nil {
			return Calibration{}, err
		}
	}
	encoder := ""
	if parts.Embedder != nil {
		encoder = retrieve.EncoderFamily(parts.Embedder.Model())
	}
	var cal Calibration
	for i, set := range sets {
		m := relevanceModel(sets, all, set.Name, encoder)
		report := CalibrationReport{Set: set.Name, Model: m, Judgement: judgeWeights(m.Weights, all[i], decision.byWords)}
		if len(m.Vectors) > 0 {
			j := judgeWeights(m.Vectors[0].Weights, all[i], decision.byVectors)
			report.Vectors = &j
		}
		report.BM25NDCG10, report.RelevanceNDCG10 = order(m.Weights, all[i])
		cal.Sets = append(cal.Sets, report)
	}
	cal.Model = relevanceModel(sets, all, "", encoder)
	return cal, nil
}

// relevanceModel fits a model to all sets except the one named but; "" excludes none.
func relevanceModel(sets []testset.Set, all [][]decision, but, encoder string) retrieve.RelevanceModel {
	m := retrieve.RelevanceModel{
		Features: retrieve.FeatureNames,
		Vectors:  []retrieve.VectorWeights{},
		Fitted:   "go run ./train/fit calibrate",
		Licences: licences,
	}
	var kept [][]decision
	for i, set := range sets {
		if set.Name == but {
			continue
		}
		m.Sets = append(m.Sets, set.Name)
		kept = append(kept, slices.DeleteFunc(slices.Clone(all[i]), func(d decision) bool { return d.from == but }))
	}
	m.Weights, m.Hits = fit(kept, decision.byWords, prior, len(m.Features))
	if encoder != "" {
		v := retrieve.VectorWeights{Encoder: encoder, Features: slices.Concat(retrieve.FeatureNames, retrieve.VectorFeatureNames)}
		v.Weights, v.Hits = fit(kept, decision.byVectors, vectorPrior, len(v.Features))
		m.Vectors = append(m.Vectors, v)
	}
	return m
}

// licences names the licences of the sets that the model in the repository was fitted to.
const licences = "weights learned from public sets: SciFact (CC BY 4.0, ODC-By), HotpotQA (CC BY-SA 4.0), MuSiQue (CC BY 4.0), " +
	"questions over product documentation (MIT), CLAP NQ (Apache-2.0), PubMedQA (MIT), XQuAD (CC BY-SA 4.0)"

// decisions searches one set for its own queries and for those of other sets.
func decisions(ctx context.Context, set testset.Set, sets []testset.Set, parts retrieval.Parts) (_ []decision, err error) {
	o, err := retrieval.Open(ctx, set, parts)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	type asked struct {
		testset.Query
		from string
	}
	var queries []asked
	for _, q := range testset.Sample(set.Queries, calibrateOwn) {
		queries = append(queries, asked{q, set.Name})
	}
	for _, other := range sets {
		if related(set.Name, other.Name) {
			continue
		}
		for _, q := range testset.Sample(other.Queries, calibrateForeign/len(sets)) {
			queries = append(queries, asked{q, other.Name})
		}
	}
	report := o.Stage("calibrate")
	words, full := o.Retriever(retrieval.Ranking{Mode: assay.ModeText}), o.Retriever(retrieval.Ranking{Graph: true})
	out := make([]decision, len(queries))
	var done atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		g.Go(func() error {
			d := decision{from: q.from, answerable: q.from == set.Name}
			if !d.answerable {
				q.Relevant = nil
			}
			err := d.askWords(gctx, words, q.Query)
			if err == nil && o.Embedder != nil {
				err = d.askVectors(gctx, full, q.Query)
			}
			out[i] = d
			if n := done.Add(1); n == int64(len(queries)) {
				report(len(queries), len(queries))
			}
			return err
		})
	}
	return out, errors.Join(g.Wait(), ctx.Err())
}

// askWords searches lexically and records the hits and their features.
func (d *decision) askWords(ctx context.Context, r assay.Retriever, q testset.Query) error {
	found, err := r.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: q.Text, Mode: assay.ModeText, Limit: calibrateRanked})
	if err != nil {
		return err
	}
	retrieval.SortByBM25(found.Hits) // not by the relevance, which is being fitted
	if !d.answerable {
		found.Hits = found.Hits[:min(len(found.Hits), calibrateDepth)]
	}
	features := retrieve.Features(q.Text, found)
	for i, h := range found.Hits {
		if d.answerable {
			d.relevant = q.Relevant
			d.ranked, d.features = append(d.ranked, h.URI), append(d.features, features[i])
		}
		if i < calibrateDepth && features[i] != nil {
			d.words = append(d.words, example{features: features[i], relevant: q.Relevant[h.URI] > 0})
		}
	}
	return nil
}

// askVectors runs a default search and records the best hits.
func (d *decision) askVectors(ctx context.Context, r assay.Retriever, q testset.Query) error {
	found, err := r.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: q.Text, Limit: calibrateDepth})
	if err != nil {
		return err
	}
	for i, f := range retrieve.VectorFeatures(q.Text, found) {
		if f != nil {
			d.vectors = append(d.vectors, example{features: f, relevant: q.Relevant[found.Hits[i].URI] > 0})
		}
	}
	return nil
}

// related reports whether two sets may answer each other's queries. Such sets have the same name
// up to the first dash.
func related(a, b string) bool {
	a, _, _ = strings.Cut(a, "-")
	b, _, _ = strings.Cut(b, "-")
	return a == b
}

// prior is the share of relevant hits that relevance is calibrated to. With the
// natural share, one hit in ten or less, nearly every relevant hit of a hard question
// would be under a floor of 0.5. Mean of seven left-out sets: at 0.35 the floor
// accepts 90% of answerable questions and refuses 98% of foreign ones, at 0.4 91% and
// 97%, at 0.45 92% and 97%.
//
// With vectors the best five hits are harder to tell apart: at 0.33 the floor accepts
// 90% of answerable questions, refuses 99% of foreign ones, and 61% of those whose
// answer is removed (60% with lexical features only).
const (
	prior       = 0.4
	vectorPrior = 0.33
)

// fit returns the weights that minimise the weighted log loss plus a ridge, and the
// number of hits that they were fitted to. hits returns the hits of a decision. prior
// is the share of relevant ones.
func fit(sets [][]decision, hits func(decision) []example, prior float64, dim int) (w []float64, n int) {
	const ridge = 1e-3
	var rows []learn.Row
	for _, ds := range sets {
		count := map[bool]int{}
		for _, d := range ds {
			for _, ex := range hits(d) {
				count[ex.relevant]++
			}
		}
		for _, d := range ds {
			for _, ex := range hits(d) {
				share := 1 - prior
				if ex.relevant {
					share = prior
				}
				weight := share / float64(count[ex.relevant]) / float64(len(sets))
				rows = append(rows, learn.Row{Features: ex.features, Positive: ex.relevant, Weight: weight})
			}
		}
	}
	w = learn.Newton(rows, slices.Repeat([]float64{ridge}, dim))
	for i := range w {
		w[i] = math.Round(w[i]*1e4) / 1e4
	}
	return w, len(rows)
}

// judgeWeights measures weights on decisions that they were not fitted to.
func judgeWeights(w []float64, ds []decision, of func(decision) []example) (report Judgement) {
	const floor = 0.5
	type scored struct {
		p        float64
		relevant bool
	}
	var hits []scored
	var accepted, findable, refused, foreign float64
	for _, d := range ds {
		top, near, relevant := 0.0, 0.0, false
		for _, ex := range of(d) {
			p := learn.Probability(w, ex.features)
			hits = append(hits, scored{p, ex.relevant})
			y := 0.0
			if ex.relevant {
				relevant, y = true, 1
			} else {
				near = max(near, p)
			}
			report.Brier += (p - y) * (p - y)
			top = max(top, p)
		}
		switch {
		case d.answerable && relevant:
			findable++
			if near < floor {
				report.RefusedNear++
			}
			if top >= floor {
				accepted++
			}
		case !d.answerable:
			foreign++
			if top < floor {
				refused++
			}
		}
	}
	report.Brier /= float64(max(len(hits), 1))
	report.Accepted = accepted / max(findable, 1)
	report.Refused = refused / max(foreign, 1)
	report.RefusedNear /= max(findable, 1)

	scores, right := make([]float64, len(hits)), make([]bool, len(hits))
	for i, h := range hits {
		scores[i], right[i] = h.p, h.relevant
	}
	report.AUC, _ = stat.AUC(scores, right)
	return report
}

// order returns the nDCG@10 of the answerable queries by BM25, and by the relevance of
// the weights.
func order(w []float64, ds []decision) (bm25, relevance float64) {
	var before, after []retrieval.Metrics
	for _, d := range ds {
		if !d.answerable {
			continue
		}
		at := make([]int, len(d.ranked))
		p := make([]float64, len(d.ranked))
		for i, f := range d.features {
			at[i] = i
			if f != nil {
				p[i] = learn.Probability(w, f)
			}
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
		ordered := make([]string, len(at))
		for i, j := range at {
			ordered[i] = d.ranked[j]
		}
		before = append(before, retrieval.Measure(d.ranked, d.relevant))
		after = append(after, retrieval.Measure(ordered, d.relevant))
	}
	return retrieval.Mean(before).NDCG10, retrieval.Mean(after).NDCG10
}
