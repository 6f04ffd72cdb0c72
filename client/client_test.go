package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

const secretText = "assay_credential-of-a-test"

// A recorder answers with its responses in turn, the last again and again, and keeps the requests.
type recorder struct {
	responses []func(http.ResponseWriter)

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	h.requests, h.bodies = append(h.requests, r), append(h.bodies, string(body))
	next := h.responses[min(len(h.requests), len(h.responses))-1]
	h.mu.Unlock()
	next(w)
}

// seen returns the requests so far.
func (h *recorder) seen() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// texts returns their bodies.
func (h *recorder) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bodies)
}

// respond returns a response with a header of pairs.
func respond(status int, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func breakOff(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// newTestClient returns a client of the handler that does not wait, and its waits.
func newTestClient(t *testing.T, h http.Handler, o Options) (*Client, *[]time.Duration) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	c.wait = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	return c, &waits
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base string
		o    Options
		ok   bool
	}{
		{base: "http://127.0.0.1:8484", ok: true},
		{base: "https://assay.example.com/", ok: true},
		{base: "http://127.0.0.1", o: Options{Credential: secretText}, ok: true},
		{base: "http://[::1]", o: Options{Credential: secretText}, ok: true},
		{base: "http://localhost", o: Options{Credential: secretText}, ok: true},
		{base: "https://assay.example.com", o: Options{Credential: secretText}, ok: true},
		{base: "http://assay", o: Options{Credential: secretText}},
		{base: "http://127.0.0.1.example.com", o: Options{Credential: secretText}},
		{base: "http://assay", o: Options{Credential: secretText, PlainHTTP: true}, ok: true},
		{base: "https://x", o: Options{Credential: secretText + "\r\nX: y"}},
		{base: "https://user:" + secretText + "@x"},
		{base: "https://x/api"},
		{base: "https://x?key=" + secretText},
		{base: "ftp://x"},
		{base: "assay.example.com"},
		{base: "https://" + secretText + "%zz"},
		{base: ""},
	} {
		_, err := New(test.base, test.o)
		if test.ok != (err == nil) || err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("New(%q): %v", test.base, err)
		}
		if err != nil && strings.Contains(err.Error(), secretText) {
			t.Errorf("New(%q): the error has the credential", test.base)
		}
	}
}

// TestErrors checks that problem details become errors of their kinds.
func TestErrors(t *testing.T) {
	t.Parallel()
	problem := func(kind string) string {
		return fmt.Sprintf(`{"type":"/problems/%s","title":"T","status":1,"detail":"it is %s"}`, kind, secretText)
	}
	for _, test := range []struct {
		status int
		media  string
		body   string
		want   error
	}{
		{404, "application/problem+json", problem("not_found"), assay.ErrNotFound},
		{409, "application/problem+json", problem("leased"), assay.ErrLeased},
		{409, "application/problem+json; charset=utf-8", problem("diverged"), assay.ErrDiverged},
		{503, "application/problem+json", problem("stopped"), assay.ErrStopped},
		{403, "application/problem+json", `{"type":"about:blank","status":403}`, assay.ErrForbidden},
		{401, "application/problem+json", `{"type":"about:blank","status":401}`, assay.ErrUnauthenticated},
		{404, "text/html", "<h1>not here</h1>", assay.ErrNotFound},
		{413, "application/problem+json", problem("too_large"), nil},
		{503, "text/plain", "down", nil}, // several kinds have this status
		{500, "application/problem+json", "not JSON", nil},
		{302, "text/html", "", nil},
	} {
		c, _ := newTestClient(t, &recorder{responses: []func(http.ResponseWriter){respond(test.status, test.body, "Content-Type", test.media, "Location", "https://elsewhere.example.com")}},
			Options{Credential: secretText})
		_, err := c.ServiceHealth(t.Context())
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != test.status || e.Method != "GET" || e.Path != "/healthz" {
			t.Errorf("%d %s: %v", test.status, test.body, err)
			continue
		}
		if !errors.Is(err, test.want) && test.want != nil || test.want == nil && e.Unwrap() != nil {
			t.Errorf("%d %s: %v, want %v", test.status, test.body, e.Unwrap(), test.want)
		}
		if strings.Contains(err.Error(), secretText) {
			t.Errorf("%d: the error has the credential: %v", test.status, err)
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	ok := respond(200, `{"status":"alive"}`)
	busy := respond(503, "", "Retry-After", "2")
	for name, test := range map[string]struct {
		responses []func(http.ResponseWriter)
		o         Options
		post      bool // without an idempotency key in the route's input
		requests  int
		waits     []time.Duration
		fails     bool
	}{
		"at once":                 {responses: []func(http.ResponseWriter){ok}, requests: 1},
		"503, then 429":           {responses: []func(http.ResponseWriter){busy, respond(429, "", "Retry-After", "1"), ok}, requests: 3, waits: []time.Duration{2 * time.Second, time.Second}},
		"POST is tried again too": {responses: []func(http.ResponseWriter){busy, ok}, post: true, requests: 2, waits: []time.Duration{2 * time.Second}},
		"not for ever":            {responses: []func(http.ResponseWriter){busy}, o: Options{Retries: 2}, requests: 3, waits: []time.Duration{2 * time.Second, 2 * time.Second}, fails: true},
		"never":                   {responses: []func(http.ResponseWriter){busy, ok}, o: Options{Retries: -1}, requests: 1, fails: true},
		"no Retry-After":          {responses: []func(http.ResponseWriter){respond(503, ""), ok}, requests: 1, fails: true},
		"too long":                {responses: []func(http.ResponseWriter){respond(429, "", "Retry-After", "86400"), ok}, requests: 1, fails: true},
		"no number":               {responses: []func(http.ResponseWriter){respond(429, "", "Retry-After", "soon"), ok}, requests: 1, fails: true},
		"another status":          {responses: []func(http.ResponseWriter){respond(404, "", "Retry-After", "1"), ok}, requests: 1, fails: true},
		"broken off":              {responses: []func(http.ResponseWriter){breakOff, ok}, requests: 2, waits: []time.Duration{100 * time.Millisecond}},
		"POST broken off":         {responses: []func(http.ResponseWriter){breakOff, ok}, post: true, requests: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &recorder{responses: test.responses}
			c, waits := newTestClient(t, h, test.o)
			q := newCall("GET", "/x")
			if test.post {
				q = newCall("POST", "/x")
				q.json(map[string]int{"a": 1})
			}
			_, err := fetch[map[string]string](t.Context(), c, q)
			if (err != nil) != test.fails || len(h.seen()) != test.requests {
				t.Errorf("%d requests, %v; want %d", len(h.seen()), err, test.requests)
			}
			if diff := cmp.Diff(test.waits, *waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			for i, r := range h.seen() {
				if test.post && (h.texts()[i] != `{"a":1}` || r.Header.Get("Idempotency-Key") == "" ||
					r.Header.Get("Idempotency-Key") != h.seen()[0].Header.Get("Idempotency-Key")) {
					t.Errorf("attempt %d: body %q, key %q", i, h.texts()[i], r.Header.Get("Idempotency-Key"))
				}
			}
		})
	}
}

// TestRetryDate checks a Retry-After with a date.
func TestRetryDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := http.Header{"Retry-After": {now.Add(5 * time.Second).Format(http.TimeFormat)}}
	if got := retryAfter(h, now); got != 5*time.Second {
		t.Errorf("%s, want 5s", got)
	}
	if got := retryAfter(h, now.Add(time.Minute)); got != 0 {
		t.Errorf("a date that is past: %s, want 0", got)
	}
}

// TestIdempotencyKey checks that the caller can choose the key, and that the body of a reader that
// cannot be read again is sent once.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := &recorder{responses: []func(http.ResponseWriter){respond(503, "", "Retry-After", "1")}}
	c, _ := newTestClient(t, h, Options{})
	q := newCall("POST", "/x")
	q.send(io.MultiReader(strings.NewReader("once")), "*/*")
	if err := c.finish(WithIdempotencyKey(t.Context(), "mine"), q); err == nil || len(h.seen()) != 1 {
		t.Errorf("%d requests, %v, want 1", len(h.seen()), err)
	}
	if r := h.seen()[0]; r.Header.Get("Idempotency-Key") != "mine" || h.texts()[0] != "once" || r.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("header %v, body %q", r.Header, h.texts()[0])
	}
}

// TestForm checks that a form has the media type with its boundary.
func TestForm(t *testing.T) {
	t.Parallel()
	q := newCall("POST", "/x")
	q.form(strings.NewReader(""), "b 1")
	if got, want := q.header.Get("Content-Type"), `multipart/form-data; boundary="b 1"`; got != want || q.err != nil {
		t.Errorf("%s, %v; want %s", got, q.err, want)
	}
	q.set("Content-Type", "text/plain")
	if got := q.header.Values("Content-Type"); len(got) != 1 || got[0] != "text/plain" {
		t.Errorf("Content-Type %q", got)
	}
	q.form(strings.NewReader(""), "")
	if !errors.Is(q.err, assay.ErrInvalid) {
		t.Errorf("no boundary: %v", q.err)
	}
}

// TestTransportErrors checks that errors of connections are of a kind, and without the text of a query.
func TestTransportErrors(t *testing.T) {
	t.Parallel()
	c, _ := newTestClient(t, &recorder{responses: []func(http.ResponseWriter){breakOff}}, Options{Credential: secretText})
	q := newCall("GET", "/search")
	q.param("q", "text of the question")
	err := c.finish(t.Context(), q)
	if !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), "question") || strings.Contains(err.Error(), secretText) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.finish(ctx, newCall("GET", "/x")); !errors.Is(err, context.Canceled) || errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestRedirect checks that a credential does not follow a redirect.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := &recorder{responses: []func(http.ResponseWriter){respond(200, `{}`)}}
	s := httptest.NewServer(other)
	t.Cleanup(s.Close)
	c, _ := newTestClient(t, &recorder{responses: []func(http.ResponseWriter){respond(307, "", "Location", s.URL)}}, Options{Credential: secretText})
	if _, err := c.ServiceHealth(t.Context()); err == nil || len(other.seen()) != 0 {
		t.Errorf("%v, %d requests followed the redirect", err, len(other.seen()))
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern string
		values  []string
		want    string
	}{
		{"/runs/{id}/events", []string{"a b/c?d"}, "/runs/a%20b%2Fc%3Fd/events"},
		{"/docs/{uri...}", []string{"folder/file#1.md"}, "/docs/folder/file%231.md"},
		{"/c/{a}/d/{b}", []string{"1", "2"}, "/c/1/d/2"},
		{"/runs/{id}", []string{".."}, ""},
		{"/runs/{id}", []string{"."}, ""},
		{"/runs/{id}", []string{""}, ""},
		{"/docs/{uri...}", []string{"a/../b"}, ""},
		{"/docs/{uri...}", []string{"/a"}, ""},
	} {
		h := &recorder{responses: []func(http.ResponseWriter){respond(200, `{}`)}}
		c, _ := newTestClient(t, h, Options{})
		err := c.finish(t.Context(), newCall("GET", test.pattern, test.values...))
		switch {
		case test.want == "" && !errors.Is(err, assay.ErrInvalid):
			t.Errorf("%s with %q: %v, want ErrInvalid", test.pattern, test.values, err)
		case test.want != "" && (err != nil || h.seen()[0].RequestURI != test.want):
			t.Errorf("%s with %q: %v, %v; want %s", test.pattern, test.values, h.seen(), err, test.want)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	type word string
	yes, none := true, (*int)(nil)
	q := newCall("GET", "/x")
	q.param("s", "a&b")
	q.param("n", 3)
	q.param("zero", 0)
	q.param("b", &yes)
	q.param("none", none)
	q.param("l", []string{"1", "2"})
	q.param("t", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	q.param("w", word("x"))
	q.param("nil", nil)
	if got, want := q.query.Encode(), "b=true&l=1&l=2&n=3&s=a%26b&t=2026-01-02T03%3A04%3A05Z&w=x"; got != want || q.err != nil {
		t.Errorf("%s, %v; want %s", got, q.err, want)
	}
	q.param("struct", struct{ A int }{1})
	if !errors.Is(q.err, assay.ErrInvalid) {
		t.Errorf("a struct: %v", q.err)
	}
}

// TestLargeResponse checks that a response without an end is an error.
func TestLargeResponse(t *testing.T) {
	t.Parallel()
	data, err := readAll(bytes.NewReader(make([]byte, 11)), 10)
	if err == nil {
		t.Errorf("%d bytes, want an error", len(data))
	}
	if data, err := readAll(bytes.NewReader(make([]byte, 10)), 10); err != nil || len(data) != 10 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
