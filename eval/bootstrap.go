package eval

import "github.com/assay-rag/assay/eval/stat"

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

// meanOf returns the mean of xs, one value per question, with its bounds.
func meanOf(xs []float64) Mean {
	b := stat.Bootstrap(xs)
	return Mean{Mean: b.Mean, Low: b.Low, High: b.High}
}
