package llmtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay/llm"
)

// tolerance is the largest difference between equal values from different batches, in which sums
// are computed in another order.
const tolerance = 1e-4

// TestEmbedder checks an embedder against the contract of llm.Embedder and of the other interfaces
// that it implements.
func TestEmbedder(t *testing.T, e llm.Embedder) {
	texts := []string{
		"The server drains its connections before it stops.", "", "a", "Ünïcödé, 漢字 and 😀",
		"Leave of up to five days may be carried over.", strings.Repeat("word ", 60), "The server drains its connections before it stops.",
	}
	t.Run("order", func(t *testing.T) { testOrder(t, e, texts) })
	t.Run("nothing", func(t *testing.T) {
		if made, err := e.Embed(t.Context(), llm.Passage, nil); err != nil || len(made) > 0 {
			t.Errorf("Embed of no texts = %d vectors, %v", len(made), err)
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		g, ctx := errgroup.WithContext(t.Context())
		for range 4 {
			g.Go(func() error {
				_, err := llm.Embed(ctx, e, llm.Passage, texts)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		made, err := e.Embed(ctx, llm.Passage, texts)
		if err == nil && len(made) < len(texts) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %d vectors, %v", len(made), err)
		}
	})
	t.Run("too long", func(t *testing.T) { testTooLong(t, e) })
}

// testOrder checks that a vector does not depend on the other texts of the call.
func testOrder(t *testing.T, e llm.Embedder, texts []string) {
	for _, p := range []llm.Purpose{llm.Passage, llm.Query} {
		all, err := llm.Embed(t.Context(), e, p, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			alone, err := llm.Embed(t.Context(), e, p, []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if err := near(all[i], alone[0]); err != nil {
				t.Errorf("text %d (%.20q) among others and alone: %v", i, text, err)
			}
		}
	}
}

func testTooLong(t *testing.T, e llm.Embedder) {
	counter, ok := e.(llm.TokenCounter)
	if !ok {
		t.Skip("it counts no tokens")
	}
	fits := ""
	for next := "word"; counter.Tokens(next) <= counter.MaxTokens(); next += " word" {
		fits = next
	}
	if _, err := llm.Embed(t.Context(), e, llm.Passage, []string{fits}); err != nil {
		t.Errorf("a text of %d tokens: %v", counter.Tokens(fits), err)
	}
	made, err := e.Embed(t.Context(), llm.Passage, []string{"short", fits + " word word"})
	long, ok := errors.AsType[*llm.TooLongError](err)
	if !ok || len(made) > 1 {
		t.Fatalf("a text over the limit: %d vectors, %v, want a *TooLongError", len(made), err)
	}
	if long.Text != 1 || long.Limit != counter.MaxTokens() || long.Tokens <= long.Limit || long.Model != e.Model() {
		t.Errorf("%+v, want it about text 1 and the limit %d", long, counter.MaxTokens())
	}
}

func near(a, b llm.Vector) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d and %d dimensions", len(a), len(b))
	}
	for d := range a {
		if math.Abs(float64(a[d]-b[d])) > tolerance {
			return fmt.Errorf("dimension %d is %g and %g", d, a[d], b[d])
		}
	}
	return nil
}
