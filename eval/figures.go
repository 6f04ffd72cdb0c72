package eval

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

// system sums a tally up.
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

// notes say what to know of figures.
func (t *tally) notes(s System) map[string]string {
	notes := map[string]string{}
	if missing := len(t.cases) - count(t.there); missing > 0 {
		notes["right"] = fmt.Sprintf("%d questions were not asked yet", missing)
	}
	for _, f := range s.Figures {
		if f.Name == "recall@100" {
			notes[f.Name] = "of what the searches of a run bring, which is fewer than 100"
		}
	}
	for name, why := range t.notJudged {
		first := slices.Min(slices.Collect(maps.Keys(why)))
		notes[name] = fmt.Sprintf("not judged for %d of the questions: %s", len(why), why[first])
	}
	if many := t.unsliced(); len(many) > 0 {
		notes["slices"] = fmt.Sprintf("%s: more than %d values, and no table", strings.Join(many, ", "), maxSliceValues)
	}
	if len(s.Calibration) > 0 {
		notes["calibration"] = "of shown claims; one counts as right where it cites gold"
	}
	return notes
}

func count(flags []bool) int {
	n := 0
	for _, f := range flags {
		n += one(f)
	}
	return n
}

// measures lists those that a tally has values of: in the order of the table, then those
// that are not in it.
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

// figures returns the figures of the cases of these numbers.
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

// nobody stands for who judged a measure that nobody had to be asked for: whoever answers
// nothing is not right, whatever a judge is like.
const nobody = "nobody (every one was refused)"

// judge says who judged a measure.
func (t *tally) judge(name string) string {
	by := t.judges[name]
	if len(by) == 0 {
		return nobody
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	return strings.Join(names, ", ")
}

// maxSliceValues bounds a table of slices: what has more values is told apart by each
// question's own words, and is no slice.
const maxSliceValues = 20

// sliceFigures are what the figures of a slice are of: a slice is there to show where it
// goes wrong, and not how it is measured.
var sliceFigures = []string{"right", "recall@10", "ndcg@10", "f1", "contains", "faithfulness", "correctness", "citation_precision", "citation_recall", "abstention_recall", "cost_micros", "latency_ms"}

// sliceCases are the cases of each slice, by its name and its value.
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

// unsliced names what has more values than a table of slices, by which some questions are
// together all the same.
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

// maxWorst is how many cases are shown that went badly.
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

// remediesOf says what usually helps, the most frequent loss first. Where documents are cut
// is no matter where most of what was not found is not there.
func remediesOf(s System) []string {
	var all []string
	there := s.Lost[NotIngested]+s.Lost[Mislabelled] <= s.Lost[NotRetrieved]+s.Lost[RankedTooLow]
	for _, f := range s.Figures {
		if f.Name == "recall@10" && f.Mean < chunkingRecall && there {
			all = append(all, fmt.Sprintf("recall@10 is %.2f, under %.2f: look at how the documents are cut into passages first, before anything else is tuned", f.Mean, chunkingRecall))
		}
	}
	for _, stage := range slices.SortedFunc(maps.Keys(s.Lost), func(a, b Stage) int {
		return cmp.Or(s.Lost[b]-s.Lost[a], strings.Compare(string(a), string(b)))
	}) {
		all = append(all, remedies[stage])
	}
	return all
}

// calibrationBins is into how many bins the verifier's scores are put.
const calibrationBins = 10

// calibration sets the scores of shown claims against whether they cite gold.
func (t *tally) calibration() []Bin {
	slices.SortStableFunc(t.scores, func(a, b scored) int { return a.at - b.at })
	scores, right := make([]float64, len(t.scores)), make([]bool, len(t.scores))
	for i, s := range t.scores {
		scores[i], right[i] = s.score, s.right
	}
	var bins []Bin
	for _, b := range stat.Bins(scores, right, calibrationBins) {
		if b.Cases > 0 {
			bins = append(bins, Bin(b))
		}
	}
	return bins
}

// against compares a tally with the values of another one, measure by measure, on the
// cases that both have. Values are rounded as a baseline's are: what differs by its rounding
// alone is the same.
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
