package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/embedded"
)

// TestTrainedModels refits the embedded models and compares them. It encodes seven sets, which
// takes minutes.
func TestTrainedModels(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("ASSAY_LONG is not set: this encodes seven sets")
	}
	var relevance retrieve.RelevanceModel
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "retrieve", "relevance.json"))
	if err == nil {
		err = json.Unmarshal(data, &relevance)
	}
	if err != nil {
		t.Fatal(err)
	}
	sets := evaltest.Shared(t, relevance.Sets...)
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	learned, err := Train(t.Context(), sets, retrieval.Parts{Embedder: encoder, CacheDir: filepath.Join(os.TempDir(), "assay-eval-research")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(relevance, learned.Calibration.Model, cmpopts.EquateApprox(0, 0.01)); diff != "" {
		t.Errorf("internal/retrieve/relevance.json is not what `go run ./train/fit rank` gives (-stored +learned):\n%s", diff)
	}
	if diff := cmp.Diff(rerank.Default(), learned.Model); diff != "" {
		t.Errorf("internal/rerank/model.json is not what `go run ./train/fit rank` gives (-stored +learned):\n%s", diff)
	}
}

// TestTrainLeavesOut checks that the models for a set use neither its passages nor its queries, and
// that training is deterministic.
func TestTrainLeavesOut(t *testing.T) {
	sets := []testset.Set{smallSet("one-a", "harbour", "lantern"), smallSet("two-b", "copper", "violin"), smallSet("three-c", "meadow", "bakery")}
	parts := retrieval.Parts{Embedder: &llmtest.Hashing{}}
	all, err := Train(t.Context(), sets, parts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Train(t.Context(), sets, parts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, again); diff != "" {
		t.Errorf("trained again (-first +second):\n%s", diff)
	}
	for i, l := range all.LeftOut {
		if slices.Contains(l.Relevance.Sets, l.Set.Name) || slices.Contains(l.Rerank.Sets, l.Set.Name) || len(l.Rerank.Sets) != 2 {
			t.Errorf("without %s: learned from %v and %v", l.Set.Name, l.Relevance.Sets, l.Rerank.Sets)
		}
		own, err := l.Parts(parts)
		if err != nil || own.Relevance == nil || own.Ranker == nil {
			t.Errorf("parts without %s: %+v, %v", l.Set.Name, own, err)
		}
		changed := slices.Clone(sets)
		changed[i] = smallSet(l.Set.Name, "granite", "thunder", "orchard")
		other, err := Train(t.Context(), changed, parts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l.Relevance, other.LeftOut[i].Relevance); diff != "" {
			t.Errorf("relevance without %s changes with it (-before +after):\n%s", l.Set.Name, diff)
		}
	}
}

// smallSet returns a set with a passage and a query for each subject.
func smallSet(name string, subjects ...string) testset.Set {
	set := testset.Set{Name: name}
	for _, s := range subjects {
		set.Passages = append(set.Passages, testset.Passage{ID: s, Title: "About the " + s, Text: "Everybody who has seen a " + s + " knows its colour."})
		set.Queries = append(set.Queries, testset.Query{ID: s, Text: "what colour has a " + s, Relevant: map[string]int{s: 1}})
	}
	return set
}
