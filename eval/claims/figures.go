package claims

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/ground"
)

// Judged is a claim with the judgement of a verifier.
type Judged struct {
	ID      string // of the case
	Gold    assay.Verdict
	Verdict assay.Verdict
	Score   float64 // the verifier's probability of Supported, in [0, 1]
	Reason  string
	Refused string        // reason of the hard check that refused it; see ground.Judgement
	Kind    string        // of the case
	Spans   []ground.Span // of the text of Case.Cited
}

// Figures measure the judgements of a verifier.
type Figures struct {
	Claims int                   `json:"claims"`
	Gold   map[assay.Verdict]int `json:"gold"` // number of claims by label

	// BalancedAccuracy is the mean of two shares: the supported claims with the verdict Supported,
	// and the other claims with another verdict. If a file has only one of these kinds, it is the
	// share of that kind.
	BalancedAccuracy float64 `json:"balanced_accuracy"`

	// F1 is 2·TP / (2·TP + FP + FN) for each verdict; nil for verdicts that are not labels.
	F1 map[assay.Verdict]*float64 `json:"f1"`

	// MacroF1 is the mean F1 of the verdicts that are labels. If Contradicted is not a
	// label, the verdict Contradicted counts as Unsupported.
	MacroF1 float64 `json:"macro_f1"`

	// ECE is the expected calibration error: the mean over ten equal ranges of scores,
	// weighted by claims, of the difference between the share of supported claims and the
	// mean score. Source: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated
	// probabilities using Bayesian binning", AAAI 2015.
	ECE float64 `json:"ece"`

	// AUC is the share of pairs of a supported and another claim in which the supported
	// one has the higher score, ties counted half; nil if there are no such pairs.
	AUC *float64 `json:"auc"`

	Calibration []CalibrationBin `json:"calibration,omitempty"`

	// Refused counts the claims that a hard check rejected. A rejection is right if the claim is
	// not labelled supported. Kinds has the figures for each kind of claim, if the set names kinds.
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
	Supported int    `json:"supported"` // claims with this verdict
}

// A CalibrationBin holds the claims with a score in [Low, High). The last bin includes High.
type CalibrationBin struct {
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Claims    int     `json:"claims"`
	Score     float64 `json:"score"`     // mean
	Supported float64 `json:"supported"` // share of claims with this label
}

// verdictOrder is the order in which verdicts are shown.
var verdictOrder = []assay.Verdict{assay.Supported, assay.Contradicted, assay.Unsupported}

// bins is the number of bins of the calibration curve.
const bins = 10

// FiguresOf measures judged claims. It panics if a score is not in [0, 1], which
// Judge never returns.
func FiguresOf(judged []Judged) Figures {
	f := Figures{Claims: len(judged), Gold: map[assay.Verdict]int{}}
	for _, j := range judged {
		f.Gold[j.Gold]++
		f.countKind(j)
	}
	f.BalancedAccuracy = balancedAccuracy(judged)
	f.F1, f.MacroF1 = f1Of(judged, f.Gold)
	scores, supported := scoresOf(judged)
	curve := stat.Bins(scores, supported, bins)
	f.ECE = stat.ECE(curve)
	for _, b := range curve {
		if b.Cases > 0 {
			f.Calibration = append(f.Calibration, CalibrationBin{Low: b.Low, High: b.High, Claims: b.Cases, Score: b.Score, Supported: b.Right})
		}
	}
	if area, ok := stat.AUC(scores, supported); ok {
		f.AUC = &area
	}
	return f
}

// balancedAccuracy returns the mean accuracy on supported claims and on others.
func balancedAccuracy(judged []Judged) float64 {
	right, all := map[bool]int{}, map[bool]int{} // by whether the label is Supported
	for _, j := range judged {
		gold := j.Gold == assay.Supported
		all[gold]++
		if gold == (j.Verdict == assay.Supported) {
			right[gold]++
		}
	}
	sum := 0.0
	for _, gold := range []bool{false, true} {
		if all[gold] > 0 {
			sum += float64(right[gold]) / float64(all[gold])
		}
	}
	return sum / float64(max(len(all), 1))
}

// f1Of returns the F1 of each verdict and the mean over those that are labels.
func f1Of(judged []Judged, gold map[assay.Verdict]int) (f1 map[assay.Verdict]*float64, macro float64) {
	called, hit := map[assay.Verdict]int{}, map[assay.Verdict]int{}
	for _, j := range judged {
		if j.Verdict == assay.Contradicted && gold[assay.Contradicted] == 0 {
			j.Verdict = assay.Unsupported
		}
		called[j.Verdict]++
		if j.Gold == j.Verdict {
			hit[j.Gold]++
		}
	}
	f1 = map[assay.Verdict]*float64{}
	for _, v := range verdictOrder {
		f1[v] = nil
		if gold[v] > 0 {
			x := 2 * float64(hit[v]) / float64(called[v]+gold[v])
			f1[v] = &x
			macro += x
		}
	}
	return f1, macro / float64(max(len(gold), 1))
}

// countKind counts a claim by its kind and by whether a hard check refused it.
func (f *Figures) countKind(j Judged) {
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

// scoresOf returns the scores of claims, and which claims are labelled Supported.
func scoresOf(judged []Judged) (scores []float64, supported []bool) {
	for _, j := range judged {
		scores, supported = append(scores, j.Score), append(supported, j.Gold == assay.Supported)
	}
	return scores, supported
}
