package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
)

// A fetcher downloads files over HTTP.
type fetcher struct {
	client *http.Client // nil: every download fails
	stall  time.Duration
	pause  time.Duration
}

const (
	// stallTime is the longest time without data from a server.
	stallTime = 30 * time.Second

	// A transfer that breaks off is resumed: maxTries times without new data, maxResumes times in
	// all. The pause before a try doubles from firstPause to maxPause, or is the wait that the
	// server requests, up to maxRetryAfter.
	maxTries      = 5
	maxResumes    = 50
	firstPause    = time.Second
	maxPause      = 16 * time.Second
	maxRetryAfter = time.Minute

	maxRedirects = 10
)

// A wanted is a file to download.
type wanted struct {
	url, path string
	limit     int64 // a longer file is rejected
	progress  func(done, total int64, problem error)
}

// An origin describes the file of which path.part is the beginning.
type origin struct {
	URL       string `json:"url"`
	Validator string `json:"validator"` // an ETag or a date, for If-Range
	Bytes     int64  `json:"bytes"`     // of the whole file; -1 if unknown
	Linked    string `json:"linked"`    // its SHA-256 according to the server
}

func partPath(path string) string   { return path + ".part" }
func originPath(path string) string { return path + ".part.json" }

// A refused is a response that contains no file and does not justify a retry.
type refused struct {
	url    string
	status int
}

func (r *refused) Error() string {
	return fmt.Sprintf("%s: the server answers %d %s", r.url, r.status, http.StatusText(r.status))
}

func (r *refused) Unwrap() error {
	if r.absent() {
		return assay.ErrNotFound
	}
	return nil
}

// absent reports whether the file does not exist. Some servers answer 401 or 403 for missing files.
func (r *refused) absent() bool {
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// get downloads a file to w.path and resumes an earlier download that broke off. It returns the
// SHA-256 announced by the server, or "". If it fails, the data remains in path.part.
func (f *fetcher) get(ctx context.Context, w wanted) (linked string, err error) {
	pause := cmp.Or(f.pause, firstPause)
	tries := 0
	for range maxResumes {
		before := partSize(w.path)
		o, err := f.once(ctx, w)
		if err == nil {
			return o.Linked, wrap(os.Rename(partPath(w.path), w.path))
		}
		var later *retryError
		if ctx.Err() != nil || !errors.As(err, &later) {
			return "", err
		}
		tries++
		if partSize(w.path) > before {
			tries, pause = 1, cmp.Or(f.pause, firstPause)
		}
		if tries >= maxTries {
			return "", fmt.Errorf("%w (tried %d times)", later.err, tries)
		}
		w.progress(partSize(w.path), o.Bytes, later.err)
		if err := sleep(ctx, min(cmp.Or(later.after, pause), maxRetryAfter)); err != nil {
			return "", err
		}
		pause = min(2*pause, maxPause)
	}
	return "", fmt.Errorf("%s: broke off %d times", w.url, maxResumes)
}

// A retryError is an error after which another try may succeed.
type retryError struct {
	err   error
	after time.Duration // 0 if the server gave none
}

func (r *retryError) Error() string { return r.err.Error() }
func (r *retryError) Unwrap() error { return r.err }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func partSize(path string) int64 {
	info, err := os.Stat(partPath(path))
	if err != nil {
		return 0
	}
	return info.Size()
}

// once makes one request for the file or for its missing part.
func (f *fetcher) once(ctx context.Context, w wanted) (origin, error) {
	o, have := w.begun()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return o, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	req.Header.Set("Accept-Encoding", "identity") // sizes must be those of the file
	req.Header.Set("User-Agent", "assay")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		req.Header.Set("If-Range", o.Validator)
	}
	watch := f.watch(cancel)
	defer watch.Stop()
	linked := ""
	resp, err := f.do(req, &linked)
	if err != nil {
		return o, again(ctx, err, 0)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		if have > 0 && have == o.Bytes && resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return o, nil // the part is already complete
		}
		return o, w.refuse(resp)
	}
	next := originOf(resp, w.url, linked)
	at, err := next.continues(resp, o, have)
	if later := new(retryError); errors.As(err, &later) {
		return o, errors.Join(w.forget(), err)
	}
	if err != nil {
		return o, err
	}
	if next.Bytes > w.limit {
		return o, fmt.Errorf("%s has %d bytes, more than the %d that such a file may have: %w", w.url, next.Bytes, w.limit, assay.ErrInvalid)
	}
	return next, w.write(ctx, next, at, resp.Body, watch)
}

// begun returns the origin and the size of the existing part. It ignores a part without an origin,
// or one that the server cannot resume.
func (w wanted) begun() (origin, int64) {
	data, err := os.ReadFile(originPath(w.path))
	if err != nil {
		return origin{Bytes: -1}, 0
	}
	var o origin
	have := partSize(w.path)
	if json.Unmarshal(data, &o) != nil || o.URL != w.url || o.Validator == "" || o.Bytes >= 0 && have > o.Bytes {
		return origin{Bytes: -1}, 0
	}
	return o, have
}

// refuse returns the error for a response without a file.
func (w wanted) refuse(resp *http.Response) error {
	err := &refused{url: w.url, status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		// The file is shorter than the part, so it is another file.
		return errors.Join(w.forget(), &retryError{err: err})
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // the date form is ignored
		return &retryError{err: err, after: time.Duration(max(seconds, 0)) * time.Second}
	}
	return err
}

// forget removes the existing part, so that the next try starts over.
func (w wanted) forget() error {
	for _, path := range []string{originPath(w.path), partPath(w.path)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap(err)
		}
	}
	return nil
}

// originOf returns the origin described by a response.
func originOf(resp *http.Response, url, linked string) origin {
	o := origin{URL: url, Bytes: -1, Linked: linked}
	if tag := resp.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		o.Validator = tag
	} else if tag == "" {
		o.Validator = resp.Header.Get("Last-Modified")
	}
	if resp.StatusCode == http.StatusOK && resp.ContentLength >= 0 {
		o.Bytes = resp.ContentLength
	}
	return o
}

// continues returns the offset in the file at which the response starts: the end of the part, or 0.
// If it is neither, the part must be dropped before another try.
func (o *origin) continues(resp *http.Response, before origin, have int64) (int64, error) {
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return 0, fmt.Errorf("%s: the server sends it as %s, unasked", o.URL, encoding)
	}
	if resp.StatusCode == http.StatusOK {
		return 0, nil
	}
	start, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
	if !ok || start != have || before.Bytes >= 0 && total >= 0 && total != before.Bytes || o.Validator != before.Validator {
		return 0, &retryError{err: fmt.Errorf("%s: asked for what follows byte %d, the server sent %q of another file",
			o.URL, have, resp.Header.Get("Content-Range"))}
	}
	if o.Bytes = total; total < 0 {
		o.Bytes = before.Bytes
	}
	if o.Linked == "" {
		o.Linked = before.Linked
	}
	return start, nil
}

// parseContentRange parses "bytes 10-99/100"; total is -1 if it is *.
func parseContentRange(s string) (start, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	span, size, cut := strings.Cut(s, "/")
	first, _, dash := strings.Cut(span, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	if !ok || !cut || !dash || err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return start, -1, true
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return start, total, err == nil && total >= 0
}

// write appends the response body to the part, starting at offset at.
func (w wanted) write(ctx context.Context, o origin, at int64, body io.Reader, watch *stallWatch) error {
	record, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if at == 0 { // any existing part belongs to another file
		if err := os.Remove(partPath(w.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap(err)
		}
	}
	if err := writeFile(originPath(w.path), record); err != nil {
		return err
	}
	part, err := os.OpenFile(partPath(w.path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return wrap(err)
	}
	readErr, writeErr := w.copy(part, at, o.Bytes, body, watch)
	if writeErr == nil {
		writeErr = part.Sync()
	}
	if err := wrap(errors.Join(writeErr, part.Close())); err != nil {
		return err
	}
	if readErr != nil {
		if _, final := errors.AsType[*tooLong](readErr); final {
			return readErr
		}
		return again(ctx, fmt.Errorf("%s: %w", w.url, readErr), 0)
	}
	return nil
}

// A tooLong is an error about a file over its size limit.
type tooLong struct {
	url   string
	limit int64
}

func (t *tooLong) Error() string {
	return fmt.Sprintf("%s has more than the %d bytes that such a file may have", t.url, t.limit)
}
func (t *tooLong) Unwrap() error { return assay.ErrInvalid }

// copy copies until the body ends. It returns errors of reading and of writing separately.
func (w wanted) copy(part io.Writer, at, total int64, body io.Reader, watch *stallWatch) (readErr, writeErr error) {
	buffer := make([]byte, 128<<10)
	for {
		n, err := body.Read(buffer)
		watch.Reset()
		if at += int64(n); at > w.limit {
			return &tooLong{w.url, w.limit}, nil
		}
		if _, err := part.Write(buffer[:n]); err != nil {
			return nil, err
		}
		w.progress(at, total, nil)
		switch {
		case err == io.EOF && total >= 0 && at < total:
			return io.ErrUnexpectedEOF, nil
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return err, nil
		}
	}
}

// again marks a network error as temporary, unless the caller has cancelled the transfer.
func again(ctx context.Context, err error, after time.Duration) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errStalled) {
			return cause
		}
		err = fmt.Errorf("%w: %w", errStalled, err)
	}
	if errors.Is(err, errRedirect) || errors.Is(err, egress.ErrRefused) {
		return err
	}
	return &retryError{err: err, after: after}
}

var (
	errStalled  = errors.New("the server sends nothing any more")
	errRedirect = errors.New("redirected")
)

// A stallWatch cancels a transfer that stalls.
type stallWatch struct {
	timer *time.Timer
	after time.Duration
}

func (f *fetcher) watch(cancel context.CancelCauseFunc) *stallWatch {
	after := cmp.Or(f.stall, stallTime)
	return &stallWatch{time.AfterFunc(after, func() { cancel(errStalled) }), after}
}

func (s *stallWatch) Reset() { s.timer.Reset(s.after) }
func (s *stallWatch) Stop()  { s.timer.Stop() }

// do sends a request. It sets linked to the SHA-256 that a server sends with a redirect
// (X-Linked-Etag, as Hugging Face does).
func (f *fetcher) do(req *http.Request, linked *string) (*http.Response, error) {
	if f.client == nil {
		return nil, fmt.Errorf("no client for downloads is configured: %w", egress.ErrRefused)
	}
	client := *f.client
	note := func(resp *http.Response) {
		if tag := strings.Trim(resp.Header.Get("X-Linked-Etag"), `"`); isSum(tag) {
			*linked = strings.ToLower(tag)
		}
	}
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		note(next.Response)
		switch {
		case len(via) >= maxRedirects:
			return fmt.Errorf("%w more than %d times", errRedirect, maxRedirects)
		case via[0].URL.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("%w to %s, which is not encrypted", errRedirect, next.URL.Redacted())
		}
		return nil
	}
	resp, err := client.Do(req)
	if err == nil {
		note(resp)
	}
	return resp, err
}
