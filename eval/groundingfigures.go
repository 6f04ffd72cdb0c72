package eval

import (
	"slices"

	"github.com/assay-rag/assay"
)

// Judged is one claim that a verifier has judged.
type Judged struct {
	Gold    assay.Verdict
	Verdict assay.Verdict
	Score   float64 // the verifier's probability of Supported
}

// GroundingFigures are how well a verifier judges claims.
type GroundingFigures struct {
	Claims int                   `json:"claims"`
	Gold   map[assay.Verdict]int `json:"gold"` // how many claims are so labelled

	// BalancedAccuracy is the mean of two shares: of the supported claims that are called
	// so, and of the others that are not. Of a file with one kind only it is that share.
	BalancedAccuracy float64 `json:"balanced_accuracy"`

	// F1 is 2·TP / (2·TP + FP + FN) for each verdict; 0 where there is none of it.
	F1 map[assay.Verdict]float64 `json:"f1"`

	// MacroF1 is the mean F1 of the verdicts that some claim is labelled with: of two
	// where no claim is labelled contradicted. A claim that is called contradicted there
	// is missed by the verdict that it has.
	MacroF1 float64 `json:"macro_f1"`

	// ECE is the expected calibration error: over ten ranges of scores of one width the
	// mean, weighted by claims, of how far the share of supported claims is from the mean
	// score. Source: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated
	// probabilities using Bayesian binning", AAAI 2015.
	ECE float64 `json:"ece"`

	// AUC is the share of pairs of a supported and another claim in which the supported
	// one has the higher score, ties counted half; 0 where there are no such pairs.
	AUC float64 `json:"auc"`

	Calibration []CalibrationBin `json:"calibration,omitempty"`
}

// A CalibrationBin is the claims whose scores lie in [Low, High), the last one's in
// [Low, High].
type CalibrationBin struct {
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Claims    int     `json:"claims"`
	Score     float64 `json:"score"`     // their mean
	Supported float64 `json:"supported"` // the share of them that is labelled so
}

// Verdicts are the three verdicts in the order in which they are shown.
var verdictOrder = []assay.Verdict{assay.Supported, assay.Contradicted, assay.Unsupported}

// FiguresOf measures judged claims.
func FiguresOf(judged []Judged) GroundingFigures {
	f := GroundingFigures{Claims: len(judged), Gold: map[assay.Verdict]int{}, F1: map[assay.Verdict]float64{}}
	called, hit := map[assay.Verdict]int{}, map[assay.Verdict]int{}
	right, of := [2]int{}, [2]int{}
	for _, j := range judged {
		f.Gold[j.Gold]++
		called[j.Verdict]++
		if j.Gold == j.Verdict {
			hit[j.Gold]++
		}
		k := 0
		if j.Gold == assay.Supported {
			k = 1
		}
		of[k]++
		if (j.Verdict == assay.Supported) == (j.Gold == assay.Supported) {
			right[k]++
		}
	}
	kinds := 0.0
	for k := range of {
		if of[k] > 0 {
			f.BalancedAccuracy += float64(right[k]) / float64(of[k])
			kinds++
		}
	}
	f.BalancedAccuracy /= max(kinds, 1)
	classes := 0.0
	for _, v := range verdictOrder {
		f.F1[v] = 0
		if hit[v] > 0 {
			f.F1[v] = 2 * float64(hit[v]) / float64(called[v]+f.Gold[v])
		}
		if f.Gold[v] > 0 {
			f.MacroF1 += f.F1[v]
			classes++
		}
	}
	f.MacroF1 /= max(classes, 1)
	f.Calibration = calibrationOf(judged)
	for _, b := range f.Calibration {
		f.ECE += float64(b.Claims) / float64(len(judged)) * max(b.Score-b.Supported, b.Supported-b.Score)
	}
	f.AUC = aucOf(judged)
	return f
}

// calibrationOf sorts claims into ten ranges of scores; empty ones are left out.
func calibrationOf(judged []Judged) []CalibrationBin {
	const ranges = 10
	var bins [ranges]CalibrationBin
	for _, j := range judged {
		k := min(int(j.Score*ranges), ranges-1)
		bins[k].Claims++
		bins[k].Score += j.Score
		if j.Gold == assay.Supported {
			bins[k].Supported++
		}
	}
	var out []CalibrationBin
	for k, b := range bins {
		if b.Claims == 0 {
			continue
		}
		b.Low, b.High = float64(k)/ranges, float64(k+1)/ranges
		b.Score /= float64(b.Claims)
		b.Supported /= float64(b.Claims)
		out = append(out, b)
	}
	return out
}

// aucOf counts pairs by ranks, ties sharing theirs.
func aucOf(judged []Judged) float64 {
	sorted := slices.Clone(judged)
	slices.SortStableFunc(sorted, func(a, b Judged) int {
		switch {
		case a.Score < b.Score:
			return -1
		case a.Score > b.Score:
			return 1
		}
		return 0
	})
	var positives, ranks float64
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j].Score == sorted[i].Score {
			j++
		}
		rank := float64(i+j+1) / 2
		for ; i < j; i++ {
			if sorted[i].Gold == assay.Supported {
				positives++
				ranks += rank
			}
		}
	}
	negatives := float64(len(sorted)) - positives
	if positives == 0 || negatives == 0 {
		return 0
	}
	return (ranks - positives*(positives+1)/2) / (positives * negatives)
}
