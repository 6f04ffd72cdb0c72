package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// forked forks a run and returns the answer. It checks that the fork replays.
func forked(t *testing.T, e *Engine, id, step string, change func(*Request)) assay.Answer {
	t.Helper()
	for ev, err := range e.Fork(t.Context(), assay.Local(), id, step, change) {
		switch {
		case err != nil:
			t.Fatalf("fork at %s: %v", step, err)
		case ev.Kind == RunEnded:
			replays(t, e, ev.Answer.Run)
			return *ev.Answer
		}
	}
	t.Fatal("the fork ended without an answer")
	return assay.Answer{}
}

// TestForkWithoutChange checks that a fork of any strategy at any step reaches the answer of its
// parent, and pays only for the steps from there on.
func TestForkWithoutChange(t *testing.T) {
	t.Parallel()
	e, _, _ := openEvery(t)
	names := strategy.Names()
	if testing.Short() {
		names = []string{"auto", "corrective", "react"}
	}
	for _, way := range everyWay {
		for s, name := range names {
			everyModels(e, way)
			want := asked(t, e, everyRequest(name))
			records, err := e.runs.Records(t.Context(), want.Run)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range someOf(len(records), 4, s) {
				label := fmt.Sprintf("%s, %s, step %d of %d, %s", name, way, n, len(records), records[n-1].Path)
				paid := 0
				for _, rec := range takenOver(records, records[n-1].Path) {
					if rec.Kind == assay.StepModel && rec.Model != "cloud/base" {
						paid += rec.Usage.Calls
					}
				}
				calls := everyModels(e, way)
				if err := compare(want, forked(t, e, want.Run, fmt.Sprint(n), nil)); err != nil {
					t.Errorf("%s: %v", label, err)
				}
				all := want.Usage.Calls
				if want.Strategy == "managed" {
					all--
				}
				if paid+calls() != all {
					t.Errorf("%s: %d calls were taken over and %d made, want %d together", label, paid, calls(), all)
				}
			}
		}
	}
}

// TestForkWithAnotherModel checks that the steps from the fork on are done by the new model, and that
// the fork needs its parent no more.
func TestForkWithAnotherModel(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	parent := asked(t, e, Request{Question: someQuestion, Strategy: "corrective"})
	_, steps, err := e.Run(t.Context(), assay.Local(), parent.Run)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == assay.StepGenerate })
	at := steps[i].Path
	by := handbook.models()
	by[role.GeneratorRole] = texts("other/generator", func(llm.Request) string {
		return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "statements": []any{}, "conflicts": []any{}, "open": []string{}})
	})
	e.config.Models = served(by)
	a := forked(t, e, parent.Run, at, nil)
	if by[role.GraderRole].calls() > 0 || by[role.GeneratorRole].calls() == 0 {
		t.Errorf("the grader was called %d times and the generator %d, want 0 and some", by[role.GraderRole].calls(), by[role.GeneratorRole].calls())
	}
	if a.Status == assay.Answered || a.Run == parent.Run {
		t.Errorf("the fork answers %q (%s) as run %s", a.Text, a.Status, a.Run)
	}
	for _, n := range a.Notes {
		if n.Kind == assay.NoteRole {
			t.Errorf("note %q: the fork did not change models while it ran", n.Text)
		}
	}
	r, _, err := e.Run(t.Context(), assay.Local(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	req, err := requestOf(r)
	if err != nil || req.ForkedFrom == nil || req.ForkedFrom.Run != parent.Run || req.ForkedFrom.Step != at || req.Models[role.GeneratorRole] != "other/generator" {
		t.Errorf("the request is %+v, %v", req, err)
	}
	d, err := e.Diff(t.Context(), assay.Local(), parent.Run, a.Run)
	if err != nil || d.Same == 0 || len(d.Steps) == 0 {
		t.Errorf("the diff is %+v, %v", d, err)
	}
	runs, err := e.Runs(t.Context(), assay.Local(), 1)
	if err != nil || runs[0].ForkedFrom == nil || runs[0].ForkedFrom.Run != parent.Run {
		t.Errorf("listed as %+v, %v", runs, err)
	}
	if err := e.DeleteRun(t.Context(), assay.Local(), parent.Run, ""); err != nil {
		t.Fatal(err)
	}
	replays(t, e, a.Run)
	if b := forked(t, e, a.Run, at, nil); compare(a, b) != nil {
		t.Errorf("the fork of the fork: %v", compare(a, b))
	}
}

// TestForkFromLocal checks that a model can take over a run that had none, at any step.
func TestForkFromLocal(t *testing.T) {
	t.Parallel()
	e := open(t)
	ingestPaths(t, e, "testdata/handbook")
	for _, name := range []string{"auto", "static", "corrective"} {
		e.config.Models = Models{}
		parent := asked(t, e, Request{Question: someQuestion, Strategy: name, Local: true})
		_, steps, err := e.Run(t.Context(), assay.Local(), parent.Run)
		if err != nil {
			t.Fatal(err)
		}
		e.config.Models = served(handbook.models())
		for _, s := range steps {
			if s.Kind == assay.StepClock {
				continue
			}
			a := forked(t, e, parent.Run, s.Path, func(r *Request) { r.Local = false })
			if a.Status != assay.Answered {
				t.Errorf("%s at %s: %s: %q", name, s.Path, a.Status, a.Text)
			}
		}
	}
}

func TestFindStepOfNone(t *testing.T) {
	for _, name := range []string{"1", "search"} {
		if _, err := findStep(nil, name); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "its journal is empty") {
			t.Errorf("step %s of an empty journal: %v", name, err)
		}
	}
}

func TestForkRefused(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	parent := asked(t, e, Request{Question: someQuestion, Strategy: "corrective"})
	fork := func(principal assay.Principal, id, step string, change func(*Request)) error {
		_, err := last(e.Fork(t.Context(), principal, id, step, change))
		return err
	}
	for name, step := range map[string]string{"zero": "0", "a number too high": "999", "an unknown path": "sub[0]/round[7]/search", "nothing": ""} {
		if err := fork(assay.Local(), parent.Run, step, nil); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fork(assay.Local(), parent.Run, "sub[0]/round[7]/search", nil); !strings.Contains(err.Error(), "sub[0]/round[0]/search") {
		t.Errorf("the error %q names no similar step", err)
	}
	for name, change := range map[string]func(*Request){
		"another question": func(r *Request) { r.Question = "Why?" },
		"another strategy": func(r *Request) { r.Strategy = "static" },
		"more documents":   func(r *Request) { r.Collections = []string{"hr"} },
	} {
		if err := fork(assay.Local(), parent.Run, "1", change); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fork(assay.Principal{User: "somebody"}, parent.Run, "1", nil); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another principal: %v", err)
	}
	runs, err := e.Runs(t.Context(), assay.Local(), 0)
	if err != nil || len(runs) != 1 {
		t.Errorf("refused forks left %d runs, %v", len(runs), err)
	}
	// The middle of a job that another model does now.
	_, steps, err := e.Run(t.Context(), assay.Local(), parent.Run)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == assay.StepModel })
	by := handbook.models()
	calls := 0
	by[role.GraderRole] = texts("fake/grader", func(req llm.Request) string {
		if calls++; calls == 1 {
			return "no JSON"
		}
		return handbook.grade(req)
	})
	e.config.Models = served(by)
	twice := asked(t, e, Request{Question: someQuestion, Strategy: "corrective", NoCache: true})
	if _, steps, err = e.Run(t.Context(), assay.Local(), twice.Run); err != nil || first < 0 {
		t.Fatal(first, err)
	}
	again := slices.IndexFunc(steps, func(s Step) bool { return s.Kind == assay.StepModel && strings.Contains(s.Path, "grade/call[1]") })
	by = handbook.models()
	by[role.GraderRole] = texts("other/grader", handbook.grade)
	e.config.Models = served(by)
	if err := fork(assay.Local(), twice.Run, steps[again].Path, nil); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "fork from the job") {
		t.Errorf("in a job of another model: %v", err)
	}
}

// TestForkChangesEarlierStep checks that a setting that affects a step before the fork is an error
// that names it, and that nothing is paid.
func TestForkChangesEarlierStep(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	parent := asked(t, e, Request{Question: someQuestion, Strategy: "corrective"})
	_, steps, err := e.Run(t.Context(), assay.Local(), parent.Run)
	if err != nil {
		t.Fatal(err)
	}
	by := handbook.models()
	e.config.Models = served(by)
	_, err = last(e.Fork(t.Context(), assay.Local(), parent.Run, steps[len(steps)-1].Path, func(r *Request) { r.Limits.Candidates = 3 }))
	early, ok := errors.AsType[*ForkError](err)
	if !ok || !errors.Is(err, assay.ErrDiverged) {
		t.Fatalf("error = %v, want a ForkError", err)
	}
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Path == early.Step }) {
		t.Errorf("the step %q is not one of the parent", early.Step)
	}
	if d, ok := errors.AsType[*run.DivergenceError](err); !ok || d.Path != early.Step {
		t.Errorf("the divergence is %+v", d)
	}
	for name, m := range by {
		if m.calls() > 0 {
			t.Errorf("the %s was called", name)
		}
	}
	if runs, err := e.Runs(t.Context(), assay.Local(), 0); err != nil || len(runs) != 1 || runs[0].ID != parent.Run {
		t.Errorf("the runs are %+v, %v, want the parent alone", runs, err)
	}
	a := forked(t, e, parent.Run, early.Step, func(r *Request) { r.Limits.Candidates = 3 })
	if a.Status != assay.Answered {
		t.Errorf("the fork from that step: %s", a.Status)
	}
}

// TestForkKeepsBudget checks which parts of the budget a fork inherits.
func TestForkKeepsBudget(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	for _, tt := range []struct {
		given, want time.Duration
	}{{0, modelWall}, {17 * time.Second, 17 * time.Second}} {
		parent := asked(t, e, Request{Question: someQuestion, NoCache: true, Budget: assay.Budget{Wall: tt.given, Calls: 50}})
		a := forked(t, e, parent.Run, "1", nil)
		r, err := e.run(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Fatal(err)
		}
		if req, err := requestOf(r); err != nil || req.Budget.Wall != tt.want || req.Budget.Calls != 50 {
			t.Errorf("wall time %v: the fork has %+v, %v", tt.given, req.Budget, err)
		}
	}
}
