package retrieval

import (
	"context"
	"errors"
	"testing"

	"github.com/assay-rag/assay/eval/testset"
)

// TestNewCorpusEnds checks that newCorpus stops when its context ends.
func TestNewCorpusEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newCorpus(ctx, testset.Set{Name: "s", Passages: []testset.Passage{{ID: "p", Text: "Tulips flower in spring."}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
