package answers_test

import (
	"context"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// paid is a model, a reranker, a verifier and an encoder that fails the test when it is called.
type paid struct {
	t     *testing.T
	name  string
	facts llm.Facts
}

func (p paid) Model() string { return p.name }

func (p paid) Facts() llm.Facts { return p.facts }

func (p paid) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Response, error) {
	p.t.Errorf("%s was asked", p.name)
	return llm.Response{}, nil
}

func (p paid) Rerank(context.Context, string, []string) ([]float64, error) {
	p.t.Errorf("%s was asked", p.name)
	return nil, nil
}

func (p paid) Verify(context.Context, string, []ground.Passage) (ground.Judgement, error) {
	p.t.Errorf("%s was asked", p.name)
	return ground.Judgement{}, nil
}

func (p paid) VerifyFor(ctx context.Context, _, text string, cited []ground.Passage) (ground.Judgement, error) {
	return p.Verify(ctx, text, cited)
}

func (p paid) Embed(context.Context, llm.Purpose, []string) ([]llm.Vector, error) {
	p.t.Errorf("%s was asked", p.name)
	return nil, nil
}

// TestEstimateSpending checks that an estimate uses stand-ins only: it calls no paid service,
// leaves no runs, and lists every service that the evaluation would use.
func TestEstimateSpending(t *testing.T) {
	priced := llm.Facts{Window: 32768, Priced: true, Input: 1_000_000, Output: 2_000_000}
	cases := []testset.Case{
		{ID: "1", Question: "Who approves travel to a customer?", Answers: []string{"the head of the department"}},
		{ID: "2", Question: "What do visitors of the office wear?", Answers: []string{"a yellow badge"}},
		{ID: "3", Question: "When are receipts handed in?", Answers: []string{"within 30 days"}},
	}
	model := func(name string, facts llm.Facts) paid { return paid{t, name, facts} }
	writer := map[string]llm.Model{role.GeneratorRole: model("writer", priced), role.GraderRole: model("writer", priced)}
	tests := []struct {
		name     string
		models   engine.Models
		encoder  llm.Embedder
		local    bool
		services []string
		calls    bool
		free     bool
		priced   bool
	}{
		{"nobody", engine.Models{}, nil, false, nil, false, true, true},
		{"models", engine.Models{Roles: writer}, nil, false, nil, true, false, true},
		{"a model without a price", engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: model("writer", llm.Facts{Window: 32768})}}, nil, false, nil, true, false, false},
		{"a reranker alone", engine.Models{Reranker: model("reader", priced)}, nil, false, []string{"reranking"}, false, false, true},
		{"a guardrail", engine.Models{Roles: writer, Verifier: model("guard", llm.Facts{})}, nil, false, []string{"verifying"}, true, false, false},
		{"who is asked nothing locally", engine.Models{Verifier: model("guard", llm.Facts{}), Reranker: model("reader", llm.Facts{})}, nil, true, nil, false, true, true},
		{"an encoder", engine.Models{}, model("encoder", priced), true, []string{"vectors"}, false, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, dir := handbookIn(t, engine.Config{})
			d := testset.Dataset{Name: "test", Hash: "1", Cases: cases}
			folder, err := answers.OpenFolder(t.Context(), t.TempDir(), answers.Identity{Set: d.Name, Hash: d.Hash})
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			config := engine.Config{Dir: dir, Models: tt.models}
			opts := answers.Options{Contenders: []answers.Contender{{Name: "static", Request: engine.Request{Strategy: "static", Local: tt.local}}}, Principal: assay.Local()}
			got, err := answers.EstimateSpending(t.Context(), d, folder, opts, answers.Asked{Engine: config, Encoder: tt.encoder, Unembedded: 500})
			if err != nil {
				t.Fatal(err)
			}
			if got.Questions != 3 || got.Calls > 0 != tt.calls || got.Free() != tt.free || got.Priced != tt.priced || got.CostMicros > 0 != (tt.priced && !tt.free) {
				t.Errorf("%+v, free %v", got, got.Free())
			}
			var services []string
			for _, s := range got.Services {
				services = append(services, s.Does)
				if s.Calls < 3 || s.Does != "verifying" && s.Tokens == 0 {
					t.Errorf("%+v, want a call for each question at least", s)
				}
			}
			if len(services) != len(tt.services) || len(services) > 0 && services[0] != tt.services[0] {
				t.Errorf("services %q, want %q", services, tt.services)
			}
			if runs, err := e.Runs(t.Context(), assay.Local(), 10); err != nil || len(runs) > 0 {
				t.Errorf("%d runs are left, %v", len(runs), err)
			}
		})
	}
}
