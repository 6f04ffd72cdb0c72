package llmtest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
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
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines that a call has left: %v", err)
		}
	})
	t.Cleanup(h.close)
	return h
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

// A canned is a transport without a network. Its reply to every request is the same body, which
// ends in err if that is set. It is for cases that are too many for a server.
type canned struct {
	body Body
	err  error
}

// RoundTrip implements http.RoundTripper.
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	resp := &http.Response{StatusCode: cmp.Or(c.body.Status, http.StatusOK), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Request: r}
	for k, v := range c.body.Header {
		resp.Header[http.CanonicalHeaderKey(k)] = v
	}
	if c.body.Type != "" {
		resp.Header.Set("Content-Type", c.body.Type)
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(c.body.Bytes()), broken{c.err}))
	return resp, nil
}

// broken is an empty reader that ends in an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, cmp.Or(b.err, io.EOF) }

// at returns the Setup of a provider that uses the transport. It checks that no goroutine is left
// when the test ends.
func (c *canned) at(t testing.TB) Setup {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines that a call has left: %v", err)
		}
	})
	return Setup{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: c}}
}
