package eval

import (
	"context"
	"errors"
	"testing"
)

// Making the documents of a large set ends when its context does.
func TestNewCorpusEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newCorpus(ctx, Set{Name: "s", Passages: []Passage{{ID: "p", Text: "Tulips flower in spring."}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
