package metric

import (
	"iter"
	"math"
	"slices"
)

// A Gain maps a grade to its weight in a ranking. It is 0 for grade 0 and grows with the grade.
type Gain func(grade int) float64

// Exponential is the gain 2^grade-1, which favours the best grade strongly. Source: Burges et al.,
// "Learning to rank using gradient descent", ICML 2005.
func Exponential(grade int) float64 { return math.Exp2(float64(grade)) - 1 }

// Linear is the grade itself, as in trec_eval and the published figures of BEIR. If every grade is
// 0 or 1 the two gains are the same. Source: Järvelin and Kekäläinen, as of NDCG.
func Linear(grade int) float64 { return float64(grade) }

// NDCG is the normalised discounted cumulative gain of the first k of a ranking, in [0, 1]. It is
// the sum of gain/log2(rank+1), divided by that of the best possible order, which is also cut at k.
//
// As in all ranking measures, ranked holds IDs, best first. A repeated ID counts once, at its first
// rank. Relevant maps IDs to grades, and those of grade 1 and up are relevant. If nothing is
// relevant, the measure is 0.
//
// Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002,
// with the discount of trec_eval's ndcg_cut.
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

// AveragePrecision is the mean, over all relevant documents, of the precision at the rank of each.
// Documents not among the first k count 0. Its mean over questions is MAP. Source: Buckley and
// Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; trec_eval's map_cut.
func AveragePrecision(ranked []string, relevant map[string]int, k int) float64 {
	sum, hits := 0.0, 0
	for rank := range found(ranked, relevant, k) {
		hits++
		sum += float64(hits) / float64(rank)
	}
	return share(sum, float64(relevantOf(relevant)))
}

// ReciprocalRank is 1/rank of the first relevant document among the first k, or 0. Its mean over
// questions is MRR. Source: Voorhees, "The TREC-8 question answering track report", TREC 1999;
// trec_eval's recip_rank, which has no k.
func ReciprocalRank(ranked []string, relevant map[string]int, k int) float64 {
	for rank := range found(ranked, relevant, k) {
		return 1 / float64(rank)
	}
	return 0
}

// Recall is the share of the relevant documents that is among the first k. Source: van Rijsbergen,
// "Information Retrieval", 1979; trec_eval's recall_k.
func Recall(ranked []string, relevant map[string]int, k int) float64 {
	return share(float64(hits(ranked, relevant, k)), float64(relevantOf(relevant)))
}

// Precision is the share of the first k that is relevant. Missing places of a shorter ranking count
// as not relevant. Source: as of Recall; trec_eval's P_k.
func Precision(ranked []string, relevant map[string]int, k int) float64 {
	return share(float64(hits(ranked, relevant, k)), float64(k))
}

// Hit is 1 if a relevant document is among the first k, else 0. Source: trec_eval's success_k.
func Hit(ranked []string, relevant map[string]int, k int) float64 {
	return one(hits(ranked, relevant, k) > 0)
}

// AllGold is 1 if all relevant documents are among the first k, else 0. It suits questions that
// need several documents together. If more than k documents are relevant it is 0. Source: "all
// recall" of multi-hop retrieval, as in Xiong et al., "Answering complex open-domain questions with
// multi-hop dense retrieval", ICLR 2021.
func AllGold(ranked []string, relevant map[string]int, k int) float64 {
	n := relevantOf(relevant)
	return one(n > 0 && hits(ranked, relevant, k) == n)
}

// found yields the ranks, from 1, and grades of the relevant documents among the first k.
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

// relevantOf returns the number of relevant documents.
func relevantOf(relevant map[string]int) int {
	n := 0
	for _, grade := range relevant {
		if grade > 0 {
			n++
		}
	}
	return n
}

// share returns part/whole, or 0 if whole is 0.
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
