package strategy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// TestReflectRounds checks that the reflector decides when the rounds end and whether the question
// is answered.
func TestReflectRounds(t *testing.T) {
	open := func(in role.Reading) (role.Analysis, error) {
		return role.Analysis{Categories: []role.Category{{Name: "all", Statements: []role.Statement{{Text: "It is so.", Evidence: []int{1}}}}}, Open: []string{"who"}}, nil
	}
	tests := []struct {
		name      string
		analyst   analyst
		reflector reflector
		grader    grader
		rounds    int // 0: the default
		searches  int
		status    assay.Status
		stop      assay.Stop
		missing   []string
	}{
		{"completed", open, content, enough, 0, 1, assay.Answered, assay.StopSufficient, []string{}},
		{"completed, and not enough", open, content, partly, 0, 1, assay.Incomplete, assay.StopSufficient, []string{"more"}},
		{"never", open, discontent, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"who"}},
		{"never, in two rounds", open, discontent, enough, 2, 2, assay.Incomplete, assay.StopIterationLimit, []string{"who"}},
		{"completed under the threshold", open, func(role.ReflectInput) (role.Reflection, error) {
			return role.Reflection{Status: role.CompletedStatus, Coverage: 0.79}, nil
		}, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"who"}},
		{"completed by a failure", open, func(role.ReflectInput) (role.Reflection, error) {
			return role.Reflection{Status: role.CompletedStatus, Coverage: 1, Outcome: role.Outcome{Failure: "asleep"}}, nil
		}, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"who"}},
		{"no reflector", open, func(role.ReflectInput) (role.Reflection, error) { return role.Reflection{}, errors.New("asleep") }, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"who"}},
		{"no analyst", func(role.Reading) (role.Analysis, error) { return role.Analysis{}, errors.New("asleep") }, content, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{about}},
		{"an analyst that invents evidence", func(role.Reading) (role.Analysis, error) {
			return role.Analysis{Categories: []role.Category{{Statements: []role.Statement{{Text: "It is so.", Evidence: []int{7}}}}}}, nil
		}, content, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{about}},
	}
	for _, tt := range tests {
		l := growing(9)
		roles := localRoles()
		roles.Analyst, roles.Reflector, roles.Grader, roles.Querier, roles.Generator = tt.analyst, tt.reflector, tt.grader, numbered(), generator(verbatim)
		e := env(l, about, roles)
		e.Settings.Reflect.Rounds = tt.rounds
		a := ask(t, strategy.Reflect, e, assay.Budget{})
		if len(l.searches) != tt.searches || a.Status != tt.status || a.Stop != tt.stop || a.Strategy != "reflect" || len(a.Claims) == 0 {
			t.Errorf("%s: %s (%s) after searches %q; want %s (%s) after %d", tt.name, a.Status, a.Stop, l.searches, tt.status, tt.stop, tt.searches)
		}
		if diff := cmp.Diff(tt.missing, gapTexts(a.Missing)); diff != "" {
			t.Errorf("%s: missing (-want +got):\n%s", tt.name, diff)
		}
		verdict := "INCOMPLETE"
		if a.Stop == assay.StopSufficient {
			verdict = "COMPLETED"
		}
		if a.Review == nil || a.Review.Verdict != verdict || a.Review.Iterations != tt.searches || len(a.Review.History) != tt.searches {
			t.Fatalf("%s: review %+v, want %s after %d rounds", tt.name, a.Review, verdict, tt.searches)
		}
		if first := a.Review.History[0]; first.Query != about || !strings.Contains(first.Answer, "speaks of gravity") || !slices.Equal(first.Sources, []string{"doc1"}) {
			t.Errorf("%s: the history begins with %+v", tt.name, first)
		}
		if tt.name == "never" && (a.Review.Justification != "x who is open" || a.Review.Coverage == nil || *a.Review.Coverage != 0.3 || *a.Review.Threshold != role.DefaultThreshold) {
			t.Errorf("review %+v, want the reflector's coverage and justification", a.Review)
		}
	}
}

// TestReflectCoverage checks that the required coverage is a setting and is passed to the
// reflector.
func TestReflectCoverage(t *testing.T) {
	for coverage, want := range map[float64]assay.Status{0: assay.Incomplete, 0.5: assay.Answered, 0.8: assay.Incomplete, 7: assay.Incomplete} {
		roles := localRoles()
		roles.Grader, roles.Generator = grader(enough), generator(verbatim)
		roles.Reflector = reflector(func(in role.ReflectInput) (role.Reflection, error) {
			if told := in.Threshold; told != coverage && (coverage != 0 || told != role.DefaultThreshold) {
				t.Errorf("the threshold is %v, want %v", told, coverage)
			}
			return role.Reflection{Status: role.CompletedStatus, Coverage: 0.6}, nil
		})
		e := env(growing(0), about, roles)
		e.Settings.Reflect.Coverage = coverage
		if a := ask(t, strategy.Reflect, e, assay.Budget{}); a.Status != want {
			t.Errorf("coverage %v: %s, want %s", coverage, a.Status, want)
		}
	}
}

// TestReflectParts checks that sub-questions are searched in parallel, after those that they need,
// and that later searches for open points belong to the right part. Parts beyond the limit are
// missing.
func TestReflectParts(t *testing.T) {
	l := newLibrary("The city Springfield was founded by Jebediah.", "Jebediah wrote poems.", "Pears are green.")
	roles := localRoles()
	roles.Planner = plans(role.Chain,
		role.SubQuestion{Text: "city Springfield founded"},
		role.SubQuestion{Text: "poems wrote", Needs: []int{0}},
		role.SubQuestion{Text: "colour of pears"})
	roles.Grader, roles.Generator = grader(func(in role.GradeInput) (role.Grade, error) {
		if in.Question == "poems wrote" && len(in.Tried) < 1 {
			return role.Grade{Verdict: assay.Partly, Relevant: relevant(in), Missing: []string{"more"}}, nil
		}
		return enough(in)
	}), generator(verbatim)
	roles.Querier = querier(func(role.QueryInput) (role.NextQuery, error) { return role.NextQuery{Query: "Jebediah poems"}, nil })
	rounds := 0
	roles.Reflector = reflector(func(in role.ReflectInput) (role.Reflection, error) {
		if rounds++; rounds != in.Rounds {
			t.Errorf("round %d is called %d", rounds, in.Rounds)
		}
		if rounds == 1 {
			return discontent(in)
		}
		return content(in)
	})
	e := env(l, "Who wrote the poems?", roles)
	e.Limits.Parts = 2
	a := ask(t, strategy.Reflect, e, assay.Budget{})
	want := []string{"city Springfield founded", "poems wrote Title of doc1", "Jebediah poems | poems wrote"}
	if diff := cmp.Diff(want, l.searches); diff != "" {
		t.Errorf("searches (-want +got):\n%s", diff)
	}
	if a.Status != assay.Incomplete || !slices.Contains(gapTexts(a.Missing), "colour of pears") {
		t.Errorf("%s, missing %q; want the part beyond the limit", a.Status, gapTexts(a.Missing))
	}
}
