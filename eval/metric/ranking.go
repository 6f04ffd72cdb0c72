package metric

import (
	"iter"
	"math"
	"slices"
)

// A Gain is what a document of a grade is worth in a ranking. It is 0 for grade 0 and
// grows with the grade.
type Gain func(grade int) float64

// Exponential is the gain 2^grade-1, by which the best grade counts far more than those
// below it. Source: Burges et al., "Learning to rank using gradient descent", ICML 2005.
func Exponential(grade int) float64 { return math.Exp2(float64(grade)) - 1 }

// Linear is the grade itself, as trec_eval and the published figures of BEIR have it.
// Where every grade is 0 or 1 the two gains are the same. Source: Järvelin and
// Kekäläinen, as of NDCG.
func Linear(grade int) float64 { return float64(grade) }

// NDCG is the normalised discounted cumulative gain of the first k of a ranking, in
// [0, 1]: the sum of gain/log2(rank+1), divided by that of the best order there is, cut
// at k too.
//
// As in all measures of rankings, ranked are IDs, best first; one that comes again
// counts once, where it came first. Relevant maps IDs to grades; those of grade 1 and up
// are relevant. Where nothing is relevant, the measure is 0.
//
// Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
// TOIS 2002, with the discount of trec_eval's ndcg_cut.
func NDCG(ranked []string, relevant map[string]int, k int, gain Gain) float64 {
	discount := func(rank int) float64 { return 1 / math.Log2(float64(rank)+1) }
	dcg := 0.0
	for rank, grade := range found(ranked, relevant, k) {
		dcg += gain(grade) * discount(rank)
	}
	grades := make([]int, 0, len(relevant))
	for _, g := range relevant {
		if g > 0 {
			grades = append(grades, g)
		}
	}
	slices.Sort(grades)
	slices.Reverse(grades)
	ideal := 0.0
	for i, g := range grades[:min(len(grades), k)] {
		ideal += gain(g) * discount(i+1)
	}
	return share(dcg, ideal)
}

// AveragePrecision is the mean, over all that is relevant, of the precision at the rank
// where each was found, and of 0 for what is not among the first k. Its mean over
// questions is MAP. Source: Buckley and Voorhees, "Evaluating evaluation measure
// stability", SIGIR 2000; trec_eval's map_cut.
func AveragePrecision(ranked []string, relevant map[string]int, k int) float64 {
	sum, hits := 0.0, 0
	for rank := range found(ranked, relevant, k) {
		hits++
		sum += float64(hits) / float64(rank)
	}
	return share(sum, float64(relevantOf(relevant)))
}

// ReciprocalRank is 1/rank of the first of the first k that is relevant, or 0. Its mean
// over questions is MRR. Source: Voorhees, "The TREC-8 question answering track report",
// TREC 1999; trec_eval's recip_rank, which has no k.
func ReciprocalRank(ranked []string, relevant map[string]int, k int) float64 {
	for rank := range found(ranked, relevant, k) {
		return 1 / float64(rank)
	}
	return 0
}

// Recall is the share of what is relevant that is among the first k. Source: van
// Rijsbergen, "Information Retrieval", 1979; trec_eval's recall_k.
func Recall(ranked []string, relevant map[string]int, k int) float64 {
	return share(float64(hits(ranked, relevant, k)), float64(relevantOf(relevant)))
}

// Precision is the share of the first k that is relevant; places of a ranking that is
// shorter count as not relevant. Source: as of Recall; trec_eval's P_k.
func Precision(ranked []string, relevant map[string]int, k int) float64 {
	return share(float64(hits(ranked, relevant, k)), float64(k))
}

// Hit is 1 where something relevant is among the first k, else 0. Source: trec_eval's
// success_k.
func Hit(ranked []string, relevant map[string]int, k int) float64 {
	return one(hits(ranked, relevant, k) > 0)
}

// AllGold is 1 where all that is relevant is among the first k, else 0: what a question
// needs that is answered from several places together. Where more than k are relevant it
// is 0. Source: "all recall" of multi-hop retrieval, as in Xiong et al., "Answering
// complex open-domain questions with multi-hop dense retrieval", ICLR 2021.
func AllGold(ranked []string, relevant map[string]int, k int) float64 {
	n := relevantOf(relevant)
	return one(n > 0 && hits(ranked, relevant, k) == n)
}

// found goes through the ranks, from 1, and grades of what is relevant among the first k.
func found(ranked []string, relevant map[string]int, k int) iter.Seq2[int, int] {
	return func(yield func(rank, grade int) bool) {
		seen := map[string]bool{}
		for i, id := range ranked[:min(len(ranked), max(k, 0))] {
			grade := relevant[id]
			if grade <= 0 || seen[id] {
				continue
			}
			seen[id] = true
			if !yield(i+1, grade) {
				return
			}
		}
	}
}

func hits(ranked []string, relevant map[string]int, k int) int {
	n := 0
	for range found(ranked, relevant, k) {
		n++
	}
	return n
}

// relevantOf is how many are.
func relevantOf(relevant map[string]int) int {
	n := 0
	for _, grade := range relevant {
		if grade > 0 {
			n++
		}
	}
	return n
}

// share returns part/whole, and 0 where there is no whole.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
