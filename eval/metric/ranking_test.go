package metric_test

import (
	"math"
	"testing"

	"github.com/assay-rag/assay/eval/metric"
)

// near reports whether two figures agree to four decimals.
func near(a, b float64) bool { return math.Abs(a-b) < 0.00005 }

// at binds the k of a ranking measure.
func at(k int, of func([]string, map[string]int, int) float64) func([]string, map[string]int) float64 {
	return func(ranked []string, relevant map[string]int) float64 { return of(ranked, relevant, k) }
}

func ndcg(k int, gain metric.Gain) func([]string, map[string]int) float64 {
	return func(ranked []string, relevant map[string]int) float64 { return metric.NDCG(ranked, relevant, k, gain) }
}

func TestRankings(t *testing.T) {
	// Five documents were found. "a", "c" and "z" are relevant, with grades 1, 3 and 2, and "z" was
	// not found. Discounts 1/log2(rank+1): 1, .63093, .5, .43068, .38685.
	ranked := []string{"a", "b", "c", "d", "e"}
	relevant := map[string]int{"a": 1, "c": 3, "z": 2, "b": 0}
	tests := []struct {
		name string
		of   func([]string, map[string]int) float64
		want float64
	}{
		// (1·1 + 7·.5) / (7·1 + 3·.63093 + 1·.5) = 4.5 / 9.39279
		{"ndcg@10, exponential", ndcg(10, metric.Exponential), 0.4791},
		// (1·1 + 3·.5) / (3·1 + 2·.63093 + 1·.5) = 2.5 / 4.76186
		{"ndcg@10, linear", ndcg(10, metric.Linear), 0.5250},
		// 1·1 / (7·1 + 3·.63093): both cut at 2
		{"ndcg@2, exponential", ndcg(2, metric.Exponential), 0.1125},
		// 1·1 / 3·1
		{"ndcg@1, linear", ndcg(1, metric.Linear), 0.3333},
		// (1/1 + 2/3 + 0) / 3
		{"average precision", at(100, metric.AveragePrecision), 0.5556},
		// (1/1 + 0 + 0) / 3
		{"average precision@2", at(2, metric.AveragePrecision), 0.3333},
		{"reciprocal rank", at(10, metric.ReciprocalRank), 1},
		// 2 of 3
		{"recall@10", at(10, metric.Recall), 0.6667},
		{"recall@2", at(2, metric.Recall), 0.3333},
		// 2 of 10 places, though only 5 are taken
		{"precision@10", at(10, metric.Precision), 0.2},
		// 2 of 3 places
		{"precision@3", at(3, metric.Precision), 0.6667},
		{"hit@1", at(1, metric.Hit), 1},
		{"all gold@10", at(10, metric.AllGold), 0},
		{"nothing is asked for", at(0, metric.Recall), 0},
	}
	for _, tt := range tests {
		if got := tt.of(ranked, relevant); !near(got, tt.want) {
			t.Errorf("%s = %.5f, want %.4f", tt.name, got, tt.want)
		}
	}
}

func TestRankingsAtTheEdges(t *testing.T) {
	relevant := map[string]int{"a": 1, "b": 1}
	tests := []struct {
		name     string
		ranked   []string
		relevant map[string]int
		of       func([]string, map[string]int) float64
		want     float64
	}{
		{"nothing was found", nil, relevant, ndcg(10, metric.Exponential), 0},
		{"nothing is relevant", []string{"a"}, nil, ndcg(10, metric.Exponential), 0},
		{"nothing is relevant: recall", []string{"a"}, map[string]int{"a": 0}, at(10, metric.Recall), 0},
		{"nothing is relevant: all gold", []string{"a"}, nil, at(10, metric.AllGold), 0},
		{"all gold, in any order", []string{"b", "x", "a"}, relevant, at(3, metric.AllGold), 1},
		{"all gold, cut", []string{"b", "x", "a"}, relevant, at(2, metric.AllGold), 0},
		{"what comes again counts once: recall", []string{"a", "a"}, relevant, at(10, metric.Recall), 0.5},
		{"what comes again counts once: precision", []string{"a", "a"}, relevant, at(2, metric.Precision), 0.5},
		// (1/1 + 2/3) / 2
		{"what comes again takes its place: average precision", []string{"a", "a", "b"}, relevant, at(10, metric.AveragePrecision), 0.8333},
		{"a hit at the last rank", []string{"x", "y", "a"}, relevant, at(3, metric.ReciprocalRank), 0.3333},
		{"a hit after the last rank", []string{"x", "y", "a"}, relevant, at(2, metric.ReciprocalRank), 0},
		{"no hit", []string{"x"}, relevant, at(10, metric.Hit), 0},
	}
	for _, tt := range tests {
		if got := tt.of(tt.ranked, tt.relevant); !near(got, tt.want) {
			t.Errorf("%s = %.5f, want %.4f", tt.name, got, tt.want)
		}
	}
}

// TestPublishedTrecEval compares with the figures in the README of pytrec_eval, a wrapper of
// trec_eval.
func TestPublishedTrecEval(t *testing.T) {
	tests := []struct {
		query     string
		ranked    []string // by the example's scores
		relevant  map[string]int
		ndcg, mAP float64
	}{
		{"q1", []string{"d3", "d1", "d2"}, map[string]int{"d1": 0, "d2": 1, "d3": 0}, 0.5, 0.3333333333333333},
		{"q2", []string{"d1", "d3", "d2"}, map[string]int{"d2": 1, "d3": 1}, 0.6934264036172708, 0.5833333333333333},
	}
	for _, tt := range tests {
		if got := metric.NDCG(tt.ranked, tt.relevant, 1000, metric.Linear); math.Abs(got-tt.ndcg) > 1e-12 {
			t.Errorf("%s: nDCG = %v, want %v", tt.query, got, tt.ndcg)
		}
		if got := metric.AveragePrecision(tt.ranked, tt.relevant, 1000); math.Abs(got-tt.mAP) > 1e-12 {
			t.Errorf("%s: average precision = %v, want %v", tt.query, got, tt.mAP)
		}
	}
}
