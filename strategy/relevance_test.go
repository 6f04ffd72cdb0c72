package strategy_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

type answerGrader func(role.AnswerInput) (role.AnswerGrade, error)

func (f answerGrader) GradeAnswer(_ context.Context, _ role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	return f(in)
}

// An answer that is beside its question is incomplete; nobody makes one better than its
// proof, and a grader that fails changes nothing.
func TestRelevance(t *testing.T) {
	grade := func(relevance float64, beside bool) answerGrader {
		return func(role.AnswerInput) (role.AnswerGrade, error) {
			return role.AnswerGrade{Relevance: &relevance, Beside: beside, Lacks: []string{"a time"}}, nil
		}
	}
	tests := []struct {
		name   string
		by     role.AnswerGrader
		proof  bool
		want   assay.Status
		judged bool
		says   string // in the justification
	}{
		{"answers", grade(0.9, false), true, assay.Answered, true, "sufficient"},
		{"beside", grade(0.1, true), true, assay.Incomplete, true, "hardly answers the question (relevance 0.10): it has nothing of a time"},
		{"low, and not sure", grade(0.1, false), true, assay.Answered, true, "sufficient"},
		{"a run of before", grade(0.1, true), false, assay.Answered, false, "sufficient"},
		{"fails", answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{}, errors.New("broken") }), true, assay.Answered, false, "sufficient"},
		{"tells nothing", answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{Beside: true}, nil }), true, assay.Answered, false, "sufficient"},
		{"out of range", grade(7, true), true, assay.Answered, false, "sufficient"},
		{"below range", grade(-math.MaxFloat64, true), true, assay.Answered, false, "sufficient"},
		{"nobody", nil, true, assay.Answered, false, "sufficient"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := proven(t, role.Draft{Statements: []role.Statement{stating("The kiosk opens at nine.", 1)}}, role.ByClaim(verifier(sayer)), "The kiosk opens at nine.")
			e.Roles.AnswerGrader, e.Proof = tt.by, tt.proof
			a := ask(t, func(ctx context.Context, s run.Scope, e strategy.Env) (assay.Answer, error) {
				return strategy.Ask(ctx, s, e, "static")
			}, e, assay.Budget{})
			if a.Status != tt.want || (a.Relevance != nil) != tt.judged || !strings.Contains(a.Justification, tt.says) {
				t.Errorf("status %s, relevance %v: %s", a.Status, a.Relevance, a.Justification)
			}
			if tt.want == assay.Incomplete && len(a.Missing) == 0 {
				t.Error("nothing is said to be missing")
			}
		})
	}
}
