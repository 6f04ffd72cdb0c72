package metric_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-rag/assay/eval/metric"
)

// drawn returns a ranking of up to 30 of 40 documents, and judgements of some of them.
func drawn(random *rand.Rand) (ranked []string, relevant map[string]int) {
	relevant = map[string]int{}
	for _, i := range random.Perm(40)[:random.IntN(31)] {
		ranked = append(ranked, fmt.Sprint(i))
	}
	for range random.IntN(12) {
		relevant[fmt.Sprint(random.IntN(40))] = random.IntN(4)
	}
	return ranked, relevant
}

// TestRankingProperties checks that measures are in [0, 1], that the best order has an nDCG of 1,
// and that no measure falls if a relevant document changes places with an irrelevant one above it.
func TestRankingProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 10))
	measures := map[string]func([]string, map[string]int) float64{
		"nDCG, exponential": ndcg(10, metric.Exponential), "nDCG, linear": ndcg(10, metric.Linear),
		"average precision": at(20, metric.AveragePrecision), "reciprocal rank": at(10, metric.ReciprocalRank),
		"recall": at(10, metric.Recall), "precision": at(10, metric.Precision), "hit": at(5, metric.Hit), "all gold": at(10, metric.AllGold),
	}
	for range 2000 {
		ranked, relevant := drawn(random)
		better := slices.Clone(ranked)
		if len(ranked) > 1 {
			i, j := random.IntN(len(ranked)), random.IntN(len(ranked))
			if i > j {
				i, j = j, i
			}
			if relevant[better[i]] == 0 && relevant[better[j]] > 0 {
				better[i], better[j] = better[j], better[i]
			}
		}
		for name, of := range measures {
			x, y := of(ranked, relevant), of(better, relevant)
			if !(x >= 0 && x <= 1) || y < x-1e-12 {
				t.Fatalf("%s = %v of %v, %v of %v, for %v", name, x, ranked, y, better, relevant)
			}
		}
		var ideal []string
		for id, grade := range relevant {
			if grade > 0 {
				ideal = append(ideal, id)
			}
		}
		slices.SortFunc(ideal, func(a, b string) int { return relevant[b] - relevant[a] })
		if x := metric.NDCG(ideal, relevant, 10, metric.Exponential); len(ideal) > 0 && !near(x, 1) {
			t.Fatalf("nDCG of the best order %v is %v, for %v", ideal, x, relevant)
		}
	}
}

// TestClaimProperties checks that measures are in [0, 1] for any verdicts, and that F1 lies between
// precision and recall.
func TestClaimProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	coin := func() bool { return random.IntN(2) == 0 }
	for range 2000 {
		in := metric.Input{Judged: map[string]float64{}}
		for range random.IntN(5) {
			in.Contexts = append(in.Contexts, metric.Context{Used: coin(), Relevant: coin()})
		}
		for range random.IntN(5) {
			c := metric.Claim{Held: coin(), Cited: coin()}
			for range random.IntN(4) {
				c.Cites = append(c.Cites, metric.Cite{Alone: coin(), Rest: coin()})
			}
			if right := coin(); coin() {
				c.Right = &right
			}
			for range random.IntN(3) {
				c.By = append(c.By, random.IntN(6)-1)
			}
			in.Claims = append(in.Claims, c)
		}
		for name, x := range metric.Of(in) {
			if !(x >= 0 && x <= 1) {
				t.Fatalf("%s = %v of %+v", name, x, in)
			}
		}
		if f1, p, r := metric.CitationF1(in.Claims), metric.CitationPrecision(in.Claims), metric.CitationRecall(in.Claims); f1 > max(p, r)+1e-12 || f1 < min(p, r)-1e-12 {
			t.Fatalf("F1 %v is not between %v and %v", f1, p, r)
		}
	}
}

// FuzzWords checks that any text matches and contains itself.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"The cat.", "", "a", "北京 1,350", "don't", "\xff\xfe", "Ǆ İ ß", "€5 (the a)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answers := []string{text}
		if metric.ExactMatch(text, answers) != 1 || metric.F1(text, answers) != 1 || len(metric.Words(text)) > 0 && metric.Contains(text, answers) != 1 {
			t.Errorf("%q is not itself: %q", text, metric.Words(text))
		}
	})
}
