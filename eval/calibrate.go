package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/retrieve"
)

// The examples of one set: the best hits of its own queries, and those of
// queries that belong to other sets, which its passages do not answer.
const (
	calibrateRanked  = 50  // hits of each query whose order is measured
	calibrateDepth   = 5   // and of these that are examples
	calibrateForeign = 400 // at most so many queries of other sets
	calibrateOwn     = 400 // at most so many of its own
)

// An example is a hit's features and whether it was relevant.
type example struct {
	features []float64
	relevant bool
}

// A decision is what the best hits of one query would be taken for at a floor.
type decision struct {
	from       string // the query's set
	answerable bool
	words      []example // the best by BM25
	vectors    []example // the best of a user's search; none where there are no vectors

	// Of answerable queries: all hits by BM25, and what is relevant.
	ranked   []string
	features [][]float64 // nil for a hit that holds no content word
	relevant map[string]int
}

func (d decision) byWords() []example   { return d.words }
func (d decision) byVectors() []example { return d.vectors }

// A Calibration is a fitted relevance model and what it reaches on each set when
// fitted on the others.
type Calibration struct {
	Model retrieve.RelevanceModel `json:"model"`
	Sets  []CalibrationReport     `json:"leave_one_set_out"`
}

// A CalibrationReport is measured on a set that the model was not fitted on: not
// on its passages, and not on its queries to others.
type CalibrationReport struct {
	Set       string     `json:"set"`
	Judgement            // of the best hits by BM25, by words alone
	Vectors   *Judgement `json:"vectors,omitempty"` // of the best hits of a user's search, by words and similarity
	// nDCG@10 of the best fifty hits by BM25, in that order and by relevance.
	BM25NDCG10      float64 `json:"bm25_ndcg@10"`
	RelevanceNDCG10 float64 `json:"relevance_ndcg@10"`

	Model retrieve.RelevanceModel `json:"-"` // that was measured: fitted on the other sets
}

// A Judgement says how well relevance tells hits apart.
type Judgement struct {
	AUC   float64 `json:"auc"`   // as a classifier of hits
	Brier float64 `json:"brier"` // mean squared error; 0.25 is a coin
	// Shares at a floor of 0.5: of answerable queries whose best five hits have
	// one that reaches it and one that is relevant; and of queries from other
	// sets for which none does.
	Accepted float64 `json:"accepted"`
	Refused  float64 `json:"refused"`
	// RefusedNear is the share of answerable queries for which no hit that is
	// not relevant reaches the floor: as if what answers them had been removed.
	RefusedNear float64 `json:"refused_near"`
}

// Calibrate fits the relevance model on the sets: a logistic regression with a
// small ridge, by Newton's method, each set weighing the same, its own queries
// as much as those of others. It is deterministic. Where parts have an embedder the
// model also has weights for its vectors.
func Calibrate(ctx context.Context, sets []Set, parts Parts) (Calibration, error) {
	if len(sets) < 2 {
		return Calibration{}, fmt.Errorf("calibrate: want two sets or more, for the queries of one are what another does not answer: %w", assay.ErrInvalid)
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

// relevanceModel fits a model on all sets but one; "": on all.
func relevanceModel(sets []Set, all [][]decision, but, encoder string) retrieve.RelevanceModel {
	m := retrieve.RelevanceModel{
		Features: retrieve.FeatureNames,
		Vectors:  []retrieve.VectorWeights{},
		Fitted:   "assay eval calibrate",
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

// licences are those of the sets that the model in the repository was fitted on.
const licences = "weights learned from public sets: SciFact (CC BY 4.0, ODC-By), HotpotQA (CC BY-SA 4.0), MuSiQue (CC BY 4.0), " +
	"questions over product documentation (MIT), CLAP NQ (Apache-2.0), PubMedQA (MIT), XQuAD (CC BY-SA 4.0)"

// decisions searches one set for its own queries and for those of others.
func decisions(ctx context.Context, set Set, sets []Set, parts Parts) (_ []decision, err error) {
	o, err := Open(ctx, set, parts)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	type asked struct {
		Query
		from string
	}
	var queries []asked
	for _, q := range sample(set.Queries, calibrateOwn) {
		queries = append(queries, asked{q, set.Name})
	}
	for _, other := range sets {
		if related(set.Name, other.Name) {
			continue
		}
		for _, q := range sample(other.Queries, calibrateForeign/len(sets)) {
			queries = append(queries, asked{q, other.Name})
		}
	}
	report := o.stage("calibrate")
	words, full := o.Retriever(Ranking{Mode: assay.ModeText}), o.Retriever(Ranking{Graph: true})
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

// askWords searches for a query by words alone and keeps what is found.
func (d *decision) askWords(ctx context.Context, r assay.Retriever, q Query) error {
	found, err := r.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: q.Text, Mode: assay.ModeText, Limit: calibrateRanked})
	if err != nil {
		return err
	}
	sortByBM25(found.Hits) // not by the relevance that is being fitted
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

// askVectors searches as a user does and keeps the best.
func (d *decision) askVectors(ctx context.Context, r assay.Retriever, q Query) error {
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

// related reports whether two sets may answer each other's queries: they have
// the name before the first dash in common.
func related(a, b string) bool {
	a, _, _ = strings.Cut(a, "-")
	b, _, _ = strings.Cut(b, "-")
	return a == b
}

// sample returns at most n queries, evenly spread.
func sample(queries []Query, n int) []Query {
	if len(queries) <= n {
		return queries
	}
	out := make([]Query, n)
	for i := range out {
		out[i] = queries[i*len(queries)/n]
	}
	return out
}
