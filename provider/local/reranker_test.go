package local

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
)

func openTinyReranker(t testing.TB) *Reranker {
	t.Helper()
	r, err := OpenRerankerDir(t.Context(), filepath.Join("testdata", "tiny-reranker"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const tinyQuery = "which market is in the river?"

// tinyTexts returns texts that fit beside the query, the last one exactly.
func tinyTexts() []string {
	return []string{
		"the river market", "cells and protein", "", "of", "in 1998 an engine was large, and a court was small.",
		"[SEP] the court [MASK]", strings.Repeat("history ", 64-3-7),
	}
}

// TestScores compares scores with those of ONNX Runtime for the same weights. With ASSAY_DUMP it
// writes the tokens and their types instead.
func TestScores(t *testing.T) {
	r := openTinyReranker(t)
	texts := tinyTexts()
	if dump := os.Getenv("ASSAY_DUMP"); dump != "" {
		var pairs []map[string]any
		for _, text := range texts {
			s := r.tokenizer.pair(r.tokenizer.encode(nil, tinyQuery), r.tokenizer.encode(nil, text))
			pairs = append(pairs, map[string]any{"ids": s.ids, "second": s.second})
		}
		data, _ := json.Marshal(pairs)
		writeDump(t, filepath.Join(dump, "tiny-reranker.pairs.json"), data)
		return
	}
	got, err := r.Rerank(t.Context(), tinyQuery, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range reference(t, "tiny-reranker") {
		if math.Abs(got[i]-float64(want)) > 1e-4 {
			t.Errorf("%q: score %g, want %g", texts[i], got[i], want)
		}
	}
}

func TestRerankWindows(t *testing.T) {
	r := openTinyReranker(t)
	// 4 tokens leave 57 for the text, so it is read in halves.
	query, first, second := "a river market of", strings.Repeat("cells ", 40), strings.Repeat("protein ", 40)
	scores, err := r.Rerank(t.Context(), query, []string{first + second, first, second})
	if err != nil {
		t.Fatal(err)
	}
	if want := max(scores[1], scores[2]); math.Abs(scores[0]-want) > 1e-5 {
		t.Errorf("in windows the score is %g, want the better of %g and %g", scores[0], scores[1], scores[2])
	}
}

func TestRerankTooLong(t *testing.T) {
	r := openTinyReranker(t)
	query := strings.Repeat("market ", 40)
	_, err := r.Rerank(t.Context(), query, []string{"river", strings.Repeat("river ", 22)})
	var long *llm.TooLongError
	if !errors.As(err, &long) {
		t.Fatalf("error %v, want a TooLongError", err)
	}
	if want := (llm.TooLongError{Model: r.Model(), Text: 1, Tokens: 65, Limit: 64}); *long != want {
		t.Errorf("error %+v, want %+v", *long, want)
	}
	if _, err := r.Rerank(t.Context(), query, []string{"river"}); err != nil {
		t.Errorf("a text that fits: %v", err)
	}
}

func TestRerankNothing(t *testing.T) {
	scores, err := openTinyReranker(t).Rerank(t.Context(), "river", nil)
	if err != nil || len(scores) != 0 {
		t.Errorf("scores %v, error %v, want none", scores, err)
	}
}
