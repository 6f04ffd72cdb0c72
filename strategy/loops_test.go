package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// TestFloorIsCheckedBeforeGrading checks for every loop that hits whose best relevance is below the
// floor lead to another search without a call of a grader, and that the grader is asked once a hit
// reaches the floor or no other search follows.
func TestFloorIsCheckedBeforeGrading(t *testing.T) {
	for _, name := range []string{"corrective", "self", "adaptive", "judge", "reflect", "advanced"} {
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, low := range []bool{true, false} { // the second search finds nothing better, or a relevant passage
			l := newLibrary("The first document speaks of gravity.", "Here apple1 is ripe and gravity ends.")
			l.relevance["doc1"] = 0.49
			if low {
				l.relevance["doc2"] = 0.3
			}
			grades, early := 0, 0
			roles := localRoles()
			roles.Router, roles.Querier = says(role.Moderate), numbered()
			roles.Planner = plans(role.Single, role.SubQuestion{Text: "What speaks of gravity first?"})
			roles.Rewriter = rewrites(map[role.Technique][]string{role.StepBack: {"apple1"}})
			roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
				grades++
				if len(l.searches) < 2 {
					early++
				}
				if low {
					return role.Grade{Verdict: assay.Insufficient, Missing: []string{in.Question}}, nil
				}
				return enough(in)
			})
			roles.RetrievalGrader = retrievalGrader(func(_ string, hits []assay.Hit) (role.RetrievalGrades, error) {
				if len(l.searches) < 2 {
					early++
				}
				return role.RetrievalGrades{Grades: slices.Repeat([]role.Relevance{role.Relevant}, len(hits))}, nil
			})
			l.hidden = "apple1" // the second document is found only by this word
			a := ask(t, spec.Func, env(l, "What speaks of gravity first?", roles), assay.Budget{})
			if len(l.searches) < 2 {
				t.Errorf("%s: searched %q, want another search after one below the floor", name, l.searches)
			}
			if early > 0 || low && a.Status != assay.NotFound {
				t.Errorf("%s: %s, %d grades before another search; want not found, and none", name, a.Status, early)
			}
			if !low && (grades == 0 || len(a.Claims) == 0) {
				t.Errorf("%s: %s after %d grades of %q, want the relevant passage graded and read: %s", name, a.Status, grades, l.searches, a.Justification)
			}
			if a.Searched[0].Grade != assay.Insufficient {
				t.Errorf("%s: the first search is graded %s", name, a.Searched[0].Grade)
			}
		}
	}
}

// TestQuerierNamesTheSearchBelowTheFloor checks that the querier, given the searches so far, names
// what is searched after hits that were not graded, and that it is not asked after the last search.
func TestQuerierNamesTheSearchBelowTheFloor(t *testing.T) {
	l := growing(9)
	for _, d := range l.documents {
		l.relevance[d.URI] = 0.2
	}
	var histories []int
	roles := localRoles()
	roles.Querier = querier(func(in role.QueryInput) (role.NextQuery, error) {
		histories = append(histories, len(in.History))
		return numbered()(in)
	})
	roles.Planner = plans(role.Single, role.SubQuestion{Text: about})
	a := ask(t, strategy.Corrective, env(l, about, roles), assay.Budget{})
	if want := []string{about, "apple1", "apple2", "apple3"}; !slices.Equal(l.searches, want) || !slices.Equal(histories, []int{1, 2, 3}) {
		t.Errorf("searched %q after histories of %v, want %q", l.searches, histories, want)
	}
	if a.Stop != assay.StopIterationLimit || a.Status != assay.NotFound {
		t.Errorf("%s (%s), want not found at the iteration limit", a.Status, a.Stop)
	}
}

// TestFloorWithoutCalls checks that hits below the floor are graded once, after the last search.
func TestFloorWithoutCalls(t *testing.T) {
	l := growing(0)
	l.relevance["doc1"] = 0.1
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.Corrective(t.Context(), r.Scope(), env(l, about, localRoles())); err != nil {
		t.Fatal(err)
	}
	var grades []string
	for _, rec := range journal.Records() {
		if rec.Kind == assay.StepGrade {
			grades = append(grades, rec.Path)
		}
	}
	if want := []string{"stage[0]/sub[0]/passed[0]/grade"}; !slices.Equal(grades, want) {
		t.Errorf("grades %q, want %q", grades, want)
	}
}

// TestIdenticalSearchesAreMadeOnce checks that a search with the query of an earlier one reaches the
// retriever once, while both are steps of the run, in any strategy that searches the question again.
func TestIdenticalSearchesAreMadeOnce(t *testing.T) {
	for _, name := range []string{"corrective", "multihop"} {
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		l, journal := films(), &run.Memory{}
		roles := localRoles() // nothing is read, so the last sub-question is the question again
		r, err := run.New(run.Config{Run: "r", Journal: journal})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Func(t.Context(), r.Scope(), env(l, ofTheDirector, roles)); err != nil {
			t.Fatal(err)
		}
		steps, made := 0, 0
		for _, rec := range journal.Records() {
			if rec.Kind == assay.StepSearch && strings.Contains(string(rec.Input), ofTheDirector) {
				steps, made = steps+1, made+rec.Usage.Searches
			}
		}
		n := 0
		for _, q := range l.searches {
			if q == ofTheDirector {
				n++
			}
		}
		if steps < 2 || made != 1 || n != 1 {
			t.Errorf("%s: %d steps search the question, %d at a cost, and %d reach the retriever; want several, 1 and 1", name, steps, made, n)
		}
	}
}

// TestGradeBeforeStands checks for every loop that what was graded relevant is answered from, as
// incomplete, if the run has no room for the grade of a later search.
func TestGradeBeforeStands(t *testing.T) {
	for _, name := range []string{"corrective", "self", "adaptive", "judge", "reflect", "advanced"} {
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		grades := 0
		roles := localRoles()
		roles.Router, roles.Querier = says(role.Moderate), numbered()
		roles.Planner = plans(role.Single, role.SubQuestion{Text: about})
		roles.Rewriter = rewrites(map[role.Technique][]string{role.StepBack: {"apple1"}})
		roles.Generator = generator(verbatim)
		roles.Reflector, roles.Judge = reflector(discontent), revises("more")
		roles.SupportGrader = supportGrader(func(in role.DraftInput) (role.SupportGrades, error) {
			return role.SupportGrades{Grades: slices.Repeat([]role.Support{role.PartlySupported}, len(in.Draft.Statements))}, nil
		})
		roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
			if grades++; grades > 1 {
				return role.Grade{}, fmt.Errorf("a call: %w", assay.ErrBudget)
			}
			g, err := partly(in)
			g.Query = "apple1"
			return g, err
		})
		a := ask(t, spec.Func, env(growing(3), about, roles), assay.Budget{})
		if grades != 2 || a.Status != assay.Incomplete || len(a.Claims) == 0 || a.Stop != assay.StopCallBudget {
			t.Errorf("%s: %s (%s) with %d claims after %d grades, want an incomplete answer", name, a.Status, a.Stop, len(a.Claims), grades)
		}
	}
}

// TestBelowTheFloorInTime checks that hits below the floor are graded without a model if the time of the
// sub-question ends before another search.
func TestBelowTheFloorInTime(t *testing.T) {
	l, now, journal := growing(0), time.Unix(0, 0), &run.Memory{}
	l.relevance["doc1"] = 0.1
	roles := localRoles()
	roles.Planner = plans(role.Single, role.SubQuestion{Text: about})
	roles.Querier = querier(func(role.QueryInput) (role.NextQuery, error) {
		now = now.Add(12 * time.Second)
		return role.NextQuery{}, fmt.Errorf("a call: %w", assay.ErrDeadline)
	})
	e := env(l, about, roles)
	e.Began = map[string]string{role.GraderRole: "slow/model"}
	e.Roles.Models = e.Began
	e.Limits.Wall = 10 * time.Minute
	r, err := run.New(run.Config{Run: "r", Journal: journal, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	a, err := strategy.Corrective(t.Context(), r.Scope(), e)
	if err != nil {
		t.Fatal(err)
	}
	var grades []string
	for _, rec := range journal.Records() {
		if rec.Kind == assay.StepGrade {
			grades = append(grades, rec.Path+rec.Model)
		}
	}
	if want := []string{"stage[0]/sub[0]/passed[0]/grade"}; !slices.Equal(grades, want) || a.Stop != assay.StopDeadline || len(a.Claims) > 0 {
		t.Errorf("%s (%s) with grades %q, want %q", a.Status, a.Stop, grades, want)
	}
}
