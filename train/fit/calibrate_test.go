package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/internal/retrieve"
)

// TestRelevanceModel refits the relevance model and compares it with the embedded one. A change of
// features, analysis or ranking needs a new fit.
func TestRelevanceModel(t *testing.T) {
	if testing.Short() {
		t.Skip("fits the model on seven sets")
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "retrieve", "relevance.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stored retrieve.RelevanceModel
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	cal, err := Calibrate(context.Background(), evaltest.Shared(t, stored.Sets...), retrieval.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	withoutVectors := cmpopts.IgnoreFields(retrieve.RelevanceModel{}, "Vectors") // see TestTrainedModels
	if diff := cmp.Diff(stored, cal.Model, withoutVectors, cmpopts.EquateApprox(0, 0.001)); diff != "" {
		t.Errorf("internal/retrieve/relevance.json is not what `go run ./train/fit calibrate` gives (-stored +fitted):\n%s", diff)
	}
	for _, s := range cal.Sets {
		t.Logf("left out %-18s AUC %.3f, accepted %.3f, refused %.3f, near %.3f", s.Set, s.AUC, s.Accepted, s.Refused, s.RefusedNear)
		if s.AUC < 0.88 || s.Refused < 0.9 {
			t.Errorf("left out %s: AUC %.3f and refused %.3f, want 0.88 and 0.9", s.Set, s.AUC, s.Refused)
		}
	}
}
