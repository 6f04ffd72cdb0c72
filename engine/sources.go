package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A FailedDocument is a document that could not be parsed.
type FailedDocument struct {
	Collection string `json:"collection"`
	store.Failure
}

// FailedDocuments returns the documents that could not be parsed and that principal may see, by
// collection and URI. If collections are named, only their documents are returned.
func (e *Engine) FailedDocuments(ctx context.Context, principal assay.Principal, collections ...string) ([]FailedDocument, error) {
	access := principal.Access()
	all := []FailedDocument{}
	for s, err := range e.content.Sources(ctx, collections...) {
		if err != nil {
			return nil, err
		}
		if !access.Allows(s.Collection, s.ACL) {
			continue
		}
		for _, f := range s.Failures {
			all = append(all, FailedDocument{s.Collection, f})
		}
	}
	synced, err := e.failedItems(ctx, access, collections)
	all = append(all, synced...)
	slices.SortFunc(all, func(a, b FailedDocument) int {
		return cmp.Or(cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.URI, b.URI))
	})
	return all, err
}

// failedItems returns the documents of synced sources that could not be parsed.
func (e *Engine) failedItems(ctx context.Context, access assay.Access, collections []string) ([]FailedDocument, error) {
	sources, err := e.content.SyncSources(ctx)
	if err != nil {
		return nil, err
	}
	var all []FailedDocument
	for _, s := range sources {
		if len(collections) > 0 && !slices.Contains(collections, s.Collection) {
			continue
		}
		for item, err := range e.content.SyncItems(ctx, s.Name) {
			if err != nil {
				return nil, err
			}
			if !access.Allows(s.Collection, item.ACL) {
				continue
			}
			for _, f := range item.Failures {
				all = append(all, FailedDocument{s.Collection, f})
			}
		}
	}
	return all, nil
}

// FindDocument returns the current version of the document with an ID, a URI or an alias, with its
// text and structure. It returns assay.ErrNotFound if principal may see none, and assay.ErrInvalid
// if several collections have one; collections narrow the choice.
func (e *Engine) FindDocument(ctx context.Context, principal assay.Principal, name string, collections ...string) (assay.Document, error) {
	var found []assay.Document
	for d, err := range e.Documents(ctx, principal, collections...) {
		if err != nil {
			return assay.Document{}, err
		}
		if d.ID == name || d.URI == name || slices.Contains(d.Aliases, name) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return assay.Document{}, fmt.Errorf("document %s: %w", name, assay.ErrNotFound)
	case 1:
		return e.Document(ctx, principal, found[0].ID)
	}
	return assay.Document{}, fmt.Errorf("%s is in the collections %s and %s; name one: %w", name, found[0].Collection, found[1].Collection, assay.ErrInvalid)
}
