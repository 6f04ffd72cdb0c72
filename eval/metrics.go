package eval

import (
	"math"
	"slices"
)

// Metrics are the means over a set's queries, each in [0, 1].
type Metrics struct {
	NDCG10    float64 `json:"ndcg@10"`
	MRR10     float64 `json:"mrr@10"`
	Recall10  float64 `json:"recall@10"`
	Recall100 float64 `json:"recall@100"`
	AllGold10 float64 `json:"all_gold@10"` // share of queries with every relevant passage in the top 10
}

// Measure returns one query's metrics: ranked are passage IDs, best first,
// without duplicates, at least 100 where there are as many; relevant maps the
// relevant ones to their grades, above 0, and is not empty.
//
// nDCG uses the gain 2^grade-1 and the discount 1/log2(rank+1), the ideal
// ranking cut at 10 too. Source: Järvelin and Kekäläinen, "Cumulated gain-based
// evaluation of IR techniques", TOIS 2002, with the gain of Burges et al. 2005.
func Measure(ranked []string, relevant map[string]int) Metrics {
	gain := func(grade int) float64 { return math.Exp2(float64(grade)) - 1 }
	discount := func(rank int) float64 { return 1 / math.Log2(float64(rank)+1) }

	var m Metrics
	var dcg, found10, found100 float64
	for i, id := range ranked[:min(len(ranked), 100)] {
		grade := relevant[id]
		if grade <= 0 {
			continue
		}
		found100++
		if i < 10 {
			found10++
			dcg += gain(grade) * discount(i+1)
			if m.MRR10 == 0 {
				m.MRR10 = 1 / float64(i+1)
			}
		}
	}
	grades := make([]int, 0, len(relevant))
	for _, g := range relevant {
		grades = append(grades, g)
	}
	slices.Sort(grades)
	slices.Reverse(grades)
	ideal := 0.0
	for i, g := range grades[:min(len(grades), 10)] {
		ideal += gain(g) * discount(i+1)
	}
	n := float64(len(relevant))
	m.NDCG10 = dcg / ideal
	m.Recall10 = found10 / n
	m.Recall100 = found100 / n
	if found10 == n {
		m.AllGold10 = 1
	}
	return m
}

func mean(ms []Metrics) Metrics {
	var sum Metrics
	for _, m := range ms {
		sum.NDCG10 += m.NDCG10
		sum.MRR10 += m.MRR10
		sum.Recall10 += m.Recall10
		sum.Recall100 += m.Recall100
		sum.AllGold10 += m.AllGold10
	}
	n := float64(max(len(ms), 1))
	return Metrics{sum.NDCG10 / n, sum.MRR10 / n, sum.Recall10 / n, sum.Recall100 / n, sum.AllGold10 / n}
}
