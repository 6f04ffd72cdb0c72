package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// putAtOnce is how many documents Put stores in one transaction.
const putAtOnce = 500

// Put stores documents that were already parsed and split into chunks, such as the passages of a
// labelled data set. They are searchable when Put returns and get their vectors like ingested
// documents. An ingest replaces such a document if it reads a file with its URI, and never removes
// one, because they have no source.
//
// If a document without an ACL belongs to a collection that requires one, Put returns
// assay.ErrInvalid and stores nothing. After any other error, the documents stored so far stay. Put
// returns assay.ErrLocked while another process ingests.
func (e *Engine) Put(ctx context.Context, entries []store.Entry) error {
	if err := e.checkStopped(ctx); err != nil {
		return err
	}
	defer e.embedder.ingesting()()
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

// checkACLs rejects documents without an ACL in collections that require one.
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

// Document returns the current version of a document. It returns assay.ErrNotFound if the
// document does not exist or principal may not see it.
func (e *Engine) Document(ctx context.Context, principal assay.Principal, id string) (assay.Document, error) {
	if err := e.checkDocument(ctx, principal.Access(), id); err != nil {
		return assay.Document{}, err
	}
	d, err := e.content.Document(ctx, id)
	if err == nil && !principal.Access().Allows(d.Collection, d.ACL) { // it was closed meanwhile
		return assay.Document{}, errNoDocument(id)
	}
	return d, err
}

// Entries yields the documents that principal may see, with their stored chunks.
func (e *Engine) Entries(ctx context.Context, principal assay.Principal) iter.Seq2[store.Entry, error] {
	access := principal.Access()
	return func(yield func(store.Entry, error) bool) {
		for c, err := range e.content.Changes(ctx, 0) {
			if err == nil && (c.Deleted || !access.Allows(c.Document.Collection, c.Document.ACL)) {
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
