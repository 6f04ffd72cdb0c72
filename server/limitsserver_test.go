package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// A logBuffer keeps the log of a server.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serving is a server for tests without documents.
type serving struct {
	*Server
	log *logBuffer
}

// newServing returns a server with a configuration after change, which may be nil, and routes besides
// its own.
func newServing(t testing.TB, change func(*Config), handlers map[string]http.HandlerFunc) serving {
	t.Helper()
	host, err := engine.OpenHost(context.Background(), engine.HostConfig{Config: engine.Config{Dir: t.TempDir(), NoBackground: true}, AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	log := new(logBuffer)
	c := Config{Host: host, Local: identity.Local("default"), Version: "v1", Log: slog.New(slog.NewTextHandler(log, nil))}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, h := range handlers {
		s.Handle(pattern, h)
	}
	return serving{s, log}
}

// do serves one request for this machine.
func (s serving) do(method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8484"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func problemOf(t *testing.T, w *httptest.ResponseRecorder) Problem {
	t.Helper()
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("no problem details: %d %q", w.Code, w.Body)
	}
	return p
}

func TestNoSuchRoute(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	if p := problemOf(t, s.do("GET", "/nope", nil)); p.Status != 404 {
		t.Errorf("an unknown path: %+v", p)
	}
	w := s.do("PUT", "/api/v1/ask", nil)
	if p := problemOf(t, w); p.Status != 405 || w.Code != 405 || !strings.Contains(w.Header().Get("Allow"), "POST") {
		t.Errorf("a method that is not allowed: %+v, Allow %q", p, w.Header().Get("Allow"))
	}
}

// TestSecurityHeaders checks the headers of good and bad responses.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	evil := func(r *http.Request) { r.Host = "evil.example" }
	for _, w := range []*httptest.ResponseRecorder{s.do("GET", "/healthz", nil), s.do("GET", "/nope", nil), s.do("GET", "/x", evil)} {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Server": "",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Access-Control-Allow-Origin": "",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%d: %s is %q, want %q", w.Code, name, got, want)
			}
		}
	}
	if got := s.do("GET", "/nope", nil).Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control of an error is %q", got)
	}
	shown := newServing(t, func(c *Config) { c.ShowVersion = true }, nil)
	if got := shown.do("GET", "/healthz", nil).Header().Get("Server"); got != "assay/v1" {
		t.Errorf("Server is %q", got)
	}
}

// TestPanic checks that a panic is a response with the status 500, or a response that breaks off if it
// had begun, and that the log has a stack and the response nothing.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, map[string]http.HandlerFunc{
		"GET /early": func(http.ResponseWriter, *http.Request) { panic("secret reason") },
		"GET /late": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("begun"))
			panic("secret reason")
		},
	})
	w := s.do("GET", "/early", nil)
	if p := problemOf(t, w); p.Status != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("an early panic: %q", w.Body)
	}
	if log := s.log.String(); !strings.Contains(log, "secret reason") || !strings.Contains(log, "limitsserver_test.go") || !strings.Contains(log, "status=500") {
		t.Errorf("the log is %s", log)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	response, err := http.Get(web.URL + "/late")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err == nil {
		t.Error("the client takes a broken response for a whole one")
	}
	if p := problemOf(t, s.do("GET", "/early", nil)); p.Status != 500 {
		t.Errorf("afterwards: %+v", p)
	}
}

// TestAccessLog checks the line of a request, which has nothing that the client chose freely.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	var received *http.Request
	s.do("GET", "/api/v1/runs/abc123/events?secret=hunter2", func(r *http.Request) {
		r.Header.Set("User-Agent", "hunter2")
		received = r
	})
	if want := "GET /api/v1/runs/{id}/events"; received.Pattern != want {
		t.Errorf("a handler around the server sees the pattern %q, want %q", received.Pattern, want)
	}
	log := s.log.String()
	for _, want := range []string{"msg=request", "method=GET", "route=runs.events", "status=400", "user=local", "duration="} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not have %q: %s", want, log)
		}
	}
	if strings.Contains(log, "hunter2") || strings.Contains(log, "secret") || strings.Contains(log, "abc123") {
		t.Errorf("the log has the query, a header or a run that does not exist: %s", log)
	}
	if n := strings.Count(log, "msg=request"); n != 1 {
		t.Errorf("the request has %d lines:\n%s", n, log)
	}
	if s.do("HUNTER2", "/x", nil); strings.Contains(s.log.String(), "HUNTER2") {
		t.Errorf("the log has a method that the client made up: %s", s.log)
	}
	s.do("GET", "/api/v1/runs/hunter2%0a"+strings.Repeat("x", 100)+"/events", nil)
	if strings.Contains(s.log.String(), "hunter2") {
		t.Errorf("the log has an ID that is none: %s", s.log)
	}
}

// TestBusy checks that streams beyond the limit are refused with a time to wait, and that health is
// still told.
func TestBusy(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan bool), make(chan bool)
	s := newServing(t, func(c *Config) { c.Limits.Streams = 1 }, map[string]http.HandlerFunc{
		"GET /wait": func(http.ResponseWriter, *http.Request) {
			entered <- true
			<-leave
		},
	})
	var work sync.WaitGroup
	work.Go(func() { s.do("GET", "/wait", nil) })
	<-entered
	w := s.do("GET", "/wait", nil)
	if p := problemOf(t, w); p.Status != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("beyond the limit: %+v, Retry-After %q", p, w.Header().Get("Retry-After"))
	}
	if w := s.do("GET", "/healthz", nil); w.Code != 200 {
		t.Errorf("health: %d", w.Code)
	}
	leave <- true
	work.Wait()
	work.Go(func() { s.do("GET", "/wait", nil) })
	<-entered
	leave <- true
	work.Wait()
}

// TestReady checks that readiness tells which check failed, and nothing else.
func TestReady(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	deadline := time.Now().Add(time.Minute)
	for s.Ready(t.Context()).Status != "ready" {
		if time.Now().After(deadline) {
			t.Fatalf("not ready after a minute: %+v", s.Ready(t.Context()))
		}
		s.readiness.mu.Lock()
		s.readiness.at = time.Time{}
		s.readiness.mu.Unlock()
	}
	w := s.do("GET", "/readyz", func(r *http.Request) { r.Host = "10.0.0.7:8484" }) // as Kubernetes asks
	want := `{"status":"ready","checks":{"index":"ok","shutdown":"ok","store":"ok","writable":"ok"}}`
	if strings.TrimSpace(w.Body.String()) != want || w.Code != 200 {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	s.Drain()
	w = s.do("GET", "/readyz", nil)
	if p := problemOf(t, w); p.Status != 503 || !strings.HasPrefix(p.Detail, "not ready: shutdown failed") {
		t.Errorf("while it shuts down: %+v", p)
	}
	if w := s.do("GET", "/healthz", nil); w.Code != 200 {
		t.Errorf("it is alive while it shuts down: %d", w.Code)
	}
}

// TestDrain checks that a stream ends with an event that tells its client to reconnect.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	began := make(chan bool)
	s.Handle("GET /stream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		x := &exchange{server: s.Server, w: w, r: r, cancel: cancel}
		_ = x.stream(func(yield func(message, error) bool) {
			if yield(message{id: "1", event: "first", data: 1}, nil) {
				close(began)
				<-r.Context().Done()
				yield(message{}, r.Context().Err())
			}
		})
	}))
	go func() {
		<-began
		s.Drain()
	}()
	w := s.do("GET", "/stream", nil)
	if want := "retry: 1000\n\nid: 1\nevent: first\ndata: 1\n\nevent: restart\ndata: {}\n\n"; w.Body.String() != want {
		t.Errorf("the stream is %q, want %q", w.Body, want)
	}
}

// TestReload checks that a configuration that is not valid changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newServing(t, nil, nil)
	c := s.config
	c.Origins = []string{"*"}
	if err := s.Reload(c); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a wildcard: %v", err)
	}
	c.Origins = nil
	c.Authenticate = func(context.Context, identity.Credential) (identity.Grant, error) {
		return identity.Grant{}, assay.ErrUnauthenticated
	}
	if err := s.Reload(c); err != nil {
		t.Fatal(err)
	}
	w := s.do("GET", "/api/v1/runs/x/events", nil)
	if p := problemOf(t, w); p.Status != 401 || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("with identity: %+v", p)
	}
}

// TestConnectionLimits checks the limits in total and per address.
func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	s := newServing(t, func(c *Config) { c.Limits.Connections = 2 }, nil)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHTTP(s, s.limits(), s.config.Log)
	var work sync.WaitGroup
	work.Go(func() { _ = h.Serve(s.LimitListener(inner, true)) })
	defer work.Wait()
	defer h.Close()
	get := func(c net.Conn) int {
		t.Helper()
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode == 503 && response.Header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", response.Header.Get("Retry-After"))
		}
		return response.StatusCode
	}
	var open []net.Conn
	for i := range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		if got, want := get(c), map[bool]int{true: 200, false: 503}[i < 2]; got != want {
			t.Errorf("connection %d: %d, want %d", i, got, want)
		}
	}
	open[0].Close()
	for status := 0; status != 200; { // when the server has noticed
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		status = get(c)
		c.Close()
	}
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"127.0.0.1": "invalid IP", "::1": "invalid IP", "10.0.0.7": "10.0.0.7", "::ffff:10.0.0.7": "10.0.0.7",
		"2001:db8:1:2:3::4": "2001:db8:1:2::", "fe80::1%eth0": "fe80::",
	} {
		ip, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(in, "1"))
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(remote{addr: ip}).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

type remote struct {
	net.Conn
	addr net.Addr
}

func (r remote) RemoteAddr() net.Addr { return r.addr }
