package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// collectionRoutes list collections and add documents to them.
func collectionRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/collections", "collections.list", "Collections", "List the collections with visible documents",
			func(ctx context.Context, s *engine.Session, _ none) (CollectionList, error) {
				list, err := s.Collections(ctx)
				if list == nil {
					list = []engine.CollectionSummary{}
				}
				return CollectionList{list}, err
			}),
		route("GET", "/api/v1/collections/{collection}", "collections.show", "Collections", "Show a collection",
			func(ctx context.Context, s *engine.Session, in collectionIn) (engine.CollectionSummary, error) {
				list, err := s.Collections(ctx)
				if err != nil {
					return engine.CollectionSummary{}, err
				}
				for _, c := range list {
					if c.Name == in.Collection {
						return c, nil
					}
				}
				return engine.CollectionSummary{}, fmt.Errorf("collection %q: %w", in.Collection, assay.ErrNotFound)
			}),
		route("PUT", "/api/v1/collections/{collection}", "collections.set", "SetCollection", "Create a collection, or replace its settings",
			func(ctx context.Context, s *engine.Session, in setCollectionIn) (none, error) {
				return none{}, s.SetCollection(ctx, store.Collection{
					Name: in.Collection, RequireACL: in.Body.RequireACL,
					Chunker: in.Body.Chunker, ChunkSize: in.Body.ChunkSize, ChunkOverlap: in.Body.ChunkOverlap,
				})
			}),
		returning[FileOutcome](raw("PUT", "/api/v1/collections/{collection}/documents/{name...}", "documents.put", "Upload", "Upload a document, or replace it", putDocument), http.StatusCreated, http.StatusAccepted).with(func(r *Route) {
			r.Stream, r.MaxBody, r.Events = true, engine.MaxUploadBytes, uploadEvents()
		}),
		returning[UploadReport](raw("POST", "/api/v1/collections/{collection}/documents", "documents.upload", "Upload", "Upload several documents", uploadDocuments)).with(func(r *Route) {
			r.Stream, r.MaxBody, r.Events = true, MaxFormBytes, uploadEvents()
		}),
		returning[FileOutcome](raw("POST", "/api/v1/collections/{collection}/pages", "documents.fetch", "UploadURL", "Read a web page into a collection", fetchDocument), http.StatusCreated, http.StatusAccepted).with(func(r *Route) {
			r.Stream, r.Events = true, uploadEvents()
		}),
		route("GET", "/api/v1/jobs/{job}", "jobs.show", "UploadState", "Show what became of an upload that was queued",
			func(ctx context.Context, s *engine.Session, in jobIn) (engine.UploadState, error) {
				return s.UploadState(ctx, in.Job)
			}),
	}
}

type jobIn struct {
	Job string `path:"job"`
}

// uploadEvents are the events "progress", "file" and "report".
func uploadEvents() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[syncProgress](), reflect.TypeFor[FileOutcome](), reflect.TypeFor[UploadReport]()}
}

// A CollectionList lists collections.
type CollectionList struct {
	Collections []engine.CollectionSummary `json:"collections"`
}

type collectionIn struct {
	Collection string `path:"collection"`
}

type setCollectionIn struct {
	Collection string             `path:"collection"`
	Body       CollectionSettings `body:"application/json"`
}

// CollectionSettings are the settings of a collection. Zero values are the defaults.
type CollectionSettings struct {
	RequireACL   bool   `json:"require_acl"` // reject documents without an ACL
	Chunker      string `json:"chunker,omitempty"`
	ChunkSize    int    `json:"chunk_size,omitempty"` // tokens
	ChunkOverlap int    `json:"chunk_overlap,omitempty"`
}

// A FileOutcome is the outcome of one uploaded document.
type FileOutcome struct {
	Name      string                   `json:"name"` // as it was sent: a name, or a URL
	URI       string                   `json:"uri,omitempty"`
	Outcome   string                   `json:"outcome"`       // added, updated, unchanged, queued or refused
	Job       string                   `json:"job,omitempty"` // of the queue, if it is queued
	Documents []engine.DocumentSummary `json:"documents"`     // it, and those inside it
	Skipped   []engine.Skipped         `json:"skipped"`       // documents inside it that could not be parsed
	Problem   *Problem                 `json:"problem,omitempty"`
}

// An UploadReport lists the outcomes of several uploaded documents, in their order.
type UploadReport struct {
	Files []FileOutcome `json:"files"`
}

// OutcomeOf returns the outcome of a document that was uploaded under a name.
func OutcomeOf(name string, u engine.Uploaded) FileOutcome {
	o := FileOutcome{Name: name, URI: u.URI, Outcome: u.Outcome, Job: u.Job, Documents: []engine.DocumentSummary{}, Skipped: []engine.Skipped{}}
	for _, d := range u.Documents {
		o.Documents = append(o.Documents, engine.SummaryOfDocument(d))
	}
	o.Skipped = append(o.Skipped, u.Report.Skipped...)
	return o
}

type putIn struct {
	Collection  string    `path:"collection"`
	Name        string    `path:"name"`
	ContentType string    `header:"Content-Type"`   // a hint for the format
	Metadata    string    `header:"Assay-Metadata"` // JSON object: metadata, and the ACL as "acl"
	Password    string    `header:"Assay-Password"` // of an encrypted document; it is not stored
	IfMatch     []string  `header:"If-Match"`
	IfNoneMatch []string  `header:"If-None-Match"` // *: do not replace
	Body        io.Reader `body:"*/*"`
}

func putDocument(x *exchange, in putIn) error {
	u := engine.Upload{
		Collection: in.Collection, Name: in.Name, Body: in.Body, Type: mediaType(in.ContentType), Password: in.Password,
	}
	if len(in.IfMatch)+len(in.IfNoneMatch) > 0 {
		u.Check = func(stored *assay.Document) error { return checkMatch(in.IfMatch, in.IfNoneMatch, stored) }
	}
	if in.Metadata != "" {
		u.Sidecar = []byte(in.Metadata)
	}
	return x.store(in.Name, func(ctx context.Context, progress func(engine.IngestProgress)) (engine.Uploaded, error) {
		u.Progress = progress
		return x.session.Upload(ctx, u)
	})
}

type fetchIn struct {
	Collection string       `path:"collection"`
	Body       FetchRequest `body:"application/json"`
}

// A FetchRequest names a web page to read.
type FetchRequest struct {
	URL      string          `json:"url"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // JSON object: metadata, and the ACL as "acl"
}

func fetchDocument(x *exchange, in fetchIn) error {
	u := engine.FetchedUpload{URL: in.Body.URL, Collection: in.Collection, Sidecar: in.Body.Metadata}
	return x.store(in.Body.URL, func(ctx context.Context, progress func(engine.IngestProgress)) (engine.Uploaded, error) {
		u.Progress = progress
		return x.session.UploadURL(ctx, u)
	})
}

// store stores one document, and answers with its outcome or with events that end with it.
func (x *exchange) store(name string, fn func(context.Context, func(engine.IngestProgress)) (engine.Uploaded, error)) error {
	if x.media == typeEvents {
		return x.stream(func(yield func(message, error) bool) {
			progress(x.r.Context(), yield, func(ctx context.Context, send func(message)) error {
				uploaded, err := fn(ctx, func(p engine.IngestProgress) { send(message{event: "progress", data: showProgress(p)}) })
				if err == nil {
					send(message{event: "file", data: OutcomeOf(name, uploaded)})
				}
				return err
			})
		})
	}
	uploaded, err := fn(x.r.Context(), nil)
	if err != nil {
		return err
	}
	switch uploaded.Outcome {
	case "added":
		x.route.Status = http.StatusCreated
	case "queued":
		x.route.Status = http.StatusAccepted
		x.w.Header().Set("Location", "/api/v1/jobs/"+uploaded.Job)
	}
	for _, d := range uploaded.Documents {
		if d.URI != uploaded.URI {
			continue
		}
		x.w.Header().Set("Location", "/api/v1/documents/"+d.ID)
		if err := x.setDocumentTag(d); err != nil {
			return err
		}
	}
	return x.reply(OutcomeOf(name, uploaded))
}

// progress yields the messages that fn sends, in their order, and its error.
func progress(ctx context.Context, yield func(message, error) bool, fn func(context.Context, func(message)) error) {
	ctx, cancel := context.WithCancel(ctx)
	messages := make(chan message)
	ended := make(chan error, 1)
	go func() {
		ended <- fn(ctx, func(m message) {
			select {
			case messages <- m:
			case <-ctx.Done():
			}
		})
		close(messages)
	}()
	wanted := true
	for m := range messages {
		if wanted && !yield(m, nil) {
			wanted = false
			cancel()
		}
	}
	cancel()
	if err := <-ended; err != nil && wanted {
		yield(message{}, err)
	}
}

type uploadIn struct {
	Collection string    `path:"collection"`
	Body       io.Reader `body:"multipart/form-data"`
}

// uploadDocuments stores the files of a form. A field "metadata" holds the metadata and ACL of the
// files after it, up to the next one.
func uploadDocuments(x *exchange, in uploadIn) error {
	form, err := OpenForm(x.r.Header.Get("Content-Type"), in.Body)
	if err != nil {
		return err
	}
	if x.media == typeEvents {
		return x.stream(func(yield func(message, error) bool) {
			progress(x.r.Context(), yield, func(ctx context.Context, send func(message)) error {
				report, err := x.uploadParts(ctx, in.Collection, form, send)
				if err == nil {
					send(message{event: "report", data: report})
				}
				return err
			})
		})
	}
	report, err := x.uploadParts(x.r.Context(), in.Collection, form, nil)
	if err != nil {
		return err
	}
	return x.reply(report)
}

// uploadParts stores the files of a form one after the other, so that uploads of others get their
// turn in between. send may be nil.
func (x *exchange) uploadParts(ctx context.Context, collection string, form *Form, send func(message)) (UploadReport, error) {
	report := UploadReport{Files: []FileOutcome{}}
	var metadata []byte
	for {
		part, err := form.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return report, err
		}
		if !part.IsFile {
			if metadata, err = readMetadata(part); err != nil {
				return report, err
			}
			continue
		}
		o, err := x.uploadPart(ctx, engine.Upload{Collection: collection, Name: part.Name, Body: part, Type: part.Type, Sidecar: metadata}, send)
		if err != nil {
			return report, err
		}
		report.Files = append(report.Files, o)
	}
	if len(report.Files) == 0 {
		return report, fmt.Errorf("the form has no file: %w", assay.ErrInvalid)
	}
	return report, nil
}

// uploadPart stores one file of a form. An error that concerns this file alone is part of the
// outcome.
func (x *exchange) uploadPart(ctx context.Context, u engine.Upload, send func(message)) (FileOutcome, error) {
	if send != nil {
		u.Progress = func(p engine.IngestProgress) { send(message{event: "progress", data: showProgress(p)}) }
	}
	uploaded, err := x.session.Upload(ctx, u)
	o := OutcomeOf(u.Name, uploaded)
	if err != nil {
		if ctx.Err() != nil || EndsForm(err) {
			return o, err
		}
		p := x.problem(err)
		o.Outcome, o.Problem = "refused", &p
	}
	if send != nil {
		send(message{event: "file", data: o})
	}
	return o, nil
}

// readMetadata reads the field "metadata". Another one is assay.ErrInvalid.
func readMetadata(part *FormPart) ([]byte, error) {
	if part.Name != "metadata" {
		return nil, fmt.Errorf("the form has a field %q, which is neither a file nor metadata: %w", part.Name, assay.ErrInvalid)
	}
	return part.Text(source.MaxSidecarBytes)
}

// mediaType returns the media type of a Content-Type, or "" for one that tells nothing about the
// format.
func mediaType(header string) string {
	media, _, err := mime.ParseMediaType(header)
	if err != nil || media == "application/octet-stream" || media == "application/x-www-form-urlencoded" {
		return ""
	}
	return media
}
