package strategy

import (
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// graded returns a sub-question whose hits have the given relevances and are all accepted.
func graded(verdict assay.GradeVerdict, relevances ...float64) subQuestion {
	sq := subQuestion{grade: role.Grade{Verdict: verdict}}
	for i, r := range relevances {
		id := fmt.Sprint("chunk", i)
		sq.hits = append(sq.hits, assay.Hit{Chunk: assay.Chunk{ID: id, Document: id}, Text: id, Scores: assay.Scores{Relevance: r}})
		sq.grade.Relevant = append(sq.grade.Relevant, id)
	}
	return sq
}

// TestAlone checks that a single strong hit is used alone only if Limits.Alone is set and one hit
// can answer the question.
func TestAlone(t *testing.T) {
	const single = "Who approves travel to a customer?"
	for _, tt := range []struct {
		name     string
		question string
		limits   Limits
		writer   string
		found    []subQuestion
		want     int // number of hits used
	}{
		{"not set", single, Limits{}, "m", []subQuestion{graded(assay.Sufficient, 0.99, 0.5)}, 2},
		{"strong and ahead", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.8, 0.6)}, 1},
		{"not the first by the grader", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.6, 0.95, 0.8)}, 1},
		{"too weak", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.89, 0.5)}, 2},
		{"not ahead", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.86)}, 2},
		{"does not suffice", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Partly, 0.95, 0.5)}, 2},
		{"the local generator writes", single, Limits{Alone: 0.9}, "", []subQuestion{graded(assay.Sufficient, 0.95, 0.5)}, 2},
		{"a number of passages is set", single, Limits{Alone: 0.9, Passages: 10}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.5)}, 2},
		{"several parts", single, Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.5), graded(assay.Sufficient, 0.95, 0.5)}, 2},
		{"a comparison", "What is the difference between Peek and Read?", Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.5)}, 2},
		{"several things", "Who approves travel, and how many days of leave are there?", Limits{Alone: 0.9}, "m", []subQuestion{graded(assay.Sufficient, 0.95, 0.5)}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := Env{Request: Request{Question: tt.question, Began: map[string]string{role.GeneratorRole: tt.writer}}, Limits: tt.limits}.withDefaults()
			evidence, parts := env.numberEvidence(tt.found)
			if len(evidence) != tt.want || len(parts) != len(tt.found) {
				t.Errorf("%d passages are handed, want %d", len(evidence), tt.want)
			}
			if tt.want == 1 && evidence[0].Hit.Scores.Relevance != 0.95 {
				t.Errorf("the one of relevance %v is handed", evidence[0].Hit.Scores.Relevance)
			}
		})
	}
}
