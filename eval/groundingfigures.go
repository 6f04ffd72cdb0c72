package eval

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/ground"
)

// Judged is one claim that a verifier has judged.
type Judged struct {
	ID      string // of the case
	Gold    assay.Verdict
	Verdict assay.Verdict
	Score   float64 // the verifier's probability of Supported, in [0, 1]
	Reason  string
	Refused string        // by a hard check, see ground.Judgement
	Kind    string        // of the case
	Spans   []ground.Span // of the text of GroundingCase.Cited
}

// GroundingFigures are how well a verifier judges claims.
type GroundingFigures struct {
	Claims int                   `json:"claims"`
	Gold   map[assay.Verdict]int `json:"gold"` // how many claims are so labelled

	// BalancedAccuracy is the mean of two shares: of the supported claims that are called
	// so, and of the others that are not. Of a file with one kind only it is that share.
	BalancedAccuracy float64 `json:"balanced_accuracy"`

	// F1 is 2·TP / (2·TP + FP + FN) for each verdict; nil where no claim is labelled with it.
	F1 map[assay.Verdict]*float64 `json:"f1"`

	// MacroF1 is the mean F1 of the verdicts that some claim is labelled with: of two
	// where no claim is labelled contradicted. Such a file does not tell contradicted from
	// unsupported, and a claim that is called the one counts there as the other.
	MacroF1 float64 `json:"macro_f1"`

	// ECE is the expected calibration error: over ten ranges of scores of one width the
	// mean, weighted by claims, of how far the share of supported claims is from the mean
	// score. Source: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated
	// probabilities using Bayesian binning", AAAI 2015.
	ECE float64 `json:"ece"`

	// AUC is the share of pairs of a supported and another claim in which the supported
	// one has the higher score, ties counted half; nil where there are no such pairs.
	AUC *float64 `json:"auc"`

	Calibration []CalibrationBin `json:"calibration,omitempty"`

	// Refused counts the claims that a hard check refused, by whether they are labelled
	// supported. Kinds are the figures of each kind of claim, for sets that name kinds.
	Refused struct {
		Rightly int `json:"rightly"`
		Wrongly int `json:"wrongly"`
	} `json:"refused"`
	Kinds []KindFigures `json:"kinds,omitempty"`
}

// KindFigures count the claims of one kind and the supported verdicts on them.
type KindFigures struct {
	Kind      string `json:"kind"`
	Claims    int    `json:"claims"`
	Supported int    `json:"supported"` // are called so
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

// FiguresOf measures judged claims. A score that is not in [0, 1] panics; JudgeGrounding
// returns none.
func FiguresOf(judged []Judged) GroundingFigures {
	f := GroundingFigures{Claims: len(judged), Gold: map[assay.Verdict]int{}, F1: map[assay.Verdict]*float64{}}
	called, hit := map[assay.Verdict]int{}, map[assay.Verdict]int{}
	right, of := [2]int{}, [2]int{}
	for _, j := range judged {
		f.Gold[j.Gold]++
		f.countKind(j)
	}
	for _, j := range judged {
		if j.Verdict == assay.Contradicted && f.Gold[assay.Contradicted] == 0 {
			j.Verdict = assay.Unsupported
		}
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
		f.F1[v] = nil
		if f.Gold[v] > 0 {
			f1 := 2 * float64(hit[v]) / float64(called[v]+f.Gold[v])
			f.F1[v] = &f1
			f.MacroF1 += f1
			classes++
		}
	}
	f.MacroF1 /= max(classes, 1)
	scores, supported := scoresOf(judged)
	bins := stat.Bins(scores, supported, calibrationBins)
	f.ECE = stat.ECE(bins)
	for _, b := range bins {
		if b.Cases > 0 {
			f.Calibration = append(f.Calibration, CalibrationBin{Low: b.Low, High: b.High, Claims: b.Cases, Score: b.Score, Supported: b.Right})
		}
	}
	if area, ok := stat.AUC(scores, supported); ok {
		f.AUC = &area
	}
	return f
}

// countKind counts a claim by its kind and by whether a hard check refused it.
func (f *GroundingFigures) countKind(j Judged) {
	switch {
	case j.Refused == "":
	case j.Gold == assay.Supported:
		f.Refused.Wrongly++
	default:
		f.Refused.Rightly++
	}
	if j.Kind == "" {
		return
	}
	i := slices.IndexFunc(f.Kinds, func(k KindFigures) bool { return k.Kind == j.Kind })
	if i < 0 {
		i = len(f.Kinds)
		f.Kinds = append(f.Kinds, KindFigures{Kind: j.Kind})
	}
	f.Kinds[i].Claims++
	if j.Verdict == assay.Supported {
		f.Kinds[i].Supported++
	}
}

// scoresOf is what the measures of scores take: the scores, and which claims are supported.
func scoresOf(judged []Judged) (scores []float64, supported []bool) {
	for _, j := range judged {
		scores, supported = append(scores, j.Score), append(supported, j.Gold == assay.Supported)
	}
	return scores, supported
}
