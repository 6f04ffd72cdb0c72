package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestReordered checks that the hits that were read swap places among themselves by their scores
// and the weight.
func TestReordered(t *testing.T) {
	var hits []assay.Hit
	for i, id := range []string{"a", "b", "c", "d"} {
		score := 1 - 0.1*float64(i)
		hits = append(hits, assay.Hit{URI: id, Scores: assay.Scores{Rerank: &score}})
	}
	relevance := map[int]float64{0: 0, 2: 1, 3: 0.5} // b is code
	for weight, want := range map[float64]string{0: "abcd", 0.15: "abcd", 0.25: "cbad", 1: "cbda"} {
		got := ""
		for _, id := range reordered(hits, relevance, weight) {
			got += id
		}
		if got != want {
			t.Errorf("weight %v: %s, want %s", weight, got, want)
		}
	}
}

func TestFitReading(t *testing.T) {
	fit := ReadingFit{Weights: []float64{0, 0.5, 1}, Sets: []ReadingFigure{{NDCG10: []float64{0.5, 0.6, 0.6}}, {NDCG10: []float64{0.7, 0.7, 0.75}}}}
	if all, first, second := fit.best(-1), fit.best(0), fit.best(1); all != 1 || first != 1 || second != 0.5 {
		t.Errorf("best of all %v, without the first %v, without the second %v, want 1, 1, 0.5", all, first, second)
	}
	set := testset.Set{
		Name:     "ports",
		Passages: []testset.Passage{{ID: "near", Text: "The server listens on port 80, unless another one is set."}},
		Queries:  []testset.Query{{ID: "1", Text: "Which port does the server use?", Relevant: map[string]int{"near": 1}}},
	}
	reader := &llmtest.Reader{OnRead: func(string, llm.Excerpt) (llm.Reading, error) { return llm.Reading{Relevance: 1}, nil }}
	fit, err := FitReading(t.Context(), []testset.Set{set}, retrieval.Parts{Reader: reader}, 10)
	if err != nil || fit.Best != 0 || slices.Min(fit.Sets[0].NDCG10) != 1 {
		t.Errorf("fit %+v, %v, want 1 by each weight", fit, err)
	}
	if _, err := FitReading(t.Context(), []testset.Set{set}, retrieval.Parts{}, 10); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("without a reader: %v", err)
	}
}
