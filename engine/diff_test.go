package engine

import (
	"errors"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	e := open(t)
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}}); err != nil {
		t.Fatal(err)
	}
	ask := func(req Request) string {
		t.Helper()
		req.NoCache = true
		a, err := e.Answer(t.Context(), assay.Local(), req)
		if err != nil {
			t.Fatal(err)
		}
		return a.Run
	}
	const question = "Who approves travel to a customer?"
	a, b := ask(Request{Question: question}), ask(Request{Question: question})
	d, err := e.Diff(t.Context(), assay.Local(), a, b)
	if err != nil || len(d.Fields) > 0 || len(d.Steps) > 0 || d.Same == 0 {
		t.Errorf("the same question twice: %+v, %v", d, err)
	}
	c := ask(Request{Question: question, Strategy: "corrective"})
	if d, err = e.Diff(t.Context(), assay.Local(), a, c); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range d.Fields {
		names[f.Of+"."+f.Name] = true
	}
	if !names["request.strategy"] || !names["answer.strategy"] || names["answer.run"] || names["answer.elapsed_ms"] {
		t.Errorf("the fields that differ are %v, want the strategy and not the run", names)
	}
	onlyC := slices.ContainsFunc(d.Steps, func(s StepDiff) bool { return s.A == nil && s.B.Kind == assay.StepPlan })
	onlyA := slices.ContainsFunc(d.Steps, func(s StepDiff) bool { return s.B == nil })
	if !onlyA || !onlyC {
		t.Errorf("steps %+v, want a plan that only the second has, and steps of the first alone", d.Steps)
	}
	if _, err := e.Diff(t.Context(), assay.Local(), a, "nosuchrun"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a run that does not exist: %v", err)
	}
	if _, err := e.Diff(t.Context(), assay.Principal{User: "somebody"}, a, b); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another principal: %v, want not found", err)
	}
}
