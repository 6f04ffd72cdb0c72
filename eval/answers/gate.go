package answers

import (
	"bytes"
	"cmp"
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
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/safeyaml"
)

// A Gate says how far figures may fall below a baseline.
type Gate struct {
	Metrics map[string]Tolerance `yaml:"metrics"` // by measure name
}

// A Tolerance bounds one figure. A figure for which lower is better, such as tokens, may rise by
// the tolerance instead.
type Tolerance struct {
	Tolerance *float64 `yaml:"tolerance"` // allowed loss against the baseline, in the measure's unit
	Min       *float64 `yaml:"min"`       // absolute bound
	Max       *float64 `yaml:"max"`
}

// ReadGate reads a gate from a file, see ParseGate.
func ReadGate(file string) (Gate, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Gate{}, fmt.Errorf("read the gate: %w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return Gate{}, err
	}
	return ParseGate(file, data)
}

// ParseGate reads a gate, which errors call by the name of its file. An unknown key, a negative
// tolerance, a bound that is not finite, and a gate without a bound are assay.ErrInvalid, because a
// typing error must not let every report pass.
func ParseGate(file string, data []byte) (Gate, error) {
	var g Gate
	if err := safeyaml.Check(data); err != nil {
		return g, fmt.Errorf("the gate %s: %w", file, err)
	}
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
		case t.Tolerance != nil && *t.Tolerance < 0:
			return g, fmt.Errorf("the gate %s: the tolerance of %s is %v: %w", file, name, *t.Tolerance, assay.ErrInvalid)
		}
		for _, bound := range []struct {
			of string
			x  *float64
		}{{"tolerance", t.Tolerance}, {"min", t.Min}, {"max", t.Max}} {
			if bound.x != nil && (math.IsNaN(*bound.x) || math.IsInf(*bound.x, 0)) {
				return g, fmt.Errorf("the gate %s: the %s of %s is %v: %w", file, bound.of, name, *bound.x, assay.ErrInvalid)
			}
		}
	}
	return g, nil
}

// names reports whether the gate bounds a measure or a percentile of it.
func (g Gate) names(name string) bool {
	for held := range g.Metrics {
		if m, _ := metric.Lookup(held); held == name || m.Base == name {
			return true
		}
	}
	return false
}

// A Gating is the result of checking a report.
type Gating struct {
	Passed   bool      `json:"passed"`
	Failures []Failure `json:"failures,omitempty"`
	Turned   []Turned  `json:"turned,omitempty"` // questions whose outcome changed
	Checked  int       `json:"checked"`          // number of figures
	Notes    []string  `json:"notes,omitempty"`
}

// A Failure is a figure that violates the gate.
type Failure struct {
	System string  `json:"system"`
	Metric string  `json:"metric"`
	Was    float64 `json:"was"`
	Is     float64 `json:"is"`
	Why    string  `json:"why"`
}

// Turned is a question that was right and is now wrong, or the reverse.
type Turned struct {
	System   string `json:"system"`
	ID       string `json:"id"`
	Question string `json:"question"`
	Right    bool   `json:"right"` // now
	Lost     Stage  `json:"lost,omitempty"`
	Run      string `json:"run,omitempty"`
}

// slack is the difference that rounding alone may cause.
const slack = 1e-6

// Check compares a report, which must have its outcomes, with a baseline. A system, question or
// metric that only one side has is a failure, except that new questions are ignored.
//
// A figure is compared over the questions that have it on both sides. A question that has lost it
// counts as 0, the worst value, unless the question is right now, for example because it is now
// rightly refused. Such a question is left out, and a note reports it. A measure for which lower is
// better has no worst value, so a lost question fails the gate unless it is right now.
func (g Gate) Check(r Report, b Baseline) Gating {
	var result Gating
	for _, s := range r.Systems {
		base, ok := b.system(s.Name)
		if !ok {
			result.fail(Failure{System: s.Name, Why: "the baseline lacks this system"})
			continue
		}
		if base.Name != s.Name {
			result.Notes = append(result.Notes, fmt.Sprintf("%s is compared with %s, the only system of the baseline", s.Name, base.Name))
		}
		g.checkSystem(&result, s, base)
	}
	for _, base := range b.Systems {
		if !slices.ContainsFunc(r.Systems, func(s System) bool { return s.Name == base.Name || len(b.Systems) == 1 }) {
			result.fail(Failure{System: base.Name, Why: "it was not measured"})
		}
	}
	result.Passed = len(result.Failures) == 0
	return result
}

func (g *Gating) fail(f Failure) { g.Failures = append(g.Failures, f) }

// A twin is a question of a baseline with its outcome in the report.
type twin struct {
	was BaselineCase
	is  Outcome
}

func (g Gate) checkSystem(result *Gating, s System, base BaselineSystem) {
	was := map[string]BaselineCase{}
	for _, c := range base.Cases {
		was[c.ID] = c
	}
	var twins []twin
	fresh := 0
	for _, o := range s.Outcomes {
		before, known := was[o.ID]
		if !known || before.Question != o.Question {
			fresh++
			continue
		}
		twins = append(twins, twin{before, o})
		if before.Right != o.Right {
			result.Turned = append(result.Turned, Turned{System: s.Name, ID: o.ID, Question: o.Question, Right: o.Right, Lost: o.Lost, Run: o.Run})
		}
	}
	if fresh > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("%s: %d questions are not in the baseline and do not count", s.Name, fresh))
	}
	if gone := len(base.Cases) - len(twins); gone > 0 {
		result.fail(Failure{System: s.Name, Why: fmt.Sprintf("%d questions of the baseline were not asked", gone)})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Metrics)) {
		result.Checked++
		c := compare(measureOf(name, s, base), twins)
		if c.excused > 0 {
			result.Notes = append(result.Notes, fmt.Sprintf("%s: %s: %d questions that had it before lack it now and are right; they do not count", s.Name, name, c.excused))
		}
		if f, ok := g.Metrics[name].check(c); !ok {
			f.System, f.Metric = s.Name, name
			result.fail(f)
		}
	}
}

// measureOf returns the measure with the given name. For a custom measure, the report or the
// baseline tells whether lower is better.
func measureOf(name string, s System, base BaselineSystem) metric.Measure {
	m, known := metric.Lookup(name)
	if !known {
		m = metric.Measure{Name: name, Less: slices.Contains(base.Less, name)}
		m.Less = m.Less || slices.ContainsFunc(s.Figures, func(f Figure) bool { return f.Name == name && f.Less })
	}
	return m
}

// A comparison is a figure before and after.
type comparison struct {
	measure metric.Measure
	was, is []float64 // over the same questions
	now     []float64 // over all questions that have it now or have lost it
	known   bool      // the baseline has the measure
	there   bool      // a question has it now
	excused int       // questions that lost it and are right
	lost    int       // questions that lost it and are wrong
}

// compare collects the values of a measure from the twins.
func compare(m metric.Measure, twins []twin) comparison {
	c := comparison{measure: m}
	name := cmp.Or(m.Base, m.Name)
	for _, q := range twins {
		was, had := q.was.Metrics[name]
		is, has := q.is.Metrics[name]
		c.known, c.there = c.known || had, c.there || has
		switch {
		case has:
			c.now = append(c.now, is)
		case had && q.is.Right:
			c.excused++
			continue
		case had:
			c.lost++
			c.now = append(c.now, 0)
		}
		if had {
			c.was, c.is = append(c.was, was), append(c.is, is)
		}
	}
	return c
}

// figure returns the percentile or the mean of xs, depending on the measure.
func (c comparison) figure(xs []float64) float64 {
	if c.measure.Percentile > 0 && len(xs) > 0 {
		return stat.Percentile(xs, c.measure.Percentile)
	}
	return stat.Mean(xs)
}

// check compares one figure with its bounds.
func (t Tolerance) check(c comparison) (Failure, bool) {
	was, is, now := c.figure(c.was), c.figure(c.is), c.figure(c.now)
	f := Failure{Was: was, Is: is}
	switch less := c.measure.Less; {
	case !c.there:
		f.Why = "no question has a value now"
	case less && c.lost > 0:
		f.Why = fmt.Sprintf("%d questions that had a value before lack it now and are wrong", c.lost)
	case t.Tolerance != nil && !c.known:
		f.Why = "the baseline lacks this measure"
	case t.Tolerance != nil && len(c.is) == 0:
		f.Why = "no question has a value in both"
	case t.Tolerance != nil && !less && is < was-*t.Tolerance-slack:
		f.Why = fmt.Sprintf("it fell by %.4g, more than %g", was-is, *t.Tolerance)
	case t.Tolerance != nil && less && is > was+*t.Tolerance+slack:
		f.Why = fmt.Sprintf("it rose by %.4g, more than %g", is-was, *t.Tolerance)
	case t.Min != nil && now < *t.Min-slack:
		f.Is, f.Why = now, fmt.Sprintf("it is below %g", *t.Min)
	case t.Max != nil && now > *t.Max+slack:
		f.Is, f.Why = now, fmt.Sprintf("it is above %g", *t.Max)
	default:
		return f, true
	}
	if c.lost > 0 && !c.measure.Less {
		f.Why += fmt.Sprintf("; %d questions that had a value before lack it now and count as 0", c.lost)
	}
	return f, false
}
