package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// TestAutoOfChains checks that Auto splits a question only if one search is insufficient, and
// starts with the names in its hits.
func TestAutoOfChains(t *testing.T) {
	for verdict, want := range map[assay.GradeVerdict][]string{
		assay.Sufficient: {ofTheDirector},
		assay.Partly:     {ofTheDirector, "Who is the spouse of Raoul Walsh?"},
	} {
		l := films()
		e := env(l, ofTheDirector, localRoles())
		e.Roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
			g := role.Grade{Verdict: assay.Sufficient}
			if in.Question == ofTheDirector {
				g.Verdict = verdict
			}
			if strings.Contains(in.Question, "the director of") {
				g.Answers = answersIn(in.Hits, "Raoul Walsh")
			}
			for _, h := range in.Hits {
				g.Relevant = append(g.Relevant, h.Chunk.ID)
			}
			return g, nil
		})
		a := ask(t, strategy.Auto, e, assay.Budget{})
		if !slices.Equal(l.searches, want) || verdict == assay.Partly && !strings.Contains(a.Text, "Miriam Cooper") || a.Status != assay.Answered {
			t.Errorf("%s: searched %q; %s, %s: %s", verdict, l.searches, a.Strategy, a.Status, a.Text)
		}
	}
}

// TestAutoOutline checks that Auto uses the plan that the run began with without a step, and asks
// the planner if there is none.
func TestAutoOutline(t *testing.T) {
	l, asked := films(), 0
	e := env(l, ofTheDirector, localRoles())
	e.Roles.Planner = planner(func(q string) (role.Plan, error) {
		asked++
		return role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: q}}}, nil
	})
	e.Outline = &role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: ofTheDirector}}}
	for _, want := range []int{0, 1} {
		if ask(t, strategy.Auto, e, assay.Budget{}); asked != want {
			t.Errorf("outline %v: the planner was asked %d times, want %d", e.Outline, asked, want)
		}
		e.Outline = nil
	}
}

// TestSearchedOfBothStages checks that the first search of Auto is reported and counted, whatever
// the plan.
func TestSearchedOfBothStages(t *testing.T) {
	l := newLibrary("alpha is first.", "beta is second.")
	roles := localRoles()
	roles.Planner = plans(role.Comparison, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta"})
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	a := ask(t, strategy.Auto, env(l, "alpha or beta?", roles), assay.Budget{})
	var got []string
	for _, s := range a.Searched {
		got = append(got, s.Query)
	}
	if want := []string{"alpha or beta?", "alpha", "beta"}; !slices.Equal(got, want) || a.Iterations != len(want) {
		t.Errorf("searched %q in %d iterations, want %q", got, a.Iterations, want)
	}
}

// TestAutoBranches walks through the decisions of Auto: what it searches first, and as which strategy
// it goes on.
func TestAutoBranches(t *testing.T) {
	const question = "alpha or beta?"
	single := plans(role.Single, role.SubQuestion{Text: question})
	sufficientFor := func(questions ...string) grader {
		return func(in role.GradeInput) (role.Grade, error) {
			if slices.Contains(questions, in.Question) {
				return enough(in)
			}
			g, err := partly(in)
			g.Query = "gamma"
			return g, err
		}
	}
	year := assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2024)}
	tests := []struct {
		name     string
		planner  planner
		grader   grader
		searches []string
		strategy string
		status   assay.Status
	}{
		{"one search suffices", single, enough, []string{question}, "static", assay.Answered},
		{"it does not, and is not repeated", single, sufficientFor(), []string{question, "gamma"}, "corrective", assay.Incomplete},
		{"several questions", plans(role.Conjunction, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta"}), enough, []string{"alpha", "beta"}, "corrective", assay.Answered},
		{"a comparison that no passage makes", plans(role.Comparison, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta"}), enough, []string{question, "alpha", "beta"}, "corrective", assay.Answered},
		{"filters that differ", plans(role.Comparison, role.SubQuestion{Text: "alpha", Filter: year}, role.SubQuestion{Text: "beta"}), enough, []string{"alpha", "beta"}, "corrective", assay.Answered},
		{"a chain that one search answers", plans(role.Chain, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta of #1", Needs: []int{0}}), enough, []string{question}, "graph", assay.Answered},
		{"a chain", plans(role.Chain, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta of #1", Needs: []int{0}}), sufficientFor("beta of alpha"), []string{question, "alpha", "beta of alpha"}, "multihop", assay.Answered},
	}
	for _, tt := range tests {
		l := newLibrary("alpha is first.", "beta is second.")
		roles := localRoles()
		roles.Planner, roles.Grader, roles.Generator = tt.planner, tt.grader, generator(verbatim)
		a := ask(t, strategy.Auto, env(l, question, roles), assay.Budget{})
		slices.Sort(l.searches)
		slices.Sort(tt.searches)
		if !slices.Equal(l.searches, tt.searches) || a.Strategy != tt.strategy || a.Status != tt.status {
			t.Errorf("%s: %s, %s after searches %q; want %s, %s after %q", tt.name, a.Strategy, a.Status, l.searches, tt.strategy, tt.status, tt.searches)
		}
	}
}
