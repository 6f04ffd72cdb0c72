package retrieval

import (
	"context"
	"errors"
	"io"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Ingest stores the passages of a labelled set in the data directory of an engine. Each becomes a
// document with one chunk, whose URI is the passage's ID, in a collection with the set's name.
// Documents that are already stored are skipped. It makes no vectors.
func Ingest(ctx context.Context, e *engine.Engine, set testset.Set) error {
	there := map[string]string{}
	for d, err := range e.Documents(ctx, assay.Local()) {
		if err != nil {
			return err
		}
		there[d.ID] = d.Version
	}
	c, err := newCorpus(ctx, set)
	if err != nil {
		return err
	}
	var entries []store.Entry
	for i, d := range c.documents {
		if there[d.ID] != d.Version {
			entries = append(entries, store.Entry{Document: d, Chunks: c.chunksOf(i)})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return e.Put(ctx, entries)
}

// CachedEncoders keeps the vectors of local encoders in a folder, so that a set is encoded only
// once for several stores. Remote services are not cached.
type CachedEncoders struct {
	engine.Encoders
	Dir string
}

// Open implements engine.Encoders.
func (c CachedEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	e, err := c.Encoders.Open(ctx, name)
	if _, service := e.(llm.Described); err != nil || service {
		return e, err
	}
	cache, err := openVectorCache(c.Dir, e.Model())
	if err != nil {
		return nil, errors.Join(err, closeAny(e))
	}
	return cached(e, cache), nil
}

// Close closes the cache, and the embedder if it is an io.Closer.
func (c *cachedEmbedder) Close() error { return errors.Join(closeAny(c.Embedder), c.cache.close()) }

func closeAny(v any) error {
	if c, ok := v.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
