package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

func offices() *library {
	l := newLibrary(
		"A lost laptop is reported to the platform team within one hour. The platform team is led by Ewa Nowak. Ewa Nowak works in the Hamburg office.",
		"The people team is led by Marta Keller. Her deputy is Jonas Lindqvist, who sits in the Malmö office.",
		"Ingrid Sundberg manages the Malmö office, opened in 2016. Peter Voss manages the Hamburg office, opened in 2011. "+
			"The headquarters are in Utrecht. Ingrid Sundberg reports to Paul Okafor, the chief operating officer.",
		"The vendor of Falcon is Skyline Networks, founded by Amara Diallo. Skyline Networks is based in Lyon. "+
			"The vendor of Heron is Reiher Systems, founded by Lukas Brandt. Reiher Systems is based in Bremen.",
	)
	return l
}

// chained lists the strategies that follow a chain of sub-questions.
var chained = map[string]strategy.Func{"multihop": strategy.Multihop, "corrective": strategy.Corrective, "adaptive": strategy.Adaptive}

// TestNameOfWhatWasAsked checks that the inserted name is that of the entity asked for, not of
// another one near it, and that the hits of the whole question are used too.
func TestNameOfWhatWasAsked(t *testing.T) {
	for name, f := range chained {
		l := offices()
		roles := reading(map[string][]string{"the leader of the platform team": {"Ewa Nowak"}, "the office in which Ewa Nowak works": {"Hamburg"}})
		roles.Planner = plans(role.Chain,
			role.SubQuestion{Text: "the leader of the platform team"}, role.SubQuestion{Text: "the office in which #1 works", Needs: []int{0}},
			role.SubQuestion{Text: "Who manages #2?", Needs: []int{1}})
		roles.Router = router(func(string) (role.Route, error) { return role.Route{Complexity: role.Complex}, nil })
		a := ask(t, f, env(l, "Who manages the office in which the leader of the platform team works?", roles), assay.Budget{})
		if !strings.Contains(a.Text, "Peter Voss manages the Hamburg office") {
			t.Errorf("%s: %s", name, a.Text)
		}
		if !slices.Contains(l.searches, "Who manages Hamburg?") {
			t.Errorf("%s searched %q", name, l.searches)
		}
	}
}

// TestMissingAsItWasAsked checks that a gap does not show an uncertain name but has the wording of
// the question.
func TestMissingAsItWasAsked(t *testing.T) {
	l := newLibrary("The vendor of Heron is Reiher Systems or Kranich Systems.", "A stork is a bird.")
	roles := localRoles()
	roles.Planner = plans(role.Chain, role.SubQuestion{Text: "the vendor of Heron"}, role.SubQuestion{Text: "When was #1 founded?", Needs: []int{0}})
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		if strings.Contains(in.Question, "founded") {
			g, err := partly(in)
			g.Missing = []string{in.Question}
			return g, err
		}
		g, err := enough(in)
		g.Answers = answersIn(in.Hits, "Reiher Systems", "Kranich Systems")
		return g, err
	})
	a := ask(t, strategy.Corrective, env(l, "When was the vendor of Heron founded?", roles), assay.Budget{})
	if !slices.ContainsFunc(l.searches, func(q string) bool { return strings.Contains(q, "Kranich") }) {
		t.Errorf("searched %q", l.searches)
	}
	if !slices.Contains(gapTexts(a.Missing), "When was the vendor of Heron founded?") || strings.Contains(strings.Join(gapTexts(a.Missing), " "), "Systems") {
		t.Errorf("missing %q", gapTexts(a.Missing))
	}
}
