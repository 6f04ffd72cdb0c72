package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// TestSpentRunQuotes checks that a run whose budget is used up before anything is written answers
// with quotations, notes that it does, and is incomplete.
func TestSpentRunQuotes(t *testing.T) {
	t.Parallel()
	for calls := 1; calls <= 2; calls++ { // the budget ends after the plan, then after the grade
		models := served(handbook.models())
		delete(models.Roles, role.VerifierRole)
		models.LocalVerifier = true
		e := openModels(t, models)
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective", Budget: assay.Budget{Calls: calls}})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Incomplete || a.Stop != assay.StopCallBudget || a.Usage.Calls != calls || len(a.Missing) == 0 {
			t.Errorf("%d calls: %s (%s), %d calls, missing %q", calls, a.Status, a.Stop, a.Usage.Calls, gapTexts(a.Missing))
		}
		if len(a.Claims) == 0 || !strings.Contains(a.Text, "approved by the head of the department") || !strings.Contains(a.Justification, "without a model") {
			t.Errorf("%d calls: %q, %s", calls, a.Text, a.Justification)
		}
		if !slices.Contains(who(a), "generator "+assay.LocalModel) || slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "when the run began") }) {
			t.Errorf("%d calls: roles %q, notes %q", calls, who(a), a.Notes)
		}
		replays(t, e, a.Run)
	}
}

// TestSpentRunIsVerified checks that quotations are verified without a model when no more calls
// are allowed.
func TestSpentRunIsVerified(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective", Budget: assay.Budget{Calls: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || len(a.Claims) == 0 || a.Usage.Calls != 2 || !slices.Contains(who(a), "verifier "+assay.LocalModel) {
		t.Errorf("%s, %q, %d calls, roles %q", a.Status, a.Text, a.Usage.Calls, who(a))
	}
	replays(t, e, a.Run)
}

// TestLateRunQuotes checks that a run whose search time is over before the evidence suffices
// quotes within the time reserved for writing.
func TestLateRunQuotes(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	models := served(by)
	delete(models.Roles, role.VerifierRole)
	models.LocalVerifier = true
	var clock atomic.Int64
	by[role.GraderRole].reply = func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
		clock.Add(int64(16 * time.Second))
		return spoken(`{"reason":"none","relevant_chunks":[],"missing":["who"],"verdict":"insufficient","reformulated_query":"head of department"}`, req), nil
	}
	e := openModels(t, models)
	start := time.Now()
	e.config.Now = func() time.Time { return start.Add(time.Duration(clock.Load())) }
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective", Budget: assay.Budget{Wall: 20 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || a.Stop != assay.StopDeadline || len(a.Claims) == 0 || !strings.Contains(a.Text, "approved by the head of the department") {
		t.Errorf("%s (%s): %q", a.Status, a.Stop, a.Text)
	}
	replays(t, e, a.Run)
}
