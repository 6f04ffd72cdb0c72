package eval

import (
	"cmp"
	"math"
	"slices"

	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/learn"
)

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
				p[i] = learn.Probability(w, f)
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
