package strategy_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

type answerGrader func(role.AnswerInput) (role.AnswerGrade, error)

func (f answerGrader) GradeAnswer(_ context.Context, _ role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	return f(in)
}

// TestVerificationThresholds checks that the grounding of each claim and the relevance of the whole
// answer are two scores with a threshold each, that either blocks an answer by itself, and that what
// cannot be judged is never shown as answered.
func TestVerificationThresholds(t *testing.T) {
	const says = "The kiosk opens at nine."
	grade := func(relevance float64, offTopic bool) answerGrader {
		return func(role.AnswerInput) (role.AnswerGrade, error) {
			return role.AnswerGrade{Relevance: &relevance, OffTopic: offTopic, Lacks: []string{"a time"}}, nil
		}
	}
	score := func(score float64) verifier {
		return func(string, []ground.Passage) (ground.Judgement, error) {
			return ground.Judgement{Verdict: assay.Supported, Score: score}, nil
		}
	}
	fails := answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{}, errors.New("broken") })
	unknown := answerGrader(func(role.AnswerInput) (role.AnswerGrade, error) { return role.AnswerGrade{}, nil })
	broken := verifier(func(string, []ground.Passage) (ground.Judgement, error) {
		return ground.Judgement{}, errors.New("broken")
	})
	set := func(grounding, relevance float64) strategy.VerifySettings {
		return strategy.VerifySettings{Grounding: grounding, Relevance: relevance}
	}
	tests := []struct {
		name     string
		verifier verifier
		grader   role.AnswerGrader
		settings strategy.VerifySettings
		want     assay.Status
		reason   assay.Reason
		judged   bool   // the relevance is known
		says     string // contained in the justification
	}{
		{"both pass", score(0.9), grade(0.9, false), set(0, 0), assay.Answered, assay.ReasonSupported, true, "sufficient"},
		{"at both defaults", score(0.5), grade(0.1, false), set(0, 0), assay.Answered, assay.ReasonSupported, true, "sufficient"},
		{"at both thresholds", score(0.8), grade(0.7, false), set(0.8, 0.7), assay.Answered, assay.ReasonSupported, true, "sufficient"},

		{"grounding below the default", score(0.49), grade(0.9, false), set(0, 0), assay.Incomplete, assay.ReasonUnsupported, false, "is not supported by its citations"},
		{"grounding below the threshold", score(0.79), grade(0.9, false), set(0.8, 0), assay.Incomplete, assay.ReasonUnsupported, false, "is not supported by its citations"},
		{"supported without a score", score(0), grade(0.9, false), set(0, 0), assay.Incomplete, assay.ReasonUnsupported, false, "is not supported by its citations"},
		{"grounding is no number", score(math.NaN()), grade(0.9, false), set(0, 0), assay.Incomplete, assay.ReasonUnverified, false, "could not judge"},
		{"the verifier fails", broken, grade(0.9, false), set(0, 0), assay.Incomplete, assay.ReasonUnverified, false, "could not judge"},

		{"relevance below the default", score(0.9), grade(0.09, false), set(0, 0), assay.NotFound, assay.ReasonOffTopic, true, "does not answer the question (relevance 0.09)"},
		{"relevance below the threshold", score(0.9), grade(0.69, false), set(0, 0.7), assay.NotFound, assay.ReasonOffTopic, true, "(relevance 0.69)"},
		{"relevance below the grader's own threshold", score(0.9), grade(0.2, true), set(0, 0), assay.NotFound, assay.ReasonOffTopic, true, "(relevance 0.20)"},
		{"perfectly grounded, off topic", score(1), grade(0, false), set(0, 0), assay.NotFound, assay.ReasonOffTopic, true, "(relevance 0.00)"},
		{"the answer grader fails", score(0.9), fails, set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
		{"it tells nothing", score(0.9), unknown, set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
		{"relevance out of range", score(0.9), grade(7, false), set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
		{"relevance below the range", score(0.9), grade(-math.MaxFloat64, false), set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
		{"relevance is no number", score(0.9), grade(math.NaN(), false), set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
		{"no role judges it", score(0.9), nil, set(0, 0), assay.Incomplete, assay.ReasonUnjudged, false, "could not be judged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := proven(t, role.Draft{Statements: []role.Statement{stating(says, 1)}}, role.ByClaim(tt.verifier), says)
			e.Roles.Relevance, e.Settings.Verify = tt.grader, tt.settings
			a := askWith(t, e, "static")
			check(t, e, a)
			if a.Status != tt.want || a.Reason != tt.reason || (a.Relevance != nil) != tt.judged || !strings.Contains(a.Justification, tt.says) {
				t.Errorf("status %s (%s), relevance %v: %s", a.Status, a.Reason, a.Relevance, a.Justification)
			}
			if shown := strings.Contains(a.Text, "kiosk"); shown != (len(a.Claims) > 0) || a.Reason == assay.ReasonOffTopic && shown {
				t.Errorf("%d claims in %q", len(a.Claims), a.Text)
			}
		})
	}
}

// TestVerifierIsToldTheQuestion checks that claims are judged for the user's whole question, not for
// the sub-question that they belong to.
func TestVerifierIsToldTheQuestion(t *testing.T) {
	const question = "When does the kiosk open, and what is sold there?"
	l := newLibrary("The kiosk opens at nine.", "Tea is sold there.")
	roles := localRoles()
	roles.Planner = plans(role.Conjunction, role.SubQuestion{Text: "kiosk opens"}, role.SubQuestion{Text: "sold there"})
	roles.Grader, roles.Generator = grader(enough), generator(verbatim)
	told := 0
	roles.Verifier = verifying(func(_ context.Context, claims []role.Claim) ([]ground.Judgement, error) {
		out := make([]ground.Judgement, len(claims))
		for i, c := range claims {
			if told++; c.Question != question {
				t.Errorf("%q is judged for %q", c.Text, c.Question)
			}
			out[i] = ground.Judgement{Verdict: assay.Supported, Score: 0.9}
		}
		return out, nil
	})
	if a := askWith(t, env(l, question, roles), "corrective"); told < 2 || a.Status != assay.Answered {
		t.Errorf("%d claims judged, %s: %s", told, a.Status, a.Justification)
	}
}
