package eval

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay/llm"
)

// cached returns an embedder that calls e only for texts that are not in the cache. It implements
// the same optional interfaces as e.
func cached(e llm.Embedder, cache *vectorCache) llm.Embedder {
	c := &cachedEmbedder{Embedder: e, cache: cache}
	counter, counts := e.(llm.TokenCounter)
	tokens, embedsTokens := e.(llm.TokenEmbedder)
	linguist, knows := e.(llm.Linguist)
	switch {
	case counts && embedsTokens && knows:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.TokenEmbedder
			llm.Linguist
		}{c, counter, tokens, linguist}
	case counts && embedsTokens:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.TokenEmbedder
		}{c, counter, tokens}
	case counts && knows:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.Linguist
		}{c, counter, linguist}
	case embedsTokens && knows:
		return struct {
			*cachedEmbedder
			llm.TokenEmbedder
			llm.Linguist
		}{c, tokens, linguist}
	case counts:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
		}{c, counter}
	case embedsTokens:
		return struct {
			*cachedEmbedder
			llm.TokenEmbedder
		}{c, tokens}
	case knows:
		return struct {
			*cachedEmbedder
			llm.Linguist
		}{c, linguist}
	}
	return c
}

type cachedEmbedder struct {
	llm.Embedder
	cache *vectorCache
}

// Embed implements llm.Embedder. Vectors that were made before an error are cached.
func (c *cachedEmbedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, len(texts))
	var missing []string
	var keys []vectorKey
	at := map[vectorKey][]int{} // indexes in texts of the missing ones
	for i, text := range texts {
		key := keyOf(p, text)
		var err error
		if vectors[i], err = c.cache.get(key); err != nil {
			return nil, err
		}
		if vectors[i] != nil {
			continue
		}
		if at[key] == nil {
			missing, keys = append(missing, text), append(keys, key)
		}
		at[key] = append(at[key], i)
	}
	if len(missing) == 0 {
		return vectors, nil
	}
	made, err := c.Embedder.Embed(ctx, p, missing)
	if len(made) > len(missing) || err == nil && len(made) < len(missing) {
		return nil, fmt.Errorf("%s gave %d vectors for %d texts", c.Model(), len(made), len(missing))
	}
	if err := c.cache.put(keys[:len(made)], made); err != nil {
		return nil, err
	}
	for i, v := range made {
		for _, j := range at[keys[i]] {
			vectors[j] = v
		}
	}
	if err != nil {
		return prefix(vectors), err
	}
	return vectors, nil
}

// prefix returns the vectors before the first missing one.
func prefix(vectors []llm.Vector) []llm.Vector {
	for i, v := range vectors {
		if v == nil {
			return vectors[:i]
		}
	}
	return vectors
}
