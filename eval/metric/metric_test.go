package metric_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
)

// whole returns an input with all fields set.
func whole() metric.Input {
	return metric.Input{
		Ranked: []string{"x", "a", "b"}, Relevant: map[string]int{"a": 1, "b": 2},
		Right: &yes, Conflicting: &yes, SaidConflict: true,
		Text: "It opened in 1976.", Answers: []string{"1976"},
		Contexts:  []metric.Context{{}, {Used: true, Relevant: true}},
		Expected:  []metric.Source{{Held: true, Cited: true}, {}},
		Claims:    []metric.Claim{{Held: true, Cited: true, Right: &yes, Cites: []metric.Cite{{Alone: true}}, By: []int{1}}},
		Reference: []bool{true, false},
		Judged:    map[string]float64{"correctness": 1, "completeness": 0.5, "harmfulness": 0, "answer_relevance": 0.75, "politeness": 0.25},
		Spent:     &metric.Spent{Steps: 7, Searches: 3, Iterations: 1.5, Calls: 3, InputTokens: 900, OutputTokens: 100, CostMicros: 12, Elapsed: 1500 * time.Microsecond},
	}
}

func TestOf(t *testing.T) {
	got := metric.Of(whole())
	want := map[string]float64{
		"right": 1,
		// (1/log2 3 + 3/log2 4) / (3/log2 2 + 1/log2 3) = (.63093 + 1.5) / (3 + .63093)
		"ndcg@10": 0.5869,
		// (.63093 + 2·.5) / (2 + .63093)
		"ndcg_linear@10": 0.6199,
		"map":            0.5833, // (1/2 + 2/3) / 2
		"mrr@10":         0.5,
		"recall@5":       1, "recall@10": 1, "recall@100": 1,
		"precision@5": 0.4, "precision@10": 0.2,
		"hit@1": 0, "hit@5": 1, "hit@10": 1, "all_gold@10": 1,
		"exact_match": 0, "f1": 0.4, "contains": 1, // 2·1/(4+1)
		"faithfulness": 1, "correctness": 1, "completeness": 0.5, "harmfulness": 0, "answer_relevance": 0.75, "politeness": 0.25,
		"claim_precision": 1, "claim_recall": 0.5, "citation_precision": 1, "citation_recall": 1, "citation_f1": 1,
		"context_precision": 0.5, "context_precision_ranked": 0.5, "context_recall": 0.5,
		"noise_sensitivity": 0, "noise_sensitivity_irrelevant": 0,
		"conflict_precision": 1, "conflict_recall": 0, // one side is not cited
		"steps": 7, "searches": 3, "iterations": 1.5, "model_calls": 3, "input_tokens": 900, "output_tokens": 100, "tokens": 1000, "cost_micros": 12, "latency_ms": 1.5,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.00005)); diff != "" {
		t.Errorf("Of: (-want +got)\n%s", diff)
	}
	// All measures of the table must be present, except percentiles and the abstention measures,
	// which need other questions.
	for _, m := range metric.All() {
		if _, ok := got[m.Name]; !ok && m.Base == "" && m.Name != "abstention_precision" && m.Name != "abstention_recall" {
			t.Errorf("Of does not have %s", m.Name)
		}
	}
}

// TestOfLeavesOut checks which measures do not apply to an input.
func TestOfLeavesOut(t *testing.T) {
	tests := []struct {
		name  string
		given func(in *metric.Input)
		has   map[string]float64
		not   []string
	}{
		{
			"nothing is known", func(in *metric.Input) { *in = metric.Input{} }, nil,
			[]string{"right", "ndcg@10", "f1", "faithfulness", "context_precision", "context_recall", "abstention_recall", "abstention_precision", "conflict_recall", "steps", "harmfulness"},
		},
		{
			"refused, though it could be answered", func(in *metric.Input) { in.Refused, in.Claims, in.SaidConflict = true, nil, false },
			map[string]float64{"abstention_precision": 0, "contains": 0, "ndcg@10": 0.5869, "claim_recall": 0.5, "context_recall": 0.5, "conflict_recall": 0},
			[]string{"abstention_recall", "faithfulness", "context_precision", "citation_recall", "conflict_precision"},
		},
		{
			"refused, and nobody knows whether it could be answered", func(in *metric.Input) { *in = metric.Input{Refused: true} }, nil,
			[]string{"abstention_precision", "abstention_recall"},
		},
		{
			"unanswerable and refused", func(in *metric.Input) { *in = metric.Input{Unanswerable: true, Refused: true} },
			map[string]float64{"abstention_precision": 1, "abstention_recall": 1}, []string{"ndcg@10", "f1"},
		},
		{
			"unanswerable and answered", func(in *metric.Input) { *in = metric.Input{Unanswerable: true, Text: "Yes."} },
			map[string]float64{"abstention_recall": 0}, []string{"abstention_precision"},
		},
		{
			"an error is no refusal", func(in *metric.Input) { *in = metric.Input{Unanswerable: true, Failed: true, Refused: true} },
			map[string]float64{"abstention_recall": 0}, []string{"abstention_precision"},
		},
		{
			"an error answers nothing", func(in *metric.Input) { in.Failed = true },
			map[string]float64{"exact_match": 0, "contains": 0, "latency_ms": 1.5}, []string{"context_precision", "faithfulness"},
		},
		{
			"no right answer to compare claims with", func(in *metric.Input) { in.Claims[0].Right, in.Reference = nil, nil },
			map[string]float64{"faithfulness": 1}, []string{"claim_precision", "claim_recall", "noise_sensitivity"},
		},
		{
			"no gold: nobody knows which passages are relevant", func(in *metric.Input) {
				in.Expected, in.Contexts[0].Relevant, in.Contexts[1].Relevant = nil, false, false
			},
			map[string]float64{"claim_precision": 1}, []string{"noise_sensitivity", "noise_sensitivity_irrelevant", "context_recall"},
		},
		{
			"a conflict that is none", func(in *metric.Input) { in.Conflicting = &no },
			map[string]float64{"conflict_precision": 0}, []string{"conflict_recall"},
		},
		{
			"a conflict with both sides", func(in *metric.Input) { in.Expected[1].Cited = true },
			map[string]float64{"conflict_recall": 1}, nil,
		},
		{"nobody says whether there is a conflict", func(in *metric.Input) { in.Conflicting = nil }, nil, []string{"conflict_precision", "conflict_recall"}},
		{"a score that is no number", func(in *metric.Input) { in.Judged["politeness"] = math.NaN() }, nil, []string{"politeness"}},
	}
	for _, tt := range tests {
		in := whole()
		tt.given(&in)
		got := metric.Of(in)
		for name, want := range tt.has {
			if x, ok := got[name]; !ok || !near(x, want) {
				t.Errorf("%s: %s = %v (%v), want %v", tt.name, name, x, ok, want)
			}
		}
		for _, name := range tt.not {
			if x, ok := got[name]; ok {
				t.Errorf("%s: %s = %v, want none", tt.name, name, x)
			}
		}
	}
}

// TestSharesOfASet checks that the mean over single questions is the share of the set. Of ten
// questions three are unanswerable. Two of these and one other were refused: precision 2/3, recall
// 2/3.
func TestSharesOfASet(t *testing.T) {
	var precision, recall []float64
	for i := range 10 {
		in := metric.Input{Unanswerable: i < 3, Refused: i == 0 || i == 1 || i == 5}
		if !in.Unanswerable {
			in.Answers = []string{"x"}
		}
		of := metric.Of(in)
		if x, ok := of["abstention_precision"]; ok {
			precision = append(precision, x)
		}
		if x, ok := of["abstention_recall"]; ok {
			recall = append(recall, x)
		}
	}
	if p, r := stat.Mean(precision), stat.Mean(recall); !near(p, 0.6667) || !near(r, 0.6667) {
		t.Errorf("precision %.4f of %d, recall %.4f of %d; want 0.6667 of 3 each", p, len(precision), r, len(recall))
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metric.All() {
		if seen[m.Name] {
			t.Errorf("%s is twice in the table", m.Name)
		}
		seen[m.Name] = true
		if m.Doc == "" || m.Source == "" {
			t.Errorf("%s has no definition or no source", m.Name)
		}
		if base, ok := metric.Lookup(m.Base); m.Percentile > 0 && (!ok || base.Unit != m.Unit) {
			t.Errorf("%s is a percentile of %q, which is not there or has another unit", m.Name, m.Base)
		}
		if found, ok := metric.Lookup(m.Name); !ok || found.Doc != m.Doc {
			t.Errorf("Lookup(%q) = %+v, %v", m.Name, found, ok)
		}
	}
	if _, ok := metric.Lookup("beauty"); ok {
		t.Error("Lookup finds a measure that there is not")
	}
}
