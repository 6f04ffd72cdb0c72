package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A QueuedUpload is a document that a session has accepted and a worker stores later. Its JSON is kept
// beside the data.
type QueuedUpload struct {
	Tenant     string          `json:"tenant"`
	Identity   string          `json:"identity"` // of the tenant
	Principal  assay.Principal `json:"principal"`
	Collection string          `json:"collection"`
	URI        string          `json:"uri"`
	Name       string          `json:"name"`
	Type       string          `json:"type,omitempty"`
	Sidecar    []byte          `json:"sidecar,omitempty"`
	Data       []byte          `json:"-"`
}

// An UploadQueue keeps uploads until workers store them. It is safe for concurrent use.
type UploadQueue interface {
	// Add durably adds an upload and returns the ID of its job. If the last upload of the document has the
	// same content and is not stored yet, it returns the ID of that one's job. Uploads of one document are
	// stored in the order in which they were added, or left out if a later one is stored already.
	Add(ctx context.Context, u QueuedUpload) (job string, err error)

	// Upload returns the state of an upload by the ID of its job. The error is assay.ErrNotFound if there is no such
	// job, or it is not kept any more.
	Upload(ctx context.Context, job string) (UploadState, error)
}

// An UploadState is the state of an upload that was queued.
type UploadState struct {
	Job        string    `json:"job"`
	State      string    `json:"state"` // queued, running, done or failed
	Collection string    `json:"collection"`
	URI        string    `json:"uri"`
	Document   string    `json:"document"`         // ID that it has when it is stored
	Attempts   int       `json:"attempts"`         // that have begun
	Queued     time.Time `json:"queued"`           // when it was added
	Next       time.Time `json:"next,omitzero"`    // the next attempt, if it is queued
	Ended      time.Time `json:"ended,omitzero"`   // if it is done or has failed
	Reason     string    `json:"reason,omitempty"` // why it has failed

	Identity string `json:"-"` // of the tenant
	User     string `json:"-"` // who has uploaded it
}

// UploadState returns the state of an upload that was queued. It is that of the user who has uploaded it, or of any
// if the grant has the admin scope in all collections. Any other is assay.ErrNotFound.
func (s *Session) UploadState(ctx context.Context, job string) (UploadState, error) {
	return call(ctx, s, "UploadState", func(c *sessionCall) (UploadState, error) {
		missing := fmt.Errorf("job %q: %w", visible.Line(job), assay.ErrNotFound)
		q := s.host.current().Queue
		if q == nil {
			return UploadState{}, missing
		}
		state, err := q.Upload(ctx, job)
		if errors.Is(err, assay.ErrNotFound) {
			return UploadState{}, missing
		}
		if err != nil {
			return UploadState{}, err
		}
		_, admin := s.grant.Collections(identity.ScopeAdmin)
		granted := c.collections == nil || slices.Contains(c.collections, state.Collection)
		if state.Identity != s.identity || !granted || !admin && state.User != c.principal.User {
			return UploadState{}, missing
		}
		state.Document = assay.DocumentID(state.Collection, state.URI)
		return state, nil
	})
}

// enqueue adds a document to the queue. The rights are checked now and, because the document may change
// meanwhile, again when it is stored.
func (s *Session) enqueue(ctx context.Context, c *sessionCall, q UploadQueue, u Upload, doc source.Upload) (Uploaded, error) {
	if err := c.engine.checkStopped(ctx); err != nil {
		return Uploaded{}, err
	}
	acl, err := c.engine.content.ACL(ctx, assay.DocumentID(u.Collection, doc.URI))
	if err == nil && !c.principal.Access().Allows(u.Collection, acl) {
		err = fmt.Errorf("document %s: %w", doc.URI, assay.ErrForbidden)
	}
	if err != nil && !errors.Is(err, assay.ErrNotFound) {
		return Uploaded{}, err
	}
	job, err := q.Add(ctx, QueuedUpload{
		Tenant: c.engine.config.Tenant, Identity: s.identity, Principal: c.principal,
		Collection: u.Collection, URI: doc.URI, Name: doc.Name, Type: doc.Type, Sidecar: u.Sidecar, Data: doc.Data,
	})
	if err != nil {
		return Uploaded{}, err
	}
	return Uploaded{URI: doc.URI, Outcome: "queued", Job: job, Report: IngestReport{Skipped: []Skipped{}}}, nil
}

// StoreQueued stores a document of a queue, with the access of the principal that has uploaded it. fence
// is called with the writer lock held before each change; an error means that the change is not to be made.
// Storing a document twice changes nothing. The local index is left to those who search.
//
// The errors are those of Session.Upload, and assay.ErrNotFound if the tenant was deleted since.
func (h *Host) StoreQueued(ctx context.Context, u QueuedUpload, fence func(context.Context) error) (Uploaded, error) {
	doc := source.Upload{URI: u.URI, Name: u.Name, Type: u.Type, Data: u.Data}
	if u.Sidecar != nil {
		var err error
		if doc.Sidecar, err = source.ParseSidecar(u.Sidecar); err != nil {
			return Uploaded{}, fmt.Errorf("the metadata: %w", err)
		}
	}
	info, err := h.tenant(ctx, u.Tenant)
	if err == nil && info.Identity != u.Identity {
		err = fmt.Errorf("tenant %q was deleted: %w", u.Tenant, assay.ErrNotFound)
	}
	if err != nil {
		return Uploaded{}, err
	}
	e, done, err := h.acquire(ctx, info)
	if err != nil {
		return Uploaded{}, err
	}
	defer done()
	c := &sessionCall{engine: e, principal: u.Principal, fence: fence}
	return c.upload(ctx, Upload{Collection: u.Collection}, doc)
}

// A TenantWork is what no request starts in a tenant.
type TenantWork struct {
	Tenant   string
	Identity string
	Sources  []string // to sync
	Vectors  bool     // passages lack vectors, or a shared index lacks changes
}

// Work returns the work of the active tenants.
func (h *Host) Work(ctx context.Context) ([]TenantWork, error) {
	tenants, err := store.ListTenants(ctx, h.system.Registry())
	if err != nil {
		return nil, err
	}
	var all []TenantWork
	for _, info := range tenants {
		if info.State != store.TenantActive {
			continue
		}
		work, err := h.workOf(ctx, info)
		if errors.Is(err, assay.ErrNotFound) || errors.Is(err, assay.ErrStopped) { // it was deleted or suspended meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", info.Name, err)
		}
		all = append(all, work)
	}
	return all, nil
}

func (h *Host) workOf(ctx context.Context, info store.TenantInfo) (TenantWork, error) {
	work := TenantWork{Tenant: info.Name, Identity: info.Identity}
	e, done, err := h.acquire(ctx, info)
	if err != nil {
		return work, err
	}
	defer done()
	sources, err := e.Sources(ctx)
	if err != nil {
		return work, err
	}
	for _, s := range sources {
		work.Sources = append(work.Sources, s.Name)
	}
	report, err := e.vectorReport(ctx)
	work.Vectors = report != nil && report.Problem == "" && report.Missing() > 0
	if err == nil && !work.Vectors {
		work.Vectors, err = e.lags(ctx)
	}
	return work, err
}

// EmbedTenant drops replaced versions, writes a shared index, makes the missing vectors of a tenant in batches, and reports whether
// documents were added meanwhile. If ctx ends, the vectors made so far stay.
func (h *Host) EmbedTenant(ctx context.Context, tenant string) (more bool, err error) {
	err = h.withEngine(ctx, tenant, func(e *Engine) error {
		before, err := e.content.Sequence(ctx)
		if err != nil {
			return err
		}
		err = e.write(ctx, forever, func(w store.Writer) error {
			_, err := w.Prune(ctx)
			return err
		})
		if err == nil && e.config.OpenIndex != nil { // the index is shared
			err = e.flushAlone(ctx, forever)
		}
		if err != nil {
			return err
		}
		report, err := e.vectorReport(ctx)
		if err != nil || report == nil || report.Missing() == 0 { // there is no encoder, or nothing to do
			return err
		}
		if _, err := e.Embed(ctx, nil); err != nil {
			return err
		}
		after, err := e.content.Sequence(ctx)
		more = after > before
		return err
	})
	return more, err
}

// SyncTenant syncs a source of a tenant, as Engine.Sync does.
func (h *Host) SyncTenant(ctx context.Context, tenant, source string) (report SyncReport, err error) {
	err = h.withEngine(ctx, tenant, func(e *Engine) error {
		report, err = e.Sync(ctx, SyncRequest{Name: source})
		return err
	})
	return report, err
}

// withEngine calls fn with the engine of a tenant.
func (h *Host) withEngine(ctx context.Context, tenant string, fn func(*Engine) error) error {
	info, err := h.tenant(ctx, tenant)
	if err != nil {
		return err
	}
	e, done, err := h.acquire(ctx, info)
	if err != nil {
		return err
	}
	defer done()
	return fn(e)
}
