package retrieval

import (
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
)

// Metrics are the means over a set's queries, each in [0, 1].
type Metrics struct {
	NDCG10    float64 `json:"ndcg@10"`
	MRR10     float64 `json:"mrr@10"`
	Recall10  float64 `json:"recall@10"`
	Recall100 float64 `json:"recall@100"`
	AllGold10 float64 `json:"all_gold@10"` // share of queries with every relevant passage in the top 10
}

// Measure returns the metrics of one query as package metric defines them, with the nDCG gain
// 2^grade-1. ranked has passage IDs, best first, and should have at least 100 if there are as many.
// relevant maps the relevant passages to their grades, which are above 0, and must not be empty.
func Measure(ranked []string, relevant map[string]int) Metrics {
	return Metrics{
		NDCG10:    metric.NDCG(ranked, relevant, 10, metric.Exponential),
		MRR10:     metric.ReciprocalRank(ranked, relevant, 10),
		Recall10:  metric.Recall(ranked, relevant, 10),
		Recall100: metric.Recall(ranked, relevant, 100),
		AllGold10: metric.AllGold(ranked, relevant, 10),
	}
}

func Mean(ms []Metrics) Metrics {
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

// interval returns the 95% bootstrap bounds of the mean, for each metric separately.
func interval(ms []Metrics) (low, high Metrics) {
	lows, highs := low.values(), high.values()
	for i := range lows {
		of := make([]float64, len(ms))
		for j := range ms {
			of[j] = *ms[j].values()[i]
		}
		b := stat.Bootstrap(of)
		*lows[i], *highs[i] = b.Low, b.High
	}
	return low, high
}

// values returns pointers to the metrics.
func (m *Metrics) values() [5]*float64 {
	return [5]*float64{&m.NDCG10, &m.MRR10, &m.Recall10, &m.Recall100, &m.AllGold10}
}

// A Difference is the mean difference in nDCG@10 of one ranking to another over the same queries.
// Its bounds are computed like those of a Row. If both are above 0, the choice of queries does not
// explain the difference.
type Difference struct {
	Ranking string  `json:"ranking"` // the other one
	NDCG10  float64 `json:"ndcg@10"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// Compare returns the difference of row to other. Both must have the same queries in the same
// order; if their numbers differ, the bounds are left at 0.
func Compare(row, other Row) Difference {
	d := Difference{Ranking: other.Ranking, NDCG10: row.NDCG10 - other.NDCG10}
	if len(row.PerQuery) != len(other.PerQuery) {
		return d
	}
	differences := make([]float64, len(row.PerQuery))
	for i := range differences {
		differences[i] = row.PerQuery[i].NDCG10 - other.PerQuery[i].NDCG10
	}
	b := stat.Bootstrap(differences)
	d.Low, d.High = b.Low, b.High
	return d
}
