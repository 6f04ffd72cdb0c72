package ui

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/job"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/plot"
)

// proposedGate returns the gate that the page proposes, which is that of eval/testdata/gate.yaml without the
// measures that no question has: questions made from feedback rarely name the passages to be found.
func proposedGate(r job.Result) string {
	gate := "metrics:\n"
	for _, m := range []struct{ name, tolerance string }{{"right", "0.04"}, {"recall@10", "0.02"}} {
		if m.name == "right" || slices.ContainsFunc(r.Questions, func(q job.Question) bool { _, has := q.Metrics[m.name]; return has }) {
			gate += fmt.Sprintf("  %s: {tolerance: %s}\n", m.name, m.tolerance)
		}
	}
	return gate
}

// A comparisonPage is the data of the page that compares two evaluations.
type comparisonPage struct {
	Is, Was evaluationRow
	Others  []engine.Evaluation
	With    string
	Systems []comparedRow
	Missing []string

	Gate    string // in YAML
	GateBad string
	Gating  *answers.Gating
}

// A comparedRow is the difference of one strategy.
type comparedRow struct {
	job.ComparedSystem
	Plot     plot.SVG
	Figures  []pairedRow
	Worse    []turnedRow
	Better   []turnedRow
	Untold   int // questions that turned and are not listed
	Improves int
	Regress  int
}

// A pairedRow is the difference of one figure in words.
type pairedRow struct {
	answers.Paired
	Says statusWords
	Unit string
}

// A turnedRow is a question that was right and is wrong, or the reverse.
type turnedRow struct{ Is, Was questionRow }

func showComparison(q *request) error {
	e, err := q.session.Evaluation(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	is, err := job.ResultOf(e)
	if err != nil {
		return err
	}
	p := comparisonPage{Is: newEvaluationRow(e), With: q.query("with"), Gate: cmp.Or(strings.ReplaceAll(q.query("gate"), "\r\n", "\n"), proposedGate(is))}
	if p.Others, err = q.comparable(e); err != nil {
		return err
	}
	status := http.StatusOK
	if p.With != "" {
		before, err := q.session.Evaluation(q.ctx(), p.With)
		if err != nil {
			return err
		}
		was, err := job.ResultOf(before)
		if err != nil {
			return err
		}
		p.Was = newEvaluationRow(before)
		if err := q.compare(&p, is, was); err != nil {
			return err
		}
		if p.GateBad != "" {
			status = http.StatusBadRequest
		}
	}
	v := q.view("Evaluation", "Compare evaluations", p)
	v.Wide = true
	return q.renderStatus(status, "evaluationcompare.html", v)
}

// maxTurned is how many questions that turned are listed in each direction.
const maxTurned = 50

// compare fills the page with the differences and the result of the gate.
func (q *request) compare(p *comparisonPage, is, was job.Result) error {
	c := job.Compare(is, was)
	p.Missing = c.Missing
	for _, s := range c.Systems {
		row := comparedRow{ComparedSystem: s}
		for _, d := range s.Paired {
			row.Figures = append(row.Figures, newPairedRow(d))
		}
		row.Plot = differencePlot(s)
		for _, t := range s.Turned {
			list, n := &row.Worse, &row.Regress
			if t.Is.Right {
				list, n = &row.Better, &row.Improves
			}
			if *n++; len(*list) >= maxTurned {
				row.Untold++
				continue
			}
			turned, err := q.turnedRow(t)
			if err != nil {
				return err
			}
			*list = append(*list, turned)
		}
		p.Systems = append(p.Systems, row)
	}
	gate, err := answers.ParseGate("above", []byte(p.Gate))
	if err == nil {
		err = knownMeasures(gate, is, was)
	}
	if errors.Is(err, assay.ErrInvalid) {
		p.GateBad = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	gating := job.Check(gate, is, was)
	p.Gating = &gating
	return nil
}

// knownMeasures returns an error if a gate names a measure that does not exist.
func knownMeasures(gate answers.Gate, results ...job.Result) error {
	known := map[string]bool{}
	for _, m := range metric.All() {
		known[m.Name] = true
	}
	for _, r := range results {
		for _, q := range r.Questions {
			for name := range q.Metrics {
				known[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gate.Metrics)) {
		if !known[name] {
			return fmt.Errorf("there is no measure %s: %w", name, assay.ErrInvalid)
		}
	}
	return nil
}

func (q *request) turnedRow(t job.TurnedQuestion) (turnedRow, error) {
	is, err := q.questionRow(t.Is)
	if err != nil {
		return turnedRow{}, err
	}
	was, err := q.questionRow(t.Was)
	return turnedRow{is, was}, err
}

// newPairedRow says whether a difference may be chance.
func newPairedRow(d answers.Paired) pairedRow {
	m, _ := metric.Lookup(d.Figure)
	row := pairedRow{Paired: d, Unit: m.Unit, Says: statusWords{"soft", "question", "may be chance", ""}}
	up, down := d.Low > 0, d.High < 0
	switch {
	case d.Mean == 0 && d.Low == 0 && d.High == 0:
		row.Says = statusWords{"soft", "dash", "the same", ""}
	case up && !m.Less, down && m.Less:
		row.Says = statusWords{"good", "check", "better", ""}
	case up, down:
		row.Says = statusWords{"bad", "warning", "worse", ""}
	}
	return row
}

// differencePlot draws the differences of the figures that are shares and not the same.
func differencePlot(s job.ComparedSystem) plot.SVG {
	var rows []plot.Interval
	for _, d := range s.Paired {
		same := d.Mean == 0 && d.Low == 0 && d.High == 0
		if m, known := metric.Lookup(d.Figure); known && m.Unit == "" && !same {
			rows = append(rows, plot.Interval{Name: d.Figure, Value: d.Mean, Low: d.Low, High: d.High})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return plot.Intervals(plot.Frame{Title: "Differences of " + s.Name, X: plot.Axis{Label: "now less before, with 95% interval"}}, rows)
}
