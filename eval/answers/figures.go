package answers

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
)

// system returns the figures of a tally.
func (t *tally) system() System {
	all := make([]int, len(t.cases))
	for i := range all {
		all[i] = i
	}
	s := System{Name: t.name, Figures: t.figures(all), Lost: map[Stage]int{}, Statuses: t.statuses, Calibration: t.calibration()}
	for i := range t.cases {
		if t.there[i] && t.lost[i] != "" {
			s.Lost[t.lost[i]]++
		}
		if t.outcomes[i] != nil {
			s.Outcomes = append(s.Outcomes, *t.outcomes[i])
		}
	}
	s.Slices, s.Worst, s.Remedies = t.sliced(), t.worstOnes(), remediesOf(s)
	s.Notes = t.notes(s)
	for name, why := range t.notJudged {
		if s.NotJudged == nil {
			s.NotJudged = map[string]int{}
		}
		s.NotJudged[name] = len(why)
	}
	return s
}

// notes returns remarks on figures, by the name of the figure.
func (t *tally) notes(s System) map[string]string {
	notes := map[string]string{}
	if missing := len(t.cases) - count(t.there); missing > 0 {
		notes["right"] = fmt.Sprintf("%d questions have not been asked yet", missing)
	}
	for _, f := range s.Figures {
		if f.Name == "recall@100" {
			notes[f.Name] = "over the results of a run's searches, which are fewer than 100"
		}
	}
	for name, why := range t.notJudged {
		first := slices.Min(slices.Collect(maps.Keys(why)))
		notes[name] = fmt.Sprintf("not judged for %d of the questions: %s", len(why), why[first])
	}
	if many := t.unsliced(); len(many) > 0 {
		notes["slices"] = fmt.Sprintf("%s: more than %d values, so no table", strings.Join(many, ", "), maxSliceValues)
	}
	if len(s.Calibration) > 0 {
		notes["calibration"] = "over shown claims; a claim counts as right if it cites gold"
	}
	return notes
}

func count(flags []bool) int {
	n := 0
	for _, f := range flags {
		n += stat.One(f)
	}
	return n
}

// measures lists the measures of a tally: those of the table in its order, then others.
func (t *tally) measures() []metric.Measure {
	var all []metric.Measure
	known := map[string]bool{}
	for _, m := range metric.All() {
		known[m.Name] = true
		if t.values[cmp.Or(m.Base, m.Name)] != nil {
			all = append(all, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.values)) {
		if known[name] {
			continue
		}
		m := metric.Measure{Name: name, Judged: true}
		if i := slices.IndexFunc(t.custom, func(c metric.Measure) bool { return c.Name == name }); i >= 0 {
			m = t.custom[i]
		}
		all = append(all, m)
	}
	return all
}

// figures returns the figures of some cases, by their indexes.
func (t *tally) figures(at []int) []Figure {
	var figures []Figure
	for _, m := range t.measures() {
		var xs []float64
		for _, i := range at {
			if x := t.values[cmp.Or(m.Base, m.Name)][i]; !math.IsNaN(x) {
				xs = append(xs, x)
			}
		}
		if len(xs) == 0 {
			continue
		}
		f := Figure{Name: m.Name, Cases: len(xs), Unit: m.Unit, Less: m.Less}
		i := stat.Bootstrap(xs)
		if m.Percentile > 0 {
			i = stat.BootstrapPercentile(xs, m.Percentile)
		}
		f.Mean, f.Low, f.High = i.Mean, i.Low, i.High
		if m.Judged {
			f.By = t.judge(m.Name)
		}
		figures = append(figures, f)
	}
	return figures
}

// nobody is the name of the judge in reports if every question was refused. A refusal of an
// answerable question counts as wrong, and no judge reads it.
const nobody = "none (every question was refused)"

// judge returns the names of the judges of a measure.
func (t *tally) judge(name string) string {
	by := t.judges[name]
	if len(by) == 0 {
		return nobody
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	return strings.Join(names, ", ")
}

// maxSliceValues bounds a table of slices. A property with more values tells nearly every
// question apart and makes no useful slices.
const maxSliceValues = 20

// sliceFigures are the figures that are shown for each slice.
var sliceFigures = []string{"right", "recall@10", "ndcg@10", "f1", "contains", "faithfulness", "correctness", "citation_precision", "citation_recall", "abstention_recall", "cost_micros", "latency_ms"}

// sliceCases returns the cases of each slice, by name and value.
func (t *tally) sliceCases() map[string]map[string][]int {
	by := map[string]map[string][]int{}
	for i, s := range t.slices {
		for name, value := range s {
			if by[name] == nil {
				by[name] = map[string][]int{}
			}
			by[name][value] = append(by[name][value], i)
		}
	}
	return by
}

// unsliced returns the names of properties that have too many values for a table, of which at least
// one is shared by several questions.
func (t *tally) unsliced() []string {
	var many []string
	by := t.sliceCases()
	for _, name := range slices.Sorted(maps.Keys(by)) {
		shared := slices.ContainsFunc(slices.Collect(maps.Values(by[name])), func(cases []int) bool { return len(cases) > 1 })
		if len(by[name]) > maxSliceValues && shared {
			many = append(many, name)
		}
	}
	return many
}

// sliced returns the slices, by name and then the most frequent first.
func (t *tally) sliced() []Slice {
	by := t.sliceCases()
	var all []Slice
	for _, name := range slices.Sorted(maps.Keys(by)) {
		values := by[name]
		if len(values) < 2 || len(values) > maxSliceValues {
			continue
		}
		for _, value := range slices.SortedFunc(maps.Keys(values), func(a, b string) int {
			return cmp.Or(len(values[b])-len(values[a]), strings.Compare(a, b))
		}) {
			figures := slices.DeleteFunc(t.figures(values[value]), func(f Figure) bool { return !slices.Contains(sliceFigures, f.Name) })
			all = append(all, Slice{By: name, Value: value, Cases: len(values[value]), Figures: figures})
		}
	}
	return all
}

// maxWorst is the number of bad cases that are shown.
const maxWorst = 10

// worstOnes returns the cases that are not right, the worst first.
func (t *tally) worstOnes() []Worst {
	var worst []Worst
	for i, w := range t.worst {
		if t.there[i] && t.lost[i] != "" {
			worst = append(worst, w)
		}
	}
	slices.SortStableFunc(worst, func(a, b Worst) int { return cmp.Compare(a.Score, b.Score) })
	return worst[:min(len(worst), maxWorst)]
}

// remediesOf returns the usual remedies, for the most frequent loss first. It recommends a look at
// the chunking only if most of the passages that were not found are in the index.
func remediesOf(s System) []string {
	var all []string
	there := s.Lost[NotIngested]+s.Lost[Mislabelled] <= s.Lost[NotRetrieved]+s.Lost[RankedTooLow]
	for _, f := range s.Figures {
		if f.Name == "recall@10" && f.Mean < chunkingRecall && there {
			all = append(all, fmt.Sprintf("recall@10 is %.2f, below %.2f: check how the documents are split into passages before tuning anything else", f.Mean, chunkingRecall))
		}
	}
	for _, stage := range slices.SortedFunc(maps.Keys(s.Lost), func(a, b Stage) int {
		return cmp.Or(s.Lost[b]-s.Lost[a], strings.Compare(string(a), string(b)))
	}) {
		all = append(all, remedies[stage])
	}
	return all
}

// calibrationBins is the number of bins for the verifier's scores.
const calibrationBins = 10

// calibration compares the scores of shown claims with the share that cites gold.
func (t *tally) calibration() []stat.Bin {
	slices.SortStableFunc(t.scores, func(a, b scored) int { return a.at - b.at })
	scores, right := make([]float64, len(t.scores)), make([]bool, len(t.scores))
	for i, s := range t.scores {
		scores[i], right[i] = s.score, s.right
	}
	return slices.DeleteFunc(stat.Bins(scores, right, calibrationBins), func(b stat.Bin) bool { return b.Cases == 0 })
}

// against compares a tally with the values of another one, measure by measure, on the cases
// that both have. Values are rounded like those of a baseline, so that rounding makes no
// difference.
func (t *tally) against(name string, other map[string][]float64) []Paired {
	var all []Paired
	for _, m := range t.measures() {
		if m.Base != "" || other[m.Name] == nil {
			continue
		}
		var a, b []float64
		for i, x := range t.values[m.Name] {
			if y := other[m.Name][i]; !math.IsNaN(x) && !math.IsNaN(y) {
				a, b = append(a, rounded(x)), append(b, rounded(y))
			}
		}
		if len(a) == 0 {
			continue
		}
		d := stat.Paired(a, b)
		all = append(all, Paired{Other: name, Figure: m.Name, Cases: len(a), Mean: d.Mean, Low: d.Low, High: d.High, P: d.P})
	}
	return all
}
