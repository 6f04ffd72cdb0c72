package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// A DocumentVersion is a version of a document that is kept.
type DocumentVersion struct {
	Version  string    `json:"version"`
	Title    string    `json:"title"`
	Modified time.Time `json:"modified,omitzero"`  // of the source; zero: not known
	Replaced time.Time `json:"replaced,omitzero"`  // when it was replaced or deleted; zero: it is the current one
	Original string    `json:"original,omitempty"` // media type of the file that it was read from; empty: it is not kept
}

// errNoDocument is the error for a document that does not exist or is hidden.
func errNoDocument(id string) error { return fmt.Errorf("document %q: %w", id, assay.ErrNotFound) }

// checkVisible returns assay.ErrNotFound, always with the same text, unless principal may see a document
// now.
func (e *Engine) checkVisible(ctx context.Context, principal assay.Principal, id string) error {
	err := e.checkDocument(ctx, principal.Access(), id)
	if errors.Is(err, assay.ErrNotFound) {
		return errNoDocument(id)
	}
	return err
}

// DocumentVersion returns a version of a document, current or kept; an empty version is the current
// one. It returns assay.ErrNotFound if there is no such version, or principal may not see the document
// now: the ACL of the current version counts, or that of the last one of a deleted document.
func (e *Engine) DocumentVersion(ctx context.Context, principal assay.Principal, id, version string) (assay.Document, error) {
	if err := e.checkVisible(ctx, principal, id); err != nil {
		return assay.Document{}, err
	}
	if version != "" {
		return e.content.Version(ctx, id, version)
	}
	d, err := e.content.Document(ctx, id)
	if err == nil && !principal.Access().Allows(d.Collection, d.ACL) { // it was closed meanwhile
		return assay.Document{}, errNoDocument(id)
	}
	return d, err
}

// DocumentVersions returns the versions of a document that are kept, the current one first. A version
// is kept while a run cites it. The error is that of DocumentVersion.
func (e *Engine) DocumentVersions(ctx context.Context, principal assay.Principal, id string) ([]DocumentVersion, error) {
	if err := e.checkVisible(ctx, principal, id); err != nil {
		return nil, err
	}
	kept, err := e.content.Versions(ctx, id)
	if err != nil {
		return nil, err
	}
	all := []DocumentVersion{}
	for _, v := range kept {
		all = append(all, DocumentVersion(v))
	}
	return all, nil
}

// Original returns the file that a version of a document was read from. The error is assay.ErrNotFound
// if it is not kept, and otherwise that of DocumentVersion.
func (e *Engine) Original(ctx context.Context, principal assay.Principal, id, version string) (assay.Original, error) {
	if err := e.checkVisible(ctx, principal, id); err != nil {
		return assay.Original{}, err
	}
	return e.content.Original(ctx, id, version)
}

// maxCitedBy is the most runs that CitedBy returns.
const maxCitedBy = 100

// CitedBy returns the principal's last runs whose answers cite a document, newest first, at most limit
// (0: 100) and 100. The error is that of DocumentVersion.
func (e *Engine) CitedBy(ctx context.Context, principal assay.Principal, id string, limit int) ([]RunSummary, error) {
	if limit < 0 {
		return nil, fmt.Errorf("list at most %d runs: %w", limit, assay.ErrInvalid)
	}
	if limit == 0 || limit > maxCitedBy {
		limit = maxCitedBy
	}
	if err := e.checkVisible(ctx, principal, id); err != nil {
		return nil, err
	}
	all, err := e.runs.Citing(ctx, id, principal.User, limit)
	if err != nil {
		return nil, err
	}
	runs := []RunSummary{}
	for _, r := range all {
		if owns(principal, r) && r.Answer != nil && slices.ContainsFunc(r.Answer.Citations, func(c assay.Citation) bool { return c.Document == id }) {
			runs = append(runs, summaryOf(r))
		}
	}
	return runs, nil
}

// DocumentVersion is Engine.DocumentVersion.
func (s *Session) DocumentVersion(ctx context.Context, id, version string) (assay.Document, error) {
	return call(ctx, s, "DocumentVersion", func(c *sessionCall) (assay.Document, error) {
		return c.engine.DocumentVersion(ctx, c.principal, id, version)
	})
}

// DocumentVersions is Engine.DocumentVersions.
func (s *Session) DocumentVersions(ctx context.Context, id string) ([]DocumentVersion, error) {
	return call(ctx, s, "DocumentVersions", func(c *sessionCall) ([]DocumentVersion, error) {
		return c.engine.DocumentVersions(ctx, c.principal, id)
	})
}

// Original is Engine.Original.
func (s *Session) Original(ctx context.Context, id, version string) (assay.Original, error) {
	return call(ctx, s, "Original", func(c *sessionCall) (assay.Original, error) {
		return c.engine.Original(ctx, c.principal, id, version)
	})
}

// CitedBy is Engine.CitedBy.
func (s *Session) CitedBy(ctx context.Context, id string, limit int) ([]RunSummary, error) {
	return call(ctx, s, "CitedBy", func(c *sessionCall) ([]RunSummary, error) {
		return c.engine.CitedBy(ctx, c.principal, id, limit)
	})
}
