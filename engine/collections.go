package engine

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A CollectionSummary is a collection with the number of its documents that a principal may see.
type CollectionSummary struct {
	Name       string `json:"name"`
	RequireACL bool   `json:"require_acl"`
	Documents  int    `json:"documents"`
}

// Collections returns the collections in which principal may see a document, by name.
func (e *Engine) Collections(ctx context.Context, principal assay.Principal) ([]CollectionSummary, error) {
	seen, err := e.countDocuments(ctx, principal.Access())
	if err != nil {
		return nil, err
	}
	all, err := e.content.Collections(ctx)
	if err != nil {
		return nil, err
	}
	list := []CollectionSummary{}
	for _, c := range all {
		if n := seen[c.Name]; n > 0 {
			list = append(list, CollectionSummary{Name: c.Name, RequireACL: c.RequireACL, Documents: n})
		}
	}
	return list, nil
}

// countDocuments returns how many documents of each collection a principal may see. The map must not be
// changed. Listing all documents takes long, so the numbers are kept until the content changes.
func (e *Engine) countDocuments(ctx context.Context, access assay.Access) (map[string]int, error) {
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	if seen, kept := e.counted.get(sequence, access.Key()); kept {
		return seen, nil
	}
	seen := map[string]int{}
	for d, err := range e.content.Documents(ctx, access.Collections()...) {
		if err != nil {
			return nil, err
		}
		if access.Allows(d.Collection, d.ACL) {
			seen[d.Collection]++
		}
	}
	e.counted.put(sequence, access.Key(), seen)
	return seen, nil
}

// SetCollection creates or replaces the settings of a collection. Documents and Chunks are ignored.
func (e *Engine) SetCollection(ctx context.Context, c store.Collection) error {
	return e.write(ctx, writerPatience, func(w store.Writer) error { return w.SetCollection(ctx, c) })
}

// DeleteDocuments removes documents. The error is assay.ErrNotFound, and nothing is removed, if one
// of them does not exist or principal may not see it.
func (e *Engine) DeleteDocuments(ctx context.Context, principal assay.Principal, ids ...string) error {
	return e.write(ctx, writerPatience, func(w store.Writer) error {
		for _, id := range ids {
			if _, err := w.Document(ctx, id); err != nil {
				return fmt.Errorf("document %s: %w", id, assay.ErrNotFound)
			}
			if err := e.checkDocument(ctx, principal.Access(), id); err != nil {
				return fmt.Errorf("document %s: %w", id, assay.ErrNotFound)
			}
		}
		if _, err := w.Delete(ctx, ids...); err != nil {
			return err
		}
		return e.flush(ctx)
	})
}
