package strategy_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// verifying is a role.Verifier made of a function.
type verifying func(ctx context.Context, claims []role.Claim) ([]ground.Judgement, error)

func (f verifying) Verify(ctx context.Context, _ role.Caller, claims []role.Claim) ([]ground.Judgement, error) {
	return f(ctx, claims)
}

// proven returns the Env of a question that is answered with the given draft and verifier.
func proven(t *testing.T, d role.Draft, v role.Verifier, texts ...string) strategy.Env {
	t.Helper()
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = generator(func(role.GenerateInput) (role.Draft, error) { return d, nil })
	roles.Verifier = v
	return env(newLibrary(texts...), "When does the kiosk open?", roles)
}

func stating(text string, evidence ...int) role.Statement {
	return role.Statement{Text: text, Evidence: evidence}
}

// TestHostileVerifiers checks that no claim is supported by an invalid judgement or by a verifier
// that fails, panics or does not return.
func TestHostileVerifiers(t *testing.T) {
	draft := role.Draft{Statements: []role.Statement{stating("The kiosk opens at nine.", 1), stating("Coffee at the kiosk is two euros.", 2)}}
	each := func(j ground.Judgement, err error) role.Verifier {
		return role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) { return j, err }))
	}
	many := func(n int) role.Verifier {
		return verifying(func(context.Context, []role.Claim) ([]ground.Judgement, error) {
			return slices.Repeat([]ground.Judgement{{Verdict: assay.Supported, Score: 1}}, n), nil
		})
	}
	tests := []struct {
		name string
		role.Verifier
		failed bool
	}{
		{"an error", each(ground.Judgement{Verdict: assay.Supported, Score: 1}, errors.New("broken")), true},
		{"a timeout of its own", each(ground.Judgement{}, context.DeadlineExceeded), true},
		{"a panic", role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) { panic("no") })), true},
		{"no verdict", each(ground.Judgement{Score: 1}, nil), true},
		{"an invented verdict", each(ground.Judgement{Verdict: "true", Score: 1}, nil), true},
		{"no number", each(ground.Judgement{Verdict: assay.Supported, Score: math.NaN()}, nil), true},
		{"an infinite score", each(ground.Judgement{Verdict: assay.Supported, Score: math.Inf(1)}, nil), true},
		{"a score over one", each(ground.Judgement{Verdict: assay.Supported, Score: 1.01}, nil), true},
		{"a negative score", each(ground.Judgement{Verdict: assay.Supported, Score: -1}, nil), true},
		{"supported and failed", each(ground.Judgement{Verdict: assay.Supported, Score: 1, Failed: true}, nil), true},
		{"undecided", each(ground.Judgement{Verdict: assay.Unsupported, Score: 0.5, Reason: "\xff"}, nil), false},
		{"no judgements", many(0), true},
		{"too few judgements", many(1), true},
		{"too many judgements", many(3), true},
		{"one that does not come back", verifying(func(ctx context.Context, claims []role.Claim) ([]ground.Judgement, error) {
			<-ctx.Done()
			return slices.Repeat([]ground.Judgement{{Verdict: assay.Supported, Score: 1}}, len(claims)), nil
		}), false},
		{"claims that do not come back", role.ByClaim(hanging{}), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := proven(t, draft, tt.Verifier, "The kiosk opens at nine.", "Coffee at the kiosk is two euros.")
			var a assay.Answer
			if strings.Contains(tt.name, "come back") {
				synctest.Test(t, func(t *testing.T) { a = ask(t, strategy.Static, e, assay.Budget{Wall: 400 * time.Millisecond}) })
			} else {
				a = ask(t, strategy.Static, e, assay.Budget{})
			}
			if len(a.Claims) > 0 || a.Status != assay.Incomplete || strings.Contains(a.Text, "nine") {
				t.Errorf("status %s, text %q", a.Status, a.Text)
			}
			if noted := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, "verifier: ") }); noted != tt.failed {
				t.Errorf("notes %q", a.Notes)
			}
		})
	}
}

type hanging struct{}

func (hanging) Verify(ctx context.Context, _ string, _ []ground.Passage) (ground.Judgement, error) {
	<-ctx.Done()
	return ground.Judgement{Verdict: assay.Supported, Score: 1}, ctx.Err()
}

// TestDecidingSpans checks that a claim cites exactly the bytes that decide it, and that invalid
// spans are ignored.
func TestDecidingSpans(t *testing.T) {
	const first, second = "Größe zählt. The kiosk opens at nine. It is blue. It closes late.", "The kiosk is in town. It sells rolls."
	at := func(text, words string) (int, int) {
		start := strings.Index(text, words)
		return start, start + len(words)
	}
	of := func(passage int, words string) ground.Span {
		start, end := at([]string{first, second}[passage], words)
		return ground.Span{Passage: passage, Start: start, End: end}
	}
	located := []string{"The kiosk opens at nine.", "The kiosk is in town."} // the citations without spans
	tests := []struct {
		name  string
		spans []ground.Span
		want  []string // quotes
	}{
		{"none", nil, located},
		{"one", []ground.Span{of(0, "The kiosk opens at nine.")}, []string{"The kiosk opens at nine."}},
		{"a part, with blanks around", []ground.Span{of(0, " opens at nine. ")}, []string{"opens at nine."}},
		{"two apart", []ground.Span{of(0, "It closes late."), of(0, "The kiosk opens at nine.")}, []string{"The kiosk opens at nine.", "It closes late."}},
		{"two that touch", []ground.Span{of(0, "It is blue."), of(0, "The kiosk opens at nine.")}, []string{"The kiosk opens at nine. It is blue."}},
		{"one in another", []ground.Span{of(0, "opens"), of(0, "The kiosk opens at nine.")}, []string{"The kiosk opens at nine."}},
		{"of two passages", []ground.Span{of(1, "It sells rolls."), of(0, "The kiosk opens at nine.")}, []string{"The kiosk opens at nine.", "It sells rolls."}},
		{"of a passage that it does not cite", []ground.Span{{Passage: 2, End: 3}, {Passage: -1, End: 3}}, located},
		{"out of range", []ground.Span{{Start: -1, End: 3}, {Start: 3, End: len(first) + 1}, {Start: math.MaxInt - 1, End: math.MaxInt}}, located},
		{"of nothing", []ground.Span{{Start: 3, End: 3}, {Start: 5, End: 4}, of(0, " ")}, located},
		{"inside a character", []ground.Span{{Start: 3, End: 9}, {Start: 0, End: 3}}, located},
		{"one of them", []ground.Span{{Passage: 9, End: 3}, of(1, "It sells rolls.")}, []string{"It sells rolls."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) {
				return ground.Judgement{Verdict: assay.Supported, Score: 0.9, Spans: tt.spans}, nil
			}))
			a := ask(t, strategy.Static, proven(t, role.Draft{Statements: []role.Statement{stating("The kiosk in town opens at nine.", 1, 2)}}, v, first, second), assay.Budget{})
			if diff := cmp.Diff(tt.want, quotes(a)); diff != "" {
				t.Errorf("quotes (-want +got):\n%s", diff)
			}
		})
	}
}

func quotes(a assay.Answer) []string {
	var out []string
	for _, c := range a.Citations {
		out = append(out, c.Quote)
	}
	return out
}

// sayer supports a claim if one of its cited passages contains it.
func sayer(claim string, cited []ground.Passage) (ground.Judgement, error) {
	for i, p := range cited {
		if at := strings.Index(p.Context, claim); at >= 0 {
			return ground.Judgement{Verdict: assay.Supported, Score: 0.9, Spans: []ground.Span{{Passage: i, Start: at, End: at + len(claim)}}}, nil
		}
	}
	return ground.Judgement{Verdict: assay.Unsupported, Score: 0.1, Reason: "not said"}, nil
}

// TestRepair checks that a claim with a wrong citation gets the right one and is marked, and that
// an unsupported claim is not shown.
func TestRepair(t *testing.T) {
	const opens, coffee, other = "The kiosk opens at nine.", "Coffee at the kiosk is two euros.", "The museum opens at nine in winter and has no kiosk."
	tests := []struct {
		name  string
		draft []role.Statement
		texts []string
		want  []string // shown claims, with their numbers
		fixed []bool
		is    assay.Status
	}{
		{"right", []role.Statement{stating(opens, 1)}, []string{opens, coffee}, []string{opens + " [1]"}, []bool{false}, assay.Answered},
		{"wrong", []role.Statement{stating(opens, 2), stating(coffee, 2)}, []string{opens, coffee}, []string{opens + " [1]", coffee + " [2]"}, []bool{true, false}, assay.Answered},
		{"a number that was never given", []role.Statement{stating(opens, 7)}, []string{opens, coffee}, []string{opens + " [1]"}, []bool{true}, assay.Answered},
		{"none", []role.Statement{stating(opens)}, []string{opens, coffee}, []string{opens + " [1]"}, []bool{true}, assay.Answered},
		{"said nowhere", []role.Statement{stating("The kiosk sells tea in spring.", 1), stating(coffee, 2)}, []string{opens, coffee}, []string{coffee + " [2]"}, []bool{false}, assay.Answered},
		{"the source it named says otherwise", []role.Statement{stating(opens, 2)}, []string{opens, "The kiosk opens at ten."},
			[]string{opens + " [1]", "The kiosk opens at ten. [2]"}, []bool{true, false}, assay.Conflicting},
		{"of several", []role.Statement{stating(opens, 1)}, []string{coffee, other, opens}, []string{opens + " [3]"}, []bool{true}, assay.Answered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := proven(t, role.Draft{Statements: tt.draft}, role.ByClaim(verifier(sayer)), tt.texts...)
			a := ask(t, strategy.Static, e, assay.Budget{})
			var fixed []bool
			for _, c := range a.Claims {
				fixed = append(fixed, c.Repaired)
			}
			if diff := cmp.Diff(strings.Join(tt.want, " "), a.Text) + cmp.Diff(tt.fixed, fixed); diff != "" || a.Status != tt.is {
				t.Errorf("status %s, want %s (-want +got):\n%s", a.Status, tt.is, diff)
			}
		})
	}
}

// TestRepairWithinBudget checks that a repair uses the run's budget, and that the claim is refused
// if there is no room.
func TestRepairWithinBudget(t *testing.T) {
	draft := role.Draft{Statements: []role.Statement{stating("The kiosk opens at nine.", 2), stating("Coffee at the kiosk is two euros.", 2)}}
	for calls, want := range map[int]int{2: 1, 3: 2} {
		e := proven(t, draft, role.ByClaim(paid{verifier(sayer)}), "The kiosk opens at nine.", "Coffee at the kiosk is two euros.")
		a := ask(t, strategy.Static, e, assay.Budget{Calls: calls})
		if len(a.Claims) != want {
			t.Errorf("%d claims shown with %d calls, want %d: %q, notes %q", len(a.Claims), calls, want, a.Text, a.Notes)
		}
		if noted := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "no budget left") }); noted != (want == 1) {
			t.Errorf("%d calls: notes %q", calls, a.Notes)
		}
	}
}

// paid is a verifier with a price.
type paid struct{ ground.Verifier }

func (paid) Model() string { return "somebody/verifier" }

func (p paid) VerifyFor(ctx context.Context, _, text string, cited []ground.Passage) (ground.Judgement, error) {
	return p.Verify(ctx, text, cited)
}
