package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

const ofTheDirector = "Who is the spouse of the director of Jump for Glory?"

func films() *library {
	return newLibrary(
		"Jump for Glory is a film directed by Raoul Walsh.",
		"The spouse of Raoul Walsh was Miriam Cooper, an actress.",
		"The spouse of the mayor is Jane Doe.",
	)
}

// reading returns local roles whose grader reads these answers: to a question that contains a text.
func reading(reads map[string][]string) taskRoles {
	roles := localRoles()
	roles.Grader = covering{reads: reads}
	return roles
}

// filmAnswers are what a reader reads in films.
var filmAnswers = map[string][]string{
	"the director of Jump for Glory": {"Raoul Walsh"},
	"the spouse of the mayor":        {"Jane Doe"},
}

// follow answers a question with Multihop, with the given plan if it is not nil, and returns the
// searched queries by step path.
func follow(t *testing.T, l *library, question string, plan *role.Plan, budget assay.Budget) (assay.Answer, map[string]string) {
	t.Helper()
	roles := reading(filmAnswers)
	if plan != nil {
		roles.Planner = planner(func(string) (role.Plan, error) { return *plan, nil })
	}
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	a, err := strategy.Multihop(context.Background(), r.Scope(), env(l, question, roles))
	if err != nil {
		t.Fatal(err)
	}
	searched := map[string]string{}
	for _, rec := range journal.Records() {
		if rec.Kind == assay.StepSearch {
			_, rest, _ := strings.Cut(string(rec.Input), `"text":"`)
			searched[rec.Path], _, _ = strings.Cut(rest, `"`)
		}
	}
	return a.Answer, searched
}

// TestHopsAreFilledIn checks that a found name is inserted in the next question.
func TestHopsAreFilledIn(t *testing.T) {
	a, searched := follow(t, films(), ofTheDirector, nil, assay.Budget{})
	want := map[string]string{
		"search":                         ofTheDirector,
		"stage[0]/sub[0]/fill[0]/search": "the director of Jump for Glory",
		"stage[1]/sub[0]/fill[0]/search": "Who is the spouse of Raoul Walsh?",
	}
	for path, text := range want {
		if searched[path] != text {
			t.Errorf("%s searched %q, want %q; all: %q", path, searched[path], text, searched)
		}
	}
	if !strings.Contains(a.Text, "Miriam Cooper") || a.Strategy != "multihop" {
		t.Errorf("%s: %s", a.Strategy, a.Text)
	}
}

// TestHostilePlans checks that each sub-question is searched within the limits, whatever its needs,
// and in the same way in a replay.
func TestHostilePlans(t *testing.T) {
	long := strings.Repeat("#1 ", 2000)
	sub := func(text string, needs ...int) role.SubQuestion { return role.SubQuestion{Text: text, Needs: needs} }
	many := make([]role.SubQuestion, 500)
	for i := range many {
		many[i] = sub(fmt.Sprintf("What of the film number %d and #%d?", i, i), i-1)
	}
	for name, subs := range map[string][]role.SubQuestion{
		"cyclic":    {sub("the film of #2?", 1), sub("the spouse of #1?", 0)},
		"dangling":  {sub("the film Jump?", 7, -3), sub("the spouse of #9?", 8)},
		"of itself": {sub("the film of #1?", 0)},
		"repeated":  {sub("the film Jump?"), sub("the spouse of #1 and #1?", 0, 0, 0, 0)},
		"huge":      many,
		"long":      {sub("the film Jump?"), sub(long, 0), sub(long+"#2", 1), sub(long+"#3", 2)},
		"no places": {sub("the film Jump?"), sub("the spouse of the director", 0)},
		"names":     {sub("the director of Jump for Glory"), sub("#2 #1 {{.}} <b>#1</b>?", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			plan := role.Plan{Shape: role.Chain, SubQuestions: subs}
			a, searched := follow(t, films(), ofTheDirector, &plan, assay.Budget{})
			if n := len(searched); n > 1+3*6 {
				t.Errorf("%d searches", n)
			}
			for path, text := range searched {
				if len(text) > 8<<10 {
					t.Errorf("%s searched %d bytes", path, len(text))
				}
			}
			again, same := follow(t, films(), ofTheDirector, &plan, assay.Budget{})
			if diff := cmp.Diff(searched, same); diff != "" {
				t.Errorf("another time: %s", diff)
			}
			if a.Text != again.Text || a.Status != again.Status {
				t.Errorf("another answer: %q, then %q", a.Text, again.Text)
			}
		})
	}
}

// TestHopsSideBySide checks that sub-questions that do not need each other do not see each other's
// results, and that paths are always the same.
func TestHopsSideBySide(t *testing.T) {
	plan := role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{
		{Text: "the director of Jump for Glory"}, {Text: "the spouse of the mayor"}, {Text: "Did #1 know #2?", Needs: []int{0, 1}},
	}}
	_, first := follow(t, films(), ofTheDirector, &plan, assay.Budget{})
	if got := first["stage[1]/sub[0]/fill[0]/search"]; !strings.Contains(got, "Raoul Walsh") || !strings.Contains(got, "Jane Doe") {
		t.Errorf("searched %q", got)
	}
	for range 20 {
		if _, next := follow(t, films(), ofTheDirector, &plan, assay.Budget{}); !cmp.Equal(first, next) {
			t.Fatal(cmp.Diff(first, next))
		}
	}
}

// TestAnotherName checks that another name is followed if no document mentions the likeliest one.
func TestAnotherName(t *testing.T) {
	l := newLibrary(
		"The spouse of Raoul Walsh was Miriam Cooper, an actress.",
		"Jump for Glory is a film directed by Alan Smithee, says one, and by Raoul Walsh, says another.",
	)
	l.relevance["doc2"] = 0.6
	roles := reading(map[string][]string{"the director of Jump for Glory": {"Alan Smithee", "Raoul Walsh"}})
	a := ask(t, strategy.Multihop, env(l, ofTheDirector, roles), assay.Budget{})
	if !strings.Contains(a.Text, "Miriam Cooper") {
		t.Errorf("%s: %s", a.Status, a.Text)
	}
}

// TestHopsEndWithTheBudget checks that a budget that runs out in any search ends the run with an
// honest answer.
func TestHopsEndWithTheBudget(t *testing.T) {
	for at := 1; at < 8; at++ {
		l := &ending{library: films(), after: at}
		roles := localRoles()
		roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
			if in.Question == ofTheDirector {
				return partly(in)
			}
			g, err := enough(in)
			g.Answers = answersIn(in.Hits, "Raoul Walsh")
			return g, err
		})
		e := env(l.library, ofTheDirector, roles)
		e.Retriever = l
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := strategy.Multihop(context.Background(), r.Scope(), e)
		if err != nil {
			t.Fatalf("after %d searches: %v", at, err)
		}
		if a.Status == assay.Answered && a.Stop == assay.StopCallBudget {
			t.Errorf("after %d searches: answered, though %s", at, a.Stop)
		}
		if at < 3 && a.Stop != assay.StopCallBudget {
			t.Errorf("after %d searches: stop %q", at, a.Stop)
		}
	}
}

// An ending library fails with an exhausted budget after some searches.
type ending struct {
	*library
	after int
}

func (l *ending) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	l.mu.Lock()
	out := len(l.searches) >= l.after
	l.mu.Unlock()
	if out {
		return assay.Results{}, fmt.Errorf("no more: %w", assay.ErrBudget)
	}
	return l.library.Retrieve(ctx, access, q)
}

// TestHopsFail checks that a failed search ends the run.
func TestHopsFail(t *testing.T) {
	l := films()
	l.err = errors.New("disk on fire")
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.Multihop(context.Background(), r.Scope(), env(l, ofTheDirector, localRoles())); err == nil {
		t.Error("no error")
	}
}

// TestCorrectiveFillsIn checks that Corrective also searches with the found name, and then with the
// next one.
func TestCorrectiveFillsIn(t *testing.T) {
	l := films()
	a := ask(t, strategy.Corrective, env(l, ofTheDirector, reading(filmAnswers)), assay.Budget{})
	if !slices.Contains(l.searches, "Who is the spouse of Raoul Walsh?") || !strings.Contains(a.Text, "Miriam Cooper") {
		t.Errorf("searched %q; %s", l.searches, a.Text)
	}
}

// TestBridgeDoesNotVouch checks that hits found by names that do not belong to a sub-question do
// not make the question answered.
func TestBridgeDoesNotVouch(t *testing.T) {
	l := newLibrary("The ocean is wide, says Raoul Walsh.", "Raoul Walsh has a printer.")
	l.relevance["doc1"] = 0.6
	plan := role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: "Does the ocean unlock it?"}}}
	roles := localRoles()
	roles.Planner = planner(func(string) (role.Plan, error) { return plan, nil })
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		g := role.Grade{Verdict: assay.Sufficient, Answers: answersIn(in.Hits, "Raoul Walsh")}
		if in.Question == "Does the ocean unlock it?" && len(in.Tried) < 2 && len(in.Hits) < 2 {
			g.Verdict = assay.Partly
		}
		for _, h := range in.Hits {
			g.Relevant = append(g.Relevant, h.Chunk.ID)
		}
		return g, nil
	})
	a := ask(t, strategy.Multihop, env(l, "Does the ocean unlock it?", roles), assay.Budget{})
	if len(l.searches) < 2 || a.Status == assay.Answered {
		t.Errorf("searched %q; %s: %s", l.searches, a.Status, a.Text)
	}
	for _, q := range l.searches[1:] {
		if !strings.HasSuffix(q, "| Does the ocean unlock it?") {
			t.Errorf("searched %q: how relevant a hit is to a name says nothing of the question", q)
		}
	}
}
