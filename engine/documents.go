package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Search finds passages, best first, without a run. A text that is empty or not
// UTF-8, a Limit under 1 and a filter key that no document has are
// assay.ErrInvalid.
func (e *Engine) Search(ctx context.Context, principal assay.Principal, q assay.Query) (assay.Results, error) {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return assay.Results{}, fmt.Errorf("the query is empty: %w", assay.ErrInvalid)
	case !utf8.ValidString(q.Text):
		return assay.Results{}, fmt.Errorf("the query is not valid UTF-8: %w", assay.ErrInvalid)
	}
	if err := e.checkCollections(ctx, q.Collections); err != nil {
		return assay.Results{}, err
	}
	retriever, err := e.search(ctx)
	if err != nil {
		return assay.Results{}, err
	}
	return retriever.Retrieve(ctx, principal.Access(), q)
}

// Documents yields the documents that principal may see, of the named
// collections or of all, by collection and URI, without their texts.
func (e *Engine) Documents(ctx context.Context, principal assay.Principal, collections ...string) iter.Seq2[assay.Document, error] {
	access := principal.Access()
	return func(yield func(assay.Document, error) bool) {
		if err := e.checkCollections(ctx, collections); err != nil {
			yield(assay.Document{}, err)
			return
		}
		for d, err := range e.content.Documents(ctx, collections...) {
			if err == nil && !access.Allows(d.ACL) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Collections lists the collections by name. Their counts are of all documents,
// whoever may see them.
func (e *Engine) Collections(ctx context.Context) ([]store.Collection, error) {
	return e.content.Collections(ctx)
}

// checkCollections refuses names that no collection has: a search in one would
// find nothing and say nothing of why.
func (e *Engine) checkCollections(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	known, err := e.Collections(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(known, func(c store.Collection) bool { return c.Name == name }) {
			return fmt.Errorf("unknown collection %q: %w", name, assay.ErrInvalid)
		}
	}
	return nil
}
