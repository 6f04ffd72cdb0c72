package stat

import (
	"cmp"
	"slices"
)

// AUC is the area under the curve of receiver operating characteristics: the share of pairs
// of a right case and another one in which the right one has the higher score, ties counted
// half. It is in [0, 1], 0.5 is chance; ok is false where there are no such pairs. Scores
// may be of any scale; slices of different lengths panic.
//
// Source: Hanley and McNeil, "The meaning and use of the area under a receiver operating
// characteristic (ROC) curve", Radiology 1982, counted by ranks as Mann and Whitney do.
func AUC(scores []float64, right []bool) (area float64, ok bool) {
	if len(scores) != len(right) {
		panic("stat: a word on each score is needed")
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var positives, ranks float64
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && scores[order[j]] == scores[order[i]] {
			j++
		}
		rank := float64(i+j+1) / 2 // of all that are tied
		for ; i < j; i++ {
			if right[order[i]] {
				positives++
				ranks += rank
			}
		}
	}
	negatives := float64(len(scores)) - positives
	if positives == 0 || negatives == 0 {
		return 0, false
	}
	return (ranks - positives*(positives+1)/2) / (positives * negatives), true
}
