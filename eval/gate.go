package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
)

// A Gate says by how much figures may fall below a baseline's.
type Gate struct {
	Metrics map[string]Tolerance `yaml:"metrics"` // by the measure's name
}

// A Tolerance is how far one figure may go. A figure that is better when it is less, as
// tokens are, may rise by it.
type Tolerance struct {
	Tolerance *float64 `yaml:"tolerance"` // below the baseline, in the measure's unit
	Min       *float64 `yaml:"min"`       // whatever the baseline is
	Max       *float64 `yaml:"max"`
}

// ReadGate reads a gate. A key that is not known, a tolerance below 0 and a gate that
// holds nothing are assay.ErrInvalid: a slip must not let everything through.
func ReadGate(file string) (Gate, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Gate{}, fmt.Errorf("the gate: %w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return Gate{}, err
	}
	var g Gate
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&g); err != nil {
		return g, fmt.Errorf("the gate %s: %w: %w", file, err, assay.ErrInvalid)
	}
	if len(g.Metrics) == 0 {
		return g, fmt.Errorf("the gate %s names no metric: %w", file, assay.ErrInvalid)
	}
	for name, t := range g.Metrics {
		switch {
		case t.Tolerance == nil && t.Min == nil && t.Max == nil:
			return g, fmt.Errorf("the gate %s: %s has no tolerance, min or max: %w", file, name, assay.ErrInvalid)
		case t.Tolerance != nil && (*t.Tolerance < 0 || math.IsNaN(*t.Tolerance)):
			return g, fmt.Errorf("the gate %s: the tolerance of %s is %v: %w", file, name, *t.Tolerance, assay.ErrInvalid)
		}
	}
	return g, nil
}

// names reports whether the gate holds to a measure, or to a percentile of it.
func (g Gate) names(name string) bool {
	for held := range g.Metrics {
		if m, _ := metric.Lookup(held); held == name || m.Base == name {
			return true
		}
	}
	return false
}

// A Gating is what a gate says of a report.
type Gating struct {
	Passed   bool      `json:"passed"`
	Failures []Failure `json:"failures,omitempty"`
	Turned   []Turned  `json:"turned,omitempty"` // questions that are not as they were
	Checked  int       `json:"checked"`          // figures
	Notes    []string  `json:"notes,omitempty"`
}

// A Failure is a figure that a gate does not let pass.
type Failure struct {
	System string  `json:"system"`
	Metric string  `json:"metric"`
	Was    float64 `json:"was"`
	Is     float64 `json:"is"`
	Why    string  `json:"why"`
}

// Turned is a question that was right and is wrong now, or the other way round.
type Turned struct {
	System   string `json:"system"`
	ID       string `json:"id"`
	Question string `json:"question"`
	Right    bool   `json:"right"` // now
	Lost     Stage  `json:"lost,omitempty"`
	Run      string `json:"run,omitempty"`
}

// slack is by how much a figure may be under its bound for its rounding alone.
const slack = 1e-6

// Check holds a report, which has its outcomes, to a baseline. What cannot be compared
// does not pass: a system, a question or a metric that one side does not have. Questions
// that are new count for nothing yet.
func (g Gate) Check(r Report, b Baseline) Gating {
	var result Gating
	for _, s := range r.Systems {
		base, ok := b.system(s.Name)
		if !ok {
			result.fail(Failure{System: s.Name, Why: "the baseline does not have this system"})
			continue
		}
		g.checkSystem(&result, s, base)
	}
	for _, base := range b.Systems {
		if !slices.ContainsFunc(r.Systems, func(s System) bool { return s.Name == base.Name || len(b.Systems) == 1 }) {
			result.fail(Failure{System: base.Name, Why: "it was not asked"})
		}
	}
	result.Passed = len(result.Failures) == 0
	return result
}

func (g *Gating) fail(f Failure) { g.Failures = append(g.Failures, f) }

func (g Gate) checkSystem(result *Gating, s System, base BaselineSystem) {
	common, was := map[string]bool{}, map[string]BaselineCase{}
	for _, c := range base.Cases {
		was[c.ID] = c
	}
	now := BaselineSystem{Name: s.Name}
	fresh := 0
	for _, o := range s.Outcomes {
		before, known := was[o.ID]
		if !known || before.Question != o.Question {
			fresh++
			continue
		}
		common[o.ID] = true
		now.Cases = append(now.Cases, BaselineCase{ID: o.ID, Metrics: o.Metrics})
		if before.Right != o.Right {
			result.Turned = append(result.Turned, Turned{System: s.Name, ID: o.ID, Question: o.Question, Right: o.Right, Lost: o.Lost, Run: o.Run})
		}
	}
	if fresh > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("%s: %d questions are not in the baseline, and count for nothing", s.Name, fresh))
	}
	if gone := len(base.Cases) - len(common); gone > 0 {
		result.fail(Failure{System: s.Name, Why: fmt.Sprintf("%d questions of the baseline were not asked", gone)})
	}
	before, after := base.figuresOver(common), now.figuresOver(common)
	for _, name := range slices.Sorted(maps.Keys(g.Metrics)) {
		result.Checked++
		if f, ok := g.Metrics[name].check(name, before, after); !ok {
			f.System, f.Metric = s.Name, name
			result.fail(f)
		}
	}
}

// check holds one figure to its bounds.
func (t Tolerance) check(name string, before, after map[string]float64) (Failure, bool) {
	is, there := after[name]
	was, known := before[name]
	f := Failure{Was: was, Is: is}
	m, _ := metric.Lookup(name)
	switch {
	case !there:
		f.Why = "no question has it now"
	case !known && t.Tolerance != nil:
		f.Why = "the baseline does not have it"
	case t.Tolerance != nil && !m.Less && is < was-*t.Tolerance-slack:
		f.Why = fmt.Sprintf("it fell by %.4g, more than %g", was-is, *t.Tolerance)
	case t.Tolerance != nil && m.Less && is > was+*t.Tolerance+slack:
		f.Why = fmt.Sprintf("it rose by %.4g, more than %g", is-was, *t.Tolerance)
	case t.Min != nil && is < *t.Min-slack:
		f.Why = fmt.Sprintf("it is under %g", *t.Min)
	case t.Max != nil && is > *t.Max+slack:
		f.Why = fmt.Sprintf("it is over %g", *t.Max)
	default:
		return f, true
	}
	return f, false
}
