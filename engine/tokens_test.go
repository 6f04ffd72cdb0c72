package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/ground"
)

// oneToken gives each text one token, and counts what it was asked.
type oneToken struct {
	width int

	mu    sync.Mutex
	asked []string
	err   error
}

func (c *oneToken) Encode(_ context.Context, texts []string) ([][]ground.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, texts...)
	if c.err != nil {
		return nil, c.err
	}
	var out [][]ground.Token
	for _, text := range texts {
		out = append(out, []ground.Token{{End: len(text), Vector: make([]float32, c.width)}})
	}
	return out, nil
}

// A text's tokens are made once while they are kept, and come back in the order of the
// texts.
func TestTokensAreKept(t *testing.T) {
	c := &oneToken{width: 4}
	kept := newTokens(c)
	for _, texts := range [][]string{{"a", "bb", "a"}, {"ccc", "bb"}, {"a"}, nil} {
		got, err := kept.Encode(t.Context(), texts)
		if err != nil || len(got) != len(texts) {
			t.Fatalf("%q: %v, %v", texts, got, err)
		}
		for i, text := range texts {
			if got[i][0].End != len(text) {
				t.Errorf("%q: text %d has the tokens of another", texts, i)
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "bb", "ccc"}, c.asked); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
	c.err = errors.New("broken")
	if _, err := kept.Encode(t.Context(), []string{"a", "new"}); !errors.Is(err, c.err) {
		t.Errorf("error %v, want that of the encoder", err)
	}
}

// The memory is bounded, and what was read last is kept.
func TestTokensAreBounded(t *testing.T) {
	c := &oneToken{width: maxTokenBytes / 40} // a tenth
	kept := newTokens(c)
	for i := range 30 {
		if _, err := kept.Encode(t.Context(), []string{fmt.Sprint(i), "again"}); err != nil {
			t.Fatal(err)
		}
	}
	if kept.bytes > maxTokenBytes || kept.latest.Len() != len(kept.known) || len(kept.known) < 5 {
		t.Errorf("%d bytes of %d texts, %d known", kept.bytes, kept.latest.Len(), len(kept.known))
	}
	if len(c.asked) != 31 {
		t.Errorf("%d texts encoded, want each once", len(c.asked))
	}
	c.width = maxTokenBytes
	if _, err := kept.Encode(t.Context(), []string{"too large"}); err != nil || kept.known["too large"] != nil {
		t.Errorf("a text that is larger than all that is kept: %v, kept", err)
	}
}
