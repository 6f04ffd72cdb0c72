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

// chained are the strategies that follow a chain of sub-questions.
var chained = map[string]strategy.Func{"multihop": strategy.Multihop, "corrective": strategy.Corrective, "adaptive": strategy.Adaptive}

// The name that is filled in is that of what was asked, not of another thing near it, and
// what the whole question found is written from too.
func TestNameOfWhatWasAsked(t *testing.T) {
	for name, f := range chained {
		l := offices()
		roles := localRoles()
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

// A name that stands where nothing is said of what was asked is not followed, and what is
// missing is asked as it was.
func TestNameOfAnotherThing(t *testing.T) {
	tests := []struct {
		question string
		not      []string // that it is asked, or missing, with
	}{
		{"Where was the founder of the vendor of Heron born?", []string{"Amara", "Skyline", "Lyon"}},
		{"What is the salary of the chief operating officer?", []string{"of Hamburg", "of Utrecht", "of Malmö", "of Peter"}},
	}
	for name, f := range chained {
		for _, tt := range tests {
			l := offices()
			a := ask(t, f, env(l, tt.question, localRoles()), assay.Budget{})
			for _, not := range tt.not {
				for _, said := range slices.Concat(l.searches, gapTexts(a.Missing)) {
					if strings.Contains(said, not) {
						t.Errorf("%s, %s: %q", name, tt.question, said)
					}
				}
			}
		}
	}
}

// A name that is not certain is not said: what is missing is asked as it was.
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
		return enough(in)
	})
	a := ask(t, strategy.Corrective, env(l, "When was the vendor of Heron founded?", roles), assay.Budget{})
	if !slices.ContainsFunc(l.searches, func(q string) bool { return strings.Contains(q, "Kranich") }) {
		t.Errorf("searched %q", l.searches)
	}
	if !slices.Contains(gapTexts(a.Missing), "When was the vendor of Heron founded?") || strings.Contains(strings.Join(gapTexts(a.Missing), " "), "Systems") {
		t.Errorf("missing %q", gapTexts(a.Missing))
	}
}
