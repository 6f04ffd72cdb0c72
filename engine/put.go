package engine

import (
	"context"
	"iter"
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

// Entries yields the documents that principal may see, each with its chunks, as they were
// stored.
func (e *Engine) Entries(ctx context.Context, principal assay.Principal) iter.Seq2[store.Entry, error] {
	access := principal.Access()
	return func(yield func(store.Entry, error) bool) {
		for c, err := range e.content.Changes(ctx, 0) {
			if err == nil && (c.Deleted || !access.Allows(c.Document.ACL)) {
				continue
			}
			var entry store.Entry
			if err == nil {
				entry = store.Entry{Document: *c.Document, Chunks: c.Chunks}
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}
