package stat

import (
	"cmp"
	"slices"
)

// AUC returns the area under the receiver operating characteristic curve. It is the share of pairs
// of a right and a wrong case in which the right one has the higher score, with ties counted half.
// It is in [0, 1], and 0.5 is chance; ok is false if there are no such pairs. Scores may be on any
// scale. AUC panics if the slices have different lengths.
//
// Source: Hanley and McNeil, "The meaning and use of the area under a receiver operating
// characteristic (ROC) curve", Radiology 1982, computed by ranks as by Mann and Whitney.
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
