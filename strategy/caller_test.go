package strategy

import (
	"context"
	"encoding/json"
	"errors"
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
