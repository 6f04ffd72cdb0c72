package strategy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A revising planner has a plan and a script of revisions.
type revising struct {
	planner
	revise func(role.RevisionInput) (role.Revision, error)
}

func (p revising) Revise(_ context.Context, _ role.Caller, in role.RevisionInput) (role.Revision, error) {
	return p.revise(in)
}

// ofTheCompany asks for something four hops away.
const ofTheCompany = "What is the length of the river that flows through the birthplace of the founder of the maker of the Zephyr?"

// company returns documents of a made-up company, and what a reader reads in them.
func company() (*library, map[string][]string) {
	return newLibrary(
			"The Zephyr is a folding bicycle made by Brandvik Works.",
			"Brandvik Works was founded by Solveig Aarud. Today it is led by Tomas Reyes.",
			"Solveig Aarud was born in Kestrel Bay.",
			"The river that flows through Kestrel Bay is the Ostra.",
			"The length of the Ostra is 212 kilometres.",
			"Tomas Reyes was born in Pella.",
		), map[string][]string{
			"the maker of the Zephyr":                        {"Brandvik Works"},
			"the founder of Brandvik Works":                  {"Solveig Aarud"},
			"the birthplace of Solveig Aarud":                {"Kestrel Bay"},
			"the river that flows through Kestrel Bay":       {"the Ostra"},
			"the leader of Brandvik Works":                   {"Tomas Reyes"},
			"the place where Tomas Reyes, the head, was bor": {"Pella"},
		}
}

// chainOf is the plan of ofTheCompany.
func chainOf() []role.SubQuestion {
	return []role.SubQuestion{
		{Text: "the maker of the Zephyr"},
		{Text: "the founder of #1", Needs: []int{0}},
		{Text: "the birthplace of #2", Needs: []int{1}},
		{Text: "the river that flows through #3", Needs: []int{2}},
		{Text: "What is the length of #4?", Needs: []int{3}},
	}
}

// TestMultihopBranches walks through the branches of Multihop with scripted roles.
func TestMultihopBranches(t *testing.T) {
	const founded = "Brandvik Works was founded by Solveig Aarud"
	keep := func(role.RevisionInput) (role.Revision, error) { return role.Revision{Decision: role.Keep}, nil }
	replacing := func(hop int, subs ...role.SubQuestion) func(role.RevisionInput) (role.Revision, error) {
		return func(in role.RevisionInput) (role.Revision, error) {
			if len(in.Done) != hop {
				return role.Revision{Decision: role.Keep}, nil
			}
			return role.Revision{Decision: role.Replace, SubQuestions: subs, Reason: "the result says otherwise"}, nil
		}
	}
	born := []role.SubQuestion{{Text: "the leader of #1", Needs: []int{0}}, {Text: "Where was #2 born?", Needs: []int{1}}}
	chain := chainOf()
	tests := []struct {
		name      string
		subs      []role.SubQuestion
		revise    func(role.RevisionInput) (role.Revision, error)
		hops      int    // 0: the default
		last      string // last search
		says      string
		revisions int
		note      string
	}{
		{"five hops", chain, keep, 0, "What is the length of the Ostra?", "212 kilometres", 4, ""},
		{"three hops", chain[:3], keep, 0, "the birthplace of Solveig Aarud", "born in Kestrel Bay", 2, ""},
		{"hops beyond the limit", chain, keep, 2, "the founder of Brandvik Works", founded, 1, ""},
		{"one sub-question", []role.SubQuestion{{Text: ofTheCompany}}, keep, 0, ofTheCompany, "", 0, ""},
		{"replaced after the first hop", chain, replacing(1, born...), 0, "Where was Tomas Reyes born?", "born in Pella", 2, "planner: the plan was revised: the result says otherwise"},
		{"replaced after the second hop", chain, replacing(2, role.SubQuestion{Text: "the leader of #1", Needs: []int{0}}), 0, "the leader of Brandvik Works", "led by Tomas Reyes", 2, "planner: the plan was revised"},
		{"replaced by nothing", chain, replacing(1), 0, "What is the length of the Ostra?", "212 kilometres", 4, "its revision cannot be searched: the plan is empty"},
		{"replaced by what is empty", chain, replacing(1, role.SubQuestion{Text: " "}), 0, "What is the length of the Ostra?", "212 kilometres", 4, "is empty"},
		{"the planner fails", chain, func(role.RevisionInput) (role.Revision, error) {
			return role.Revision{Decision: role.Replace}, errors.New("asleep")
		}, 0, "What is the length of the Ostra?", "212 kilometres", 4, "planner: asleep"},
		{"the planner has no room", chain, func(role.RevisionInput) (role.Revision, error) {
			return role.Revision{}, assay.ErrBudget
		}, 0, "What is the length of the Ostra?", "212 kilometres", 4, "no budget left to revise the plan"},
	}
	for _, tt := range tests {
		l, reads := company()
		roles := reading(reads)
		roles.Generator = generator(verbatim)
		asked := 0
		shape := role.Chain
		if len(tt.subs) == 1 {
			shape = role.Single
		}
		roles.Planner = revising{plans(shape, tt.subs...), func(in role.RevisionInput) (role.Revision, error) {
			asked++
			return tt.revise(in)
		}}
		e := env(l, ofTheCompany, roles)
		e.Settings.Multihop.Hops = tt.hops
		a := ask(t, strategy.Multihop, e, assay.Budget{})
		if last := l.searches[len(l.searches)-1]; last != tt.last || asked != tt.revisions || !strings.Contains(a.Text, tt.says) {
			t.Errorf("%s: %d revisions, last searched %q: %s; want %d, %q and %q", tt.name, asked, last, a.Text, tt.revisions, tt.last, tt.says)
		}
		noted := strings.Join(noteTexts(a.Notes), "\n")
		if !strings.Contains(noted, tt.note) || tt.note == "" && noted != "" {
			t.Errorf("%s: notes %q, want %q", tt.name, noted, tt.note)
		}
		if a.Strategy != "multihop" || len(l.searches) != len(a.Searched) {
			t.Errorf("%s: %s searched %q and reports %d", tt.name, a.Strategy, l.searches, len(a.Searched))
		}
	}
}

// TestRevisionIsInTheTrace checks the input and the output of a revision as they are recorded: what
// was found, the rest of the plan with numbers that count the searched sub-questions first, and the
// decision.
func TestRevisionIsInTheTrace(t *testing.T) {
	l, reads := company()
	roles := reading(reads)
	var inputs []role.RevisionInput
	roles.Planner = revising{plans(role.Chain,
		role.SubQuestion{Text: "the maker of the Zephyr"}, role.SubQuestion{Text: "the founder of #1", Needs: []int{0}},
		role.SubQuestion{Text: "the leader of Brandvik Works"}, role.SubQuestion{Text: "Did #2 know #3?", Needs: []int{1, 2}},
	), func(in role.RevisionInput) (role.Revision, error) {
		inputs = append(inputs, in)
		return role.Revision{Decision: role.Keep, Reason: "it fits"}, nil
	}}
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.Multihop(t.Context(), r.Scope(), env(l, "Did the founder of the maker of the Zephyr know the leader?", roles)); err != nil {
		t.Fatal(err)
	}
	var traced []string
	for _, rec := range journal.Records() {
		if rec.Kind == assay.StepRole {
			traced = append(traced, rec.Path+" "+string(rec.Output))
		}
	}
	want := []string{`stage[0]/planner {"decision":"keep","reason":"it fits"}`, `stage[1]/planner {"decision":"keep","reason":"it fits"}`}
	if !slices.Equal(traced, want) {
		t.Errorf("trace %q, want %q", traced, want)
	}
	if len(inputs) != 2 {
		t.Fatalf("%d revisions", len(inputs))
	}
	first := inputs[0]
	if len(first.Done) != 2 || first.Done[0].Question != "the maker of the Zephyr" || !slices.Equal(first.Done[0].Answers, []string{"Brandvik Works"}) || len(first.Done[0].Found) == 0 {
		t.Errorf("done %+v", first.Done)
	}
	remaining := []role.SubQuestion{{Text: "the founder of #1", Needs: []int{0}}, {Text: "Did #3 know #2?", Needs: []int{2, 1}}}
	if diff := cmp.Diff(remaining, first.Remaining); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

// TestRevisionKeepsParts checks that a part of the question that nothing else needs must still be
// answered after the plan was revised.
func TestRevisionKeepsParts(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		l, reads := company()
		reads["the leader of Brandvik Works"] = []string{"Tomas Reyes"}
		roles := reading(reads)
		roles.Generator = generator(verbatim)
		subs := []role.SubQuestion{{Text: "the maker of the Zephyr"}, {Text: "Who painted the barn?"}, {Text: "the leader of #1", Needs: []int{0}}}
		roles.Planner = revising{plans(role.Conjunction, subs...), func(role.RevisionInput) (role.Revision, error) {
			if !replaces {
				return role.Revision{Decision: role.Keep}, nil
			}
			return role.Revision{Decision: role.Replace, SubQuestions: subs[2:], Reason: "the result says otherwise"}, nil
		}}
		a := ask(t, strategy.Multihop, env(l, "Who leads the maker of the Zephyr, and who painted the barn?", roles), assay.Budget{})
		if a.Status != assay.Incomplete || !slices.Contains(gapTexts(a.Missing), "Who painted the barn?") {
			t.Errorf("replaced %t: %s, missing %q; want the barn", replaces, a.Status, gapTexts(a.Missing))
		}
	}
}
