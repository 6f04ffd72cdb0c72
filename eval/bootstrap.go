package eval

import (
	"math/rand/v2"
	"slices"
)

// resamples is how many sets of queries are drawn: with 1,000 the bounds are
// steady to the third digit.
const resamples = 1000

// bootstrap calls each with the draws of as many queries as there are, with
// replacement. The same n gives the same draws, so rankings of the same queries
// are compared on the same draws.
//
// Source: Efron, "Bootstrap methods: another look at the jackknife", Annals of
// Statistics 1979, with percentile intervals.
func bootstrap(n int, each func(draw []int)) {
	random := rand.New(rand.NewPCG(1979, uint64(n)))
	draw := make([]int, n)
	for range resamples {
		for i := range draw {
			draw[i] = random.IntN(n)
		}
		each(draw)
	}
}

// interval returns the bounds within which the mean of 95 in 100 draws lies, of
// each metric by itself.
func interval(ms []Metrics) (low, high Metrics) {
	if len(ms) == 0 {
		return Metrics{}, Metrics{}
	}
	var means [5][]float64
	drawn := make([]Metrics, len(ms))
	bootstrap(len(ms), func(draw []int) {
		for i, j := range draw {
			drawn[i] = ms[j]
		}
		m := mean(drawn)
		for i, x := range m.values() {
			means[i] = append(means[i], *x)
		}
	})
	lows, highs := low.values(), high.values()
	for i := range means {
		*lows[i], *highs[i] = bounds(means[i])
	}
	return low, high
}

// values are the places of the metrics.
func (m *Metrics) values() [5]*float64 {
	return [5]*float64{&m.NDCG10, &m.MRR10, &m.Recall10, &m.Recall100, &m.AllGold10}
}

// bounds returns the 2.5th and the 97.5th percentile; it sorts xs.
func bounds(xs []float64) (low, high float64) {
	slices.Sort(xs)
	cut := len(xs) / 40
	return xs[cut], xs[len(xs)-1-cut]
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
	n := len(row.PerQuery)
	d := Difference{Ranking: other.Ranking, NDCG10: row.NDCG10 - other.NDCG10}
	if n == 0 || n != len(other.PerQuery) {
		return d
	}
	var means []float64
	bootstrap(n, func(draw []int) {
		sum := 0.0
		for _, i := range draw {
			sum += row.PerQuery[i].NDCG10 - other.PerQuery[i].NDCG10
		}
		means = append(means, sum/float64(n))
	})
	d.Low, d.High = bounds(means)
	return d
}

// meanOf returns the mean of xs, one for each question, with its bounds.
func meanOf(xs []float64) Mean {
	if len(xs) == 0 {
		return Mean{}
	}
	sum := func(at func(i int) float64) float64 {
		s := 0.0
		for i := range xs {
			s += at(i)
		}
		return s / float64(len(xs))
	}
	m := Mean{Mean: sum(func(i int) float64 { return xs[i] })}
	var means []float64
	bootstrap(len(xs), func(draw []int) {
		means = append(means, sum(func(i int) float64 { return xs[draw[i]] }))
	})
	m.Low, m.High = bounds(means)
	return m
}
