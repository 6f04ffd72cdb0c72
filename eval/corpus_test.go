package eval

import (
	"context"
	"errors"
	"testing"
)

// TestNewCorpusEnds checks that newCorpus stops when its context ends.
func TestNewCorpusEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newCorpus(ctx, Set{Name: "s", Passages: []Passage{{ID: "p", Text: "Tulips flower in spring."}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
