package strategy_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// TestAutoEscalates checks with which strategy Auto goes on if its first search is insufficient, and
// that its first search is reported.
func TestAutoEscalates(t *testing.T) {
	single := plans(role.Single, role.SubQuestion{Text: about})
	several := plans(role.Conjunction, role.SubQuestion{Text: "gravity"}, role.SubQuestion{Text: "speaks"})
	chain := plans(role.Chain, role.SubQuestion{Text: "gravity"}, role.SubQuestion{Text: "speaks", Needs: []int{0}})
	tests := []struct {
		name     string
		plan     planner
		escalate string
		want     string
		first    bool // the question itself is searched first
	}{
		{"by default", single, "", "corrective", true},
		{"corrective", single, "corrective", "corrective", true},
		{"nowhere", single, "static", "static", true},
		{"multihop", single, "multihop", "multihop", true},
		{"adaptive", single, "adaptive", "adaptive", true},
		{"several parts by default", several, "", "corrective", false},
		{"several parts, nowhere", several, "static", "static", true},
		{"several parts, multihop", several, "multihop", "multihop", true},
		{"a chain by default", chain, "", "multihop", true},
		{"a chain, nowhere", chain, "static", "static", true},
		{"a chain, corrective by name", chain, "corrective", "multihop", true},
		{"a chain, adaptive", chain, "adaptive", "adaptive", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := withApples("The first document speaks of gravity.")
			roles := localRoles()
			roles.Planner, roles.Grader, roles.Generator = tt.plan, grader(partly), generator(verbatim)
			e := env(l, about, roles)
			e.Settings.Auto.Escalate = tt.escalate
			a := ask(t, strategy.Auto, e, assay.Budget{})
			if a.Strategy != tt.want {
				t.Errorf("answered by %s, want %s", a.Strategy, tt.want)
			}
			if tt.want == "static" && (len(l.searches) != 1 || a.Iterations != 1) {
				t.Errorf("searched %q, want once", l.searches)
			}
			if len(a.Searched) == 0 || (a.Searched[0].Query == about) != tt.first {
				t.Errorf("searched %+v", a.Searched)
			}
			if a.Iterations != len(a.Searched) {
				t.Errorf("%d iterations, %d searches", a.Iterations, len(a.Searched))
			}
		})
	}
}

// TestAutoEscalatesNowhereElse checks that Auto does not go on with itself, a service, or an unknown
// strategy, and with all others.
func TestAutoEscalatesNowhereElse(t *testing.T) {
	for _, name := range []string{"auto", "managed", "hasty"} {
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
		if err != nil {
			t.Fatal(err)
		}
		e := env(newLibrary("alpha is first."), about, localRoles())
		e.Settings.Auto.Escalate = name
		if _, err := strategy.Auto(context.Background(), r.Scope(), e); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	want := slices.DeleteFunc(strategy.Names(), func(name string) bool { return name == "auto" || name == "managed" })
	got := slices.Sorted(slices.Values(strategy.Escalations()))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("Escalations() = %q, want %q", got, want)
	}
}

// TestNaive checks that the baseline searches once, grades and verifies nothing, and is not a
// strategy.
func TestNaive(t *testing.T) {
	l := withApples("The first document speaks of gravity.")
	roles := localRoles()
	roles.Generator = generator(verbatim)
	roles.Grader, roles.Verifier, roles.Planner = nil, nil, nil
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := strategy.Naive(context.Background(), r.Scope(), env(l, about, roles), assay.ModeText)
	if err != nil || len(draft.Statements) == 0 {
		t.Fatalf("%+v, %v", draft, err)
	}
	var kinds []assay.StepKind
	for _, rec := range journal.Records() {
		kinds = append(kinds, rec.Kind)
	}
	if want := []assay.StepKind{assay.StepSearch, assay.StepGenerate}; !slices.Equal(kinds, want) {
		t.Errorf("steps %v, want %v", kinds, want)
	}
	if _, err := strategy.Lookup("naive"); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("the strategy naive: %v, want ErrInvalid", err)
	}
}
