package main

import (
	"context"
	"errors"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/store"
)

// useGraph makes an engine keep the graphs of its indexes in the configured service, if there is one.
func useGraph(ctx context.Context, set *config.Set, c *engine.Config) error {
	g, err := set.Graph(ctx)
	if err != nil || g == nil {
		return err
	}
	texts := c.OpenIndex
	if texts == nil {
		texts = func(ctx context.Context, t store.Tenant) (engine.Index, error) {
			return index.Open(ctx, t.IndexDir(), t.Content())
		}
	}
	c.OpenIndex = func(ctx context.Context, t store.Tenant) (engine.Index, error) {
		ix, err := texts(ctx, t)
		if err != nil {
			return nil, err
		}
		x, err := g.Open(ctx, t.Content(), ix)
		if err != nil {
			return nil, errors.Join(err, ix.Close())
		}
		return x, nil
	}
	remove := c.RemoveIndex
	c.RemoveIndex = func(ctx context.Context, identity string) error {
		if remove != nil {
			if err := remove(ctx, identity); err != nil {
				return err
			}
		}
		return g.Remove(ctx, identity)
	}
	return nil
}
