package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Search is Engine.Search.
func (s *Session) Search(ctx context.Context, q assay.Query) (assay.Results, error) {
	return call(ctx, s, "Search", func(c *sessionCall) (assay.Results, error) {
		if err := c.checkNamed(ctx, q.Collections); err != nil {
			return assay.Results{}, err
		}
		return c.engine.Search(ctx, c.principal, q)
	})
}

// Explain is Engine.Explain.
func (s *Session) Explain(ctx context.Context, q assay.Query) (Explanation, error) {
	return call(ctx, s, "Explain", func(c *sessionCall) (Explanation, error) {
		if err := c.checkNamed(ctx, q.Collections); err != nil {
			return Explanation{}, err
		}
		return c.engine.Explain(ctx, c.principal, q)
	})
}

// Documents is Engine.Documents.
func (s *Session) Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error] {
	return each(ctx, s, "Documents", func(c *sessionCall) (iter.Seq2[assay.Document, error], error) {
		return c.engine.Documents(ctx, c.principal, collections...), c.checkNamed(ctx, collections)
	})
}

// Document is Engine.Document.
func (s *Session) Document(ctx context.Context, id string) (assay.Document, error) {
	return call(ctx, s, "Document", func(c *sessionCall) (assay.Document, error) {
		d, err := c.engine.Document(ctx, c.principal, id)
		if errors.Is(err, assay.ErrNotFound) { // the same error whether or not it exists
			err = fmt.Errorf("document %q: %w", id, assay.ErrNotFound)
		}
		return d, err
	})
}

// FindDocument is Engine.FindDocument.
func (s *Session) FindDocument(ctx context.Context, name string, collections ...string) (assay.Document, error) {
	return call(ctx, s, "FindDocument", func(c *sessionCall) (assay.Document, error) {
		if err := c.checkNamed(ctx, collections); err != nil {
			return assay.Document{}, err
		}
		return c.engine.FindDocument(ctx, c.principal, name, collections...)
	})
}

// Entries is Engine.Entries.
func (s *Session) Entries(ctx context.Context) iter.Seq2[store.Entry, error] {
	return each(ctx, s, "Entries", func(c *sessionCall) (iter.Seq2[store.Entry, error], error) {
		return c.engine.Entries(ctx, c.principal), nil
	})
}

// Collections is Engine.Collections.
func (s *Session) Collections(ctx context.Context) ([]CollectionSummary, error) {
	return call(ctx, s, "Collections", func(c *sessionCall) ([]CollectionSummary, error) {
		return c.engine.Collections(ctx, c.principal)
	})
}

// EmbedTexts is Engine.EmbedTexts.
func (s *Session) EmbedTexts(ctx context.Context, req EmbedRequest) (TextVectors, error) {
	return call(ctx, s, "EmbedTexts", func(c *sessionCall) (TextVectors, error) {
		return c.engine.EmbedTexts(ctx, c.principal, req)
	})
}
