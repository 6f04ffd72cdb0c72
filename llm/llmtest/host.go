package llmtest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a suite waits before it considers a call to hang. It allows for immediate
// events and for thousands of calls in a row, on a slow machine and with the race detector.
const patience = 3 * time.Minute

// A host is a server on loopback whose replies are chosen by a test.
type host struct {
	url    string
	client *http.Client
	close  func() // also checks for leaked goroutines

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

// An answerer answers a request whose body has been read.
type answerer func(w http.ResponseWriter, r *http.Request, body []byte)

// serve starts a host that runs until the test ends or close is called. It then checks that no
// goroutine is left, neither of the server, whose connections must all be released, nor of the
// client.
func serve(t testing.TB, answer answerer) *host {
	before := goleak.IgnoreCurrent()
	h := new(host)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client disconnected
		}
		h.mu.Lock()
		h.requests, h.bodies = append(h.requests, r), append(h.bodies, body)
		h.mu.Unlock()
		answer(w, r, body)
	}))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	h.url, h.client = server.URL, &http.Client{Transport: transport}
	h.close = sync.OnceFunc(func() {
		if !soon(server.Close) {
			t.Error("a call has returned, its connection is still in use")
			return
		}
		transport.CloseIdleConnections()
		if err := leaked(before); err != nil {
			t.Errorf("goroutines that a call has left: %v", err)
		}
	})
	t.Cleanup(h.close)
	return h
}

// leaked returns an error if goroutines are left that were not there before. They may take a moment to
// end, on a busy machine longer than goleak waits by itself.
func leaked(before goleak.Option) error {
	err := goleak.Find(before)
	for deadline := time.Now().Add(patience / 6); err != nil && time.Now().Before(deadline); {
		err = goleak.Find(before)
	}
	return err
}

// soon reports whether f returns within patience.
func soon(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// seen returns the requests so far, and their bodies.
func (h *host) seen() ([]*http.Request, [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests), slices.Clone(h.bodies)
}

// always answers with the body that make returns.
func always(make func(r *http.Request, body []byte) Body) answerer {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		b := make(r, body)
		b.begin(w)
		for _, part := range b.Parts {
			if !send(w, part) {
				return
			}
		}
	}
}

// begin sends the headers of a body.
func (b Body) begin(w http.ResponseWriter) {
	for k, v := range b.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	if b.Type != "" {
		w.Header().Set("Content-Type", b.Type)
	}
	if b.Status != 0 {
		w.WriteHeader(b.Status)
	}
}

// send writes and flushes a part. It reports whether the client is still connected.
func send(w http.ResponseWriter, part []byte) bool {
	if len(part) == 0 {
		return true
	}
	if _, err := w.Write(part); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// with returns b with the given parts.
func (b Body) with(parts ...[]byte) Body {
	b.Parts = parts
	return b
}

// replaced returns b with old replaced by new in each part.
func (b Body) replaced(old, new string) Body {
	parts := make([][]byte, len(b.Parts))
	for i, part := range b.Parts {
		parts[i] = bytes.ReplaceAll(part, []byte(old), []byte(new))
	}
	return b.with(parts...)
}

// bounded returns a context that ends only when a call hangs.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// A canned is a transport without a network, for cases that are too many for a server.
type canned struct {
	reply func(r *http.Request, body []byte) Body
	err   error // the end of each reply's body; nil: io.EOF

	requests, unclosed atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.requests.Add(1)
	c.unclosed.Add(1)
	b := c.reply(r, sent)
	body := io.MultiReader(bytes.NewReader(b.Bytes()), broken{c.err})
	return b.response(r, struct {
		io.Reader
		io.Closer
	}{body, closer(sync.OnceFunc(func() { c.unclosed.Add(-1) }))}), nil
}

// response returns the response to r with the headers of b and another body.
func (b Body) response(r *http.Request, body io.ReadCloser) *http.Response {
	resp := &http.Response{
		StatusCode: cmp.Or(b.Status, http.StatusOK), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, ContentLength: -1, Request: r, Body: body,
	}
	for k, v := range b.Header {
		resp.Header[http.CanonicalHeaderKey(k)] = v
	}
	if b.Type != "" {
		resp.Header.Set("Content-Type", b.Type)
	}
	return resp
}

// A closer is a function as an io.Closer.
type closer func()

// Close implements io.Closer.
func (c closer) Close() error {
	c()
	return nil
}

// checkCall checks that a call made at most one request and closed the reply.
func (c *canned) checkCall(t testing.TB) {
	t.Helper()
	if n := c.requests.Swap(0); n > 1 {
		t.Errorf("%d requests for one call", n)
	}
	if c.unclosed.Swap(0) != 0 {
		t.Error("a call has returned without closing its reply")
	}
}

// fixed returns a function that answers every request with the same body.
func fixed(b Body) func(*http.Request, []byte) Body {
	return func(*http.Request, []byte) Body { return b }
}

// echo returns the credential and a request, for servers that repeat requests in errors.
func echo(r *http.Request) string {
	dump, err := httputil.DumpRequest(r, false)
	if err != nil {
		return err.Error()
	}
	return Canary + " " + string(dump)
}

// silent is a server that accepts requests and never replies.
func silent(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// broken is an empty reader that ends in an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, cmp.Or(b.err, io.EOF) }

// at returns the Setup of a provider that uses the transport. It checks that no goroutine is left
// when the test ends.
func (c *canned) at(t testing.TB) Setup {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := leaked(before); err != nil {
			t.Errorf("goroutines that a call has left: %v", err)
		}
	})
	return Setup{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: c}}
}
