package strategy

import (
	"math"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// TestAboveFloor checks hits against the full limits, and hits that a model found sufficient
// against lower ones.
func TestAboveFloor(t *testing.T) {
	const none = -1
	for _, tt := range []struct {
		name            string
		model           bool
		verdict         assay.GradeVerdict
		relevance, held float64 // held: none means unknown
		want            bool
	}{
		{"relevant", false, assay.Sufficient, 0.5, none, true},
		{"under the floor", false, assay.Sufficient, 0.49, none, false},
		{"likely", false, assay.Sufficient, 0.1, 0.65, true},
		{"not likely enough", false, assay.Sufficient, 0.1, 0.64, false},
		{"a model's, relevant enough", true, assay.Sufficient, 0.29, none, true},
		{"a model's, far away", true, assay.Sufficient, 0.28, 0.42, false},
		{"a model's, likely enough", true, assay.Sufficient, 0, 0.43, true},
		{"a model's, partly", true, assay.Partly, 0.49, 0.64, false},
		{"no number", true, assay.Sufficient, math.NaN(), math.NaN(), false},
	} {
		env := Env{Limits: Limits{Floor: 0.5, MinAnswerability: 0.65, Keep: 5}, Request: Request{Began: map[string]string{}}}
		if tt.model {
			env.Began[role.GraderRole] = "fake/model"
		}
		sq := &subQuestion{hits: []assay.Hit{{Chunk: assay.Chunk{ID: "a"}, Scores: assay.Scores{Relevance: tt.relevance}}}}
		sq.grade = role.Grade{Verdict: tt.verdict, Relevant: []string{"a"}}
		if tt.held != none {
			sq.grade.Answerability = &tt.held
		}
		if got := env.aboveFloor(sq); got != tt.want {
			t.Errorf("%s: above the floor %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestGradeOrPass checks that hits below the floor are not graded.
func TestGradeOrPass(t *testing.T) {
	for relevance, want := range map[float64]bool{0.5: true, 0.49: false, math.NaN(): false} {
		sq := &subQuestion{hits: []assay.Hit{{Scores: assay.Scores{Relevance: relevance}}}}
		if got := sq.reachesFloor(Env{Limits: Limits{Floor: 0.5}}); got != want {
			t.Errorf("a hit with relevance %v reaches the floor: %v", relevance, got)
		}
	}
}
