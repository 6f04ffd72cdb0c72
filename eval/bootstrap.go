package eval

import "github.com/assay-rag/assay/eval/stat"

// interval returns the bounds within which the mean of 95 in 100 draws lies, of
// each metric by itself.
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

// values are the places of the metrics.
func (m *Metrics) values() [5]*float64 {
	return [5]*float64{&m.NDCG10, &m.MRR10, &m.Recall10, &m.Recall100, &m.AllGold10}
}

// A Difference is how much better one ranking is than another in nDCG@10, the
// mean over queries of the difference, with bounds as those of a Row: where both
// are above 0, it is not by the choice of the queries alone.
type Difference struct {
	Ranking string  `json:"ranking"` // the other
	NDCG10  float64 `json:"ndcg@10"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// Compare returns by how much row is better than other, which holds the same
// queries.
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

// meanOf returns the mean of xs, one for each question, with its bounds.
func meanOf(xs []float64) Mean {
	b := stat.Bootstrap(xs)
	return Mean{Mean: b.Mean, Low: b.Low, High: b.High}
}
