package answers_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/testset"
)

// reportOf returns a report of one system with one question per argument, which tells whether the
// question is right.
func reportOf(right ...bool) answers.Report {
	s := answers.System{Name: "auto"}
	total := 0.0
	for i, r := range right {
		value := 0.0
		if r {
			value = 1
		}
		total += value
		id := string(rune('a' + i))
		s.Outcomes = append(s.Outcomes, answers.Outcome{
			Case: testset.Case{ID: id, Question: "Question " + id + "?"}, System: "auto", Run: "run-" + id, Right: r,
			Metrics: map[string]float64{"right": value, "tokens": 100, "latency_ms": 5},
		})
	}
	s.Figures = []answers.Figure{{Name: "right", Mean: total / float64(len(right)), Cases: len(right)}, {Name: "tokens", Mean: 100}, {Name: "latency_ms", Mean: 5}}
	return answers.Report{Set: "set", Systems: []answers.System{s}}
}

// written writes the baseline of a report and reads it back.
func written(t *testing.T, r answers.Report) answers.Baseline {
	t.Helper()
	file := filepath.Join(t.TempDir(), "baseline.json")
	if err := answers.BaselineOf(r, nil).Write(file); err != nil {
		t.Fatal(err)
	}
	b, err := answers.ReadBaseline(file)
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
		now        answers.Report
		want       []string // of the failures, in words
		turned     []string
	}{
		{"as it was", "metrics: {right: {tolerance: 0}, tokens: {tolerance: 10}}", was, nil, nil},
		{"better", "metrics: {right: {tolerance: 0}}", reportOf(true, true, true, true), nil, []string{"d right"}},
		{"worse, within what is allowed", "metrics: {right: {tolerance: 0.3}}", reportOf(true, true, false, false), nil, []string{"c wrong"}},
		{"worse", "metrics: {right: {tolerance: 0.2}}", reportOf(true, true, false, false), []string{"right: it fell by 0.25, more than 0.2"}, []string{"c wrong"}},
		{"one for another", "metrics: {right: {tolerance: 0}}", reportOf(true, true, false, true), nil, []string{"c wrong", "d right"}},
		{"more of what is better less", "metrics: {tokens: {tolerance: 10}}", dearer, []string{"tokens: it rose by 50, more than 10"}, nil},
		{"under the least", "metrics: {right: {min: 0.9}}", was, []string{"right: it is below 0.9"}, nil},
		{"over the most", "metrics: {tokens: {max: 99}}", was, []string{"tokens: it is above 99"}, nil},
		{"a metric that neither has", "metrics: {rihgt: {tolerance: 1}}", was, []string{"rihgt: no question has a value now"}, nil},
		{"a metric that the baseline has not", "metrics: {latency_ms: {tolerance: 100}}", was, []string{"latency_ms: the baseline lacks this measure"}, nil},
		{"a question fewer", "metrics: {right: {tolerance: 1}}", reportOf(true, true, true), []string{": 1 questions of the baseline were not asked"}, nil},
		{"a question more", "metrics: {right: {tolerance: 0}}", reportOf(true, true, true, false, false), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gate, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", tt.gate))
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
	renamed := reportOf(true, true, true, false)
	renamed.Systems[0].Name = "static"
	anything, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", "metrics: {right: {tolerance: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if g := anything.Check(renamed, written(t, was)); !g.Passed || len(g.Notes) != 1 || g.Notes[0] != "static is compared with auto, the only system of the baseline" {
		t.Errorf("another system: %+v", g)
	}
	other := written(t, was)
	other.Systems = append(other.Systems, answers.BaselineSystem{Name: "static"})
	gate, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", "metrics: {right: {tolerance: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if g := gate.Check(was, other); g.Passed || g.Failures[0].Why != "it was not measured" {
		t.Errorf("a system that is not there: %+v", g)
	}
}

// TestGateOfWhatIsLost checks that a figure is computed over the questions that have it on both
// sides, and that questions which lost it are reported.
func TestGateOfWhatIsLost(t *testing.T) {
	was := reportOf(true, true, true, true)
	for i, o := range was.Systems[0].Outcomes {
		o.Metrics["faithfulness"] = []float64{1, 1, 0.2, 0.2}[i]
	}
	tests := []struct {
		name, gate string
		change     func(outcomes []answers.Outcome)
		want       []string
		notes      int
	}{
		{"the worst lose it, and the mean of the rest is greater", "faithfulness: {tolerance: 0}", func(outcomes []answers.Outcome) {
			for _, o := range outcomes[2:] {
				delete(o.Metrics, "faithfulness")
			}
			outcomes[2].Right, outcomes[3].Right = false, false
		}, []string{"faithfulness: it fell by 0.1, more than 0; 2 questions that had a value before lack it now and count as 0"}, 0},
		{"a bound counts them", "faithfulness: {min: 0.9}", func(outcomes []answers.Outcome) {
			for _, o := range outcomes[2:] {
				delete(o.Metrics, "faithfulness")
			}
			outcomes[2].Right, outcomes[3].Right = false, false
		}, []string{"faithfulness: it is below 0.9; 2 questions that had a value before lack it now and count as 0"}, 0},
		{"what is right without it is said", "faithfulness: {tolerance: 0}", func(outcomes []answers.Outcome) {
			delete(outcomes[0].Metrics, "faithfulness")
		}, nil, 1},
		{"where less is better, a loss does not pass", "tokens: {tolerance: 1000}", func(outcomes []answers.Outcome) {
			delete(outcomes[0].Metrics, "tokens")
			outcomes[0].Right = false
		}, []string{"tokens: 1 questions that had a value before lack it now and are wrong"}, 0},
		{"other questions have it", "faithfulness: {tolerance: 1}", func(outcomes []answers.Outcome) {
			for _, o := range outcomes {
				delete(o.Metrics, "faithfulness")
			}
		}, []string{"faithfulness: no question has a value now"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gate, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", "metrics: {"+tt.gate+"}"))
			if err != nil {
				t.Fatal(err)
			}
			now := reportOf(true, true, true, true)
			for i, o := range now.Systems[0].Outcomes {
				o.Metrics["faithfulness"] = was.Systems[0].Outcomes[i].Metrics["faithfulness"]
			}
			tt.change(now.Systems[0].Outcomes)
			g := gate.Check(now, written(t, was))
			var failures []string
			for _, f := range g.Failures {
				failures = append(failures, f.Metric+": "+f.Why)
			}
			if diff := cmp.Diff(tt.want, failures); diff != "" || g.Passed != (len(tt.want) == 0) || len(g.Notes) != tt.notes {
				t.Errorf("passed %v, notes %q: %s", g.Passed, g.Notes, diff)
			}
		})
	}
}

// TestGateOfCustomMeasure checks that the direction of a custom measure is kept, even if the report
// does not have it.
func TestGateOfCustomMeasure(t *testing.T) {
	gate, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", "metrics: {rudeness: {tolerance: 0.1}}"))
	if err != nil {
		t.Fatal(err)
	}
	rude := func(x float64, less bool) answers.Report {
		r := reportOf(true, true)
		for _, o := range r.Systems[0].Outcomes {
			o.Metrics["rudeness"] = x
		}
		r.Systems[0].Figures = append(r.Systems[0].Figures, answers.Figure{Name: "rudeness", Mean: x, Less: less})
		return r
	}
	was := written(t, rude(0.5, true))
	for _, less := range []bool{true, false} {
		if g := gate.Check(rude(0.9, less), was); g.Passed || g.Failures[0].Why != "it rose by 0.4, more than 0.1" {
			t.Errorf("less %v, it rose: %+v", less, g)
		}
		if g := gate.Check(rude(0.1, less), was); !g.Passed {
			t.Errorf("less %v, it fell: %+v", less, g)
		}
	}
}

// TestBaselineForGate checks that a baseline for a gate keeps all measures that the gate names,
// including times.
func TestBaselineForGate(t *testing.T) {
	gate, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", "metrics: {right: {tolerance: 0}, latency_p95_ms: {tolerance: 10}}"))
	if err != nil {
		t.Fatal(err)
	}
	was := reportOf(true, false)
	b := answers.BaselineOf(was, &gate)
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

// TestReadGateErrors checks that ReadGate rejects invalid gates.
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
		"metrics: {right: {tolerance: .inf}}":         "tolerance of right",
		"metrics: {right: {min: .nan}}":               "min of right is NaN",
		"metrics: {right: {max: .nan}}":               "max of right is NaN",
		"metrics: {right: {min: -.inf}}":              "min of right is -Inf",
		"metrics: {tokens: {max: .inf}}":              "max of tokens is +Inf",
		"metrics: {right: {tolerance: many}}":         "gate.yaml",
		"metrics: {right: {tolerance: 1}}\nmore: 1\n": "more",
	} {
		if _, err := answers.ReadGate(evaltest.WriteFile(t, "gate.yaml", text)); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, kind := range map[string]error{"{}": assay.ErrInvalid, "no": assay.ErrInvalid, `{"format": 99}`: assay.ErrNewer} {
		if _, err := answers.ReadBaseline(evaltest.WriteFile(t, "baseline.json", text)); !errors.Is(err, kind) {
			t.Errorf("baseline %q: %v, want %v", text, err, kind)
		}
	}
}
