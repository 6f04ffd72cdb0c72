package engine

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// putAtOnce is how many documents are stored in one transaction by Put.
const putAtOnce = 500

// Put stores documents that were parsed and cut elsewhere, as the passages of a labelled
// set are. They are searched when it returns, and get their vectors as those that were
// ingested do. What was stored before an error stays. While another process ingests it
// is assay.ErrLocked.
func (e *Engine) Put(ctx context.Context, entries []store.Entry) error {
	defer e.catching.ingesting()()
	return e.write(ctx, writerPatience, func(w store.Writer) error {
		for batch := range slices.Chunk(entries, putAtOnce) {
			if _, err := w.Put(ctx, batch...); err != nil {
				return err
			}
		}
		return e.flush(ctx)
	})
}

// Document returns the current version of a document that principal may see; else
// assay.ErrNotFound.
func (e *Engine) Document(ctx context.Context, principal assay.Principal, id string) (assay.Document, error) {
	if err := e.checkDocument(ctx, principal.Access(), id); err != nil {
		return assay.Document{}, err
	}
	return e.content.Document(ctx, id)
}
