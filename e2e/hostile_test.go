package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
)

// budget is the budget of a run against hostile models.
var budget = assay.Budget{Iterations: 3, Calls: 40, Tokens: 100_000, Wall: 10 * time.Minute}

// hang is longer than any of these runs takes.
const hang = 15 * time.Minute

// TestHostile runs the attacks of models and servers on all roles but the verifier, and on the
// verifier alone. OpenAI's chat completions meet all of them as streams, or every third with
// -short. Each other format meets some, and with ASSAY_LONG=1 all.
func TestHostile(t *testing.T) {
	attacks := slices.Concat(hostileModels, hostileServers)
	all, long := formats(), os.Getenv("ASSAY_LONG") != ""
	for i, a := range attacks {
		for j, f := range all {
			stream := (i+j)%2 == 0
			switch {
			case j == 0 && testing.Short() && i%3 > 0:
			case j == 0:
				testAttack(t, a, f, true)
				if long {
					testAttack(t, a, f, false)
				}
			case long || !testing.Short() && i%(len(all)-1) == j-1:
				testAttack(t, a, f, stream)
				if long {
					testAttack(t, a, f, !stream)
				}
			}
		}
	}
}

// testAttack makes an attack in a format.
func testAttack(t *testing.T, a attack, f format, stream bool) {
	mode := "whole"
	if stream {
		mode = "stream"
	}
	t.Run(fmt.Sprintf("%s/%s/%s", a.name, f.name, mode), func(t *testing.T) {
		t.Run("roles", func(t *testing.T) {
			testAttackOn(t, a, f, stream, role.PlannerRole, role.GraderRole, role.GeneratorRole)
		})
		t.Run("verifier", func(t *testing.T) { testAttackOn(t, a, f, stream, role.VerifierRole) })
	})
}

// testAttackOn makes the models of some roles attack. The verifier is local unless it attacks.
func testAttackOn(t *testing.T, a attack, f format, stream bool, hostile ...string) {
	checkGoroutines(t)
	elsewhere := httptest.NewServer(failing(t, "a request was sent to where a redirect leads"))
	t.Cleanup(elsewhere.Close)
	a.elsewhere = elsewhere.URL
	c := stage(t, newPlay(), stream, func(string) format { return f }, a, hostile...)
	if !slices.Contains(hostile, role.VerifierRole) {
		delete(c.models, role.VerifierRole)
	}
	e := openHandbook(t, c.models)
	got := c.askHostile(t, e)
	checkBudget(t, c, got)
	checkHonest(t, got)
	if slices.Contains(hostile, role.VerifierRole) {
		checkUnverified(t, a, got)
	} else {
		checkEnd(t, a, e, got)
	}
	checkSecrets(t, e, got)
	again, err := e.Replay(t.Context(), assay.Local(), got.Run)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if diff := cmp.Diff(plain(got), plain(again)); diff != "" {
		t.Errorf("replayed (-first +again):\n%s", diff)
	}
}

// askHostile asks the question of the play with a timeout.
func (c cast) askHostile(t *testing.T, e *engine.Engine) assay.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	got, err := e.Answer(ctx, assay.Local(), engine.Request{Question: parentalLeave, NoCache: true, Strategy: "corrective", Budget: budget})
	if err != nil {
		t.Fatalf("the run has no answer: %v", err)
	}
	return got
}

// mostAttempts is the largest number of requests that a run makes for one call.
const mostAttempts = 4

// checkBudget checks that a run kept to its budget, both by the servers' counts and by its own
// report. All attempts of a call count as one.
func checkBudget(t *testing.T, c cast, got assay.Answer) {
	t.Helper()
	requests := 0
	for _, h := range c.hosts {
		requests += int(h.requests.Load())
	}
	u := got.Usage
	if u.Calls > budget.Calls || requests > mostAttempts*u.Calls {
		t.Errorf("the servers got %d requests and the run says %d calls, of %d, with at most %d attempts each", requests, u.Calls, budget.Calls, mostAttempts)
	}
	if tokens := u.InputTokens + u.OutputTokens; tokens > budget.Tokens {
		t.Errorf("%d tokens were spent, of %d", tokens, budget.Tokens)
	}
}

// checkHonest checks that an answer contains only verified claims.
func checkHonest(t *testing.T, got assay.Answer) {
	t.Helper()
	for _, c := range got.Claims {
		if c.Verdict != assay.Supported && c.Verdict != assay.Contradicted || len(c.Citations) == 0 {
			t.Errorf("the answer has a claim that is not verified: %+v", c)
		}
	}
	for _, words := range []string{pwned, "52 weeks", "80 percent", "evil.test", "\u200b", "\u202e", "\u2066"} {
		if strings.Contains(got.Text, words) {
			t.Errorf("the answer says %q:\n%s", words, got.Text)
		}
	}
	if got.Justification == "" {
		t.Error("the answer does not say why its status is what it is")
	}
	if got.Status == assay.Answered && len(got.Claims) == 0 {
		t.Errorf("answered, and nothing is said: %+v", got)
	}
}

// checkEnd checks the outcome of an attack on all roles but the verifier.
func checkEnd(t *testing.T, a attack, e *engine.Engine, got assay.Answer) {
	t.Helper()
	notes := notesOf(got)
	if a.ends == cautious && strings.Contains(notes, "the local generator stood in") {
		a.ends = standIn // the format cannot carry the model's reply: its provider fails
	}
	switch a.ends {
	case standIn:
		for _, name := range []string{role.PlannerRole, role.GraderRole, role.GeneratorRole} {
			if !strings.Contains(notes, "the local "+name+" stood in") {
				t.Errorf("no note says that the local %s stood in:\n%s", name, notes)
			}
			if !slices.ContainsFunc(got.Roles, func(u assay.RoleUse) bool { return u.Role == name && u.Model == assay.LocalModel }) {
				t.Errorf("the answer does not say that the %s was local: %+v", name, got.Roles)
			}
		}
		local, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: parentalLeave, NoCache: true, Strategy: "corrective", Local: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(local.Text, got.Text); diff != "" || got.Status != local.Status {
			t.Errorf("%s, want %s and what the local roles say (-local +this):\n%s", got.Status, local.Status, diff)
		}
	case cautious:
		if !strings.Contains(notes, "the local grader stood in") { // the planner's reply may be complete
			t.Errorf("no note says that the local grader stood in:\n%s", notes)
		}
		if got.Status == assay.Answered {
			t.Errorf("answered although the generator wrote nothing:\n%s\n%q", got.Text, got.Notes)
		}
		for _, c := range got.Claims {
			words := got.Text[c.Start:c.End]
			if !slices.ContainsFunc(got.Citations, func(cit assay.Citation) bool {
				return strings.Contains(strings.Join(strings.Fields(cit.Quote), " "), words)
			}) {
				t.Errorf("the claim %q is not a quotation", words)
			}
		}
	}
}

// checkUnverified checks that no claim is shown if the verifier fails.
func checkUnverified(t *testing.T, a attack, got assay.Answer) {
	t.Helper()
	if a.ends == honest {
		return
	}
	if len(got.Claims) > 0 || got.Status != assay.Incomplete {
		t.Errorf("%s with %d claims and no verifier, want incomplete without any:\n%s", got.Status, len(got.Claims), got.Text)
	}
	if !strings.Contains(notesOf(got)+got.Justification, "verifier") {
		t.Errorf("nothing says that the verifier failed: %q, %q", got.Notes, got.Justification)
	}
}

// checkSecrets checks that no credential is in the answer or in the journal.
func checkSecrets(t *testing.T, e *engine.Engine, got assay.Answer) {
	t.Helper()
	_, steps, err := e.Run(t.Context(), assay.Local(), got.Run)
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]any{"answer": got, "journal": steps} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), llmtest.Canary) {
			t.Errorf("the key is in the %s", what)
		}
	}
}

// failing returns a handler that fails the test on any request.
func failing(t *testing.T, why string) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error(why) })
}
