package eval

import "github.com/assay-rag/assay/eval/metric"

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
