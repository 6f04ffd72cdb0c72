package local

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

func TestScorer(t *testing.T) {
	hit := func(relevance float64, title, text string) assay.Hit {
		return assay.Hit{Title: title, Text: text, Scores: assay.Scores{Relevance: relevance}}
	}
	tests := []struct {
		question string
		hit      assay.Hit
		want     float64
	}{
		{"how does a server drain connections?", hit(0.8, "", "It waits."), 0.8},
		{"What does http.Server.Shutdown do?", hit(0.8, "", "Shutdown of an http.Server: http.Server.Shutdown waits."), 0.8},
		{"What does http.Server.Shutdown do?", hit(0.8, "", "The cat sleeps."), 0.4},
		{"Who founded Springfield?", hit(0.8, "Springfield", "It was founded by Jebediah."), 0.8},
		{"Did Springfield beat Shelbyville?", hit(0.8, "Springfield", "It won."), 0.6},
		{"Which error is 1042?", hit(0.6, "", "Error 1043 is another."), 0.3},
		{"Which error is 1042?", hit(0.6, "", "Error 1042 is this."), 0.6},
		{"how?", hit(7, "", "x"), 1},
		{"how?", hit(-7, "", "x"), 0},
		{"how?", hit(math.NaN(), "", "x"), 0},
		{"", hit(0.5, "", ""), 0.5},
	}
	for _, test := range tests {
		got, err := Scorer{}.Score(t.Context(), nil, test.question, []assay.Hit{test.hit})
		if err != nil || len(got.Scores) != 1 || math.Abs(got.Scores[0]-test.want) > 1e-9 {
			t.Errorf("%q, %+v: %v, %v; want %v", test.question, test.hit, got.Scores, err, test.want)
		}
	}
	none, err := Scorer{}.Score(t.Context(), nil, "how?", nil)
	if diff := cmp.Diff(role.HitScores{Scores: []float64{}}, none); diff != "" || err != nil {
		t.Errorf("no hits: %v (-want +got):\n%s", err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Scorer{}).Score(ctx, nil, "how?", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
