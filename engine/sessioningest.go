package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// checkIngest checks the collection and the paths of an ingest. Without a path check a session could
// read any file of this machine.
func (c *sessionCall) checkIngest(ctx context.Context, req *IngestRequest, folders []string) error {
	if err := c.checkTarget(cmp.Or(req.Collection, ingest.DefaultCollection)); err != nil {
		return err
	}
	if req.RetryFailed && len(req.Paths) == 0 {
		return fmt.Errorf("a session names the paths to try again: %w", assay.ErrInvalid)
	}
	for _, path := range req.Paths {
		if path == "-" && req.Stdin != nil {
			if err := c.checkStdin(ctx, req); err != nil {
				return err
			}
			continue
		}
		if !withinFolders(path, folders) {
			return fmt.Errorf("path %q is not in a folder that sessions may read: %w", path, assay.ErrForbidden)
		}
	}
	return nil
}

// checkStdin returns assay.ErrForbidden if a document that the principal may not see has the name of
// the request's standard input. It guards the documents that appear later.
func (c *sessionCall) checkStdin(ctx context.Context, req *IngestRequest) error {
	access := c.principal.Access()
	req.access = &access
	uri, collection := source.StdinURI(req.StdinName), cmp.Or(req.Collection, ingest.DefaultCollection)
	_, before, err := c.engine.content.Source(ctx, collection, uri)
	for _, d := range before {
		if err == nil && !access.Allows(collection, d.ACL) {
			err = fmt.Errorf("document %s: %w", uri, assay.ErrForbidden)
		}
	}
	return err
}

// withinFolders reports whether a path, with its links resolved, is in one of the folders.
func withinFolders(path string, folders []string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if real, err = filepath.Abs(real); err != nil {
		return false
	}
	for _, folder := range folders {
		root, err := filepath.EvalSymlinks(folder)
		if err == nil {
			root, err = filepath.Abs(root)
		}
		if err == nil && (real == root || strings.HasPrefix(real, strings.TrimSuffix(root, string(os.PathSeparator))+string(os.PathSeparator))) {
			return true
		}
	}
	return false
}

// withoutTotals returns a report without the figures that count documents which the caller may not
// see: the sequence of the store and the coverage of all chunks.
func withoutTotals(r IngestReport) IngestReport {
	r.Sequence = 0
	if r.Vectors != nil {
		own := *r.Vectors
		own.Chunks, own.Embedded = 0, 0
		r.Vectors = &own
	}
	return r
}

// shown returns a report without the figures of withoutTotals and the names of documents that the
// principal may not see.
func (c *sessionCall) shown(ctx context.Context, collection string, r IngestReport) (IngestReport, error) {
	r = withoutTotals(r)
	var failed error
	hidden := func(uri string) bool {
		acl, err := c.engine.content.ACL(ctx, assay.DocumentID(collection, uri))
		if err != nil && !errors.Is(err, assay.ErrNotFound) {
			failed = err
		}
		return failed != nil || err == nil && !c.principal.Access().Allows(collection, acl)
	}
	r.Skipped = slices.DeleteFunc(slices.Clone(r.Skipped), func(s Skipped) bool { return hidden(s.URI) })
	r.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(n ingest.Note) bool { return hidden(n.URI) })
	r.Pages = slices.DeleteFunc(slices.Clone(r.Pages), func(p ingest.PageReport) bool { return hidden(p.URI) })
	return r, failed
}

// Ingest is Engine.Ingest. Its paths are "-", with Stdin set, or in one of HostConfig.Folders;
// others are assay.ErrForbidden, and so is "-" if it would replace a document that the principal may not
// see. The report has neither a sequence nor the coverage of vectors.
func (s *Session) Ingest(ctx context.Context, req IngestRequest) (IngestReport, error) {
	return call(ctx, s, "Ingest", func(c *sessionCall) (IngestReport, error) {
		if err := c.checkIngest(ctx, &req, s.host.current().Folders); err != nil {
			return IngestReport{Skipped: []Skipped{}}, err
		}
		report, err := c.engine.Ingest(ctx, req)
		report, hideErr := c.shown(context.WithoutCancel(ctx), cmp.Or(req.Collection, ingest.DefaultCollection), report)
		return report, cmp.Or(err, hideErr)
	})
}

// PlanIngest is Engine.PlanIngest, for the paths of Ingest.
func (s *Session) PlanIngest(ctx context.Context, req IngestRequest) (IngestPlan, error) {
	return call(ctx, s, "PlanIngest", func(c *sessionCall) (IngestPlan, error) {
		if err := c.checkIngest(ctx, &req, s.host.current().Folders); err != nil {
			return IngestPlan{}, err
		}
		return c.engine.PlanIngest(ctx, req)
	})
}

// Put is Engine.Put. An entry that would replace a document that the principal may not see is
// assay.ErrForbidden.
func (s *Session) Put(ctx context.Context, entries []store.Entry) error {
	_, err := call(ctx, s, "Put", func(c *sessionCall) (_ struct{}, err error) {
		for _, entry := range entries {
			d := entry.Document
			if err := c.checkTarget(d.Collection); err != nil {
				return struct{}{}, err
			}
			if d.ID != assay.DocumentID(d.Collection, d.URI) {
				return struct{}{}, fmt.Errorf("document %s: its ID is not that of its collection and URI: %w", d.URI, assay.ErrInvalid)
			}
			acl, err := c.engine.content.ACL(ctx, d.ID)
			if err != nil && !errors.Is(err, assay.ErrNotFound) {
				return struct{}{}, err
			}
			if err == nil && !c.principal.Access().Allows(d.Collection, acl) {
				return struct{}{}, fmt.Errorf("document %s: %w", d.URI, assay.ErrForbidden)
			}
		}
		return struct{}{}, c.engine.Put(ctx, entries)
	})
	return err
}

// DeleteDocuments is Engine.DeleteDocuments.
func (s *Session) DeleteDocuments(ctx context.Context, ids ...string) error {
	_, err := call(ctx, s, "DeleteDocuments", func(c *sessionCall) (_ struct{}, err error) {
		return struct{}{}, c.engine.DeleteDocuments(ctx, c.principal, ids...)
	})
	return err
}

// SetCollection is Engine.SetCollection. Only administrators may change a collection whose documents are
// all hidden from them; for others it is assay.ErrForbidden.
func (s *Session) SetCollection(ctx context.Context, collection store.Collection) error {
	_, err := call(ctx, s, "SetCollection", func(c *sessionCall) (_ struct{}, err error) {
		if err := c.checkTarget(collection.Name); err != nil {
			return struct{}{}, err
		}
		if !s.grant.Allows(identity.ScopeAdmin) {
			if err := c.checkNotHidden(ctx, collection.Name); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, c.engine.SetCollection(ctx, collection)
	})
	return err
}

// checkNotHidden returns assay.ErrForbidden for a collection that has documents of which the caller may
// see none.
func (c *sessionCall) checkNotHidden(ctx context.Context, collection string) error {
	hidden := false
	for d, err := range c.engine.content.Documents(ctx, collection) {
		if err != nil {
			return err
		}
		if c.principal.Access().Allows(d.Collection, d.ACL) {
			return nil
		}
		hidden = true
	}
	if hidden {
		return fmt.Errorf("collection %q: %w", collection, assay.ErrForbidden)
	}
	return nil
}

// FailedDocuments is Engine.FailedDocuments.
func (s *Session) FailedDocuments(ctx context.Context, collections ...string) ([]FailedDocument, error) {
	return call(ctx, s, "FailedDocuments", func(c *sessionCall) ([]FailedDocument, error) {
		return c.engine.FailedDocuments(ctx, c.principal, collections...)
	})
}

// Sources is Engine.Sources, with reports as of Sync.
func (s *Session) Sources(ctx context.Context) ([]SourceState, error) {
	return call(ctx, s, "Sources", func(c *sessionCall) ([]SourceState, error) {
		all, err := c.engine.Sources(ctx)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(state SourceState) bool { return c.checkWritable(state.Collection) != nil })
		for i := range all {
			if all[i].Report, err = c.shownReport(ctx, all[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

// shownReport returns the report of a source's last sync as shown does.
func (c *sessionCall) shownReport(ctx context.Context, state SourceState) ([]byte, error) {
	if state.Report == nil {
		return nil, nil
	}
	var report SyncReport
	err := json.Unmarshal(state.Report, &report)
	if err == nil {
		report.Report, err = c.shown(ctx, state.Collection, report.Report)
	}
	if err != nil {
		return nil, fmt.Errorf("report of the source %s: %w", state.Name, err)
	}
	return json.Marshal(report)
}

// SourceKinds is Engine.SourceKinds.
func (s *Session) SourceKinds(ctx context.Context) ([]source.Kind, error) {
	return call(ctx, s, "SourceKinds", func(c *sessionCall) ([]source.Kind, error) { return c.engine.SourceKinds(), nil })
}

// checkSource returns assay.ErrNotFound unless the scope was granted in the collection of a source.
func (c *sessionCall) checkSource(ctx context.Context, name string) error {
	state, err := c.engine.sourceState(ctx, name)
	if err == nil && c.checkWritable(state.Collection) != nil {
		err = assay.ErrNotFound
	}
	if errors.Is(err, assay.ErrNotFound) {
		return fmt.Errorf("source %q: %w", name, assay.ErrNotFound)
	}
	return err
}

// Sync is Engine.Sync, with the report of Ingest. The progress names no documents.
func (s *Session) Sync(ctx context.Context, req SyncRequest) (SyncReport, error) {
	return call(ctx, s, "Sync", func(c *sessionCall) (SyncReport, error) {
		if err := c.checkSource(ctx, req.Name); err != nil {
			return SyncReport{Source: req.Name}, err
		}
		if progress := req.Progress; progress != nil {
			req.Progress = func(p IngestProgress) {
				p.Current = ""
				progress(p)
			}
		}
		report, err := c.engine.Sync(ctx, req)
		var hideErr error
		report.Report, hideErr = c.shown(context.WithoutCancel(ctx), report.Collection, report.Report)
		return report, cmp.Or(err, hideErr)
	})
}

// WatchSource is Engine.WatchSource.
func (s *Session) WatchSource(ctx context.Context, name string, changed func()) error {
	_, err := call(ctx, s, "WatchSource", func(c *sessionCall) (_ struct{}, err error) {
		if err := c.checkSource(ctx, name); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, c.engine.WatchSource(ctx, name, changed)
	})
	return err
}

// AddSource is Engine.AddSource, for a source that HostConfig.AllowSource allows.
func (s *Session) AddSource(ctx context.Context, n NewSource) error {
	return do(ctx, s, "AddSource", func(c *sessionCall) error {
		if allow := s.host.current().AllowSource; allow == nil || !allow(s.grant.Tenant, n) {
			return fmt.Errorf("sessions may not add this source: %w", assay.ErrForbidden)
		}
		return c.engine.AddSource(ctx, n)
	})
}

// RemoveSource is Engine.RemoveSource.
func (s *Session) RemoveSource(ctx context.Context, name string, keepDocuments bool) (removed int, err error) {
	return call(ctx, s, "RemoveSource", func(c *sessionCall) (int, error) {
		return c.engine.RemoveSource(ctx, name, keepDocuments)
	})
}

// Vectors is Engine.Vectors.
func (s *Session) Vectors(ctx context.Context) (VectorStatus, error) {
	return call(ctx, s, "Vectors", func(c *sessionCall) (VectorStatus, error) { return c.engine.Vectors(ctx) })
}

// Embed is Engine.Embed.
func (s *Session) Embed(ctx context.Context, progress func(EmbedProgress)) (VectorReport, error) {
	return call(ctx, s, "Embed", func(c *sessionCall) (VectorReport, error) { return c.engine.Embed(ctx, progress) })
}

// UseEncoder is Engine.UseEncoder.
func (s *Session) UseEncoder(ctx context.Context, name, source string) error {
	_, err := call(ctx, s, "UseEncoder", func(c *sessionCall) (_ struct{}, err error) {
		return struct{}{}, c.engine.UseEncoder(ctx, name, source)
	})
	return err
}
