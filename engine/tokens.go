package engine

import (
	lru "container/list"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// maxTokenBytes is how much memory the vectors of tokens take at most that are kept: those
// of some hundred passages.
const maxTokenBytes = 48 << 20

// A tokens gives the vectors of texts' tokens and keeps those of the last texts: the grader
// and the verifier read the same passages. It is safe for concurrent use.
type tokens struct {
	encoder ground.Encoder

	mu    sync.Mutex
	known map[string]*lru.Element // of latest, by text
	// latest are those that were read last, first. Their sizes sum up to bytes.
	latest *lru.List
	bytes  int
}

// An encodedText is a text and its tokens.
type encodedText struct {
	text   string
	tokens []ground.Token
}

func newTokens(encoder ground.Encoder) *tokens {
	return &tokens{encoder: encoder, known: map[string]*lru.Element{}, latest: lru.New()}
}

// Encode implements ground.Encoder. What it returns is not to be changed.
func (t *tokens) Encode(ctx context.Context, texts []string) ([][]ground.Token, error) {
	out := make([][]ground.Token, len(texts))
	at := map[string][]int{} // texts that are not known
	var missing []string
	t.mu.Lock()
	for i, text := range texts {
		switch e, ok := t.known[text]; {
		case ok:
			t.latest.MoveToFront(e)
			out[i] = e.Value.(encodedText).tokens
		case at[text] != nil:
			at[text] = append(at[text], i)
		default:
			at[text] = []int{i}
			missing = append(missing, text)
		}
	}
	t.mu.Unlock()
	if len(missing) == 0 {
		return out, ctx.Err()
	}
	encoded, err := t.encoder.Encode(ctx, missing)
	if err != nil {
		return nil, err
	}
	if len(encoded) != len(missing) {
		return nil, fmt.Errorf("the tokens of %d texts for %d: %w", len(encoded), len(missing), assay.ErrUnavailable)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, text := range missing {
		for _, i := range at[text] {
			out[i] = encoded[k]
		}
		t.keep(encodedText{text, slices.Clip(encoded[k])})
	}
	return out, nil
}

// keep keeps a text's tokens, in the place of those that were read longest ago.
func (t *tokens) keep(e encodedText) {
	if _, ok := t.known[e.text]; ok || e.size() > maxTokenBytes {
		return
	}
	t.known[e.text] = t.latest.PushFront(e)
	for t.bytes += e.size(); t.bytes > maxTokenBytes; {
		oldest := t.latest.Remove(t.latest.Back()).(encodedText)
		t.bytes -= oldest.size()
		delete(t.known, oldest.text)
	}
}

// size is about how many bytes of memory it takes.
func (e encodedText) size() int {
	const token, number = 64, 4
	n := len(e.text)
	for _, t := range e.tokens {
		n += token + number*len(t.Vector)
	}
	return n
}

// tokenEncoder returns what gives vectors of tokens: the encoder that serves, where it is
// the one that the verifier's weights were made with and does so; else nil. What is wrong
// with it is for the run's searches to say.
func (e *Engine) tokenEncoder(ctx context.Context) ground.Encoder {
	chosen, err := e.chooser.choose(ctx)
	if err != nil || chosen.embedder == nil || chosen.serving != e.chooser.shelf.standard() {
		return nil
	}
	encoder, ok := chosen.embedder.(ground.Encoder)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tokens == nil || e.tokens.encoder != encoder {
		e.tokens = newTokens(encoder)
	}
	return e.tokens
}
