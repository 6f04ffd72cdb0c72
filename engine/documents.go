package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
)

// Search returns passages, best first, without creating a run. It returns assay.ErrInvalid if a
// text is empty or not valid UTF-8, if Limit is less than 1, or if a collection or filter key
// occurs in no document that principal may see. Calls of a remote encoder or reranker count for the
// principal's limits; if one is reached, the search works without them. The error is assay.ErrQuota
// after too many requests in a second or minute, and assay.ErrStopped while work is stopped.
func (e *Engine) Search(ctx context.Context, principal assay.Principal, q assay.Query) (assay.Results, error) {
	ctx = e.outgoing(ctx)
	defer e.embedder.answering()()
	if _, err := e.mayBegin(ctx, principal); err != nil {
		return assay.Results{}, err
	}
	builtin, err := e.searcherFor(ctx, principal, q)
	if err != nil {
		return assay.Results{}, err
	}
	r, err := e.wrap(e.withServices(builtin, false))
	if err != nil {
		return assay.Results{}, err
	}
	var found assay.Results
	err = e.meteredSearch(ctx, principal, e.serviceNames(builtin.services(), false), func(ctx context.Context) (err error) {
		found, err = r.Retrieve(ctx, principal.Access(), q)
		return err
	})
	if err != nil {
		return found, err
	}
	return found, e.screenHits(ctx, found.Hits)
}

// Explain runs Search and also returns how the results were found. With Config.Retriever it returns
// assay.ErrInvalid. Config.Services are not searched.
func (e *Engine) Explain(ctx context.Context, principal assay.Principal, q assay.Query) (Explanation, error) {
	ctx = e.outgoing(ctx)
	defer e.embedder.answering()()
	if e.config.Retriever != nil {
		return Explanation{}, fmt.Errorf("only the results of the built-in retriever can be explained: %w", assay.ErrInvalid)
	}
	if _, err := e.mayBegin(ctx, principal); err != nil {
		return Explanation{}, err
	}
	builtin, err := e.searcherFor(ctx, principal, q)
	if err != nil {
		return Explanation{}, err
	}
	var found Explanation
	err = e.meteredSearch(ctx, principal, builtin.services(), func(ctx context.Context) (err error) {
		found, err = builtin.Explain(ctx, principal.Access(), q)
		return err
	})
	if err != nil {
		return found, err
	}
	return found, e.screenHits(ctx, found.Results.Hits)
}

// searcherFor validates a query and returns the built-in retriever for it.
func (e *Engine) searcherFor(ctx context.Context, principal assay.Principal, q assay.Query) (*searcher, error) {
	if err := checkQuery(q); err != nil {
		return nil, err
	}
	if err := e.checkCollections(ctx, principal.Access(), q.Collections); err != nil {
		return nil, err
	}
	s, err := e.search(ctx)
	if err != nil {
		return nil, err
	}
	return s.within(&fillBudget{left: fillAlone}), nil // one budget for all rounds of the search
}

// Documents yields the documents that principal may see, ordered by collection and URI, without
// their texts. If collections are named, only their documents are yielded.
func (e *Engine) Documents(ctx context.Context, principal assay.Principal, collections ...string) iter.Seq2[assay.Document, error] {
	access := principal.Access()
	return func(yield func(assay.Document, error) bool) {
		if err := e.checkCollections(ctx, access, collections); err != nil {
			yield(assay.Document{}, err)
			return
		}
		for d, err := range e.content.Documents(ctx, collections...) {
			if err == nil && !access.Allows(d.Collection, d.ACL) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Sequence returns the sequence of the last change of the content, regardless of access.
func (e *Engine) Sequence(ctx context.Context) (int64, error) { return e.content.Sequence(ctx) }

// SearchesServices reports whether Config.Services are searched beside the documents.
func (e *Engine) SearchesServices() bool { return len(e.config.Services) > 0 }

// HoldsDocuments reports whether the content has any document, regardless of access.
func (e *Engine) HoldsDocuments(ctx context.Context) (bool, error) {
	for c, err := range e.content.Changes(ctx, 0) { // unlike Documents, yields the first one at once
		if err != nil || !c.Deleted {
			return err == nil, err
		}
	}
	return false, nil
}

// checkCollections rejects collections in which access may see no document. A search in one would
// return nothing without a reason.
func (e *Engine) checkCollections(ctx context.Context, access assay.Access, names []string) error {
	for _, name := range names {
		if e.isServiceCollection(access, name) {
			continue
		}
		seen := false
		for d, err := range e.content.Documents(ctx, name) {
			if err != nil {
				return err
			}
			if seen = access.Allows(d.Collection, d.ACL); seen {
				break
			}
		}
		if !seen {
			return fmt.Errorf("unknown collection %q: %w", name, assay.ErrInvalid)
		}
	}
	return nil
}

// maxNamed is how many collections a question can name.
const maxNamed = 32

// named returns the collections that the question or its conversation names, among those that the
// request covers and access may see. It returns nil if there are fewer than two collections.
func (e *Engine) named(ctx context.Context, access assay.Access, req Request) ([]string, error) {
	texts := []string{req.Question}
	for _, t := range req.History {
		if texts = append(texts, t.Question); strings.HasPrefix(t.Answer, "What is meant") { // the question may choose one of its readings
			texts = append(texts, t.Answer)
		}
	}
	text := strings.Join(texts, "\n")
	if !severalNamed.MatchString(text) && len(lexical.Places(text)) == 0 { // avoids listing the collections
		return nil, nil
	}
	all, err := e.content.Collections(ctx)
	if err != nil || len(all) < 2 {
		return nil, err
	}
	var names, named []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	for _, c := range all {
		if len(named) == maxNamed {
			break
		}
		if !lexical.Mentions(text, c.Name) && !lexical.Beside(text, c.Name, names) || len(req.Collections) > 0 && !slices.Contains(req.Collections, c.Name) {
			continue
		}
		err := e.checkCollections(ctx, access, []string{c.Name})
		if errors.Is(err, assay.ErrInvalid) {
			continue // access may see none of its documents
		}
		if err != nil {
			return nil, err
		}
		named = append(named, c.Name)
	}
	return named, nil
}

// searchable returns a function that lists the collections which a request may search, at most
// maxNamed.
func (e *Engine) searchable(access assay.Access, req Request) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := e.content.Collections(ctx)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, c := range all {
			if len(names) == maxNamed {
				break
			}
			if len(req.Collections) > 0 && !slices.Contains(req.Collections, c.Name) {
				continue
			}
			err := e.checkCollections(ctx, access, []string{c.Name})
			if errors.Is(err, assay.ErrInvalid) {
				continue // access may see none of its documents
			}
			if err != nil {
				return nil, err
			}
			names = append(names, c.Name)
		}
		return names, nil
	}
}

// severalNamed matches a separator or conjunction that may join several names.
var severalNamed = lazyregexp.New(`(?i),|/|&|\b(and|or|both|vs|versus|than|between|against|with|while|whereas|unlike)\b|\n`)
