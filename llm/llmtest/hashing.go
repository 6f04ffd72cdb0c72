// Package llmtest provides replacements for models in tests, and contract tests for their
// implementations.
//
// An embedder, a language model and a reader work without a model ([Hashing], [Scripted],
// [Reader]). Others break their contracts or fail ([Hostile], [HostileModel]).
//
// The contract tests check implementations of the interfaces of package llm ([TestEmbedder],
// [TestReranker], [TestReader]) and providers that speak a format over HTTP ([TestModel],
// [TestEmbedWire], [TestRerankWire]).
package llmtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"unicode"

	"github.com/assay-rag/assay/llm"
)

// A Hashing embedder maps each word to a direction drawn from its hash, and a text to the sum of
// its words' vectors, at unit length. Texts that share words are close to each other; other texts
// are not. It is deterministic and safe for concurrent use. Its tokens are words.
type Hashing struct {
	Name       string // "" means "hashing/" and the dimensions
	Dimensions int    // 0 means 32
	Limit      int    // most tokens of a text, including two that it adds itself; 0 means 512

	mu    sync.Mutex
	texts []string
}

// Model implements llm.Embedder.
func (h *Hashing) Model() string {
	if h.Name == "" {
		return fmt.Sprintf("hashing/%d", h.dimensions())
	}
	return h.Name
}

func (h *Hashing) dimensions() int {
	if h.Dimensions == 0 {
		return 32
	}
	return h.Dimensions
}

// MaxTokens implements llm.TokenCounter.
func (h *Hashing) MaxTokens() int {
	if h.Limit == 0 {
		return 512
	}
	return h.Limit
}

// Tokens implements llm.TokenCounter.
func (h *Hashing) Tokens(text string) int { return len(split(text)) + 2 }

func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Embed implements llm.Embedder.
func (h *Hashing) Embed(ctx context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, 0, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return vectors, err
		}
		if n := h.Tokens(text); n > h.MaxTokens() {
			return vectors, &llm.TooLongError{Model: h.Model(), Text: i, Tokens: n, Limit: h.MaxTokens()}
		}
		vectors = append(vectors, h.Vector(text))
		h.mu.Lock()
		h.texts = append(h.texts, text)
		h.mu.Unlock()
	}
	return vectors, nil
}

// Vector returns the embedding of a text of any length.
func (h *Hashing) Vector(text string) llm.Vector {
	sum := make([]float64, h.dimensions())
	sum[0] = 1e-3 // gives a text without words a vector as well
	for _, word := range split(text) {
		f := fnv.New64a()
		f.Write([]byte(word))
		rng := rand.New(rand.NewPCG(f.Sum64(), 1))
		for d := range sum {
			sum[d] += rng.NormFloat64()
		}
	}
	square := 0.0
	for _, x := range sum {
		square += x * x
	}
	v := make(llm.Vector, len(sum))
	for d, x := range sum {
		v[d] = float32(x / math.Sqrt(square))
	}
	return v
}

// Texts returns the texts embedded so far, in chronological order.
func (h *Hashing) Texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.texts...)
}
