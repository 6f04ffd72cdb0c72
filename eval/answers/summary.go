package answers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// SummaryOptions configures Summarise.
type SummaryOptions struct {
	Systems  []string  // in display order; the others are compared with the first
	Limit    int       // number of the set's first questions; 0: all
	Version  string    // of the program
	Outcomes bool      // include each outcome, without the texts of its passages
	Baseline *Baseline // to compare with; may be nil

	Custom []metric.Measure // of the user's own judges
}

// Summarise reads the outcomes in a folder one at a time and returns the report. It holds only the
// figures of each question in memory, unless opts.Outcomes is set.
func Summarise(ctx context.Context, d testset.Dataset, folder *Folder, opts SummaryOptions) (Report, error) {
	cases := d.First(opts.Limit)
	report := Report{Set: d.Name, Cases: len(cases), Began: folder.Began, Version: opts.Version}
	at := map[string]int{}
	for i, c := range cases {
		at[c.ID] = i
	}
	tallies := map[string]*tally{}
	for _, name := range opts.Systems {
		tallies[name] = newTally(name, cases)
		tallies[name].custom = opts.Custom
	}
	for o, err := range folder.Outcomes(ctx) {
		if err != nil {
			return report, err
		}
		i, wanted := at[o.ID]
		t := tallies[o.System]
		if !wanted || t == nil {
			continue
		}
		if report.Index == "" {
			report.Index = indexName(o.Answer.Index)
		}
		t.add(i, o, opts.Outcomes)
	}
	for i, name := range opts.Systems {
		system := tallies[name].system()
		if i > 0 {
			system.Against = tallies[name].against(opts.Systems[0], tallies[opts.Systems[0]].values)
		}
		if opts.Baseline != nil {
			system.Against = append(system.Against, tallies[name].againstBaseline(*opts.Baseline)...)
		}
		report.Systems = append(report.Systems, system)
	}
	return report, nil
}

func indexName(v assay.IndexVersion) string {
	if v.Model == "" {
		return "words alone"
	}
	return fmt.Sprintf("%s, %.0f%% of the passages", v.Model, 100*v.Coverage)
}

// A tally accumulates the outcomes of one system.
type tally struct {
	name     string
	cases    []testset.Case
	values   map[string][]float64 // by measure, then by case; NaN if it does not apply
	right    []bool
	there    []bool
	lost     []Stage
	worst    []Worst
	slices   []map[string]string
	judges   map[string]map[string]int
	statuses map[string]int

	notJudged map[string]map[int]string // by measure name, then by case: the reason
	scores    []scored
	outcomes  []*Outcome
	custom    []metric.Measure
}

// scored is the verifier's score of a claim, and whether the claim cites gold.
type scored struct {
	at    int // case
	score float64
	right bool
}

func newTally(name string, cases []testset.Case) *tally {
	n := len(cases)
	return &tally{
		name: name, cases: cases, values: map[string][]float64{}, right: make([]bool, n), there: make([]bool, n), lost: make([]Stage, n),
		worst: make([]Worst, n), slices: make([]map[string]string, n), judges: map[string]map[string]int{}, statuses: map[string]int{}, outcomes: make([]*Outcome, n),
		notJudged: map[string]map[int]string{},
	}
}

// add adds the outcome of case i. Only the first outcome of a case counts.
func (t *tally) add(i int, o Outcome, keep bool) {
	if t.there[i] {
		return
	}
	t.there[i], t.right[i], t.lost[i] = true, o.Right, o.Lost
	for name, x := range o.Metrics {
		if t.values[name] == nil {
			t.values[name] = slices.Repeat([]float64{math.NaN()}, len(t.cases))
		}
		t.values[name][i] = x
	}
	for name, by := range o.Judges {
		if refuses(o.Answer) && o.Error == "" {
			continue // no judge was called
		}
		if t.judges[name] == nil {
			t.judges[name] = map[string]int{}
		}
		t.judges[name][by]++
	}
	for name, why := range o.NotJudged {
		if t.notJudged[name] == nil {
			t.notJudged[name] = map[int]string{}
		}
		t.notJudged[name][i] = why
	}
	status := string(o.Answer.Status)
	if o.Error != "" {
		status = "error"
	}
	t.statuses[status]++
	gold := map[int]bool{}
	for _, c := range o.Contexts {
		gold[c.Number] = c.Gold
	}
	if len(o.Gold) > 0 {
		for _, c := range o.Answer.Claims {
			cites := slices.ContainsFunc(c.Citations, func(n int) bool { return gold[n] })
			t.scores = append(t.scores, scored{i, c.Score, cites})
		}
	}
	t.slices[i] = slicesOf(o)
	t.worst[i] = Worst{ID: o.ID, Question: o.Question, Run: o.Run, Lost: o.Lost, Score: badness(o), Why: why(o)}
	if keep {
		for j := range o.Contexts {
			o.Contexts[j].Text = ""
		}
		o.Answer.Searched, o.Answer.Closest = nil, nil
		t.outcomes[i] = &o
	}
}

// badness returns the mean of an outcome's measures that are shares and for which higher is better.
func badness(o Outcome) float64 {
	var xs []float64
	for _, name := range slices.Sorted(maps.Keys(o.Metrics)) {
		if m, known := metric.Lookup(name); known && m.Unit == "" && !m.Less {
			xs = append(xs, o.Metrics[name])
		}
	}
	return stat.Mean(xs)
}

// why returns a short explanation of an outcome that is not right.
func why(o Outcome) string {
	switch {
	case o.Error != "":
		return o.Error
	case o.Lost == Mislabelled:
		return o.Mistake
	case o.Answer.Status == assay.NotFound:
		return cmp.Or(o.Answer.Justification, o.Answer.Text)
	}
	text := metric.Said(o.Answer)
	if len(o.Answers) > 0 {
		return fmt.Sprintf("%s: %q, and right is %q", o.Answer.Status, cut(text), cut(o.Answers[0]))
	}
	return fmt.Sprintf("%s: %q", o.Answer.Status, cut(text))
}

// cut shortens a text to fit on a line.
func cut(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	for i := range text[:most] {
		if i > most-4 {
			return text[:i] + "…"
		}
	}
	return text[:most-4] + "…"
}

// slicesOf returns the slices of an outcome: those of the set, and its type of question, type of
// document, answerability and tenant.
func slicesOf(o Outcome) map[string]string {
	s := map[string]string{}
	maps.Copy(s, o.Slices)
	if s["type"] == "" {
		s["type"] = questionType(o.Question)
	}
	if o.Tenant != "" {
		s["tenant"] = o.Tenant
	}
	if s["document"] == "" && len(o.Gold) > 0 {
		if ext := path.Ext(o.Gold[0].Document); ext != "" && len(ext) <= 6 {
			s["document"] = strings.TrimPrefix(ext, ".")
		}
	}
	if len(o.History) > 0 {
		s["conversation"] = "follow-up"
	}
	s["answerable"] = "yes"
	if o.Unanswerable {
		s["answerable"] = "no"
	}
	return s
}

// questionTypes are matched in order by the beginning of a question.
var questionTypes = []struct {
	kind   string
	starts []string
}{
	{"number", []string{"how many", "how much", "how long", "how often", "how far", "how old", "how large", "how big", "how high", "how tall", "wie viele", "wie viel", "wie lange"}},
	{"person", []string{"who", "whom", "whose", "by whom", "wer", "wen", "wem"}},
	{"date", []string{"when", "what year", "in what year", "what date", "since when", "in which year", "which year", "wann"}},
	{"place", []string{"where", "in what country", "in what city", "in which country", "in which city", "what country", "what city", "wo ", "woher"}},
	{"reason", []string{"why", "for what reason", "warum", "weshalb", "wieso"}},
	{"way", []string{"how", "wie"}},
	{"yes or no", []string{"is ", "are ", "was ", "were ", "do ", "does ", "did ", "can ", "could ", "may ", "must ", "should ", "has ", "have ", "had ", "will ", "would "}},
	{"thing", []string{"what", "which", "in what", "in which", "on what", "for what", "to what", "was ", "welche"}},
}

// questionType returns the type of answer that a question asks for, by its first words.
func questionType(question string) string {
	q := strings.ToLower(strings.TrimSpace(question)) + " "
	for _, t := range questionTypes {
		for _, start := range t.starts {
			rest, ok := strings.CutPrefix(q, start)
			if next, _ := utf8.DecodeRuneInString(rest); ok && (strings.HasSuffix(start, " ") || !unicode.IsLetter(next)) {
				return t.kind
			}
		}
	}
	return "other"
}
