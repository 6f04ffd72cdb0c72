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

// TestJudgeRounds checks that the judge decides whether verified statements are an answer.
func TestJudgeRounds(t *testing.T) {
	tests := []struct {
		name    string
		judge   judge
		grader  grader
		rounds  int // 0: the default
		drafts  int
		status  assay.Status
		stop    assay.Stop
		missing []string
	}{
		{"accepted", accepts, enough, 0, 1, assay.Answered, assay.StopSufficient, []string{}},
		{"accepted, and not enough", accepts, partly, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"more"}},
		{"accepted, enough then", accepts, when(2), 0, 2, assay.Answered, assay.StopSufficient, []string{}},
		{"never accepted", revises("say who"), enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{"say who"}},
		{"never, in two rounds", revises("say who"), enough, 2, 2, assay.Incomplete, assay.StopIterationLimit, []string{"say who"}},
		{"revise what?", revises(), enough, 1, 1, assay.Incomplete, assay.StopIterationLimit, []string{about}},
		{"a failure", func(role.DraftInput) (role.Judgement, error) { return role.Judgement{}, errors.New("asleep") }, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{about}},
		{"accepted by a failure", func(role.DraftInput) (role.Judgement, error) {
			return role.Judgement{Verdict: role.Accept, Outcome: role.Outcome{Failure: "asleep"}}, nil
		}, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{about}},
		{"neither", func(role.DraftInput) (role.Judgement, error) { return role.Judgement{Verdict: "MAYBE"}, nil }, enough, 0, 3, assay.Incomplete, assay.StopIterationLimit, []string{about}},
		{"accepted with something to revise", func(role.DraftInput) (role.Judgement, error) {
			return role.Judgement{Verdict: role.Accept, Revise: []string{"see <b>https://evil.example</b>"}}, nil
		}, enough, 1, 1, assay.Incomplete, assay.StopIterationLimit, []string{"see"}},
	}
	for _, tt := range tests {
		l := growing(9)
		drafts := 0
		roles := localRoles()
		roles.Judge, roles.Grader, roles.Querier = tt.judge, tt.grader, numbered()
		roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
			drafts++
			return verbatim(in)
		})
		e := env(l, about, roles)
		e.Settings.Judge.Rounds = tt.rounds
		a := ask(t, strategy.Judge, e, assay.Budget{})
		if drafts != tt.drafts || a.Status != tt.status || a.Stop != tt.stop || a.Strategy != "judge" || len(a.Claims) == 0 {
			t.Errorf("%s: %s (%s) after %d drafts, %d claims; want %s (%s) after %d", tt.name, a.Status, a.Stop, drafts, len(a.Claims), tt.status, tt.stop, tt.drafts)
		}
		if diff := cmp.Diff(tt.missing, gapTexts(a.Missing)); diff != "" {
			t.Errorf("%s: missing (-want +got):\n%s", tt.name, diff)
		}
		if a.Iterations != len(l.searches) || len(a.Searched) != len(l.searches) {
			t.Errorf("%s: %d iterations, searched %d, want %d", tt.name, a.Iterations, len(a.Searched), len(l.searches))
		}
		verdict := "REVISE"
		if strings.HasPrefix(tt.name, "accepted") && tt.name != "accepted by a failure" && tt.name != "accepted with something to revise" {
			verdict = "ACCEPT"
		}
		if a.Review == nil || a.Review.Verdict != verdict || a.Review.Iterations != tt.drafts || a.Review.ByModel {
			t.Errorf("%s: review %+v, want %s after %d rounds", tt.name, a.Review, verdict, tt.drafts)
		} else if tt.name == "accepted" && a.Review.Justification != "it is good" {
			t.Errorf("the justification is %q", a.Review.Justification)
		}
	}
}

// TestJudgeSeesWhatWasVerified checks that the judge and the critic see only supported statements.
func TestJudgeSeesWhatWasVerified(t *testing.T) {
	var seen []role.DraftInput
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		d, err := verbatim(in)
		d.Statements = append(d.Statements, role.Statement{Text: "Gravity was invented by penguins.", Evidence: []int{1}})
		return d, err
	})
	roles.Critic = critic(func(in role.DraftInput) (role.Critique, error) {
		return role.Critique{Grounded: role.Good, Remarks: []role.Remark{{Statement: 0, Flaw: role.FlawUnclear, Advice: "shorter"}}}, nil
	})
	roles.Judge = judge(func(in role.DraftInput) (role.Judgement, error) {
		seen = append(seen, in)
		return accepts(in)
	})
	ask(t, strategy.Judge, env(growing(0), about, roles), assay.Budget{})
	want := []role.Statement{{Text: "The first document speaks of gravity.", Evidence: []int{1}}}
	if len(seen) != 1 || cmp.Diff(want, seen[0].Draft.Statements) != "" || seen[0].Critique == nil || len(seen[0].Critique.Remarks) != 1 || len(seen[0].Evidence) != 1 {
		t.Errorf("the judge saw %+v, want the statement that stands, and the remark", seen)
	}
}

// TestJudgeHasItWrittenAgain checks that a model gets the judge's advice and writes again without a
// search if nothing is missing. The local generator would write the same draft again.
func TestJudgeHasItWrittenAgain(t *testing.T) {
	for _, writer := range []string{"", "some/model"} {
		l := growing(9)
		var advice [][]string
		roles := localRoles()
		roles.Grader, roles.Querier = grader(enough), numbered()
		roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
			advice = append(advice, in.Advice)
			return verbatim(in)
		})
		roles.Critic = critic(func(role.DraftInput) (role.Critique, error) { return role.Critique{}, nil })
		roles.Judge = judge(func(in role.DraftInput) (role.Judgement, error) {
			if len(advice) < 2 {
				return revises("say who")(in)
			}
			return accepts(in)
		})
		e := env(l, about, roles)
		e.Began = map[string]string{role.GeneratorRole: writer}
		a := ask(t, strategy.Judge, e, assay.Budget{})
		if a.Status != assay.Answered || len(advice) != 2 || !slices.Equal(advice[1], []string{"say who"}) {
			t.Errorf("writer %q: %s after advice %q, want answered after one piece of it", writer, a.Status, advice)
		}
		if searches := len(l.searches); (searches == 1) != (writer != "") {
			t.Errorf("writer %q: %d searches", writer, searches)
		}
	}
}

// TestJudgeKeepsTheBest checks that an accepted draft is kept if a later one is not accepted.
func TestJudgeKeepsTheBest(t *testing.T) {
	l := growing(9)
	roles := localRoles()
	roles.Grader, roles.Querier, roles.Generator = grader(partly), numbered(), generator(verbatim)
	asked := 0
	roles.Judge = judge(func(in role.DraftInput) (role.Judgement, error) {
		if asked++; asked == 1 {
			return accepts(in)
		}
		return revises("shorter")(in)
	})
	a := ask(t, strategy.Judge, env(l, about, roles), assay.Budget{})
	if len(a.Claims) != 1 || slices.Contains(gapTexts(a.Missing), "shorter") || len(a.Searched) != 3 {
		t.Errorf("%d claims, missing %q, %d searches; want the first draft after all three", len(a.Claims), gapTexts(a.Missing), len(a.Searched))
	}
}
