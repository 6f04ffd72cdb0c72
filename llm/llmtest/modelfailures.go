package llmtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm"
)

// testFailures checks that each error of a server gets its kind.
func (s suite) testFailures(t *testing.T) {
	required := map[llm.ErrorKind]bool{llm.RateLimited: true, llm.ServerError: true, llm.BadKey: true, llm.BadRequest: true}
	for _, kind := range kinds {
		failure := Failure{Kind: kind, Message: "the server's own words"}
		body, has := s.Fail(failure)
		if !has {
			if required[kind] {
				t.Errorf("no server of this format says %q", kind)
			}
			continue
		}
		t.Run(string(kind), func(t *testing.T) { s.checkFailure(t, failure, body) })
		failure.RetryAfter = 7 * time.Second
		if body, has := s.Fail(failure); has && !s.lacks(RetryAfter) && kind.Temporary() {
			t.Run(string(kind)+", and when to ask again", func(t *testing.T) { s.checkFailure(t, failure, body) })
		}
		if s.FailLate != nil && s.stream {
			if body, has := s.FailLate(story(), failure); has {
				t.Run(string(kind)+", late", func(t *testing.T) { s.checkLate(t, kind, body) })
			}
		}
	}
	t.Run("not of the format", s.testForeign)
	if !s.lacks(RetryAfter) {
		t.Run("when to ask again", s.testRetryAfter)
	}
	t.Run("unreachable", s.testUnreachable)
	t.Run("redirect", s.testRedirect)
}

func (s suite) checkFailure(t *testing.T, f Failure, body Body) {
	o := s.exchange(t, always(fixed(body)), question())
	e, ok := errors.AsType[*llm.Error](o.err)
	if !ok {
		t.Fatalf("%v, want an *llm.Error", o)
	}
	if e.Kind != f.Kind || body.Status != 0 && e.Status != body.Status || e.RetryAfter != f.RetryAfter {
		t.Errorf("kind %q, status %d, wait %v; want %q, %d, %v", e.Kind, e.Status, e.RetryAfter, f.Kind, body.Status, f.RetryAfter)
	}
	if !strings.Contains(e.Message, f.Message) {
		t.Errorf("the message is %q, want what the server said in it: %q", e.Message, f.Message)
	}
}

// checkLate checks an error event within a stream.
func (s suite) checkLate(t *testing.T, kind llm.ErrorKind, body Body) {
	o := s.exchange(t, always(fixed(body)), question())
	if o.kind() != kind {
		t.Errorf("%v, want an error of the kind %q", o, kind)
	}
	if told, all := strings.Join(o.told, ""), strings.Join(story().Pieces, ""); !strings.HasPrefix(all, told) {
		t.Errorf("the stream was told %q", told)
	}
}

// testForeign checks errors that were written by a proxy in between.
func (s suite) testForeign(t *testing.T) {
	tests := []struct {
		status int
		kind   llm.ErrorKind // "" means that only temporariness is checked
		passes bool
	}{
		{400, llm.BadRequest, false}, {401, llm.BadKey, false}, {403, llm.BadKey, false}, {404, "", false}, {407, "", false}, {408, "", true},
		{413, "", false}, {418, "", false}, {422, llm.BadRequest, false}, {429, llm.RateLimited, true}, {500, llm.ServerError, true},
		{502, llm.ServerError, true}, {503, llm.Overloaded, true}, {504, "", true}, {529, llm.Overloaded, true},
	}
	call := s.quick(t)
	for _, test := range tests {
		for _, words := range []string{"<html><head><title>Bad\r\n gateway</title></head><body>\x00\xff</body></html>", "", `{"error":17}`, `["x"]`, `{"message":null,"error":{"message":{},"code":[],"type":7,"details":"x"}}`} {
			t.Run(fmt.Sprintf("%d %.8q", test.status, words), func(t *testing.T) {
				body := Body{Status: test.status, Type: "text/html", Parts: [][]byte{[]byte(words)}}
				o := call(t, fixed(body), question())
				e, ok := errors.AsType[*llm.Error](o.err)
				if !ok || e.Status != test.status || e.Kind.Temporary() != test.passes || test.kind != "" && e.Kind != test.kind {
					t.Errorf("%v, want an error of the kind %q (temporary: %v) and the status %d", o, test.kind, test.passes, test.status)
				}
			})
		}
	}
	for _, status := range []int{201, 202, 204, 206, 300, 304} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			if o := call(t, fixed(Body{Status: status}), question()); o.kind() == "" {
				t.Errorf("%v, want an *llm.Error", o)
			}
		})
	}
}

// testRetryAfter checks the waits that proxies and hostile servers send.
func (s suite) testRetryAfter(t *testing.T) {
	tests := []struct {
		header    string
		low, high time.Duration
	}{
		{"7", 7 * time.Second, 7 * time.Second},
		{time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Minute, time.Hour},
		{time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0},
		{"-5", 0, 0}, {"soon", 0, 0}, {"", 0, 0}, {"NaN", 0, 0},
		{"99999999999999999999", 0, 1<<63 - 1}, {"1e300", 0, 1<<63 - 1}, {"9223372036", 0, 1<<63 - 1}, {"18446744073", 0, 1<<63 - 1},
	}
	call := s.quick(t)
	for _, test := range tests {
		body := Body{Status: 429, Type: "text/plain", Parts: [][]byte{[]byte("slow down")}, Header: http.Header{"Retry-After": {test.header}}}
		o := call(t, fixed(body), question())
		e, ok := errors.AsType[*llm.Error](o.err)
		if !ok || e.RetryAfter < test.low || e.RetryAfter > test.high {
			t.Errorf("Retry-After: %s: %v with %+v, want a wait in [%v, %v]", test.header, o, e, test.low, test.high)
		}
	}
}

// testUnreachable checks calls that get no reply.
func (s suite) testUnreachable(t *testing.T) {
	h := serve(t, func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) })
	if o := ask(bounded(t), t, s.open(t, h, Setup{}), question()); !o.kind().Temporary() {
		t.Errorf("a server that hangs up: %v, want an error that is temporary", o)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	m := s.Open(t, Setup{BaseURL: closed.URL, HTTP: h.client, Stream: s.stream})
	if o := ask(bounded(t), t, m, question()); o.kind() != llm.Unreachable {
		t.Errorf("nobody listens: %v, want an error of the kind %q", o, llm.Unreachable)
	}
}

// testRedirect checks that redirects are not followed.
func (s suite) testRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var followed atomic.Bool
		elsewhere := serve(t, func(http.ResponseWriter, *http.Request, []byte) { followed.Store(true) })
		o := s.exchange(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, elsewhere.url+r.URL.Path, status)
		}, question())
		if o.kind() == "" || followed.Load() {
			t.Errorf("%d: %v, followed: %v; want an *llm.Error and nothing sent", status, o, followed.Load())
		}
	}
}

// testSecrets checks that the credential does not appear in an error, even if a server echoes the
// request.
func (s suite) testSecrets(t *testing.T) {
	call := s.quick(t)
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			call(t, func(r *http.Request, _ []byte) Body {
				body, _ := s.Fail(Failure{Kind: kind, Message: echo(r)}) // without such an error, an empty reply, which also is an error
				return body
			}, question())
		})
		if s.FailLate != nil && s.stream {
			t.Run(string(kind)+", late", func(t *testing.T) {
				call(t, func(r *http.Request, _ []byte) Body {
					body, _ := s.FailLate(story(), Failure{Kind: kind, Message: echo(r)})
					return body
				}, question())
			})
		}
	}
	for _, status := range []int{200, 301, 400, 401, 404, 429, 500} {
		for _, form := range append(slices.Clone(errorForms), "data: %[1]q\n\ndata: {%[1]q", "event: error\ndata: {\"error\":%q}\n\n", "event: %s\n\n") {
			t.Run(fmt.Sprintf("%d %.20q", status, form), func(t *testing.T) {
				call(t, func(r *http.Request, _ []byte) Body {
					body := Body{Status: status, Type: "application/json", Parts: [][]byte{fmt.Appendf(nil, form, echo(r))}}
					if strings.Contains(form, "data: ") {
						body.Type = "text/event-stream"
					}
					body.Header = http.Header{"Location": {"http://" + Canary + ".invalid/" + Canary}, "Retry-After": {Canary}, "X-Request-Id": {Canary}}
					return body
				}, question())
			})
		}
	}
	t.Run("the transport tells", func(t *testing.T) {
		m := s.Open(t, Setup{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: teller{}}, Stream: s.stream})
		ask(bounded(t), t, m, question())
	})
	t.Run("addresses", func(t *testing.T) {
		h := serve(t, s.reply(story()))
		ask(bounded(t), t, s.open(t, h, Setup{}), conversation())
		requests, _ := h.seen()
		for _, r := range requests {
			checkAddress(t, r)
		}
	})
}

// errorForms are formats of errors with a message, of various services.
var errorForms = []string{"%s", `{"error":%q}`, `{"error":{"message":%q}}`, `{"message":%q}`, `{%q:1}`}

// A teller is a transport whose errors contain the request.
type teller struct{}

func (teller) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, fmt.Errorf("proxy refused %s with %v", r.URL, r.Header)
}
