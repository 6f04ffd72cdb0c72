package e2e

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
)

// TestLlamaJudges has the model of a real server judge an answer. Its judgements are random but
// must follow the judge's schema: each measure is in [0, 1] or has a reason why it was not judged.
// The cost must be counted.
func TestLlamaJudges(t *testing.T) {
	l := startLlama(t)
	m := l.open(t, false).Model("tiny")
	p := judge.Prompt{Name: "brevity", Prompt: "How short is the answer? 1 is long, 5 is short.", Scale: [2]float64{1, 5}}
	custom, err := p.By(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := judge.With(judge.Prompted{Model: m}, custom)
	if err != nil {
		t.Fatal(err)
	}
	const passage = "Employees have 26 weeks of parental leave."
	got, err := j.Judge(t.Context(), judge.Input{
		Question: "How long is parental leave?", Answer: "Parental leave is 26 weeks.",
		Claims:     []judge.Claim{{Text: "Parental leave is 26 weeks.", Cited: []int{0}}},
		Contexts:   []ground.Passage{{Quote: passage, Context: passage}},
		References: []string{"26 weeks"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("scores %+v, claims %+v, not judged %v, usage %+v", got.Scores, got.Claims, got.NotJudged, got.Usage)
	var in metric.Input
	got.Fill(&in)
	for name, x := range metric.Of(in) {
		if !(x >= 0 && x <= 1) {
			t.Errorf("%s = %v", name, x)
		}
	}
	for _, name := range []string{judge.Correctness, judge.Completeness, judge.Harmfulness, judge.Relevance, "brevity"} {
		s, scored := got.Scores[name]
		if scored == (got.NotJudged[name] != "") || scored && !strings.Contains(s.By, "tiny") {
			t.Errorf("%s: %+v, not judged %q", name, s, got.NotJudged[name])
		}
	}
	for name, why := range got.NotJudged {
		if strings.Contains(why, "HTTP") {
			t.Errorf("%s: the server refused: %s", name, why)
		}
	}
	if got.Usage.Calls < 2 || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
		t.Errorf("usage %+v", got.Usage)
	}
}
