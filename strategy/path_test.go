package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// plans returns a planner that returns the same plan for every question.
func plans(shape role.PlanShape, subs ...role.SubQuestion) planner {
	return func(string) (role.Plan, error) { return role.Plan{Shape: shape, SubQuestions: subs}, nil }
}

// relevant returns the chunk IDs of a grader's hits.
func relevant(in role.GradeInput) []string {
	ids := []string{}
	for _, h := range in.Hits {
		ids = append(ids, h.Chunk.ID)
	}
	return ids
}

// enough is a grader that grades every input sufficient.
func enough(in role.GradeInput) (role.Grade, error) {
	return role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in), Query: in.Question + " again"}, nil
}

// verbatim is a generator that writes the whole text of each piece of evidence.
func verbatim(in role.GenerateInput) (role.Draft, error) {
	d := role.Draft{}
	for _, ev := range in.Evidence {
		d.Statements = append(d.Statements, role.Statement{Text: ev.Hit.Text, Evidence: []int{ev.Number}})
	}
	return d, nil
}

// TestNeeds checks that the second stage searches with the titles of the first stage's hits.
func TestNeeds(t *testing.T) {
	l := newLibrary("The city Springfield was founded by Jebediah.", "Jebediah wrote poems.")
	roles := localRoles()
	roles.Planner = plans(role.Chain,
		role.SubQuestion{Text: "city Springfield founded"},
		role.SubQuestion{Text: "poems wrote", Needs: []int{0}})
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	a := ask(t, strategy.Corrective, env(l, "Who?", roles), assay.Budget{})
	want := []string{"city Springfield founded", "poems wrote Title of doc1"}
	if diff := cmp.Diff(want, l.searches); diff != "" {
		t.Errorf("searches (-want +got):\n%s", diff)
	}
	if a.Status != assay.Answered || len(a.Claims) != 2 {
		t.Errorf("%s with %d claims, want both parts answered: %s", a.Status, len(a.Claims), a.Justification)
	}
}

// TestStepsAreNoParts checks that a step towards an answer needs no answer of its own.
func TestStepsAreNoParts(t *testing.T) {
	l := newLibrary("The city Springfield was founded by Jebediah.", "Jebediah wrote poems.")
	roles := localRoles()
	roles.Planner = plans(role.Chain,
		role.SubQuestion{Text: "city Springfield founded"},
		role.SubQuestion{Text: "poems wrote", Needs: []int{0}})
	roles.Generator = generator(verbatim)
	sufficient := "poems wrote"
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		g := role.Grade{Verdict: assay.Partly, Relevant: relevant(in), Missing: []string{"more"}}
		if in.Question == sufficient {
			g = role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in)}
		}
		return g, nil
	})
	if a := ask(t, strategy.Corrective, env(l, "Who?", roles), assay.Budget{}); a.Status != assay.Answered || len(a.Missing) != 0 {
		t.Errorf("the step is open: %s, missing %q; want answered", a.Status, gapTexts(a.Missing))
	}
	sufficient = "city Springfield founded"
	if a := ask(t, strategy.Corrective, env(l, "Who?", roles), assay.Budget{}); a.Status != assay.Incomplete {
		t.Errorf("the answer is open: %s, want incomplete", a.Status)
	}
}

// TestPartsBeyondTheLimit checks that sub-questions beyond the limit are not searched but are
// reported as missing.
func TestPartsBeyondTheLimit(t *testing.T) {
	l := newLibrary("alpha is first.", "beta is second.")
	roles := localRoles()
	roles.Planner = plans(role.Conjunction,
		role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta"}, role.SubQuestion{Text: "gamma"})
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	e := env(l, "alpha, beta and gamma?", roles)
	e.Limits.Parts = 2
	a := ask(t, strategy.Auto, e, assay.Budget{})
	if a.Status != assay.Incomplete || a.Stop != assay.StopIterationLimit || len(l.searches) != 2 {
		t.Errorf("%s (%s) after %q, want incomplete after two searches", a.Status, a.Stop, l.searches)
	}
	if diff := cmp.Diff([]string{"gamma"}, gapTexts(a.Missing)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// TestRedriveKeepsWhatWasVerified checks that a redrive does not lose claims verified before.
func TestRedriveKeepsWhatWasVerified(t *testing.T) {
	l := newLibrary("alpha is first.", "beta is second.")
	now := time.Unix(0, 0)
	roles := localRoles()
	roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "alpha"}, role.SubQuestion{Text: "beta"})
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		if in.Question == "beta" && len(in.Tried) == 0 { // first grading: the next search returns more
			l.mu.Lock()
			l.documents = append(l.documents, newLibrary("", "", "beta again is third.").documents[2])
			l.mu.Unlock()
		}
		return enough(in)
	})
	drafts := 0
	roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		drafts++
		if drafts > 1 {
			now = now.Add(time.Hour) // no time is left to verify
		}
		return verbatim(in)
	})
	roles.Verifier = role.ByClaim(verifier(func(claim string, _ []ground.Passage) (ground.Judgement, error) {
		if strings.HasPrefix(claim, "alpha") {
			return ground.Judgement{Verdict: assay.Supported, Score: 1}, nil
		}
		return ground.Judgement{Verdict: assay.Contradicted}, nil // and is not repaired by other evidence
	}))
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: assay.Budget{Wall: time.Minute}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	e := env(l, "alpha and beta?", roles)
	e.Limits.Wall = time.Minute
	a, err := strategy.Corrective(context.Background(), r.Scope(), e)
	if err != nil {
		t.Fatal(err)
	}
	check(t, e, a.Answer)
	if drafts != 2 || !slices.Contains(l.searches, "beta again") {
		t.Fatalf("%d drafts after searches %q, want the part looked up again", drafts, l.searches)
	}
	if a.Status != assay.Incomplete || a.Stop != assay.StopDeadline || a.Text != "alpha is first. [1]" {
		t.Errorf("%s (%s) %q, want what was verified at first", a.Status, a.Stop, a.Text)
	}
	if len(a.Searched) != 3 || a.Iterations != 3 {
		t.Errorf("searched %+v in %d iterations, want all three", a.Searched, a.Iterations)
	}
}

// TestDeadlineInFinish checks that a deadline while the answer is written or verified is reported.
func TestDeadlineInFinish(t *testing.T) {
	for _, during := range []string{"generate", "verify"} {
		now := time.Unix(0, 0)
		spent := func() { now = now.Add(time.Hour) }
		roles := localRoles()
		roles.Grader = grader(enough)
		roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
			if during == "generate" {
				spent()
				return role.Draft{}, context.DeadlineExceeded
			}
			d, err := verbatim(in)
			spent()
			return d, err
		})
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: assay.Budget{Wall: time.Minute}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		e := env(newLibrary(shutdown), "What does Shutdown do?", roles)
		e.Limits.Wall = time.Minute
		a, err := strategy.Static(context.Background(), r.Scope(), e)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Incomplete || len(a.Claims) != 0 {
			t.Errorf("%s: %s with %d claims, want incomplete without one", during, a.Status, len(a.Claims))
		}
		if during == "verify" && a.Stop != assay.StopDeadline {
			t.Errorf("stop %s, want deadline", a.Stop)
		}
	}
}

// TestBudgetRefused checks that a role refused by the budget ends the run with an honest status.
func TestBudgetRefused(t *testing.T) {
	refused := fmt.Errorf("a model call: %w", assay.ErrBudget)
	tests := []struct {
		name   string
		change func(*taskRoles)
	}{
		{"planner", func(r *taskRoles) {
			r.Planner = planner(func(string) (role.Plan, error) { return role.Plan{}, refused })
		}},
		{"grader", func(r *taskRoles) {
			r.Grader = grader(func(role.GradeInput) (role.Grade, error) { return role.Grade{}, refused })
		}},
		{"generator", func(r *taskRoles) {
			r.Generator = generator(func(role.GenerateInput) (role.Draft, error) { return role.Draft{}, refused })
		}},
		{"verifier", func(r *taskRoles) {
			r.Verifier = role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) { return ground.Judgement{}, refused }))
		}},
	}
	for _, tt := range tests {
		for _, name := range []string{"auto", "corrective"} {
			spec, err := strategy.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			roles := localRoles()
			tt.change(&roles)
			a := ask(t, spec.Func, env(newLibrary(shutdown), "What does Shutdown do to open listeners?", roles), assay.Budget{})
			if a.Status != assay.Incomplete || a.Stop != assay.StopCallBudget || len(a.Claims) != 0 {
				t.Errorf("%s, %s: %s (%s) with %d claims, want incomplete (call_budget)", name, tt.name, a.Status, a.Stop, len(a.Claims))
			}
		}
	}
}

// TestReadError checks that a store that cannot be read is an error and not an answer of not found.
func TestReadError(t *testing.T) {
	l := newLibrary(shutdown)
	l.readErr = fmt.Errorf("disk: %w", assay.ErrDamaged)
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := strategy.Auto(context.Background(), r.Scope(), env(l, "What does Shutdown do to open listeners?", localRoles()))
	if !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("answer %+v, error %v; want ErrDamaged", a, err)
	}
}

// TestAccessOfToday checks that the current ACL of a document decides who may read its versions.
func TestAccessOfToday(t *testing.T) {
	const question = "What does Shutdown do to open listeners?"
	denied, err := assay.RestrictTo("user:someone")
	if err != nil {
		t.Fatal(err)
	}
	lastACL := func(acl assay.ACL) map[string]assay.ACL {
		return map[string]assay.ACL{newLibrary(shutdown).documents[0].ID: acl}
	}
	tests := []struct {
		name   string
		change func(*library)
		want   assay.Status
	}{
		{"replaced", func(l *library) { l.documents[0].Version = "2" }, assay.Answered},
		{"replaced and hidden", func(l *library) { l.documents[0].Version, l.documents[0].ACL = "2", denied }, assay.NotFound},
		{"replaced, and the version was hidden", func(l *library) { l.documents[0].Version, l.kept[0].ACL = "2", denied }, assay.Answered},
		{"deleted", func(l *library) { l.documents, l.last = nil, lastACL(assay.ACL{}) }, assay.Answered},
		{"deleted and was hidden", func(l *library) { l.documents, l.last = nil, lastACL(denied) }, assay.NotFound},
		{"deleted, who could see it is not known", func(l *library) { l.documents = nil }, assay.NotFound},
		{"deleted and pruned", func(l *library) { l.documents, l.kept, l.last = nil, nil, lastACL(assay.ACL{}) }, assay.NotFound},
		{"gone", func(l *library) { l.documents, l.kept = nil, nil }, assay.NotFound},
	}
	for _, tt := range tests {
		found := newLibrary(shutdown)
		stored := newLibrary(shutdown)
		stored.kept = slices.Clone(stored.documents)
		tt.change(stored)
		e := env(found, question, localRoles())
		e.Content = stored
		if a := ask(t, strategy.Auto, e, assay.Budget{}); a.Status != tt.want {
			t.Errorf("%s: %s %q, want %s", tt.name, a.Status, a.Text, tt.want)
		}
	}
}

// TestGeneratorFails checks that a failed generator is not reported as not found.
func TestGeneratorFails(t *testing.T) {
	roles := localRoles()
	roles.Generator = generator(func(role.GenerateInput) (role.Draft, error) { return role.Draft{}, errors.New("out of ink") })
	a := ask(t, strategy.Auto, env(newLibrary(shutdown), "What does Shutdown do to open listeners?", roles), assay.Budget{})
	if a.Status != assay.Incomplete || !strings.Contains(a.Justification, "out of ink") {
		t.Errorf("%s: %s; want incomplete, and why", a.Status, a.Justification)
	}
}
