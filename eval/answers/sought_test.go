package answers_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// saying is a model that always gives the same reply.
type saying string

func (saying) Model() string { return "test/writer" }

func (s saying) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Response, error) {
	return llm.Response{Text: string(s), Finish: llm.FinishStop, Usage: assay.Usage{Calls: 1}}, nil
}

// literal supports a claim if a passage contains it verbatim.
type literal struct{}

func (literal) Verify(_ context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	for _, p := range cited {
		if strings.Contains(p.Context, claim) {
			return ground.Judgement{Verdict: assay.Supported, Score: 0.9}, nil
		}
	}
	return ground.Judgement{Verdict: assay.Unsupported, Score: 0.1, Reason: "not said"}, nil
}

// wrongly is a judge that finds every answer incorrect. It judges no claims.
type wrongly struct{}

func (wrongly) Name() string { return "test/model" }

func (wrongly) Judge(context.Context, judge.Input) (judge.Judgement, error) {
	return judge.Judgement{By: "test/model", Scores: map[string]judge.Score{judge.Correctness: {By: "test/model"}}}, nil
}

// TestEvidenceFoundAfterwards checks that a passage found for a statement after it was written is
// ordinary evidence: it is among the contexts, its citation is judged, and the statement is not
// counted as refused.
func TestEvidenceFoundAfterwards(t *testing.T) {
	writer := saying(`{"shape":"prose","columns":[],"conflicts":[],"open":[],"statements":[
		{"text":"Travel to a customer is approved by the head of the department.","sources":[1]},
		{"text":"Visitors of the office wear a yellow badge.","sources":[1]}]}`)
	e := handbook(t, engine.Config{Models: engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: writer}, Verifier: literal{}}})
	c := testset.Case{ID: "1", Question: "Who approves travel to a customer?", Gold: []testset.Gold{{Document: "security.md"}}, Answers: []string{"a yellow badge"}}
	o := judgedBy(t, judge.Local{}, e, engine.Request{Strategy: "corrective"}, c)[0]
	if len(o.Answer.Claims) != 2 || !o.Answer.Claims[1].Repaired {
		t.Fatalf("%s: %s; notes %q", o.Answer.Status, o.Answer.Text, o.Answer.Notes)
	}
	at := slices.IndexFunc(o.Contexts, func(c answers.Context) bool { return strings.HasSuffix(c.URI, "security.md") && c.Gold && c.Cited })
	if at < 0 || o.Contexts[at].Number != o.Answer.Claims[1].Citations[0] {
		t.Errorf("contexts %+v, claims %+v", o.Contexts, o.Answer.Claims)
	}
	if !o.Right || o.Metrics["citation_precision"] != 1 || o.Metrics["citation_recall"] != 1 || o.Metrics["context_recall"] != 1 {
		t.Errorf("right %v (%s), metrics %v", o.Right, o.Lost, o.Metrics)
	}
	if o := judgedBy(t, wrongly{}, e, engine.Request{Strategy: "corrective"}, c)[0]; o.Lost != answers.GeneratedWrong {
		t.Errorf("a statement that was refused at first is held against the verifier: lost at %q", o.Lost)
	}
}
