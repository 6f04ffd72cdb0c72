package role_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// service is a verifier that is a service and gives every text one judgement.
type service struct {
	judgement ground.Judgement
	err       error
	told      *role.Claim
}

func (service) Model() string { return "guard/1" }

func (s service) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return s.VerifyFor(ctx, "", claim, cited)
}

func (s service) VerifyFor(_ context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	*s.told = role.Claim{Question: question, Text: text, Cited: cited}
	return s.judgement, s.err
}

// direct is a caller that asks services at once.
type direct struct{}

func (direct) Call(context.Context, role.Call) (llm.Response, error) {
	return llm.Response{}, errors.New("no model")
}

func (direct) Check(ctx context.Context, s ground.Service, c role.Claim) (ground.Judgement, error) {
	return role.AskService(ctx, s, c)
}

// TestRelevanceBy checks that a service is asked once for the whole answer and the whole question,
// and that whatever it says but a usable score is a failure or an unknown relevance.
func TestRelevanceBy(t *testing.T) {
	score := 0.7
	tests := map[string]struct {
		service
		known, fails, offTopic bool
	}{
		"relevant":                 {service{judgement: ground.Judgement{Relevance: &score}}, true, false, false},
		"not grounded, relevant":   {service{judgement: ground.Judgement{Verdict: assay.Unsupported, Relevance: &score}}, true, false, false},
		"below its own threshold":  {service{judgement: ground.Judgement{Relevance: &score, OffTopic: true}}, true, false, true},
		"does not judge relevance": {service{judgement: ground.Judgement{Verdict: assay.Supported, Score: 1}}, false, false, false},
		"no usable score":          {service{judgement: ground.Judgement{OffTopic: true}}, false, true, false},
		"another policy blocks":    {service{judgement: ground.Judgement{Relevance: &score, Refused: "topic"}}, false, true, false},
		"no judgement":             {service{judgement: ground.Judgement{Relevance: &score, Failed: true}}, false, true, false},
		"fails":                    {service{judgement: ground.Judgement{Relevance: &score}, err: assay.ErrUnavailable}, false, true, false},
	}
	for name, tt := range tests {
		var told role.Claim
		tt.told = &told
		g, err := role.RelevanceBy(tt.service).GradeAnswer(t.Context(), direct{}, role.AnswerInput{Question: "When, and where?", Parts: []string{"When?", "Where?"}, Statements: []role.ShownStatement{
			{Text: "At nine.", Under: []string{"Hours"}, Quotes: []string{"It opens at nine."}}, {Text: "In Porto.", Quotes: []string{"It is in Porto."}},
		}})
		if err != nil || (g.Relevance != nil) != tt.known || (g.Failure != "") != tt.fails || g.OffTopic != tt.offTopic {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		if told.Question != "When, and where?" || told.Text != "At nine.\nIn Porto." || len(told.Cited) != 2 {
			t.Errorf("%s: it is told %+v", name, told)
		}
	}
	if _, err := role.RelevanceBy(service{err: assay.ErrBudget, told: &role.Claim{}}).GradeAnswer(t.Context(), direct{}, role.AnswerInput{Question: "When?"}); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("without budget: %v", err)
	}
}

// knows is an answer grader with a fixed relevance.
type knows float64

func (k knows) GradeAnswer(context.Context, role.Caller, role.AnswerInput) (role.AnswerGrade, error) {
	relevance := float64(k)
	return role.AnswerGrade{Relevance: &relevance}, nil
}

// TestLowerOfUnusable checks that a relevance which is no number is not replaced by that of the other
// grader, so that the answer counts as not judged.
func TestLowerOfUnusable(t *testing.T) {
	nan := knows(math.NaN())
	for _, g := range []role.AnswerGrader{role.LowerOf(knows(0.9), nan), role.LowerOf(nan, knows(0.9))} {
		if got, err := g.GradeAnswer(t.Context(), direct{}, role.AnswerInput{}); err != nil || got.Relevance == nil || !math.IsNaN(*got.Relevance) {
			t.Errorf("%+v, %v, want NaN", got, err)
		}
	}
}
