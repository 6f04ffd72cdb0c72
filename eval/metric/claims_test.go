package metric_test

import (
	"testing"

	"github.com/assay-rag/assay/eval/metric"
)

var yes, no = true, false

func TestClaims(t *testing.T) {
	// Four claims. The first cites one passage that entails it. The second cites three: two entail
	// it alone, and the third is irrelevant, since the others entail the claim without it. The
	// third claim is entailed by two citations only together. The fourth cites a passage that does
	// not entail it, and is wrong.
	claims := []metric.Claim{
		{Held: true, Cited: true, Right: &yes, Cites: []metric.Cite{{Alone: true}}, By: []int{0}},
		{Held: true, Cited: true, Right: &yes, Cites: []metric.Cite{{Alone: true, Rest: true}, {Alone: true, Rest: true}, {Rest: true}}, By: []int{0, 1}},
		{Held: true, Cited: true, Right: &no, Cites: []metric.Cite{{}, {}}, By: []int{1}},
		{Right: &no, Cites: []metric.Cite{{}}},
	}
	tests := []struct {
		name string
		got  float64
		want float64
	}{
		{"faithfulness", metric.Faithfulness(claims), 0.75},             // 3 of 4
		{"claim precision", metric.ClaimPrecision(claims), 0.5},         // 2 of 4
		{"citation recall", metric.CitationRecall(claims), 0.75},        // 3 of 4
		{"citation precision", metric.CitationPrecision(claims), .7143}, // 1 + 2 + 2 + 0 of 1 + 3 + 2 + 1
		{"citation F1", metric.CitationF1(claims), 0.7317},              // 2·.71429·.75 / 1.46429
		{"claim recall", metric.ClaimRecall([]bool{true, false, true}), 0.6667},
		{"nothing is claimed", metric.Faithfulness(nil), 0},
		{"nothing is claimed: citation F1", metric.CitationF1(nil), 0},
		{"nothing is cited", metric.CitationPrecision([]metric.Claim{{Held: true}}), 0},
		{"a claim that cites nothing", metric.CitationRecall([]metric.Claim{{Cited: true}, claims[0]}), 0.5},
	}
	for _, tt := range tests {
		if !near(tt.got, tt.want) {
			t.Errorf("%s = %.5f, want %.4f", tt.name, tt.got, tt.want)
		}
	}
}

func TestNoiseSensitivity(t *testing.T) {
	contexts := []metric.Context{{Relevant: true}, {Relevant: true}, {Relevant: true}, {}}
	// The example in Ragas' documentation has three claims. The last one is not in the reference,
	// and the third context, a relevant one, entails it: 1/3.
	ragas := []metric.Claim{{Right: &yes, By: []int{1}}, {Right: &yes, By: []int{1}}, {Right: &no, By: []int{2}}}
	// A wrong claim from an irrelevant context, one that a relevant one entails as well, one that
	// no context entails, and a right one from an irrelevant context: 1/4 by each kind.
	mixed := []metric.Claim{{Right: &no, By: []int{3}}, {Right: &no, By: []int{0, 3}}, {Right: &no}, {Right: &yes, By: []int{3}}}
	tests := []struct {
		name       string
		claims     []metric.Claim
		irrelevant bool
		want       float64
	}{
		{"ragas", ragas, false, 0.3333},
		{"ragas, irrelevant", ragas, true, 0},
		{"mixed", mixed, false, 0.25},
		{"mixed, irrelevant", mixed, true, 0.25},
		{"no claims", nil, false, 0},
		{"a context that there is not", []metric.Claim{{Right: &no, By: []int{9, -1}}}, true, 0},
	}
	for _, tt := range tests {
		if got := metric.NoiseSensitivity(tt.claims, contexts, tt.irrelevant); !near(got, tt.want) {
			t.Errorf("%s = %.5f, want %.4f", tt.name, got, tt.want)
		}
	}
}

func TestContexts(t *testing.T) {
	// The first, third and fourth of five are used.
	contexts := []metric.Context{{Used: true}, {}, {Used: true}, {Used: true}, {}}
	tests := []struct {
		name string
		got  float64
		want float64
	}{
		{"precision", metric.ContextPrecision(contexts), 0.6},
		// (1/1 + 2/3 + 3/4) / 3
		{"ranked", metric.ContextPrecisionRanked(contexts), 0.8056},
		{"ranked, used ones first", metric.ContextPrecisionRanked([]metric.Context{{Used: true}, {Used: true}, {}}), 1},
		{"ranked, none used", metric.ContextPrecisionRanked([]metric.Context{{}, {}}), 0},
		{"none", metric.ContextPrecision(nil), 0},
		{"recall", metric.ContextRecall([]metric.Source{{Held: true}, {Cited: true}, {Held: true, Cited: true}}), 0.6667},
		{"recall of nothing", metric.ContextRecall(nil), 0},
	}
	for _, tt := range tests {
		if !near(tt.got, tt.want) {
			t.Errorf("%s = %.5f, want %.4f", tt.name, tt.got, tt.want)
		}
	}
}
