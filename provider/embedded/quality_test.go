package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/local"
)

// mostLost is the largest loss of nDCG@10 caused by the int8 weights on any set.
const mostLost = 0.003

// TestQuality ranks every shared set by cosine alone, with the embedded encoder and with the
// half-precision one that it was made from. It embeds a million tokens twice, so it runs only on
// request.
func TestQuality(t *testing.T) {
	shared := os.Getenv("ASSAY_TESTDATA")
	if shared == "" || os.Getenv("ASSAY_LONG") == "" {
		t.Skip("ASSAY_TESTDATA or ASSAY_LONG is not set")
	}
	ctx := t.Context()
	small, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	original, err := local.OpenDir(ctx, filepath.Join(shared, "models", "gte-small"), local.Config{})
	if err != nil {
		t.Skip(err)
	}
	sets, err := filepath.Glob(filepath.Join(shared, "data", "retrieval", "*", "corpus.jsonl"))
	if err != nil || len(sets) == 0 {
		t.Skip("no sets", err)
	}
	for _, file := range sets {
		set, err := testset.ReadSet(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		want, got := ranked(ctx, t, original, set), ranked(ctx, t, small, set)
		t.Logf("%s: nDCG@10 %.4f with fp16 weights, %.4f with int8 weights, %+.4f", set.Name, want, got, got-want)
		if want-got > mostLost {
			t.Errorf("%s: %.4f is lost, more than %g", set.Name, want-got, mostLost)
		}
	}
}

// ranked returns the mean nDCG@10 of a set, with passages ranked by cosine.
func ranked(ctx context.Context, t *testing.T, e llm.Embedder, set testset.Set) float64 {
	t.Helper()
	passages := make([]assay.Passage, len(set.Passages))
	for i, p := range set.Passages {
		passages[i] = assay.Passage{Title: p.Title, Text: p.Text}
	}
	vectors, err := llm.EmbedPassages(ctx, e, passages)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(set.Queries))
	for i, q := range set.Queries {
		texts[i] = q.Text
	}
	queries, err := e.Embed(ctx, llm.Query, texts)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, q := range set.Queries {
		order, cosines := make([]int, len(vectors)), make([]float64, len(vectors))
		for j, v := range vectors {
			order[j], cosines[j] = j, dot(queries[i], v)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case cosines[a] > cosines[b]:
				return -1
			case cosines[a] < cosines[b]:
				return 1
			}
			return 0
		})
		ids := make([]string, 0, 10)
		for _, j := range order[:min(10, len(order))] {
			ids = append(ids, set.Passages[j].ID)
		}
		sum += retrieval.Measure(ids, q.Relevant).NDCG10
	}
	return sum / float64(len(set.Queries))
}
