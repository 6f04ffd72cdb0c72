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

// TestRelevance checks that an answer that does not respond to its question is not found, that a
// grade never improves a status, and that the answer is incomplete if the grader fails.
func TestRelevance(t *testing.T) {
	grade := func(relevance float64, offTopic bool) answerGrader {
		return func(role.AnswerInput) (role.AnswerGrade, error) {
			return role.AnswerGrade{Relevance: &relevance, OffTopic: offTopic, Lacks: []string{"a time"}}, nil
		}
	}
	tests := []struct {
		name   string
		by     role.AnswerGrader
		want   assay.Status
		judged bool
		says   string // contained in the justification
	}{
		{"answers", grade(0.9, false), assay.Answered, true, "sufficient"},
		{"off topic", grade(0.1, true), assay.NotFound, true, "does not answer the question (relevance 0.10)"},
		{"low, and not sure", grade(0.1, false), assay.Answered, true, "sufficient"},
		{"fails", answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{}, errors.New("broken") }), assay.Incomplete, false, "could not be judged"},
		{"tells nothing", answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{OffTopic: true}, nil }), assay.Answered, false, "sufficient"},
		{"out of range", grade(7, true), assay.Incomplete, false, "could not be judged"},
		{"below range", grade(-math.MaxFloat64, true), assay.Incomplete, false, "could not be judged"},
		{"no number", grade(math.NaN(), false), assay.Incomplete, false, "could not be judged"},
		{"nobody", nil, assay.Answered, false, "sufficient"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := proven(t, role.Draft{Statements: []role.Statement{stating("The kiosk opens at nine.", 1)}}, role.ByClaim(verifier(sayer)), "The kiosk opens at nine.")
			e.Roles.AnswerGrader = tt.by
			r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
			if err != nil {
				t.Fatal(err)
			}
			a, err := strategy.Ask(t.Context(), r.Scope(), e, "static")
			if err != nil {
				t.Fatal(err)
			}
			check(t, e, a)
			if a.Status != tt.want || (a.Relevance != nil) != tt.judged || !strings.Contains(a.Justification, tt.says) {
				t.Errorf("status %s, relevance %v: %s", a.Status, a.Relevance, a.Justification)
			}
			if tt.want == assay.NotFound && (len(a.Claims) > 0 || strings.Contains(a.Text, "kiosk")) {
				t.Errorf("it is shown: %q", a.Text)
			}
		})
	}
}
