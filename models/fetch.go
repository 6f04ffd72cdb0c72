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
)

// A fetcher gets files over HTTP. The zero value is ready.
type fetcher struct {
	client *http.Client // nil: one that asks for nothing but what it is told
	stall  time.Duration
	pause  time.Duration
}

const (
	// stallTime is how long a server may send nothing.
	stallTime = 30 * time.Second

	// A transfer that breaks off is taken up again: maxTries times without a new
	// byte, maxResumes times in all. The pause before a try doubles from firstPause
	// to maxPause, or is what the server asks for, up to maxRetryAfter.
	maxTries      = 5
	maxResumes    = 50
	firstPause    = time.Second
	maxPause      = 16 * time.Second
	maxRetryAfter = time.Minute

	maxRedirects = 10
)

// A wanted is a file to be fetched.
type wanted struct {
	url, path string
	limit     int64 // a longer file is refused
	progress  func(done, total int64, problem error)
}

// An origin says what the beginning of a file in path.part is the beginning of.
type origin struct {
	URL       string `json:"url"`
	Validator string `json:"validator"` // an ETag or a date; what If-Range is given
	Bytes     int64  `json:"bytes"`     // of the whole file; -1: not said
	Linked    string `json:"linked"`    // the SHA-256 that the server says it has
}

func partPath(path string) string   { return path + ".part" }
func originPath(path string) string { return path + ".part.json" }

// A refused is a response that is no file and will not be one.
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

// absent reports whether the file is not there. Servers say 401 or 403 where
// they do not want to say even that.
func (r *refused) absent() bool {
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// get fetches a file to w.path, and goes on where an earlier one broke off. It
// returns the SHA-256 that the server told of it, or "". What was fetched stays
// in path.part when it fails.
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

// A retryError is one that another try may not meet.
type retryError struct {
	err   error
	after time.Duration // 0: the server did not say
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

// once makes one request for the file, or for what is missing of it.
func (f *fetcher) once(ctx context.Context, w wanted) (origin, error) {
	o, have := w.begun()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return o, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	req.Header.Set("Accept-Encoding", "identity") // sizes are those of the file
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
			return o, nil // nothing follows what is there
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

// begun returns what is known of the part that is there, and its size. A part of
// which nothing is known, or that the server cannot go on with, is as none.
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

// refuse says what a response means that brings no file.
func (w wanted) refuse(resp *http.Response) error {
	err := &refused{url: w.url, status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		// The file is shorter than what was fetched: it is another one.
		return errors.Join(w.forget(), &retryError{err: err})
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date is not worth the reading
		return &retryError{err: err, after: time.Duration(max(seconds, 0)) * time.Second}
	}
	return err
}

// forget removes the part that is there, so that the next try begins anew.
func (w wanted) forget() error {
	for _, path := range []string{originPath(w.path), partPath(w.path)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap(err)
		}
	}
	return nil
}

// originOf reads what a response says of the file.
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

// continues returns where in the file the response begins: where the part ends,
// or at 0. A response that fits neither is worth another try, without the part.
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

// parseContentRange reads "bytes 10-99/100"; total is -1 where it is *.
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

// write adds what the server sends to the part, from the offset at on.
func (w wanted) write(ctx context.Context, o origin, at int64, body io.Reader, watch *stallWatch) error {
	record, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if at == 0 { // whatever is there is of another file
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

// A tooLong is a file that is longer than it may be.
type tooLong struct {
	url   string
	limit int64
}

func (t *tooLong) Error() string {
	return fmt.Sprintf("%s has more than the %d bytes that such a file may have", t.url, t.limit)
}
func (t *tooLong) Unwrap() error { return assay.ErrInvalid }

// copy copies until the body ends, and tells what went wrong at which end.
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

// again marks an error of the network as one that may pass, unless the caller
// has called it off.
func again(ctx context.Context, err error, after time.Duration) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errStalled) {
			return cause
		}
		err = fmt.Errorf("%w: %w", errStalled, err)
	}
	if errors.Is(err, errRedirect) {
		return err
	}
	return &retryError{err: err, after: after}
}

var (
	errStalled  = errors.New("the server sends nothing any more")
	errRedirect = errors.New("redirected")
)

// A stallWatch calls a transfer off in which nothing moves.
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

// do sends a request. linked is set to the SHA-256 that a server names while it
// redirects to where the file is (X-Linked-Etag, as Hugging Face does).
func (f *fetcher) do(req *http.Request, linked *string) (*http.Response, error) {
	client := http.Client{}
	if f.client != nil {
		client = *f.client
	}
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
