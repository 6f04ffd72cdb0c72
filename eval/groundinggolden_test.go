package eval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/provider/embedded"
)

// TestGroundingFigures holds the weights in the binary to what they reach on a sample of
// the shared claims: those that they were learned from, so that these figures say that
// nothing has changed, and not how good the verifier is (docs/evaluation.md says that).
func TestGroundingFigures(t *testing.T) {
	shared := os.Getenv("ASSAY_TESTDATA")
	if shared == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names a folder that holds data/grounding")
	}
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	const margin = 0.02
	for _, tt := range []struct {
		set            string
		every          int
		words, vectors float64 // area under the curve of the sample
	}{
		{"scifact-train", 10, wordsSciFact, vectorsSciFact},
		{"wice-claim-dev", 6, wordsWiCE, vectorsWiCE},
		{"summedits", 15, wordsSummEdits, vectorsSummEdits},
	} {
		cases, err := eval.ReadGrounding(filepath.Join(shared, "data", "grounding", tt.set+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var sample []eval.GroundingCase
		for i := 0; i < len(cases); i += tt.every {
			sample = append(sample, cases[i])
		}
		for name, v := range map[string]ground.Learned{"words": {}, "vectors": {Encoder: encoder}} {
			if _, v.Floor, err = v.Floors(); err != nil {
				t.Fatal(err)
			}
			judged, err := eval.JudgeGrounding(t.Context(), v, sample, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.words
			if name == "vectors" {
				want = tt.vectors
			}
			f := eval.FiguresOf(judged)
			if f.AUC == nil {
				t.Fatalf("%s: the sample has one kind of claims", tt.set)
			}
			t.Logf("%s, %s: %d claims, AUC %.3f, balanced accuracy %.3f, macro F1 %.3f", tt.set, name, f.Claims, *f.AUC, f.BalancedAccuracy, f.MacroF1)
			if *f.AUC < want-margin || *f.AUC > want+margin {
				t.Errorf("%s, %s: AUC %.3f, was %.3f", tt.set, name, *f.AUC, want)
			}
		}
	}
}

// What the weights reached when they were written.
const (
	wordsSciFact, vectorsSciFact     = 0.817, 0.844
	wordsWiCE, vectorsWiCE           = 0.906, 0.932
	wordsSummEdits, vectorsSummEdits = 0.649, 0.748
)
