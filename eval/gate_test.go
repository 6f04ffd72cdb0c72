package eval_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
)

// reportOf is a report of one system with these questions, of which those marked are right.
func reportOf(right ...bool) eval.Report {
	s := eval.System{Name: "auto"}
	total := 0.0
	for i, r := range right {
		value := 0.0
		if r {
			value = 1
		}
		total += value
		id := string(rune('a' + i))
		s.Outcomes = append(s.Outcomes, eval.Outcome{
			Case: eval.Case{ID: id, Question: "Question " + id + "?"}, System: "auto", Run: "run-" + id, Right: r,
			Metrics: map[string]float64{"right": value, "tokens": 100, "latency_ms": 5},
		})
	}
	s.Figures = []eval.Figure{{Name: "right", Mean: total / float64(len(right)), Cases: len(right)}, {Name: "tokens", Mean: 100}, {Name: "latency_ms", Mean: 5}}
	return eval.Report{Set: "set", Systems: []eval.System{s}}
}

// written is what is read of a baseline that was written of a report.
func written(t *testing.T, r eval.Report) eval.Baseline {
	t.Helper()
	file := filepath.Join(t.TempDir(), "baseline.json")
	if err := eval.BaselineOf(r, nil).Write(file); err != nil {
		t.Fatal(err)
	}
	b, err := eval.ReadBaseline(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGate(t *testing.T) {
	was := reportOf(true, true, true, false)
	dearer := reportOf(true, true, true, false)
	for i := range dearer.Systems[0].Outcomes {
		dearer.Systems[0].Outcomes[i].Metrics["tokens"] = 150
	}
	tests := []struct {
		name, gate string
		now        eval.Report
		want       []string // of the failures, in words
		turned     []string
	}{
		{"as it was", "metrics: {right: {tolerance: 0}, tokens: {tolerance: 10}}", was, nil, nil},
		{"better", "metrics: {right: {tolerance: 0}}", reportOf(true, true, true, true), nil, []string{"d right"}},
		{"worse, within what is allowed", "metrics: {right: {tolerance: 0.3}}", reportOf(true, true, false, false), nil, []string{"c wrong"}},
		{"worse", "metrics: {right: {tolerance: 0.2}}", reportOf(true, true, false, false), []string{"right: it fell by 0.25, more than 0.2"}, []string{"c wrong"}},
		{"one for another", "metrics: {right: {tolerance: 0}}", reportOf(true, true, false, true), nil, []string{"c wrong", "d right"}},
		{"more of what is better less", "metrics: {tokens: {tolerance: 10}}", dearer, []string{"tokens: it rose by 50, more than 10"}, nil},
		{"under the least", "metrics: {right: {min: 0.9}}", was, []string{"right: it is under 0.9"}, nil},
		{"over the most", "metrics: {tokens: {max: 99}}", was, []string{"tokens: it is over 99"}, nil},
		{"a metric that neither has", "metrics: {rihgt: {tolerance: 1}}", was, []string{"rihgt: no question has it now"}, nil},
		{"a metric that the baseline has not", "metrics: {latency_ms: {tolerance: 100}}", was, []string{"latency_ms: the baseline does not have it"}, nil},
		{"a question fewer", "metrics: {right: {tolerance: 1}}", reportOf(true, true, true), []string{": 1 questions of the baseline were not asked"}, nil},
		{"a question more", "metrics: {right: {tolerance: 0}}", reportOf(true, true, true, false, false), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gate, err := eval.ReadGate(writeFile(t, "gate.yaml", tt.gate))
			if err != nil {
				t.Fatal(err)
			}
			g := gate.Check(tt.now, written(t, was))
			var failures, turned []string
			for _, f := range g.Failures {
				failures = append(failures, f.Metric+": "+f.Why)
			}
			for _, q := range g.Turned {
				word := " wrong"
				if q.Right {
					word = " right"
				}
				turned = append(turned, q.ID+word)
			}
			if diff := cmp.Diff(tt.want, failures); diff != "" || g.Passed != (len(tt.want) == 0) {
				t.Errorf("passed %v: %s", g.Passed, diff)
			}
			if diff := cmp.Diff(tt.turned, turned); diff != "" {
				t.Error(diff)
			}
		})
	}
	other := written(t, was)
	other.Systems = append(other.Systems, eval.BaselineSystem{Name: "static"})
	gate, err := eval.ReadGate(writeFile(t, "gate.yaml", "metrics: {right: {tolerance: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if g := gate.Check(was, other); g.Passed || g.Failures[0].Why != "it was not asked" {
		t.Errorf("a system that is not there: %+v", g)
	}
}

// A baseline that is written for a gate holds what that needs, times too.
func TestBaselineForGate(t *testing.T) {
	gate, err := eval.ReadGate(writeFile(t, "gate.yaml", "metrics: {right: {tolerance: 0}, latency_p95_ms: {tolerance: 10}}"))
	if err != nil {
		t.Fatal(err)
	}
	was := reportOf(true, false)
	b := eval.BaselineOf(was, &gate)
	if diff := cmp.Diff(map[string]float64{"right": 1, "latency_ms": 5}, b.Systems[0].Cases[0].Metrics); diff != "" {
		t.Error(diff)
	}
	if g := gate.Check(was, b); !g.Passed || g.Checked != 2 {
		t.Errorf("%+v", g)
	}
	was.Systems[0].Outcomes[1].Metrics["latency_ms"] = 500
	if g := gate.Check(was, b); g.Passed {
		t.Errorf("a percentile that rose: %+v", g)
	}
}

// A slip in a gate must not let everything through.
func TestReadGateErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                            "gate.yaml",
		"metrics: {}":                                 "names no metric",
		"metrics: {right: {}}":                        "has no tolerance, min or max",
		"metrics: {right: {tolerence: 0.1}}":          "tolerence",
		"metrics: {right: {tolerance: -1}}":           "the tolerance of right is -1",
		"metric: {right: {tolerance: 1}}":             "metric",
		"metrics: [right]":                            "gate.yaml",
		"metrics: {right: {tolerance: .nan}}":         "tolerance of right",
		"metrics: {right: {tolerance: many}}":         "gate.yaml",
		"metrics: {right: {tolerance: 1}}\nmore: 1\n": "more",
	} {
		if _, err := eval.ReadGate(writeFile(t, "gate.yaml", text)); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, kind := range map[string]error{"{}": assay.ErrInvalid, "no": assay.ErrInvalid, `{"format": 99}`: assay.ErrNewer} {
		if _, err := eval.ReadBaseline(writeFile(t, "baseline.json", text)); !errors.Is(err, kind) {
			t.Errorf("baseline %q: %v, want %v", text, err, kind)
		}
	}
}
