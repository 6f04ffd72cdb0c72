package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
)

// replays checks that a replay reproduces a run's answer byte for byte, also in an engine without
// models.
func replays(t *testing.T, e *Engine, id string) {
	t.Helper()
	if _, err := e.Replay(t.Context(), assay.Local(), id); err != nil {
		t.Errorf("replay: %v", err)
	}
	models := e.config.Models
	e.config.Models = Models{}
	defer func() { e.config.Models = models }()
	if _, err := e.Replay(t.Context(), assay.Local(), id); err != nil {
		t.Errorf("replay without models: %v", err)
	}
}

// who lists the roles of an answer with their models: "planner fake/planner".
func who(a assay.Answer) []string {
	var list []string
	for _, r := range a.Roles {
		list = append(list, r.Role+" "+r.Model)
	}
	return list
}

func TestModelsDoRoles(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"static", "corrective", "auto"} {
		by := handbook.models()
		e := openModels(t, served(by))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: strategy})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Answered || !strings.Contains(a.Text, "approved by the head of the department") || len(a.Notes) > 0 {
			t.Errorf("%s: %s: %q, notes %q", strategy, a.Status, a.Text, a.Notes)
		}
		want := []string{"planner fake/planner", "grader fake/grader", "generator fake/generator", "verifier fake/verifier"}
		if strategy == "static" {
			want = want[1:]
		}
		if diff := cmp.Diff(want, who(a)); diff != "" {
			t.Errorf("%s: roles (-want +got):\n%s", strategy, diff)
		}
		var sum assay.Usage
		for _, r := range a.Roles {
			if r.Prompt != by[r.Role].promptOf(t) || r.Usage.Calls != by[r.Role].calls() {
				t.Errorf("%s: %+v, want the prompt %q and %d calls", strategy, r, by[r.Role].promptOf(t), by[r.Role].calls())
			}
			sum = sum.Add(r.Usage)
		}
		if sum.Searches = a.Usage.Searches; sum != a.Usage {
			t.Errorf("%s: roles used %+v, the run %+v", strategy, sum, a.Usage)
		}
		replays(t, e, a.Run)
	}
}

// promptOf returns the ID of the prompt that the model was called with.
func (m *scripted) promptOf(t *testing.T) string {
	t.Helper()
	name := strings.TrimPrefix(m.name, "fake/")
	return Models{Roles: map[string]llm.Model{name: m}}.prompt(name)
}

// TestModelsAnswerInPart checks a question with two parts, one of which has no answer.
func TestModelsAnswerInPart(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Who approves travel to a customer, and which password does the wifi have?"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || len(a.Claims) != 1 || !slices.Contains(gapTexts(a.Missing), "which password does the wifi have?") {
		t.Errorf("%s, %d claims, missing %q: %s", a.Status, len(a.Claims), gapTexts(a.Missing), a.Justification)
	}
	replays(t, e, a.Run)
}

// TestEachRoleByItself checks that any role may have a model while the others have none.
func TestEachRoleByItself(t *testing.T) {
	t.Parallel()
	for name, model := range handbook.models() {
		e := openModels(t, served(map[string]*scripted{name: model}))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Answered {
			t.Errorf("%s: %s: %s", name, a.Status, a.Justification)
		}
		for _, r := range a.Roles {
			want := assay.LocalModel
			if r.Role == name {
				want = "fake/" + name
			}
			if r.Model != want {
				t.Errorf("%s: the %s is %s, want %s", name, r.Role, r.Model, want)
			}
		}
		replays(t, e, a.Run)
	}
}

// TestProviderFails checks that the local role does the job if a provider fails, and that the
// answer reports this.
func TestProviderFails(t *testing.T) {
	t.Parallel()
	for _, name := range []string{role.PlannerRole, role.GraderRole, role.GeneratorRole} {
		by := handbook.models()
		by[name] = failing("fake/down", llm.Unreachable, "connection refused")
		e := openModels(t, served(by))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Answered {
			t.Errorf("%s is down: %s: %s", name, a.Status, a.Justification)
		}
		if want := name + ": fake/down: unreachable: connection refused; the local " + name + " stood in"; !slices.Contains(noteTexts(a.Notes), want) || len(a.Notes) != 1 {
			t.Errorf("%s is down: notes %q, want %q", name, a.Notes, want)
		}
		if list := who(a); !slices.Contains(list, name+" local") || !slices.Contains(list, name+" fake/down") {
			t.Errorf("%s is down: %q, want that the local one stood in", name, list)
		}
		replays(t, e, a.Run)
	}

	by := handbook.models()
	by[role.VerifierRole] = failing("fake/down", llm.RateLimited, "slow down")
	e := openModels(t, served(by))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || len(a.Claims) > 0 || !strings.Contains(a.Justification, "verifier") || len(a.Notes) == 0 || !strings.Contains(a.Notes[0].Text, "slow down") {
		t.Errorf("the verifier is down: %s, %d claims, %q, notes %q", a.Status, len(a.Claims), a.Justification, a.Notes)
	}
	if slices.Contains(who(a), "verifier local") {
		t.Error("the local verifier stood in: nobody asked for that")
	}
	replays(t, e, a.Run)
}

// TestRepliesCannotBeUsed checks that unusable replies lead to the cautious outcome of each role,
// and not to an answer that nothing was found.
func TestRepliesCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]assay.Status{
		role.PlannerRole: assay.Answered, role.GraderRole: assay.Answered, role.GeneratorRole: assay.Incomplete, role.VerifierRole: assay.Incomplete,
	} {
		by := handbook.models()
		by[name] = texts("fake/"+name, func(llm.Request) string { return "I am sorry, Dave." })
		e := openModels(t, served(by))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "corrective", Budget: assay.Budget{Iterations: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != want {
			t.Errorf("%s talks: %s, want %s: %s", name, a.Status, want, a.Justification)
		}
		if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, name+": ") }) {
			t.Errorf("%s talks: notes %q say nothing of it", name, a.Notes)
		}
		if n := by[name].calls(); n%3 != 0 {
			t.Errorf("%s was asked %d times, want 3 for each job", name, n)
		}
		replays(t, e, a.Run)
	}
}

// contrary returns a reader for which sentences that share more than half of their words, but not
// all, contradict each other.
func contrary() (llm.Reader, error) {
	return &llmtest.Reader{OnEntail: func(p llm.ClaimPair) (llm.Entailment, error) {
		e, err := llmtest.EntailByWords(p)
		if e.Supported > 0.5 && e.Supported < 1 {
			e.Contradicted, e.Neutral, e.Supported = 0.9, 0.1, 0
		}
		return e, err
	}}, nil
}

// TestDraftFalls checks that a model whose draft fails verification gets the reasons and is asked
// once more, and that then the closest sentence of the documents is quoted. It never gets the
// same request twice.
func TestDraftFalls(t *testing.T) {
	t.Parallel()
	statement := func(text string, sources ...int) string {
		return jsonOf(map[string]any{
			"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{},
			"statements": []any{map[string]any{"text": text, "sources": sources, "item": false, "cells": []string{}, "section": ""}},
		})
	}
	const truth, lie = "Travel to a customer is approved by the head of the department.", "Travel to a customer is approved by the Pope of Rome."
	tests := []struct {
		name   string
		says   func(n int) string
		calls  int
		status assay.Status
		text   string
		note   string
	}{
		{"it learns", func(n int) string { return statement([]string{lie, truth}[n-1], 1) }, 2, assay.Answered, truth + " [1]", ""},
		{"it insists", func(int) string { return statement(lie, 1) }, 2, assay.Answered, truth + " [1]",
			"verifier: 1 statement was refused and replaced by the source's own sentence"},
		{"it cites nothing that was given", func(int) string { return statement(truth, 99) }, 3, assay.Incomplete, truth,
			"generator: fake/generator wrote nothing usable; the passages are quoted instead"},
	}
	for _, tt := range tests {
		by := handbook.models()
		delete(by, role.VerifierRole) // claims are verified by the local verifier
		m := by[role.GeneratorRole]
		m.reply = func(_ context.Context, n int, req llm.Request) (llm.Response, error) {
			return spoken(tt.says(n), req), nil
		}
		e := openConfig(t, Config{Dir: t.TempDir(), Models: served(by), Reader: contrary})
		ingestPaths(t, e, "testdata/handbook")
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != tt.status || !strings.HasPrefix(a.Text, tt.text) || m.calls() != tt.calls || (tt.note == "") != (len(a.Notes) == 0) || tt.note != "" && !slices.Contains(noteTexts(a.Notes), tt.note) {
			t.Errorf("%s: %s after %d calls: %q, notes %q; want %s after %d, %q", tt.name, a.Status, m.calls(), a.Text, a.Notes, tt.status, tt.calls, tt.text)
		}
		asked := map[string]bool{}
		for _, r := range m.requests {
			asked[jsonOf(r)] = true
		}
		if tt.calls == 2 && len(asked) != m.calls() {
			t.Errorf("%s: of %d requests %d are different", tt.name, m.calls(), len(asked))
		}
		if tt.calls == 2 && !strings.Contains(m.requests[1].Messages[0].Text, "Pope") {
			t.Errorf("%s: it was not told what fell", tt.name)
		}
		replays(t, e, a.Run)
	}
}

// TestNoRoomForAnotherDraft checks a draft that fails when the budget has no room for another
// one. A note must report this. If a sentence of the documents is close to the draft, it is
// quoted; otherwise the answer is incomplete and its Stop names the budget.
func TestNoRoomForAnotherDraft(t *testing.T) {
	t.Parallel()
	for _, lacks := range []bool{false, true} { // whether the documents lack a sentence close to the draft
		by := handbook.models()
		generator, verifier := by[role.GeneratorRole], by[role.VerifierRole]
		generator.reply = func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
			return spoken(jsonOf(map[string]any{
				"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{},
				"statements": []any{map[string]any{"text": "Travel to a customer is approved by the Pope of Rome.", "sources": []int{1}, "item": false, "cells": []string{}, "section": ""}},
			}), req), nil
		}
		budget := assay.Budget{Calls: 2}
		models := map[string]*scripted{role.GraderRole: by[role.GraderRole], role.GeneratorRole: generator}
		reader := contrary
		if lacks {
			reader = nil
			verifier.reply = func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
				return spoken(jsonOf(map[string]any{"verdicts": []any{map[string]any{"claim": 1, "reason": "no", "verdict": "unsupported", "score": 0.1}}}), req), nil
			}
			models[role.VerifierRole], budget.Calls = verifier, 3
		}
		e := openConfig(t, Config{Dir: t.TempDir(), Models: served(models), Reader: reader})
		ingestPaths(t, e, "testdata/handbook")
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "static", Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "no budget left for another draft (call_budget)") }) {
			t.Errorf("notes %q", a.Notes)
		}
		if lacks && (a.Status != assay.Incomplete || a.Stop != assay.StopCallBudget || len(a.Claims) > 0) || !lacks && (len(a.Claims) != 1 || !a.Claims[0].Quoted) {
			t.Errorf("%s (%s) with %d claims: %s", a.Status, a.Stop, len(a.Claims), a.Justification)
		}
		replays(t, e, a.Run)
	}
}

// TestBudgetInTheJustification checks that the justification names the exhausted budget, the
// amount needed and the amount left.
func TestBudgetInTheJustification(t *testing.T) {
	t.Parallel()
	m := served(handbook.models())
	e := openModels(t, m)
	ingestPaths(t, e, writeNotes(t, 0, 1))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Which harbour sells fish at noon in winter?", Strategy: "multihop", Budget: assay.Budget{Calls: 1}})
	if err != nil || a.Justification != "The run was cut short (call_budget: a step may need 1, and 0 are left)." {
		t.Errorf("%q, %v", a.Justification, err)
	}
	replays(t, e, a.Run)
}

func TestOpenRefusesModels(t *testing.T) {
	t.Parallel()
	one, two := handbook.models()[role.GeneratorRole], handbook.models()[role.VerifierRole]
	two.name = one.name
	tests := []struct {
		name   string
		models Models
		want   string
	}{
		{"an unknown role", Models{Roles: map[string]llm.Model{"king": one}}, `"king"`},
		{"no model", Models{Roles: map[string]llm.Model{role.GraderRole: nil}}, "grader has no model"},
		{"two verifiers, one local", Models{Roles: map[string]llm.Model{role.VerifierRole: two}, LocalVerifier: true}, "two verifiers"},
		{"a service and a local verifier", Models{Verifier: judging{name: one.name}, LocalVerifier: true}, "two verifiers"},
		{"two verifiers", Models{Roles: map[string]llm.Model{role.VerifierRole: two}, Verifier: judging{name: "other"}}, "two verifiers"},
	}
	for _, tt := range tests {
		_, err := Open(t.Context(), Config{Dir: t.TempDir(), Models: tt.models})
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want ErrInvalid with %q", tt.name, err, tt.want)
		}
	}
}

// TestModelVerifiesByDefault checks that the generator's model verifies by default, in separate
// conversations that contain nothing of the generator's.
func TestModelVerifiesByDefault(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	writer := texts("fake/writer", func(req llm.Request) string {
		if strings.Contains(req.System, "You check claims") {
			return handbook.verify(req)
		}
		return handbook.write(req)
	})
	m := Models{Roles: map[string]llm.Model{role.PlannerRole: by[role.PlannerRole], role.GraderRole: by[role.GraderRole], role.GeneratorRole: writer}}
	e := openModels(t, m)
	a := asked(t, e, Request{Question: someQuestion})
	if a.Status != assay.Answered || !slices.Contains(who(a), "verifier fake/writer") {
		t.Errorf("%s: %q, roles %q", a.Status, a.Text, who(a))
	}
	checks := 0
	for _, req := range writer.requests {
		if !strings.Contains(req.System, "You check claims") {
			continue
		}
		if checks++; len(req.Messages) != 1 || req.Messages[0].Speaker != llm.User || strings.Contains(req.Messages[0].Text, someQuestion) {
			t.Errorf("the verifier is asked with more than claims and sources: %+v", req.Messages)
		}
	}
	if checks == 0 {
		t.Error("no claim was checked by the model")
	}
	replays(t, e, a.Run)

	m.LocalVerifier = true
	e = openModels(t, m)
	if a = asked(t, e, Request{Question: someQuestion}); a.Status != assay.Answered || !slices.Contains(who(a), "verifier local") {
		t.Errorf("local: %s: %q, roles %q", a.Status, a.Text, who(a))
	}
	replays(t, e, a.Run)
}

// judging is a verifier that is a service.
type judging struct {
	name string
	err  error
}

var _ ground.Service = judging{}

func (j judging) VerifyFor(ctx context.Context, _, text string, cited []ground.Passage) (ground.Judgement, error) {
	return j.Verify(ctx, text, cited)
}

func (j judging) Model() string { return j.name }

func (j judging) Verify(context.Context, string, []ground.Passage) (ground.Judgement, error) {
	return ground.Judgement{Verdict: assay.Supported, Score: 0.8, Reason: "grounded", Usage: assay.Usage{Calls: 1, CostMicros: 5}}, j.err
}

func TestVerifierIsAService(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, &llm.Error{Model: "guard/1", Kind: llm.Overloaded, Message: "later"}} {
		e := openModels(t, Models{Verifier: judging{"guard/1", failed}})
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
		if err != nil {
			t.Fatal(err)
		}
		if (failed == nil) != (a.Status == assay.Answered) || a.Status == assay.NotFound {
			t.Errorf("the service's error is %v: %s: %s", failed, a.Status, a.Justification)
		}
		if !slices.Contains(who(a), "verifier guard/1") || a.Usage.Calls == 0 || (failed != nil) != (len(a.Notes) > 0) {
			t.Errorf("roles %q, usage %+v, notes %q", who(a), a.Usage, a.Notes)
		}
		replays(t, e, a.Run)
	}
}

// scoring is a service with a score of the relevance of each text to its question.
type scoring struct {
	judging
	relevance func(question, text string) (score *float64, offTopic bool, err error)
}

func (s scoring) VerifyFor(ctx context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	j, err := s.Verify(ctx, text, cited)
	if err == nil {
		j.Relevance, j.OffTopic, err = s.relevance(question, text)
	}
	return j, err
}

// TestServiceJudgesRelevance checks that a service is given the user's whole question with each claim
// and with the whole answer, that only the relevance of the whole answer blocks, and that it blocks
// if it is not usable.
func TestServiceJudgesRelevance(t *testing.T) {
	t.Parallel()
	const question = "Who approves travel to a customer, and how long does parental leave last?"
	number := func(x float64) *float64 { return &x }
	tests := []struct {
		name         string
		claim, whole *float64
		offTopic     bool // the whole answer, by the service's own threshold
		err          error
		want         assay.Status
		relevance    bool // of the answer is known
	}{
		{"relevant", number(0.9), number(0.8), false, nil, assay.Answered, true},
		{"each claim is a part of the answer", number(0.01), number(0.8), false, nil, assay.Answered, true},
		{"below the threshold", number(0.9), number(0.05), false, nil, assay.NotFound, true},
		{"below the service's own", number(0.9), number(0.4), true, nil, assay.NotFound, true},
		{"it does not judge that", nil, nil, false, nil, assay.Answered, true}, // the local grader does
		{"no usable score", number(0.9), nil, true, nil, assay.Incomplete, false},
		{"out of range", number(0.9), number(-3), false, nil, assay.Incomplete, false},
		{"fails", number(0.9), nil, false, &llm.Error{Model: "guard/1", Kind: llm.Overloaded, Message: "later"}, assay.Incomplete, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wholes := 0
			e := openModels(t, Models{Verifier: scoring{judging{"guard/1", nil}, func(asked, text string) (*float64, bool, error) {
				if asked != question {
					t.Errorf("%q is judged for %q", text, asked)
				}
				if strings.Contains(text, "\n") {
					wholes++
					return tt.whole, tt.offTopic, tt.err
				}
				return tt.claim, false, nil
			}}})
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: question})
			if err != nil {
				t.Fatal(err)
			}
			if a.Status != tt.want || (a.Relevance != nil) != tt.relevance || wholes != 1 {
				t.Errorf("%s with relevance %v, the whole answer judged %d times, want %s: %s", a.Status, a.Relevance, wholes, tt.want, a.Justification)
			}
			replays(t, e, a.Run)
		})
	}
}

// TestLocalRequest checks that a request with Local set calls no model.
func TestLocalRequest(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e := openModels(t, served(by))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Local: true})
	if err != nil || a.Status != assay.Answered {
		t.Fatalf("%s, %v", a.Status, err)
	}
	for name, m := range by {
		if m.calls() > 0 {
			t.Errorf("the %s was asked", name)
		}
	}
	for _, r := range a.Roles {
		if r.Model != assay.LocalModel || r.Usage != (assay.Usage{}) {
			t.Errorf("%+v, want a local role", r)
		}
	}
	replays(t, e, a.Run)
}

func TestWallByDefault(t *testing.T) {
	t.Parallel()
	wall := func(e *Engine, req Request) time.Duration {
		req, err := e.check(t.Context(), assay.Local(), req)
		if err != nil {
			t.Fatal(err)
		}
		return req.Budget.Wall
	}
	with, without := openModels(t, served(handbook.models())), openModels(t, Models{})
	for _, tt := range []struct {
		got, want time.Duration
	}{
		{wall(with, Request{Question: "x?"}), 120 * time.Second},
		{wall(with, Request{Question: "x?", Local: true}), 12 * time.Second},
		{wall(without, Request{Question: "x?"}), 12 * time.Second},
		{wall(with, Request{Question: "x?", Budget: assay.Budget{Wall: time.Second}}), time.Second},
	} {
		if tt.got != tt.want {
			t.Errorf("wall time %v, want %v", tt.got, tt.want)
		}
	}
}

// TestCostIsLimited checks that a cost limit is either kept or rejected before anything is
// stored.
func TestCostIsLimited(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e := openModels(t, served(by))
	req := Request{Question: someQuestion, Budget: assay.Budget{CostMicros: 3000}}
	if _, err := e.Answer(t.Context(), assay.Local(), req); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "fake/planner") {
		t.Errorf("unpriced: %v, want ErrInvalid that names the model", err)
	}
	if runs, err := e.Runs(t.Context(), assay.Local(), 0); err != nil || len(runs) > 0 {
		t.Errorf("runs = %v, %v: nothing was to be stored", runs, err)
	}
	req.Local = true
	if a, err := e.Answer(t.Context(), assay.Local(), req); err != nil || a.Status != assay.Answered {
		t.Errorf("local: %s, %v", a.Status, err)
	}

	req.Local = false
	for _, m := range by { // 0.001 of the currency unit per 1,000 tokens
		m.facts = llm.Facts{Priced: true, Input: 1_000_000, Output: 1_000_000}
		say := m.reply
		m.reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
			r, err := say(ctx, n, req)
			r.Usage.CostMicros = m.facts.Cost(r.Usage)
			return r, err
		}
	}
	for _, cost := range []int64{1, 1500, 3000, 6000, 100_000} {
		req.Budget.CostMicros = cost
		a, err := e.Answer(t.Context(), assay.Local(), req)
		if err != nil {
			t.Fatal(err)
		}
		if a.Usage.CostMicros > cost {
			t.Errorf("of %d at most, %d were spent", cost, a.Usage.CostMicros)
		}
		if cost < 3000 && (a.Stop != assay.StopMoneyBudget || a.Status != assay.Incomplete) || cost > 10_000 && a.Status != assay.Answered {
			t.Errorf("%d at most: %s (%s)", cost, a.Status, a.Stop)
		}
		replays(t, e, a.Run)
	}
}

// TestBudgetsHold checks that every budget holds and that the answer names the limit that was
// reached.
func TestBudgetsHold(t *testing.T) {
	t.Parallel()
	e := openModels(t, served(handbook.models()))
	for n := 1; n <= 8; n++ {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Budget: assay.Budget{Calls: n}})
		if err != nil {
			t.Fatal(err)
		}
		if a.Usage.Calls > n || n < 4 && (a.Status != assay.Incomplete || a.Stop != assay.StopCallBudget) || n >= 4 && a.Status != assay.Answered {
			t.Errorf("%d calls at most: %d made, %s (%s)", n, a.Usage.Calls, a.Status, a.Stop)
		}
		replays(t, e, a.Run)
	}
	for tokens := 100; tokens < 5000; tokens += 700 {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Budget: assay.Budget{Tokens: tokens}})
		if err != nil {
			t.Fatal(err)
		}
		if used := a.Usage.InputTokens + a.Usage.OutputTokens; used > tokens || a.Status == assay.Incomplete && a.Stop != assay.StopTokenBudget {
			t.Errorf("%d tokens at most: %d used, %s (%s)", tokens, used, a.Status, a.Stop)
		}
		replays(t, e, a.Run)
	}
}

// TestModelEvents checks the events of model calls: the model and its task, the result, and the
// text while it is being written.
func TestModelEvents(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	say := by[role.GraderRole].reply
	by[role.GraderRole].reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
		r, err := say(ctx, n, req)
		r.Attempts = []llm.Attempt{{Kind: llm.Overloaded, Message: "try later"}}
		return r, err
	}
	e := openModels(t, served(by))
	var started, ended []string
	draft := ""
	for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: "static"}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case ev.Kind == Draft:
			draft += ev.Draft
			if ev.Path != "finish[0]/generate/call[0]/model" || ev.Step != nil || ev.Answer != nil {
				t.Errorf("draft event %+v", ev)
			}
		case ev.Step != nil && ev.Step.Kind == assay.StepModel && ev.Kind == StepStarted:
			started = append(started, ev.Step.Summary)
		case ev.Step != nil && ev.Step.Kind == assay.StepModel:
			ended = append(ended, ev.Step.Summary)
			if ev.Step.Model == "" || ev.Step.Usage.Calls != 1 {
				t.Errorf("step %s has model %q and usage %+v", ev.Step.Path, ev.Step.Model, ev.Step.Usage)
			}
		}
	}
	if diff := cmp.Diff([]string{"asking fake/grader for a grade", "asking fake/generator for the answer", "asking fake/verifier for verdicts"}, started); diff != "" {
		t.Errorf("intentions (-want +got):\n%s", diff)
	}
	if want := "; an attempt failed: overloaded: try later"; len(ended) != 3 || !strings.HasSuffix(ended[0], want) || !strings.HasPrefix(ended[1], "fake/generator (generator@") {
		t.Errorf("summaries %q", ended)
	}
	if want := by[role.GeneratorRole]; !json.Valid([]byte(draft)) || draft != want.lastReply(t) {
		t.Errorf("draft = %q", draft)
	}
}

func (m *scripted) lastReply(t *testing.T) string {
	t.Helper()
	r, err := m.reply(t.Context(), 0, m.requests[len(m.requests)-1])
	if err != nil {
		t.Fatal(err)
	}
	return r.Text
}

// interruptible calls leave at the n-th model call.
func interruptible(by map[string]*scripted, at int, leave context.CancelFunc) {
	n := 0
	for _, m := range by {
		say := m.reply
		m.reply = func(ctx context.Context, i int, req llm.Request) (llm.Response, error) {
			if n++; n == at {
				leave()
				return llm.Response{}, ctx.Err()
			}
			return say(ctx, i, req)
		}
	}
}

// TestResumeWithModels checks that a run interrupted at any model call can be resumed without
// repeating the calls that were answered.
func TestResumeWithModels(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e := openModels(t, served(by))
	want, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= want.Usage.Calls; at++ {
		by := handbook.models()
		ctx, leave := context.WithCancel(t.Context())
		interruptible(by, at, leave)
		e.config.Models = served(by)
		_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion, NoCache: true})
		leave()
		failed, ok := errors.AsType[*RunError](err)
		if !ok || !failed.Resumable {
			t.Fatalf("left at call %d: %v", at, err)
		}
		if err := compare(want, resumed(t, e, failed.Run)); err != nil {
			t.Errorf("left at call %d: %v", at, err)
		}
		calls := 0
		for _, m := range by {
			calls += m.calls()
		}
		if calls != want.Usage.Calls+1 { // the interrupted call is repeated
			t.Errorf("left at call %d: %d calls, want %d", at, calls, want.Usage.Calls+1)
		}
		replays(t, e, failed.Run)
	}
}

// TestResumeWithOtherModels checks that a run is resumed with the current models and reports the
// change, but is not resumed in the middle of a job.
func TestResumeWithOtherModels(t *testing.T) {
	t.Parallel()
	other := handbook.models()
	for _, m := range other {
		m.name = strings.Replace(m.name, "fake/", "new/", 1)
	}
	tests := []struct {
		name    string
		today   Models
		at      int // the model call at which the caller cancels
		broken  bool
		refused string
		note    string
	}{
		{"the same", served(handbook.models()), 3, false, "", ""},
		{"other models", served(other), 3, false, "", "generator: fake/generator when the run began, new/generator when it was resumed"},
		{"no models", Models{}, 3, false, "", "generator: fake/generator when the run began, local when it was resumed"},
		{"other models in the middle of a job", served(other), 3, true, "it was interrupted while fake/grader was the grader, which is new/grader now", ""},
		{"none in the middle of a job", Models{}, 3, true, "it was interrupted while fake/grader was the grader, which is local now", ""},
		{"the same in the middle of a job", served(handbook.models()), 3, true, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			by := handbook.models()
			if tt.broken { // makes the first grade invalid, so that the job already has a call when it is interrupted
				say := by[role.GraderRole].reply
				by[role.GraderRole].reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
					if n == 1 {
						return spoken("?", req), nil
					}
					return say(ctx, n, req)
				}
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			interruptible(by, tt.at, leave)
			e := openModels(t, served(by))
			_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion})
			failed, ok := errors.AsType[*RunError](err)
			if !ok {
				t.Fatal(err)
			}
			e.config.Models = tt.today
			if tt.refused != "" {
				for _, err := range e.Resume(t.Context(), assay.Local(), failed.Run) {
					if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.refused) {
						t.Errorf("Resume: %v, want ErrInvalid with %q", err, tt.refused)
					}
				}
				e.config.Models = served(handbook.models()) // the run can still be resumed with its own models
			}
			a := resumed(t, e, failed.Run)
			if a.Status != assay.Answered || tt.note != "" && !slices.Contains(noteTexts(a.Notes), tt.note) || tt.note == "" && len(a.Notes) > 0 {
				t.Errorf("%s, notes %q, want %q", a.Status, a.Notes, tt.note)
			}
			replays(t, e, failed.Run)
		})
	}
}

// TestContextFollowsTheWindow checks that the evidence for a generator depends on its context
// window and stays the same when the run is resumed with another generator.
func TestContextFollowsTheWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ window, want int }{{0, 0}, {2000, 300}, {8192, 3461}, {32_000, 12_000}, {1_000_000, 12_000}} {
		m := handbook.models()[role.GeneratorRole]
		m.facts.Window = tt.window
		if got := (Models{Roles: map[string]llm.Model{role.GeneratorRole: m}}).contextTokens(); got != tt.want {
			t.Errorf("window %d: %d tokens, want %d", tt.window, got, tt.want)
		}
	}
	if got := (Models{}).contextTokens(); got != 0 {
		t.Errorf("without a model: %d", got)
	}
}
