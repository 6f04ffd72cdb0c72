package wire_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-canary-7f3a9c51d2e84b06"

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// hasty returns a client with short timeouts.
func hasty() *wire.Client {
	c := client()
	c.Idle, c.First = 200*time.Millisecond, 200*time.Millisecond
	return c
}

// client returns a client with timeouts long enough for a slow machine.
func client() *wire.Client {
	return &wire.Client{
		HTTP: http.DefaultClient,
		Name: "test/model", Secrets: []wire.Secret{wire.NewSecret(key)}, Idle: 20 * time.Second, First: 20 * time.Second, MaxBytes: 1 << 16,
		Header: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) },
	}
}

// checkKind checks that err is an *llm.Error of the given kind without a secret.
func checkKind(t *testing.T, err error, kind llm.ErrorKind) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != kind || e.Model != "test/model" || e.Usage.Calls != 1 {
		t.Fatalf("%v (%+v), want an *llm.Error of the kind %q", err, e, kind)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", err, e), "canary") {
		t.Errorf("the error tells the key: %v", err)
	}
	return e
}

func TestJSON(t *testing.T) {
	type message struct {
		Text string `json:"text"`
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("User-Agent") != "assay" {
			t.Errorf("headers %v", r.Header)
		}
		fmt.Fprintf(w, `{"text":%q}`, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
	})
	var out message
	if err := client().JSON(t.Context(), http.MethodPost, url, message{"a <b> & c"}, &out); err != nil || out.Text != `POST application/json {"text":"a <b> & c"}`+"\n" {
		t.Errorf("%q, %v", out.Text, err)
	}
	if err := client().JSON(t.Context(), http.MethodGet, url, nil, &out); err != nil || out.Text != "GET  " {
		t.Errorf("%q, %v", out.Text, err)
	}
	if err := client().JSON(t.Context(), http.MethodGet, url, nil, nil); err != nil {
		t.Error(err)
	}
	checkKind(t, client().JSON(t.Context(), http.MethodPost, url, func() {}, &out), llm.BadRequest)
	checkKind(t, client().JSON(t.Context(), http.MethodPost, "http://[::1", nil, &out), llm.BadRequest)
	checkKind(t, client().JSON(t.Context(), http.MethodPost, "gopher://x?key="+key, nil, &out), llm.Unreachable)
}

// TestBadReplies checks bad replies with a successful status.
func TestBadReplies(t *testing.T) {
	send := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, p := range parts {
				io.WriteString(w, p)
				w.(http.Flusher).Flush()
			}
		}
	}
	wait := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	tests := []struct {
		name   string
		reply  http.HandlerFunc
		json   llm.ErrorKind
		stream llm.ErrorKind // empty: it ends normally
	}{
		{"nothing", send(""), llm.BrokeOff, ""},
		{"no JSON", send("<html>" + key), llm.BadReply, ""},
		{"other JSON", send("[1, 2]"), llm.BadReply, ""},
		{"JSON and more", send("{} x"), llm.BadReply, ""},
		{"cut JSON", send(`{"text":"a`), llm.BrokeOff, ""},
		{"too much", send(`{"text":"` + strings.Repeat("a", 1<<16) + `"}`), llm.TooLarge, llm.TooLarge},
		{"too much of events", send("data: " + strings.Repeat("a", 1<<16)), llm.BadReply, llm.TooLarge},
		{"a connection that breaks", func(w http.ResponseWriter, r *http.Request) {
			send("data: 1\n\ndata: ")(w, r)
			panic(http.ErrAbortHandler)
		}, llm.BrokeOff, llm.BrokeOff},
		{"none at all", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, llm.Unreachable, llm.Unreachable},
		{"silence", wait, llm.TimedOut, llm.TimedOut},
		{"silence before", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, llm.TimedOut, llm.TimedOut},
		{"silence in the middle", func(w http.ResponseWriter, r *http.Request) {
			send(`data: {"text":`)(w, r)
			wait(w, r)
		}, llm.TimedOut, llm.TimedOut},
		{"a bomb", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, ": "+strings.Repeat(" ", 1<<20))
			z.Close()
		}, llm.TooLarge, llm.TooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // lets the server notice a disconnecting client
				w.Header().Set("Content-Type", "text/event-stream")
				test.reply(w, r)
			})
			var out struct{ Text string }
			kind := test.json
			if test.name == "too much of events" {
				kind = llm.TooLarge
			}
			c := client()
			if kind == llm.TimedOut {
				c = hasty()
			}
			checkKind(t, c.JSON(t.Context(), http.MethodPost, url, 1, &out), kind)
			err := c.Stream(t.Context(), url, 1, func(string, []byte) error { return nil })
			if test.stream != "" {
				checkKind(t, err, test.stream)
			} else if err != nil {
				t.Errorf("the stream: %v", err)
			}
		})
	}
	t.Run("a closed port", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		checkKind(t, client().JSON(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/?key="+key, 1, nil), llm.Unreachable)
	})
	t.Run("a client that gives up", func(t *testing.T) {
		c := client()
		c.First, c.HTTP = 0, &http.Client{Timeout: 50 * time.Millisecond}
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			wait(w, r)
		})
		checkKind(t, c.JSON(t.Context(), http.MethodPost, url, 1, nil), llm.TimedOut)
	})
}

// TestContext checks that the error is that of the caller's context if it has ended.
func TestContext(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data: 1\n\ndata: 2\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, end := range map[string]func() (context.Context, context.CancelFunc){
		"cancelled": func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 50*time.Millisecond)
		},
	} {
		ctx, cancel := end()
		n := 0
		err := client().Stream(ctx, url, 1, func(string, []byte) error {
			if n++; name == "cancelled" {
				cancel()
			}
			return nil
		})
		if _, ok := errors.AsType[*llm.Error](err); ok || !errors.Is(err, ctx.Err()) || name == "cancelled" && n != 1 {
			t.Errorf("%s: %v after %d events", name, err, n)
		}
		cancel()
		if err := client().JSON(ctx, http.MethodPost, url, 1, nil); !errors.Is(err, ctx.Err()) {
			t.Errorf("%s before: %v", name, err)
		}
	}
}

// TestContextInAnError checks the same while an error reply is being read. If the server stalls in
// one, the part received is used.
func TestContextInAnError(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, "out of order")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := client().JSON(ctx, http.MethodPost, url, 1, nil)
	if _, ok := errors.AsType[*llm.Error](err); ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
	c := client()
	c.Idle = time.Second
	checkKind(t, c.JSON(t.Context(), http.MethodPost, url, 1, nil), llm.ServerError)
}

func TestStream(t *testing.T) {
	type event struct{ Name, Data string }
	collect := func(kind, body string) (events []event, err error) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		})
		err = client().Stream(t.Context(), url, 1, func(name string, data []byte) error {
			events = append(events, event{name, string(data)})
			if string(data) == "end" {
				return wire.Done
			}
			if string(data) == "bad" {
				return io.ErrClosedPipe
			}
			return nil
		})
		return events, err
	}
	tests := []struct {
		name, kind, body string
		want             []event
		err              error
	}{
		{"events", "text/event-stream; charset=utf-8", ": hi\n\nevent: a\ndata: 1\n\ndata: end\n\ndata: more\n\n", []event{{"a", "1"}, {"", "end"}}, nil},
		{"an error of the adapter", "text/event-stream", "data: bad\n\ndata: more\n\n", []event{{"", "bad"}}, io.ErrClosedPipe},
		{"events called something else", "text/plain", "data: 1\n\n", []event{{"", "1"}}, nil},
		{"JSON", "application/json; charset=utf-8", `{"a":1}`, []event{{wire.Whole, `{"a":1}`}}, nil},
		{"JSON called something else", "text/plain", " \n[1]", []event{{wire.Whole, " \n[1]"}}, nil},
		{"what looks like JSON and is none", "text/event-stream", "{\n\ndata: 1\n\n", []event{{"", "1"}}, nil},
		{"blank", "text/plain", " \n \n", nil, nil},
		{"a web page", "text/html; charset=utf-8", "\n<!DOCTYPE html><title>Welcome</title>", nil, assay.ErrUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := collect(test.kind, test.body)
			if !errors.Is(err, test.err) || err != nil && test.err == nil {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWebPage checks that a web page in reply, the usual result of a wrong base URL, is reported as
// such and not retried.
func TestWebPage(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>Welcome</html>") })
	err := client().Stream(t.Context(), url, 1, func(string, []byte) error { return nil })
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind.Temporary() || !strings.Contains(err.Error(), "web page") {
		t.Errorf("%v, want a lasting error that says it is a web page", err)
	}
}

// TestStreamThatGoesOn checks that a stream is not read after the reply's end, even if it
// continues.
func TestStreamThatGoesOn(t *testing.T) {
	left := make(chan bool)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data: end\n\n")
		for r.Context().Err() == nil {
			io.WriteString(w, ": more\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
		close(left)
	})
	if err := client().Stream(t.Context(), url, 1, func(string, []byte) error { return wire.Done }); err != nil {
		t.Error(err)
	}
	<-left
}

// TestRedirects checks that redirects are not followed, since they would receive a credential.
func TestRedirects(t *testing.T) {
	var others atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { others.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other+"/?key="+key, status) })
		if e := checkKind(t, client().JSON(t.Context(), http.MethodPost, url, 1, nil), llm.BadRequest); e.Status != status || !strings.Contains(e.Message, other) {
			t.Errorf("%d: %v", status, e)
		}
	}
	if others.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestConnectionsThatAreClosed checks that servers that close connections they announced as kept
// cause neither failed nor repeated calls.
func TestConnectionsThatAreClosed(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		io.Copy(io.Discard, r.Body)
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		rw.WriteString("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}")
		rw.Flush()
	}))
	s.Start()
	t.Cleanup(s.Close)
	for range 50 {
		if err := client().JSON(t.Context(), http.MethodPost, s.URL, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := calls.Load(); n != 50 {
		t.Errorf("%d requests for 50 calls", n)
	}
}

func TestFailures(t *testing.T) {
	status := map[int]llm.ErrorKind{
		400: llm.BadRequest, 401: llm.BadKey, 402: llm.NoQuota, 403: llm.BadKey, 404: llm.NoModel, 405: llm.BadRequest, 407: llm.BadKey, 408: llm.TimedOut, 409: llm.BadRequest,
		413: llm.TooLong, 418: llm.BadRequest, 422: llm.BadRequest, 429: llm.RateLimited, 500: llm.ServerError, 502: llm.ServerError, 503: llm.Overloaded, 504: llm.TimedOut, 524: llm.TimedOut, 529: llm.Overloaded, 599: llm.ServerError,
	}
	for code, kind := range status {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":{"message":"no: %s"}}`, r.Header.Get("Authorization"))
		})
		for _, err := range []error{client().JSON(t.Context(), http.MethodPost, url, 1, nil), client().Stream(t.Context(), url, 1, nil)} {
			if e := checkKind(t, err, kind); e.Status != code || !strings.HasPrefix(e.Message, "no: ") {
				t.Errorf("%d: %+v", code, e)
			}
		}
	}
	c := client()
	c.Explain = func(status int, header http.Header, body []byte) wire.Fault {
		return wire.Fault{Kind: llm.Filtered, Message: "explained " + string(body), RetryAfter: 48 * time.Hour}
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, key, 400) })
	if e := checkKind(t, c.JSON(t.Context(), http.MethodPost, url, 1, nil), llm.Filtered); e.Message != "explained [secret]" || e.RetryAfter != 24*time.Hour {
		t.Errorf("%+v", e)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{}, 0},
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond},
		{map[string]string{"Retry-After": "7", "Retry-After-Ms": "250"}, 250 * time.Millisecond},
		{map[string]string{"Retry-After": at(90 * time.Second)}, 90 * time.Second},
		{map[string]string{"Retry-After": at(90 * time.Second), "Date": at(60 * time.Second)}, 30 * time.Second},
		{map[string]string{"Retry-After": at(-time.Hour)}, 0},
		{map[string]string{"Retry-After": "-7"}, 0},
		{map[string]string{"Retry-After": "NaN"}, 0},
		{map[string]string{"Retry-After": "Inf"}, 24 * time.Hour},
		{map[string]string{"Retry-After": "1e300"}, 24 * time.Hour},
		{map[string]string{"Retry-After": "soon"}, 0},
	}
	for _, test := range tests {
		h := http.Header{}
		for name, value := range test.header {
			h.Set(name, value)
		}
		if got := wire.RetryAfter(h, now); got != test.want {
			t.Errorf("%v: %v, want %v", test.header, got, test.want)
		}
	}
}

func TestMessage(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a","code":1}}`: "a", `{"error":"a"}`: "a", `{"message":"a"}`: "a", `{"detail":"a"}`: "a", `{"detail":[{"loc":["b"],"msg":"a"}]}`: "a",
		`[{"error":{"code":400,"message":"a"}}]`: "a", `{"errors":["a"]}`: "a", `{"error":{}}`: `{"error":{}}`, ` text `: "text", ``: "", `null`: "null", `"a"`: "a",
		`{"error":{"error":{"error":{"error":{"error":"deep"}}}}}`: `{"error":{"error":{"error":{"error":{"error":"deep"}}}}}`,
	} {
		if got := wire.Message([]byte(body)); got != want {
			t.Errorf("Message(%s) = %q, want %q", body, got, want)
		}
	}
}

func TestScrub(t *testing.T) {
	c := wire.Client{Secrets: []wire.Secret{wire.NewSecret(key), wire.NewSecret("ollama")}}
	if got := c.Scrub("ollama says " + key + "!"); got != "ollama says [secret]!" {
		t.Errorf("%q", got)
	}
	// Scrubbing keeps JSON valid.
	if got := c.Scrub(`{"a":"` + key + `"}`); !json.Valid([]byte(got)) {
		t.Errorf("%s", got)
	}
}

// TestEndpoint checks that an Endpoint's configuration applies to its client.
func TestEndpoint(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("X-Key")+" "+r.Header.Get("X-Team"), 400)
	})
	e := wire.Endpoint{Name: "test/model", BaseURL: url + "//", Key: wire.NewSecret(key), Headers: map[string]string{"X-Team": "team-0f8e7d6c5b4a"}}
	c, base, err := e.Client(wire.Service{Header: "X-Key", Prefix: "Key "})
	if err != nil || base != url {
		t.Fatalf("%q, %v", base, err)
	}
	if e := checkKind(t, c.JSON(t.Context(), http.MethodGet, base, nil, nil), llm.BadRequest); e.Message != "Key [secret] [secret]" {
		t.Errorf("%q", e.Message)
	}
	for _, address := range []string{"", "localhost:80", "ftp://x", "http://"} {
		e.BaseURL = address
		if _, _, err := e.Client(wire.Service{Name: "test", Header: "X-Key"}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v", address, err)
		}
	}
}
