package eval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

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
	weight   float64
}

// A decision is what the best hits of one query would be taken for at a floor.
type decision struct {
	answerable bool
	hits       []example // the best by BM25

	// Of answerable queries: all hits by BM25, and what is relevant.
	ranked   []string
	features [][]float64 // nil for a hit that holds no content word
	relevant map[string]int
}

// A Calibration is a fitted relevance model and what it reaches on each set when
// fitted on the others.
type Calibration struct {
	Model retrieve.RelevanceModel `json:"model"`
	Sets  []CalibrationReport     `json:"leave_one_set_out"`
}

// A CalibrationReport is measured on a set that the model was not fitted on.
type CalibrationReport struct {
	Set   string  `json:"set"`
	AUC   float64 `json:"auc"`   // of relevance as a classifier of hits
	Brier float64 `json:"brier"` // mean squared error of relevance; 0.25 is a coin
	// Shares at a floor of 0.5: of answerable queries whose best five hits have
	// one that reaches it and one that is relevant; and of queries from other
	// sets for which none does.
	Accepted float64 `json:"accepted"`
	Refused  float64 `json:"refused"`
	// RefusedNear is the share of answerable queries for which no hit that is
	// not relevant reaches the floor: as if what answers them had been removed.
	RefusedNear float64 `json:"refused_near"`
	// nDCG@10 of the best fifty hits by BM25, in that order and by relevance.
	BM25NDCG10      float64 `json:"bm25_ndcg@10"`
	RelevanceNDCG10 float64 `json:"relevance_ndcg@10"`
}

// Calibrate fits the relevance model on the sets: a logistic regression with a
// small ridge, by Newton's method, each set weighing the same, its own queries
// as much as those of others. It is deterministic.
func Calibrate(ctx context.Context, sets []Set) (Calibration, error) {
	if len(sets) < 2 {
		return Calibration{}, fmt.Errorf("calibrate: want two sets or more, for the queries of one are what another does not answer: %w", assay.ErrInvalid)
	}
	all := make([][]decision, len(sets))
	for i, set := range sets {
		var err error
		if all[i], err = decisions(ctx, set, sets); err != nil {
			return Calibration{}, err
		}
	}
	var cal Calibration
	for i, set := range sets {
		others := slices.Delete(slices.Clone(all), i, i+1)
		cal.Sets = append(cal.Sets, judgeWeights(set.Name, fit(others), all[i]))
	}
	cal.Model = retrieve.RelevanceModel{
		Features: retrieve.FeatureNames,
		Weights:  fit(all),
		Fitted:   "assay eval calibrate",
		Licences: licences,
	}
	for i, set := range sets {
		cal.Model.Sets = append(cal.Model.Sets, set.Name)
		for _, d := range all[i] {
			cal.Model.Hits += len(d.hits)
		}
	}
	return cal, nil
}

// licences are those of the sets that the model in the repository was fitted on.
const licences = "weights learned from public sets: SciFact (CC BY 4.0, ODC-By), HotpotQA (CC BY-SA 4.0), MuSiQue (CC BY 4.0), " +
	"questions over product documentation (MIT), CLAP NQ (Apache-2.0), PubMedQA (MIT), XQuAD (CC BY-SA 4.0)"

// decisions searches one set for its own queries and for those of others.
func decisions(ctx context.Context, set Set, sets []Set) ([]decision, error) {
	o, err := Open(ctx, set, Parts{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	r := o.Retriever(Ranking{Mode: assay.ModeText})
	var out []decision
	add := func(q Query, own bool) error {
		found, err := r.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: q.Text, Mode: assay.ModeText, Limit: calibrateRanked})
		if err != nil {
			return err
		}
		sortByBM25(found.Hits) // not by the relevance that is being fitted
		d := decision{answerable: own}
		if own {
			d.relevant = q.Relevant
			for _, h := range found.Hits {
				d.ranked = append(d.ranked, h.URI)
				d.features = append(d.features, retrieve.Features(q.Text, found, h))
			}
		}
		for _, h := range found.Hits[:min(len(found.Hits), calibrateDepth)] {
			if f := retrieve.Features(q.Text, found, h); f != nil {
				d.hits = append(d.hits, example{features: f, relevant: own && q.Relevant[h.URI] > 0})
			}
		}
		out = append(out, d)
		return nil
	}
	for _, q := range sample(set.Queries, calibrateOwn) {
		if err := add(q, true); err != nil {
			return nil, err
		}
	}
	for _, other := range sets {
		if related(set.Name, other.Name) {
			continue
		}
		for _, q := range sample(other.Queries, calibrateForeign/len(sets)) {
			if err := add(q, false); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
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

// prior is the share of relevant hits that relevance is calibrated to. The
// natural share, one in ten or less of what a search returns, would keep nearly
// every relevant hit of a hard question under a floor of 0.5. Left-out sets, mean
// of seven: at 0.35 the floor accepts 90% of answerable questions and refuses 98%
// of foreign ones, at 0.4 91% and 97%, at 0.45 92% and 97%.
const prior = 0.4

// fit returns the weights that minimise the weighted log loss plus a ridge.
func fit(sets [][]decision) []float64 {
	const ridge, rounds = 1e-3, 50
	var examples []example
	for _, ds := range sets {
		n := map[bool]int{}
		for _, d := range ds {
			for _, ex := range d.hits {
				n[ex.relevant]++
			}
		}
		for _, d := range ds {
			for _, ex := range d.hits {
				share := 1 - prior
				if ex.relevant {
					share = prior
				}
				ex.weight = share / float64(n[ex.relevant]) / float64(len(sets))
				examples = append(examples, ex)
			}
		}
	}
	dim := len(retrieve.FeatureNames)
	w := make([]float64, dim)
	for range rounds {
		gradient := make([]float64, dim)
		hessian := make([][]float64, dim)
		for i := range hessian {
			hessian[i] = make([]float64, dim)
			gradient[i] = ridge * w[i]
			hessian[i][i] = ridge
		}
		for _, ex := range examples {
			p := predict(w, ex.features)
			y := 0.0
			if ex.relevant {
				y = 1
			}
			for i, x := range ex.features {
				gradient[i] += ex.weight * (p - y) * x
				for j, z := range ex.features {
					hessian[i][j] += ex.weight * p * (1 - p) * x * z
				}
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

func predict(w, features []float64) float64 {
	sum := 0.0
	for i, x := range features {
		sum += w[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

// solve returns x of a·x = b by Gaussian elimination; a is positive definite and
// is overwritten.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	x := slices.Clone(b)
	for i := range n {
		pivot := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[pivot][i]) {
				pivot = r
			}
		}
		a[i], a[pivot] = a[pivot], a[i]
		x[i], x[pivot] = x[pivot], x[i]
		for r := i + 1; r < n; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= f * a[i][c]
			}
			x[r] -= f * x[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for c := i + 1; c < n; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

func judgeWeights(name string, w []float64, ds []decision) CalibrationReport {
	const floor = 0.5
	report := CalibrationReport{Set: name}
	type scored struct {
		p        float64
		relevant bool
	}
	var hits []scored
	var accepted, findable, refused, foreign float64
	for _, d := range ds {
		top, near, relevant := 0.0, 0.0, false
		for _, ex := range d.hits {
			p := predict(w, ex.features)
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
	report.BM25NDCG10, report.RelevanceNDCG10 = order(w, ds)
	report.Brier /= float64(max(len(hits), 1))
	report.Accepted = accepted / max(findable, 1)
	report.Refused = refused / max(foreign, 1)
	report.RefusedNear /= max(findable, 1)

	slices.SortFunc(hits, func(a, b scored) int { return cmp.Compare(a.p, b.p) })
	var positives, negatives, ranks float64
	for i, h := range hits {
		if h.relevant {
			positives++
			ranks += float64(i + 1)
		} else {
			negatives++
		}
	}
	if positives > 0 && negatives > 0 {
		report.AUC = (ranks - positives*(positives+1)/2) / (positives * negatives)
	}
	return report
}

// order measures the rankings of the answerable queries as BM25 gives them, and
// by relevance under the weights.
func order(w []float64, ds []decision) (bm25, relevance float64) {
	var before, after []Metrics
	for _, d := range ds {
		if !d.answerable {
			continue
		}
		at := make([]int, len(d.ranked))
		p := make([]float64, len(d.ranked))
		for i, f := range d.features {
			at[i] = i
			if f != nil {
				p[i] = predict(w, f)
			}
		}
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
		ordered := make([]string, len(at))
		for i, j := range at {
			ordered[i] = d.ranked[j]
		}
		before = append(before, Measure(d.ranked, d.relevant))
		after = append(after, Measure(ordered, d.relevant))
	}
	return mean(before).NDCG10, mean(after).NDCG10
}
