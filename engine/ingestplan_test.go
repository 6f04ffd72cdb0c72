package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
)

// pricedEncoders is a service that embeds at a price and counts the calls.
type pricedEncoders struct {
	facts llm.Facts
	calls *int
}

func (p pricedEncoders) Default() string { return "service/model" }

func (p pricedEncoders) Open(context.Context, string) (llm.Embedder, error) { return p, nil }

func (p pricedEncoders) Model() string { return "service/model" }

func (p pricedEncoders) Facts() llm.Facts { return p.facts }

func (p pricedEncoders) Embed(context.Context, llm.Purpose, []string) ([]llm.Vector, error) {
	*p.calls++
	return nil, nil
}

// TestPlanOfPricedVectors checks that a plan has the cost of a service's vectors and does not call
// the service.
func TestPlanOfPricedVectors(t *testing.T) {
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "a.md"), []byte(strings.Repeat("words and words. ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, facts := range []llm.Facts{{}, {Priced: true, Input: 2_000_000}} {
		calls := 0
		e, err := Open(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "data"), Encoders: pricedEncoders{facts, &calls}, NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := e.PlanIngest(t.Context(), IngestRequest{Paths: []string{docs}})
		if err != nil {
			t.Fatal(err)
		}
		v := plan.Vectors
		if v == nil || !v.Remote || v.Priced != facts.Priced || v.Tokens != 17000/4 || calls != 0 {
			t.Errorf("prices %+v: plan %+v after %d calls", facts, v, calls)
		}
		if want := facts.Input * 17000 / 4 / 1_000_000; v.CostMicros != want {
			t.Errorf("cost %d, want %d", v.CostMicros, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
