package retrieval

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestInterval compares the bounds with those of a normal distribution, which the mean of many
// queries approximates.
func TestInterval(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ms := make([]Metrics, 400)
	better := make([]Metrics, len(ms))
	var squares float64
	for i := range ms {
		x := random.Float64()
		ms[i] = Metrics{NDCG10: x, AllGold10: math.Round(x)}
		better[i] = Metrics{NDCG10: x + 0.01 + 0.001*random.NormFloat64()}
	}
	m := Mean(ms)
	for _, x := range ms {
		squares += (x.NDCG10 - m.NDCG10) * (x.NDCG10 - m.NDCG10)
	}
	half := 1.96 * math.Sqrt(squares) / float64(len(ms))
	low, high := interval(ms)
	if math.Abs(m.NDCG10-half-low.NDCG10) > 0.1*half || math.Abs(m.NDCG10+half-high.NDCG10) > 0.1*half {
		t.Errorf("nDCG@10 is within %.4f and %.4f, want about %.4f and %.4f", low.NDCG10, high.NDCG10, m.NDCG10-half, m.NDCG10+half)
	}
	if !(low.AllGold10 < m.AllGold10 && m.AllGold10 < high.AllGold10) || low.MRR10 != 0 || high.MRR10 != 0 {
		t.Errorf("interval = %+v and %+v around %+v", low, high, m)
	}
	if again, _ := interval(ms); again != low {
		t.Errorf("interval gives %+v, then %+v", low, again)
	}
	// Variation that both rows share must not widen the bounds of the difference.
	d := Compare(Row{Metrics: Mean(better), PerQuery: better}, Row{Ranking: "plain", Metrics: m, PerQuery: ms})
	if d.Ranking != "plain" || !(0.0095 < d.Low && d.Low < d.NDCG10 && d.NDCG10 < d.High && d.High < 0.0105) {
		t.Errorf("Compare = %+v, want about 0.01", d)
	}
	if low, high := interval(nil); low != (Metrics{}) || high != (Metrics{}) {
		t.Errorf("interval of nothing = %+v, %+v", low, high)
	}
}
