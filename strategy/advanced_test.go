package strategy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

func TestAdvancedSearches(t *testing.T) {
	by := map[role.Technique][]string{
		role.Expand: {"closing of sockets", "CLOSING of sockets", " ", "What does Shutdown do to open listeners?", "socket end"}, role.HyDE: {"Shutdown closes them."}, role.StepBack: {"server life cycle"},
	}
	tests := []struct {
		name   string
		grader grader
		want   [][]string // rewrites, by search
	}{
		{"suffices", enough, [][]string{{"closing of sockets", "socket end", "Shutdown closes them."}}},
		{"does not", partly, [][]string{{"closing of sockets", "socket end", "Shutdown closes them."}, {"server life cycle"}}},
	}
	for _, tt := range tests {
		w := &watched{library: newLibrary(shutdown)}
		roles := localRoles()
		roles.Rewriter, roles.Grader = rewrites(by), tt.grader
		e := env(w.library, "What does Shutdown do to open listeners?", roles)
		e.Retriever = w
		a := ask(t, strategy.Advanced, e, assay.Budget{})
		var got [][]string
		for _, q := range w.queries {
			if got = append(got, q.Rewrites); q.Text != e.Question {
				t.Errorf("%s: searched %q, want the question", tt.name, q.Text)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: rewritings (-want +got):\n%s", tt.name, diff)
		}
		if a.Strategy != "advanced" || len(a.Claims) == 0 {
			t.Errorf("%s: %s by %q: %s", tt.name, a.Status, a.Strategy, a.Text)
		}
	}
}

// TestAdvancedParts checks that several questions in one are searched in parallel, each with its
// own filter.
func TestAdvancedParts(t *testing.T) {
	filter, err := assay.ParseFilter(`year = 2020`)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{library: newLibrary("alpha is first.", "beta is second.")}
	roles := localRoles()
	roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta", Filter: filter}, role.SubQuestion{Text: "gamma"})
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	e := env(w.library, "alpha, beta and gamma?", roles)
	e.Retriever, e.Limits.Parts = w, 2
	a := ask(t, strategy.Advanced, e, assay.Budget{})
	filters := map[string]string{}
	for _, q := range w.queries {
		filters[q.Text] = q.Filter.String()
	}
	if diff := cmp.Diff(map[string]string{"alpha": assay.Filter{}.String(), "beta": filter.String()}, filters); diff != "" {
		t.Errorf("searched (-want +got):\n%s", diff)
	}
	if a.Status != assay.Incomplete || !slices.Contains(gapTexts(a.Missing), "gamma") || len(a.Claims) != 2 {
		t.Errorf("%s, missing %q: %q; want both parts, and the third missing", a.Status, gapTexts(a.Missing), a.Text)
	}
}
