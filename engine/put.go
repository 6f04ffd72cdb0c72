package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// putAtOnce is how many documents are stored in one transaction by Put.
const putAtOnce = 500

// Put stores documents that were parsed and cut elsewhere, as the passages of a labelled
// set are. They are searched when it returns, and get their vectors as those that were
// ingested do. A document without an ACL is assay.ErrInvalid where its collection requires
// one, and nothing is stored then. What was stored before another error stays. While another
// process ingests it is assay.ErrLocked.
func (e *Engine) Put(ctx context.Context, entries []store.Entry) error {
	defer e.catching.ingesting()()
	return e.write(ctx, writerPatience, func(w store.Writer) error {
		if err := checkACLs(ctx, w, entries); err != nil {
			return err
		}
		for batch := range slices.Chunk(entries, putAtOnce) {
			if _, err := w.Put(ctx, batch...); err != nil {
				return err
			}
		}
		return e.flush(ctx)
	})
}

// checkACLs refuses documents without an ACL where their collection requires one.
func checkACLs(ctx context.Context, w store.Writer, entries []store.Entry) error {
	collections, err := w.Collections(ctx)
	if err != nil {
		return err
	}
	requires := map[string]bool{}
	for _, c := range collections {
		requires[c.Name] = c.RequireACL
	}
	for _, entry := range entries {
		if d := entry.Document; requires[d.Collection] && !d.ACL.Restricted {
			return fmt.Errorf("document %s has no ACL, and the collection %s requires one: %w", d.URI, d.Collection, assay.ErrInvalid)
		}
	}
	return nil
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
