package job_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/job"
)

// measured returns a result of one strategy, in which the questions of wrong are wrong.
func measured(strategy string, n int, wrong ...int) job.Result {
	var r job.Result
	sum := 0.0
	for i := range n {
		q := job.Question{ID: fmt.Sprint(i), Asked: fmt.Sprint("q", i), Strategy: strategy, Right: true, Status: assay.Answered, Run: fmt.Sprint("run", i)}
		for _, w := range wrong {
			if w == i {
				q.Right, q.Lost, q.Status = false, answers.NotRetrieved, assay.NotFound
			}
		}
		q.Metrics = map[string]float64{"right": 0, "steps": 3, "latency_ms": 5}
		if q.Right {
			q.Metrics["right"] = 1
			sum++
		}
		r.Questions = append(r.Questions, q)
	}
	r.Systems = []answers.System{{Name: strategy, Figures: []answers.Figure{{Name: "right", Cases: n, Mean: sum / float64(n)}, {Name: "steps", Cases: n, Mean: 3, Less: true}}}}
	return r
}

func TestCompare(t *testing.T) {
	t.Parallel()
	is, was := measured("static", 10, 1, 2, 3), measured("static", 10, 1, 4)
	c := job.Compare(is, was)
	if len(c.Systems) != 1 || len(c.Missing) != 0 {
		t.Fatalf("%+v", c)
	}
	s := c.Systems[0]
	if s.Common != 10 || s.Only != 0 || s.Gone != 0 || len(s.Turned) != 3 || s.Turned[0].Is.ID != "2" || s.Turned[0].Is.Right || !s.Turned[2].Is.Right || s.Turned[2].Was.Run != "run4" {
		t.Errorf("%+v", s)
	}
	if len(s.Paired) != 2 || s.Paired[0].Figure != "right" || s.Paired[0].Mean > -0.09 || s.Paired[0].P != 1 || s.Paired[0].Low >= 0 || s.Paired[0].High <= 0 {
		t.Errorf("paired %+v", s.Paired)
	}
	other := measured("static", 10)
	for i := range other.Questions {
		other.Questions[i].Asked = "another text"
	}
	if s := job.Compare(is, other).Systems[0]; s.Common != 0 || s.Only != 10 || s.Gone != 10 || len(s.Turned) != 0 || len(s.Paired) != 0 {
		t.Errorf("another set: %+v", s)
	}
	two := measured("static", 10)
	two.Systems = append(two.Systems, answers.System{Name: "other"})
	if c := job.Compare(measured("corrective", 10), two); len(c.Systems) != 0 || len(c.Missing) != 3 {
		t.Errorf("other strategies: %+v", c)
	}
	if c := job.Compare(measured("corrective", 10), was); len(c.Systems) != 1 || c.Systems[0].Other != "static" {
		t.Errorf("one strategy: %+v", c)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	gate, err := answers.ParseGate("a test", []byte("metrics:\n  right: {tolerance: 0.05}\n  latency_ms: {max: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	was := measured("static", 10, 1)
	if g := job.Check(gate, measured("static", 10, 2), was); !g.Passed || g.Checked != 2 {
		t.Errorf("as good: %+v", g)
	}
	if g := job.Check(gate, measured("static", 10, 2, 3), was); g.Passed || len(g.Failures) != 1 || g.Failures[0].Metric != "right" {
		t.Errorf("worse: %+v", g)
	}
	if g := job.Check(gate, measured("static", 5), was); g.Passed {
		t.Errorf("fewer questions: %+v", g)
	}
	for name, text := range map[string]string{"nothing": "", "no bound": "metrics: {right: {}}", "a typing error": "metrics: {right: {tolerence: 1}}", "no YAML": "metrics: ["} {
		if _, err := answers.ParseGate("a test", []byte(text)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	if _, err := job.ResultOf(engine.Evaluation{State: engine.EvaluationRunning}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a running evaluation: %v", err)
	}
	if _, err := job.ResultOf(engine.Evaluation{Result: []byte(`[]`)}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("another result: %v", err)
	}
}
