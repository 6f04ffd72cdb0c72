package strategy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// silent is a model that does not answer.
type silent struct{}

func (silent) Model() string { return "fake/silent" }
func (silent) Generate(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, ctx.Err()
}

// TestSlowModel checks that a job ends with its share of the run's time, with an error of the
// provider and not of the run, and that its next call has no time left.
func TestSlowModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := &run.Memory{}
		r, err := run.New(run.Config{Run: "r", Journal: journal, Budget: assay.Budget{Wall: 120 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = run.Group(t.Context(), r.Scope(), run.Step{Name: "plan", Kind: assay.StepPlan}, "q", func(ctx context.Context, s run.Scope, _ string) (string, error) {
			c := &caller{scope: s, share: searchShare}
			call := role.Call{Role: role.PlannerRole, Model: silent{}, Request: llm.Request{MaxTokens: 10}}
			for range 2 {
				_, err := c.Call(ctx, call)
				if !errors.Is(err, assay.ErrUnavailable) || role.Ends(ctx, err) || !strings.Contains(err.Error(), string(llm.TimedOut)) {
					t.Errorf("a call that takes too long: %v, want one of the provider", err)
				}
			}
			return "", nil
		})
		if err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the job took %v of 120 s, want a quarter", took)
		}
		for _, rec := range journal.Records() {
			if rec.Kind == assay.StepModel && rec.Usage.Calls != 1 {
				out, _ := json.Marshal(rec)
				t.Errorf("a call that was made is not counted: %s", out)
			}
		}
	})
}

// reading is a verifier that is a service.
type reading struct{ ground.Service }

// TestServiceReservesTokens checks that a verifier that is a service reserves the tokens that it
// reads, whether or not its price is known.
func TestServiceReservesTokens(t *testing.T) {
	claim := role.Claim{Text: "The notice is three months.", Cited: []ground.Passage{{Quote: "The notice is three months.", Context: strings.Repeat("The notice is three months. ", 20)}}}
	if u := mostOf(reading{}, claim); u.Calls != 1 || u.InputTokens < 100 || u.CostMicros != 0 {
		t.Errorf("it reserves %+v", u)
	}
}

// flaky is a model whose attempts fail until the last of a request, each at the cost of its
// tokens.
type flaky struct{ attempts []int }

func (*flaky) Model() string { return "fake/flaky" }
func (f *flaky) Generate(_ context.Context, req llm.Request, _ func(llm.Delta)) (llm.Response, error) {
	f.attempts = append(f.attempts, req.Attempts)
	return llm.Response{Text: "yes", Usage: assay.Usage{Calls: req.Attempts, InputTokens: 10 * req.Attempts, OutputTokens: req.Attempts}}, nil
}

// TestRetriedCallCountsOnce checks that a call counts once to the budget's calls however many
// attempts were made, that the tokens of all attempts count, and that tokens limit the attempts.
func TestRetriedCallCountsOnce(t *testing.T) {
	request := llm.Request{MaxTokens: 10}
	most := request.InputTokens() + request.MaxTokens
	for _, tt := range []struct {
		name     string
		budget   assay.Budget
		attempts []int
		spent    assay.Usage
	}{
		{"calls for two", assay.Budget{Calls: 2}, []int{4, 4}, assay.Usage{Calls: 2, InputTokens: 80, OutputTokens: 8}},
		{"tokens for two attempts", assay.Budget{Calls: 1, Tokens: 2*most + 1}, []int{2}, assay.Usage{Calls: 1, InputTokens: 20, OutputTokens: 2}},
	} {
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: tt.budget})
		if err != nil {
			t.Fatal(err)
		}
		m := &flaky{}
		c := &caller{scope: r.Scope(), share: searchShare}
		for range len(tt.attempts) {
			if _, err := c.Call(t.Context(), role.Call{Role: role.PlannerRole, Model: m, Request: request}); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if _, err := c.Call(t.Context(), role.Call{Role: role.PlannerRole, Model: m, Request: request}); !errors.Is(err, assay.ErrBudget) {
			t.Errorf("%s: a call beyond the budget: %v", tt.name, err)
		}
		if got := r.Scope().Spent(); got != tt.spent || !slices.Equal(m.attempts, tt.attempts) {
			t.Errorf("%s: spent %+v with %v attempts, want %+v with %v", tt.name, got, m.attempts, tt.spent, tt.attempts)
		}
	}
}
