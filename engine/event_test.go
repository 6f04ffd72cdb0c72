package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/strategy"
)

// TestSearchSummaryTotal checks that a total at the counting limit is not shown as exact.
// Journals from before this limit may hold larger totals, which are exact.
func TestSearchSummaryTotal(t *testing.T) {
	t.Parallel()
	for total, want := range map[int]string{
		999:                "1 hit, best relevance 0.00; 999 with a word of it",
		assay.MaxTotal:     "; 1000 or more with a word of it",
		assay.MaxTotal + 1: "; 1001 with a word of it",
	} {
		got := searchSummary(assay.Query{}, assay.Results{Hits: make([]assay.Hit, 1), Total: total})
		if !strings.Contains(got, want) {
			t.Errorf("total %d: %q, want %q in it", total, got, want)
		}
	}
}

// TestCheckSummary checks that the trace has both scores of a verifier that is a service.
func TestCheckSummary(t *testing.T) {
	t.Parallel()
	score := 0.3
	rec := assay.Record{Path: "verify/call[0]/check", Kind: assay.StepModel, Model: "guard/1"}
	rec.Output, _ = json.Marshal(ground.Judgement{Verdict: assay.Supported, Score: 0.93, Relevance: &score, Reason: "grounding 0.93, threshold 0.70"})
	if got, want := stepOf(rec).Summary, "guard/1: supported, score 0.93, relevance 0.30: grounding 0.93, threshold 0.70"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRungSummary checks that the trace names each rung of the ladder with its search, its hits and
// its reason.
func TestRungSummary(t *testing.T) {
	t.Parallel()
	filter := assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.StringValue("2024")}
	few := strategy.RungOutput{Hits: 3, AboveFloor: 1, Grade: assay.Partly}
	for _, tt := range []struct {
		in   any
		out  any
		want string
	}{
		{strategy.RungInput{Rung: strategy.RungQuestion, Query: "When?"}, few, `question: "When?": 3 hits, 1 above the floor so far, partly`},
		{strategy.RungInput{Rung: strategy.RungWiden, Query: "When?", Filter: filter, Why: "no date"}, few,
			`widen_filter: "When?" where ` + filter.String() + `: 3 hits, 1 above the floor so far, partly; taken because no date`},
		{strategy.RungInput{Rung: strategy.RungCollection, Query: "When?", Collections: []string{"a", "b"}, Why: "no date"}, few,
			`another_collection: "When?" in a, b: 3 hits, 1 above the floor so far, partly; taken because no date`},
		{strategy.RungInput{Rung: strategy.RungGiveUp, Why: "no date", Skipped: []strategy.SkippedRung{{Rung: strategy.RungWeb, Why: "it is off"}}}, strategy.RungOutput{Grade: assay.Partly},
			"give_up: no date; no web: it is off"},
		{struct{}{}, []string{"a", "b"}, "2 collections: a, b"},
	} {
		rec := assay.Record{Path: "rung[0]/x", Kind: assay.StepRung}
		rec.Input, _ = json.Marshal(tt.in)
		rec.Output, _ = json.Marshal(tt.out)
		if got := stepOf(rec).Summary; got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
