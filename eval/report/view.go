package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/plot"
)

// A Page is a report in a form for templates: its numbers are formatted, foreign texts are made visible,
// and plots are drawn.
type Page struct {
	Set, Version, Index, Began string
	Cases                      string
	Show                       string // command that shows a run
	Compared                   bool   // there are several systems
	Systems                    []system
	Overview                   []tile          // of a single system
	Heads                      []string        // of the table that compares systems
	Quality                    []template.HTML // against each cost
	Beside                     []template.HTML // each figure, of all systems
	Paired                     []paired
	Differences                []template.HTML
	Definitions                []definition
	Questions                  int // rows of the table
	Lost                       []option
	Statuses                   []string
}

// tile is a figure in large type.
type tile struct{ Value, Name, Range string }

// option is a choice of the filter.
type option struct{ Value, Name string }

type definition struct{ Name, Doc, Source string }

type system struct {
	Anchor, Name  string
	Cells         []string // of the table that compares systems
	Figures       []figure
	Intervals     template.HTML // of the figures that are shares
	Distributions []template.HTML
	Calibration   template.HTML
	Bins          []bin
	Error         string // of the calibration
	Losses        template.HTML
	Remedies      []string
	Remarks       []string // about measures and slices without figures
	Slices        []sliceTable
	Worst         []worst
	Rows          []question
}

type figure struct {
	Name, Mean, Range, Unit, By, Note string
	Cases                             int
	Less                              bool
}

type bin struct {
	Range, Score, Right string
	Cases               int
}

type sliceTable struct {
	By    string
	Heads []string
	Plot  template.HTML
	Rows  []sliceRow
}

type sliceRow struct {
	Value string
	Cases int
	Cells []string
}

type worst struct{ ID, Question, Run, Lost, Score, Why, Anchor string }

type paired struct {
	System, Other, Figure, Mean, Range, P, Says string
	Cases                                       int
}

type question struct {
	Anchor, System, ID, Question, Answer, Error, Expected, Lost, LostName, Status, Score, Run, Measures, Slices string
	Right                                                                                                       bool
	Gold                                                                                                        []string
	Claims                                                                                                      []claim
}

type claim struct{ Text, Verdict, Score, Cites string }

// NewPage returns the page of a report. Without outcomes it lacks the questions and distributions.
func NewPage(r answers.Report) Page {
	p := Page{
		Set: named(r.Set), Version: named(r.Version), Index: named(r.Index), Cases: counted(r.Cases, "question"),
		Compared: len(r.Systems) > 1, Show: visible(cmp.Or(r.Show, "assay show RUN")),
	}
	if !r.Began.IsZero() {
		p.Began = r.Began.UTC().Format("2 January 2006, 15:04 MST")
	}
	lost, statuses := map[answers.Stage]bool{}, map[string]bool{}
	for i, s := range r.Systems {
		p.Systems = append(p.Systems, newSystem(fmt.Sprintf("s%d", i), s, shower(r.Show)))
		p.Questions += len(s.Outcomes)
		for _, o := range s.Outcomes {
			lost[o.Lost] = true
			statuses[string(o.Answer.Status)] = true
		}
		for _, d := range s.Against {
			p.Paired = append(p.Paired, newPaired(s, d))
		}
	}
	for _, stage := range stages {
		if lost[stage] {
			p.Lost = append(p.Lost, option{string(stage), stageName(stage)})
		}
	}
	delete(statuses, "")
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		p.Statuses = append(p.Statuses, named(status))
	}
	p.overview(r)
	p.Quality, p.Beside, p.Differences = qualityPlots(r), besidePlots(r), differencePlots(r)
	p.Definitions = definitions(r)
	return p
}

// overview fills the top of the page: the main figures of a single system, or a table of several.
func (p *Page) overview(r answers.Report) {
	if len(r.Systems) == 0 {
		return
	}
	heads := mainFigures(r)
	for i, s := range r.Systems {
		for _, name := range heads {
			t := tile{Value: "–", Name: named(name)}
			if f, found := findFigure(s, name); found {
				t = tile{amount(f.Mean, f.Unit), named(name), interval(f)}
			}
			if !p.Compared {
				p.Overview = append(p.Overview, t)
			}
			p.Systems[i].Cells = append(p.Systems[i].Cells, strings.TrimSpace(t.Value+" "+t.Range))
		}
	}
	for _, name := range heads {
		p.Heads = append(p.Heads, named(name))
	}
}

// mainFigures returns the names of at most six figures: quality first, then cost.
func mainFigures(r answers.Report) []string {
	has := func(name string) bool {
		return slices.ContainsFunc(r.Systems, func(s answers.System) bool { _, ok := findFigure(s, name); return ok })
	}
	names := []string{"right"}
	for _, name := range []string{"correctness", "recall@10", "faithfulness", "citation_precision", "abstention_recall", "f1", "ndcg@10"} {
		if has(name) && len(names) < 4 {
			names = append(names, name)
		}
	}
	spent := func(name string) bool {
		return slices.ContainsFunc(r.Systems, func(s answers.System) bool { f, _ := findFigure(s, name); return f.Mean > 0 })
	}
	for _, name := range []string{"cost_micros", "tokens", "latency_p50_ms", "latency_p95_ms", "latency_ms", "steps"} {
		if spent(name) && len(names) < 6 {
			names = append(names, name)
		}
	}
	return names
}

// findFigure returns a figure of a system. If the report lacks the share of right answers, it is
// counted from the outcomes, without bounds.
func findFigure(s answers.System, name string) (answers.Figure, bool) {
	i := slices.IndexFunc(s.Figures, func(f answers.Figure) bool { return f.Name == name })
	if i >= 0 {
		return s.Figures[i], true
	}
	if name != "right" || len(s.Outcomes) == 0 {
		return answers.Figure{}, false
	}
	right := 0
	for _, o := range s.Outcomes {
		if o.Right {
			right++
		}
	}
	mean := float64(right) / float64(len(s.Outcomes))
	return answers.Figure{Name: name, Cases: len(s.Outcomes), Mean: mean, Low: math.NaN(), High: math.NaN()}, true
}

func newSystem(anchor string, s answers.System, show shower) system {
	v := system{
		Anchor: anchor, Name: named(s.Name), Distributions: distributions(s), Losses: lossPlot(s),
		Slices: sliceTables(s), Worst: nil,
	}
	v.Calibration, v.Error = calibrationPlot(s.Calibration)
	for _, b := range s.Calibration {
		v.Bins = append(v.Bins, bin{fmt.Sprintf("%.2f to %.2f", b.Low, b.High), amount(b.Score, ""), amount(b.Right, ""), b.Cases})
	}
	for _, f := range s.Figures {
		v.Figures = append(v.Figures, figure{named(f.Name), amount(f.Mean, f.Unit), interval(f), unitName(f.Unit), named(f.By), visible(s.Notes[f.Name]), f.Cases, f.Less})
	}
	v.Intervals = figurePlot(s)
	v.Remarks = remarks(s)
	for _, remedy := range s.Remedies {
		v.Remedies = append(v.Remedies, visible(remedy))
	}
	rows := map[string]string{}
	for i, o := range s.Outcomes {
		q := newQuestion(fmt.Sprintf("%s-q%d", anchor, i), v.Name, o, show)
		v.Rows = append(v.Rows, q)
		rows[o.ID] = q.Anchor
	}
	for _, w := range s.Worst {
		v.Worst = append(v.Worst, worst{named(w.ID), visible(w.Question), named(w.Run), stageName(w.Lost), amount(w.Score, ""), visible(w.Why), rows[w.ID]})
	}
	return v
}

// remarks returns notes on measures that were not judged and on slices that were not made.
func remarks(s answers.System) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.NotJudged)) {
		all = append(all, visible(name+": "+s.Notes[name]))
	}
	if note := s.Notes["slices"]; note != "" {
		all = append(all, visible("not sliced by "+note))
	}
	return all
}

func newQuestion(anchor, system string, o answers.Outcome, show shower) question {
	q := question{
		Anchor: anchor, System: system, ID: named(o.ID), Question: visible(o.Question), Answer: visible(o.Answer.Text), Error: visible(o.Error),
		Expected: visible(strings.Join(o.Answers, " | ")), Lost: named(string(o.Lost)), LostName: stageName(o.Lost), Status: named(string(o.Answer.Status)),
		Run: show.run(o.Run), Right: o.Right, Score: amount(score(o), ""),
	}
	if o.Unanswerable {
		q.Expected = "none: the documents do not answer it"
	}
	if o.Error != "" {
		q.Status = "error"
	}
	for _, g := range o.Gold {
		q.Gold = append(q.Gold, visible(place(g)))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Metrics)) {
		q.Measures += " · " + named(name) + " " + amount(o.Metrics[name], unitOf(name))
	}
	q.Measures = visible(strings.TrimPrefix(q.Measures, " · "))
	for _, by := range slices.Sorted(maps.Keys(o.Slices)) {
		q.Slices += " · " + named(by) + ": " + named(o.Slices[by])
	}
	q.Slices = visible(strings.TrimPrefix(q.Slices, " · "))
	for i, c := range o.Answer.Claims {
		if c.Start < 0 || c.End > len(o.Answer.Text) || c.Start >= c.End {
			continue
		}
		q.Claims = append(q.Claims, claim{visible(o.Answer.Text[c.Start:c.End]), named(string(c.Verdict)), amount(c.Score, ""), visible(cites(o.Answer, i))})
	}
	return q
}

// shower is the command that shows a run, with RUN for its ID.
type shower string

// run returns the command for a run, or "" for an empty ID.
func (s shower) run(id string) string {
	if id == "" {
		return ""
	}
	return visible(strings.Replace(cmp.Or(string(s), "assay show RUN"), "RUN", id, 1))
}

// place returns the location of gold in words.
func place(g testset.Gold) string {
	s := g.Document
	if g.Section != "" {
		s += " § " + g.Section
	}
	if g.Quote != "" {
		s += ": “" + g.Quote + "”"
	} else if g.End > 0 {
		s += fmt.Sprintf(", bytes %d to %d", g.Start, g.End)
	}
	return s
}

// cites returns the documents that a claim cites.
func cites(a assay.Answer, claim int) string {
	var all []string
	for _, c := range a.Citations {
		if c.Claim == claim {
			all = append(all, cmp.Or(c.URI, c.Document))
		}
	}
	return strings.Join(slices.Compact(all), ", ")
}

// score returns the mean of an outcome's measures that are shares and for which more is better.
// Without such measures it is 1 or 0 by whether the outcome is right.
func score(o answers.Outcome) float64 {
	sum, n := 0.0, 0
	for _, name := range slices.Sorted(maps.Keys(o.Metrics)) {
		m, known := metric.Lookup(name)
		if v := o.Metrics[name]; v >= 0 && v <= 1 && !(known && (m.Unit != "" || m.Less)) {
			sum, n = sum+v, n+1
		}
	}
	if n > 0 {
		return sum / float64(n)
	}
	if o.Right {
		return 1
	}
	return 0
}

func newPaired(s answers.System, d answers.Paired) paired {
	f, _ := findFigure(s, d.Figure)
	says := "may be chance"
	switch {
	case d.Cases == 0:
		says = "no question in common"
	case d.Low > 0 && !f.Less, d.High < 0 && f.Less:
		says = "better"
	case d.Low > 0, d.High < 0:
		says = "worse"
	}
	return paired{
		named(s.Name), named(d.Other), named(d.Figure), signed(d.Mean, f.Unit),
		signed(d.Low, f.Unit) + " to " + signed(d.High, f.Unit), probability(d.P), says, d.Cases,
	}
}

// definitions returns the definitions of the report's figures that eval/metric knows.
func definitions(r answers.Report) []definition {
	var all []definition
	for _, m := range metric.All() {
		for _, s := range r.Systems {
			if _, found := findFigure(s, m.Name); found {
				all = append(all, definition{m.Name, m.Doc, m.Source})
				break
			}
		}
	}
	return all
}

// stages lists the stages at which questions are lost, in order.
var stages = []answers.Stage{
	answers.Mislabelled, answers.NotIngested, answers.NotRetrieved, answers.RankedTooLow, answers.GradedAway, answers.NotCited, answers.VerifierWrong, answers.GeneratedWrong, answers.AnsweredWrongly, answers.Broke,
}

// stageName returns a stage in words.
func stageName(s answers.Stage) string { return named(strings.ReplaceAll(string(s), "_", " ")) }

// counted returns a number with its noun.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(float64(n)) + " " + one + "s"
}

// unitOf returns the unit of a measure that eval/metric knows.
func unitOf(name string) string {
	m, _ := metric.Lookup(name)
	return m.Unit
}

// unitName returns a unit in words.
func unitName(unit string) string {
	if unit == "micros" {
		return "millionths of the currency"
	}
	return named(unit)
}

// amount formats a value: a share with three decimals, any other with three digits.
func amount(v float64, unit string) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case unit == "":
		return fmt.Sprintf("%.3f", v)
	case a >= 100:
		return thousands(v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// signed is like amount, with a sign.
func signed(v float64, unit string) string {
	s := amount(v, unit)
	if v > 0 {
		return "+" + s
	}
	return s
}

// thousands formats a whole number with thousands separators.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v <= -0.5 {
		s = "-" + s
	}
	return s
}

// interval formats a figure's bounds, or returns "" if there are none.
func interval(f answers.Figure) string {
	if math.IsNaN(f.Low) || math.IsNaN(f.High) || f.Low == 0 && f.High == 0 && f.Mean != 0 {
		return ""
	}
	return "(" + amount(f.Low, f.Unit) + " to " + amount(f.High, f.Unit) + ")"
}

// probability formats a p-value.
func probability(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// svg marks a plot as escaped markup.
func svg(s plot.SVG) template.HTML { return template.HTML(s) }
