package eval

import (
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
)

// A measured case is one with its features.
type measured struct {
	set     int  // index; of made cases one of their own
	group   int  // of cases that share a claim or a text: never on both sides of a fold
	made    bool // it is learned from, and not judged
	seeded  bool // made of no labelled claim
	answer  bool // of those by which the floor for what is shown is chosen
	verdict assay.Verdict
	against int // 1: it is contradicted, 0: it is not, -1: that cannot be told or it is supported
	ground.Measured
}

func (m measured) supported() bool { return m.verdict == assay.Supported }

// How the verifier is learned. Chosen with the three shared sets at hand: docs/evaluation.md
// says what else was tried.
const (
	treeRounds   = 120
	treeDepth    = 3
	treeSeeds    = 2
	linearRidge  = 0.02
	mixRidge     = 0.02
	madeWeight   = 0.4 // of all answers beside one set
	seededWeight = 0.2 // of all cases that are made of no labelled claim
	innerFolds   = 3
)

func boosting(seed uint64) learn.BoostConfig {
	return learn.BoostConfig{Rounds: treeRounds, Depth: treeDepth, Rate: 0.06, Ridge: 5, Least: 15, Rows: 0.7, Columns: 0.4, Seed: seed}
}

// fitVerifier learns a model from cases: its parts from all of them, and how their scores
// are mixed, become probabilities and verdicts from scores of cases that were left out.
func fitVerifier(cases []measured, names []string, nets []*learn.Bag, seed uint64) *ground.Model {
	m := fitParts(cases, names, nets, seed)
	signals := make([][]float64, len(cases))
	fold := foldsOf(cases, innerFolds, seed)
	for k := range innerFolds {
		part := fitParts(except(cases, fold, k), names, nets, seed)
		for i, c := range cases {
			if fold[i] == k {
				signals[i] = part.Signals(c.Measured)
			}
		}
	}
	settle(m, cases, signals)
	return m
}

// fitParts learns what a model mixes.
func fitParts(cases []measured, names []string, nets []*learn.Bag, seed uint64) *ground.Model {
	return &ground.Model{
		Features:  names,
		Supported: fitScorer(supportedRows(cases), names, seed), Contradicted: fitScorer(againstRows(cases), names, seed+1),
		Nets:  tuneEdits(nets, cases, seed),
		Slope: 1,
	}
}

// settle chooses how a model mixes its signals and what it makes of them, by those of
// cases that its like had not seen.
func settle(m *ground.Model, cases []measured, signals [][]float64) {
	for k, class := range []func(measured) int{
		func(c measured) int { return oneIf(c.supported()) },
		contradicted,
	} {
		var rows []learn.Row
		for i, w := range weigh(cases, class) {
			if w > 0 && (!cases[i].made || cases[i].answer) {
				rows = append(rows, learn.Row{Features: signals[i], Positive: class(cases[i]) == 1, Weight: w})
			}
		}
		m.Mix[k] = learn.Logistic(rows, mixRidge)
	}
	odds := make([][2]float64, len(cases))
	for i, x := range signals {
		odds[i] = [2]float64{m.Mix[0].LogOdds(x), m.Mix[1].LogOdds(x)}
	}
	calibrate(m, cases, odds)
	m.Shown = max(m.Balanced, shownFloor(m, cases, odds))
}

// leastCaught is the share of the changed answers that may not be shown where people act
// on what is.
const leastCaught = 0.95

// shownFloor returns the lowest floor at which leastCaught of the changed answers are not
// shown, those that have a veto among them; 0 without answers.
func shownFloor(m *ground.Model, cases []measured, odds [][2]float64) float64 {
	vetoed := func(c measured) bool {
		for i, name := range m.Features {
			if strings.HasPrefix(name, "rules.veto_") && c.Features[i] > 0 {
				return true
			}
		}
		return false
	}
	var wrong []float64
	for i, c := range cases {
		switch {
		case !c.answer || c.supported():
		case vetoed(c):
			wrong = append(wrong, 0)
		default:
			wrong = append(wrong, m.Probability(odds[i][0]))
		}
	}
	if len(wrong) == 0 {
		return 0
	}
	slices.Sort(wrong)
	return fourPlaces(wrong[min(int(leastCaught*float64(len(wrong))), len(wrong)-1)])
}

func except(cases []measured, fold []int, k int) []measured {
	var out []measured
	for i, c := range cases {
		if fold[i] != k {
			out = append(out, c)
		}
	}
	return out
}

// steady are the features of the linear half of a scorer: those that mean the same in any
// set. Held out by whole sets it does better with these than with all, and trees with all.
var steady = strings.Fields(`edit.supported edit.contradicted cover.near cover.all cover.least_best cover.spelt cover.missing
	size.claim size.evidence size.sentences kind.name_missing kind.number_missing kind.name_unseen order.pairs_all order.common
	order.gap vector.sentence vector.sentences vector.sentence_margin vector.word_mean vector.word_least vector.new_mean
	vector.best_mean vector.back fact.wrong fact.absent fact.uneven fact.same rules.veto_quantity rules.veto_name rules.score
	mark.uneven`)

// fitScorer grows trees over all features and fits a linear model of the steady ones.
func fitScorer(rows []learn.Row, names []string, seed uint64) ground.Scorer {
	if len(rows) == 0 {
		return ground.Scorer{Trees: &learn.Trees{}}
	}
	trees := make([]*learn.Trees, treeSeeds)
	for i := range trees {
		trees[i] = learn.Boost(rows, boosting(seed*treeSeeds+uint64(i)))
	}
	plain := slices.Clone(rows)
	for i, r := range rows {
		plain[i].Features = make([]float64, len(r.Features))
		for _, name := range steady {
			if k := slices.Index(names, name); k >= 0 {
				plain[i].Features[k] = r.Features[k]
			}
		}
	}
	return ground.Scorer{Trees: learn.Mean(trees...), Linear: learn.Logistic(plain, linearRidge)}
}

// supportedRows weighs sets alike, and within each the supported claims as the others.
func supportedRows(cases []measured) []learn.Row {
	return balanced(cases, func(c measured) int { return oneIf(c.supported()) })
}

// againstRows are the cases of which it is known whether the source says otherwise.
func againstRows(cases []measured) []learn.Row { return balanced(cases, contradicted) }

// contradicted is 1 where the source says otherwise, 0 where it does not, and -1 where that
// cannot be told.
func contradicted(c measured) int {
	if c.supported() {
		return 0
	}
	return c.against
}

// balanced makes rows of the cases whose class is 0 or 1.
func balanced(cases []measured, class func(measured) int) []learn.Row {
	var rows []learn.Row
	for i, w := range weigh(cases, class) {
		if w > 0 {
			rows = append(rows, learn.Row{Features: cases[i].Features, Positive: class(cases[i]) == 1, Weight: w})
		}
	}
	return rows
}

// weigh gives the cases whose class is 0 or 1 weights: both classes of a set alike, and all
// sets but made ones. A set with one class only has the weight of half a set.
func weigh(cases []measured, class func(measured) int) []float64 {
	const whole = 1000
	count := map[[2]int]int{}
	for _, c := range cases {
		if k := class(c); k >= 0 {
			count[[2]int{c.set, k}]++
		}
	}
	weights := make([]float64, len(cases))
	for i, c := range cases {
		if k := class(c); k >= 0 {
			weights[i] = whole / 2 / float64(count[[2]int{c.set, k}])
			switch {
			case c.seeded:
				weights[i] *= seededWeight
			case c.made:
				weights[i] *= madeWeight
			}
		}
	}
	return weights
}

// foldsOf deals groups out to folds, the largest first, each to the one that has the
// fewest of its set: equal input gives equal folds.
func foldsOf(cases []measured, folds int, seed uint64) []int {
	type group struct{ id, set, size int }
	at := map[int]int{}
	var groups []group
	for _, c := range cases {
		i, ok := at[c.group]
		if !ok {
			i = len(groups)
			at[c.group] = i
			groups = append(groups, group{id: c.group, set: c.set})
		}
		groups[i].size++
	}
	shuffled(groups, seed)
	slices.SortStableFunc(groups, func(a, b group) int { return b.size - a.size })
	filled := map[[2]int]int{}
	of := map[int]int{}
	for _, g := range groups {
		best := 0
		for k := range folds {
			if filled[[2]int{g.set, k}] < filled[[2]int{g.set, best}] {
				best = k
			}
		}
		of[g.id] = best
		filled[[2]int{g.set, best}] += g.size
	}
	out := make([]int, len(cases))
	for i, c := range cases {
		out[i] = of[c.group]
	}
	return out
}

// calibrate chooses what a model makes of its scores, from those of left-out cases; made
// cases have no say in it, but in what is called contradicted where no set tells that.
func calibrate(m *ground.Model, cases []measured, odds [][2]float64) {
	sizes := map[int]int{}
	for _, c := range cases {
		if !c.made {
			sizes[c.set]++
		}
	}
	var rows []learn.Row
	var known []measured
	var of [][2]float64
	for i, c := range cases {
		if !c.made {
			rows = append(rows, learn.Row{Features: []float64{odds[i][0]}, Positive: c.supported(), Weight: 1000 / float64(sizes[c.set])})
			known, of = append(known, c), append(of, odds[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	line := learn.Logistic(rows, 1e-4)
	m.Slope = fourPlaces(max(0.05, line.Weights[0]*line.Scale[0]))
	m.Offset = fourPlaces(line.Bias - line.Weights[0]*line.Scale[0]*line.Mean[0])
	m.Balanced = fourPlaces(m.Probability(0)) // where a supported claim and another one are as likely
	if !threeWays(known) {                    // what is made tells all three verdicts
		for i, c := range cases {
			if c.seeded {
				known, of = append(known, c), append(of, odds[i])
			}
		}
	}
	best, chosen := 0.0, 0.0
	for against := -2.5; against <= 2.5; against += 0.1 {
		m.Against = against
		if f := worth(m, known, of); f > best+1e-9 {
			best, chosen = f, against
		}
	}
	m.Against = fourPlaces(chosen)
}

// threeWays reports whether some of the cases are contradicted.
func threeWays(cases []measured) bool {
	return slices.ContainsFunc(cases, func(c measured) bool { return c.verdict == assay.Contradicted })
}

func fourPlaces(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// worth is what a model's verdicts are worth: the mean macro F1 of the sets that have all
// three verdicts, and the mean balanced accuracy of all sets.
func worth(m *ground.Model, cases []measured, odds [][2]float64) float64 {
	bySet := map[int][]Judged{}
	var order []int
	for i, c := range cases {
		if bySet[c.set] == nil {
			order = append(order, c.set)
		}
		bySet[c.set] = append(bySet[c.set], Judged{Gold: c.verdict, Verdict: m.Verdict(odds[i][0], odds[i][1], m.Balanced)})
	}
	f1, threes, accuracy := 0.0, 0.0, 0.0
	for _, set := range order {
		f := FiguresOf(bySet[set])
		accuracy += f.BalancedAccuracy / float64(len(order))
		if f.Gold[assay.Contradicted] > 0 {
			f1 += f.MacroF1
			threes++
		}
	}
	return accuracy + f1/max(threes, 1)
}
