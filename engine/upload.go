package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// Bounds of uploads.
const (
	MaxUploadBytes = source.DefaultMaxFileBytes // of one document
	MaxUploadName  = 1024                       // bytes of its name
	maxUploads     = 64                         // in progress, of a host
	maxUserUploads = 16                         // of them, of one user of a tenant
	spoolBytes     = 1 << 20                    // larger bodies wait in a file
	busyTime       = 5 * time.Second            // after which another upload may be possible
	uploadPatience = 30 * time.Second           // to wait for the writer lock
)

// An Upload is a document that a caller sends.
type Upload struct {
	Collection string // empty: "default"

	// Name is a path of up to MaxUploadName of UTF-8 with "/" between its parts, none of which is empty,
	// "." or "..". It identifies the document in the collection. Its extension is a hint for the
	// format.
	Name string

	Body     io.Reader // at most MaxUploadBytes
	Type     string    // media type, as a hint for the format; empty: not known
	Sidecar  []byte    // metadata and ACL, in the form of source.ParseSidecar; nil: none
	Password string    // tried if the document is encrypted

	// Check, if set, is called with the document that is stored under the name, or nil, before it is
	// replaced. An error ends the upload, and nothing is changed.
	Check func(stored *assay.Document) error

	// Progress, if set, is called at every step, by one goroutine at a time.
	Progress func(IngestProgress)
}

// An Uploaded is the result of an upload.
type Uploaded struct {
	URI       string
	Outcome   string           // "added", "updated", "unchanged" or "queued"
	Job       string           // that stores it, if it is queued
	Documents []assay.Document // it, and those inside it, by URI, without text
	Report    IngestReport     // as of Session.Ingest
}

// An UploadError reports that a document was received and cannot be used. It wraps assay.ErrInvalid.
type UploadError struct{ Skipped }

func (e *UploadError) Error() string { return e.Detail }

// Unwrap returns assay.ErrInvalid.
func (e *UploadError) Unwrap() error { return assay.ErrInvalid }

// A QueueError reports that as many uploads are in progress as a host, or one user, may have. It wraps
// assay.ErrBusy.
type QueueError struct {
	Uploads    int // in progress
	RetryAfter time.Duration
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("%d uploads are in progress; try again in %v", e.Uploads, e.RetryAfter)
}

// Unwrap returns assay.ErrBusy.
func (e *QueueError) Unwrap() error { return assay.ErrBusy }

// Upload stores a document. It first reads the whole body. Documents of one name follow each other,
// and others wait for their turn in the order in which their bodies have arrived. From then on the
// upload does not end with ctx, so that it is stored as a whole or not at all.
//
// A document that cannot be parsed, or that lacks an ACL in a collection that requires one, is an
// *UploadError, as the entry for a skipped file of Ingest. The error is assay.ErrForbidden if it
// would replace a document that the principal may not see, a *QueueError if too many uploads are in
// progress, and assay.ErrLocked if another process does not stop writing for half a minute.
func (s *Session) Upload(ctx context.Context, u Upload) (Uploaded, error) {
	return call(ctx, s, "Upload", func(c *sessionCall) (Uploaded, error) {
		name, err := checkUploadName(u.Name)
		if err != nil {
			return Uploaded{}, err
		}
		if err := c.checkTarget(cmp.Or(u.Collection, ingest.DefaultCollection)); err != nil {
			return Uploaded{}, err
		}
		leave, err := s.host.uploads.enter(s.identity, c.principal.User)
		if err != nil {
			return Uploaded{}, err
		}
		defer leave()
		body, err := spool(u.Body)
		if err != nil {
			return Uploaded{}, err
		}
		defer body.Close()
		return s.upload(ctx, c, u, source.Upload{URI: source.UploadURI(name), Name: name, Type: u.Type}, body)
	})
}

// A FetchedUpload is a document to be read from the web.
type FetchedUpload struct {
	URL        string
	Collection string // empty: "default"
	Sidecar    []byte // as of Upload
	Progress   func(IngestProgress)
}

// UploadURL reads a web page and stores it under its address, if HostConfig.AllowURL allows that. The
// address must be public and within the egress rules: otherwise the error is assay.ErrForbidden. If the
// page cannot be read it is assay.ErrUnavailable. The other errors are those of Upload.
func (s *Session) UploadURL(ctx context.Context, u FetchedUpload) (Uploaded, error) {
	return call(ctx, s, "UploadURL", func(c *sessionCall) (Uploaded, error) {
		if err := c.checkTarget(cmp.Or(u.Collection, ingest.DefaultCollection)); err != nil {
			return Uploaded{}, err
		}
		address, err := url.Parse(u.URL)
		if err != nil || address.Host == "" || address.User != nil {
			return Uploaded{}, fmt.Errorf("%q is no address of a page: %w", visible.Line(u.URL), assay.ErrInvalid)
		}
		if allow := s.host.current().AllowURL; allow == nil || !allow(s.grant.Tenant, u.URL) {
			return Uploaded{}, fmt.Errorf("this server does not read pages of %s for callers: %w", address.Host, assay.ErrForbidden)
		}
		leave, err := s.host.uploads.enter(s.identity, c.principal.User)
		if err != nil {
			return Uploaded{}, err
		}
		defer leave()
		page, err := c.engine.pages.Fetch(c.engine.outgoing(ctx), u.URL)
		if errors.Is(err, assay.ErrInvalid) {
			return Uploaded{}, fmt.Errorf("%v: %w", err, assay.ErrForbidden)
		}
		if err != nil {
			return Uploaded{}, err
		}
		at, err := url.Parse(page.URL)
		if err != nil {
			return Uploaded{}, fmt.Errorf("the page is at %q: %w", page.URL, assay.ErrUnavailable)
		}
		at.Fragment = ""
		uri := source.EscapeName(at.String())
		name := cmp.Or(strings.Trim(path.Base(at.Path), "/."), at.Host)
		return s.upload(ctx, c, Upload{Collection: u.Collection, Sidecar: u.Sidecar, Progress: u.Progress},
			source.Upload{URI: uri, Name: name, Type: page.Type}, inMemory(page.Data))
	})
}

// upload stores a body that has arrived.
func (s *Session) upload(ctx context.Context, c *sessionCall, u Upload, doc source.Upload, body *spooled) (Uploaded, error) {
	var err error
	if u.Sidecar != nil {
		if doc.Sidecar, err = source.ParseSidecar(u.Sidecar); err != nil {
			return Uploaded{}, fmt.Errorf("the metadata: %w", err)
		}
	}
	u.Collection = cmp.Or(u.Collection, ingest.DefaultCollection)
	done, err := s.host.uploads.turn(ctx, s.identity+"\n"+u.Collection+"\n"+doc.URI)
	if err != nil {
		return Uploaded{}, err
	}
	defer done()
	if doc.Data, err = body.bytes(); err != nil {
		return Uploaded{}, err
	}
	if q := s.host.current().Queue; q != nil && u.Check == nil && u.Password == "" { // which are not stored
		return s.enqueue(ctx, c, q, u, doc)
	}
	return c.upload(context.WithoutCancel(ctx), u, doc)
}

// upload parses and stores a document.
func (c *sessionCall) upload(ctx context.Context, u Upload, doc source.Upload) (Uploaded, error) {
	_, before, err := c.engine.content.Source(ctx, u.Collection, doc.URI)
	if err != nil {
		return Uploaded{}, err
	}
	var stored *assay.Document
	for i, d := range before {
		if !c.principal.Access().Allows(d.Collection, d.ACL) {
			return Uploaded{}, fmt.Errorf("document %s: %w", doc.URI, assay.ErrForbidden)
		}
		if d.URI == doc.URI {
			stored = &before[i]
		}
	}
	if u.Check != nil {
		if err := u.Check(stored); err != nil {
			return Uploaded{}, err
		}
	}
	e := c.engine
	request := IngestRequest{Paths: []string{"-"}, Collection: u.Collection, MaxFileBytes: MaxUploadBytes}
	if u.Password != "" {
		request.Passwords = []string{u.Password}
	}
	opts, err := e.ingestOptions(ctx, request)
	if err != nil {
		return Uploaded{}, err
	}
	opts.Source.Upload, opts.Progress, opts.Retry, opts.Workers = &doc, u.Progress, true, 1
	var report IngestReport
	to := &uploadStore{Content: e.content, engine: e, access: c.principal.Access(), collection: u.Collection, fence: c.fence}
	err = e.unlessStopped(e.outgoing(ctx), func(ctx context.Context) (err error) {
		defer e.embedder.ingesting()()
		report, err = ingest.Run(ctx, to, opts)
		return err
	})
	if err == nil && c.fence == nil { // a worker leaves the index to those who search
		err = e.flushUpload(ctx)
	}
	if err != nil {
		return Uploaded{}, err
	}
	out := Uploaded{URI: doc.URI, Report: withoutTotals(report)}
	if _, out.Documents, err = e.content.Source(ctx, u.Collection, doc.URI); err != nil {
		return out, err
	}
	if len(out.Documents) == 0 && len(report.Skipped) > 0 {
		return out, &UploadError{report.Skipped[0]}
	}
	out.Outcome = outcomeOf(len(before), report)
	return out, nil
}

func outcomeOf(before int, r IngestReport) string {
	switch {
	case before == 0:
		return "added"
	case r.Added+r.Updated+r.Removed > 0:
		return "updated"
	}
	return "unchanged"
}

// checkUploadName returns the name of an upload, or assay.ErrInvalid.
func checkUploadName(name string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("the name %q %s: %w", visible.Line(name), why, assay.ErrInvalid)
	}
	switch {
	case len(name) > MaxUploadName:
		return refuse(fmt.Sprintf("is longer than %d bytes", MaxUploadName))
	case !utf8.ValidString(name):
		return refuse("is not valid UTF-8")
	case strings.ContainsFunc(name, visible.Steers):
		return refuse("has a control character")
	case strings.Contains(name, `\`):
		return refuse(`has a "\"`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return refuse(`has an empty part, "." or ".."`)
		}
	}
	return name, nil
}

// A guardedStore refuses to replace or delete a document that the principal may not see, even a deleted
// one: its new ACL would hold for the versions that are kept.
type guardedStore struct {
	ingest.Store
	access     assay.Access
	collection string
}

// Apply implements ingest.Store.
func (s *guardedStore) Apply(ctx context.Context, b store.Batch) (int64, error) {
	ids := slices.Clone(b.Delete)
	for _, entry := range b.Put {
		ids = append(ids, entry.Document.ID)
	}
	for _, id := range ids {
		acl, err := s.ACL(ctx, id)
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err == nil && !s.access.Allows(s.collection, acl) {
			err = fmt.Errorf("a document of this name: %w", assay.ErrForbidden)
		}
		if err != nil {
			return 0, err
		}
	}
	return s.Store.Apply(ctx, b)
}

// An uploadStore is a guardedStore that holds the writer lock only for its own transactions.
type uploadStore struct {
	store.Content
	engine     *Engine
	access     assay.Access
	collection string
	fence      func(context.Context) error // see sessionCall.fence
}

// Apply implements ingest.Store.
func (s *uploadStore) Apply(ctx context.Context, b store.Batch) (sequence int64, err error) {
	if s.fence != nil { // workers store many documents at once, and would wait for each other by trying again
		s.engine.storing.Lock()
		defer s.engine.storing.Unlock()
	}
	err = s.engine.write(ctx, uploadPatience, func(w store.Writer) error {
		if s.fence != nil {
			if err := s.fence(ctx); err != nil {
				return err
			}
		}
		guarded := guardedStore{Store: w, access: s.access, collection: s.collection}
		sequence, err = guarded.Apply(ctx, b)
		return err
	})
	return sequence, err
}

// Prune implements ingest.Store.
func (s *uploadStore) Prune(ctx context.Context) (n int, err error) {
	if s.fence != nil { // EmbedTenant does it for many documents
		return 0, nil
	}
	err = s.engine.write(ctx, uploadPatience, func(w store.Writer) error {
		n, err = w.Prune(ctx)
		return err
	})
	return n, err
}

// An uploadQueue bounds the uploads of a host. The zero value is ready for use.
type uploadQueue struct {
	mu    sync.Mutex
	all   int
	users map[string]int
	names map[string]*uploadName
	slots *semaphore.Weighted // for parsing
}

// An uploadName is held by the upload of a document, for which others of the name wait.
type uploadName struct {
	held  *semaphore.Weighted
	users int
}

// enter counts an upload until leave is called.
func (q *uploadQueue) enter(tenant, user string) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users == nil {
		q.users, q.names = map[string]int{}, map[string]*uploadName{}
		q.slots = semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0))))
	}
	key := tenant + "\n" + user
	if q.all >= maxUploads || q.users[key] >= maxUserUploads {
		return nil, &QueueError{Uploads: max(q.users[key], q.all), RetryAfter: busyTime}
	}
	q.all++
	q.users[key]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.all--
		if q.users[key]--; q.users[key] == 0 {
			delete(q.users, key)
		}
	}, nil
}

// turn waits until no other upload of the name is in progress and a slot is free.
func (q *uploadQueue) turn(ctx context.Context, name string) (done func(), err error) {
	q.mu.Lock()
	n := q.names[name]
	if n == nil {
		n = &uploadName{held: semaphore.NewWeighted(1)}
		q.names[name] = n
	}
	n.users++
	q.mu.Unlock()
	drop := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if n.users--; n.users == 0 {
			delete(q.names, name)
		}
	}
	if err := n.held.Acquire(ctx, 1); err != nil {
		drop()
		return nil, err
	}
	if err := q.slots.Acquire(ctx, 1); err != nil {
		n.held.Release(1)
		drop()
		return nil, err
	}
	return func() {
		q.slots.Release(1)
		n.held.Release(1)
		drop()
	}, nil
}

// A spooled is a body that has arrived: in memory, or in a file if it is large.
type spooled struct {
	data []byte
	file *os.File
}

func inMemory(data []byte) *spooled { return &spooled{data: data} }

// spool reads a whole body, so that a slow client delays no other. One of more than MaxUploadBytes is
// an *UploadError.
func spool(body io.Reader) (*spooled, error) {
	if body == nil {
		return nil, fmt.Errorf("an upload without a body: %w", assay.ErrInvalid)
	}
	s := &spooled{}
	var err error
	if s.data, err = io.ReadAll(io.LimitReader(body, spoolBytes)); err != nil || len(s.data) < spoolBytes {
		return s, err
	}
	if s.file, err = os.CreateTemp("", "assay-upload-*"); err != nil {
		return nil, fmt.Errorf("keep an upload: %w", err)
	}
	n, err := io.Copy(s.file, io.LimitReader(body, MaxUploadBytes-spoolBytes+1))
	if err == nil && n > MaxUploadBytes-spoolBytes {
		err = &UploadError{Skipped{Reason: source.TooLarge, Detail: fmt.Sprintf("larger than the limit of %d bytes", MaxUploadBytes)}}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// bytes returns the body.
func (s *spooled) bytes() ([]byte, error) {
	if s.file == nil {
		return s.data, nil
	}
	size, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("read an upload: %w", err)
	}
	data := make([]byte, int64(len(s.data))+size)
	n := copy(data, s.data)
	if _, err := s.file.ReadAt(data[n:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read an upload: %w", err)
	}
	return data, nil
}

// Close removes the file.
func (s *spooled) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
