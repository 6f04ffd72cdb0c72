package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A target is a server on a port, whose clients are hostile.
type target struct {
	serving
	t       testing.TB
	address string
}

// short is a time limit that a test waits for. The limits that a test must keep itself are those of a
// server in use: a busy machine may take longer than this for a handshake or a request.
const short = 300 * time.Millisecond

// newTarget starts a server with some limits. At the end of the test it must still answer, must have had
// no panic, and no goroutine of it may be left.
func newTarget(t testing.TB, secure bool, limits Limits, handlers map[string]http.HandlerFunc) *target {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { wantNoGoroutines(t, before) })
	s := newServing(t, func(c *Config) { c.Limits = limits }, handlers)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHTTP(s, s.limits(), s.config.Log)
	var work sync.WaitGroup
	l := s.LimitListener(inner, !secure)
	work.Go(func() {
		if !secure {
			_ = h.Serve(l)
			return
		}
		h.TLSConfig = testTLS(t)
		_ = h.ServeTLS(l, "", "")
	})
	x := &target{serving: s, t: t, address: inner.Addr().String()}
	t.Cleanup(func() {
		x.answers()
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		s.Wait()
		work.Wait()
		if log := s.log.String(); strings.Contains(log, "panic") {
			t.Errorf("a panic:\n%s", log)
		}
	})
	return x
}

// wantNoGoroutines checks that the goroutines since before end. Each look takes half a second, in which a
// busy machine may not come to all that are about to end.
func wantNoGoroutines(t testing.TB, before goleak.Option) {
	t.Helper()
	var left error
	for range 20 {
		if left = goleak.Find(before); left == nil {
			return
		}
	}
	t.Error(left)
}

// testTLS returns the certificate of httptest.
func testTLS(t testing.TB) *tls.Config {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	return &tls.Config{Certificates: web.TLS.Certificates}
}

// answers checks that the server still answers.
func (x *target) answers() {
	x.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if strings.Contains(x.t.Name(), "HTTP2") {
		scheme = "https"
	}
	response, err := (&http.Client{Transport: transport}).Get(scheme + "://" + x.address + "/healthz")
	if err != nil {
		x.t.Errorf("the server does not answer any more: %v", err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		x.t.Errorf("it answers %d", response.StatusCode)
	}
}

func (x *target) dial() *net.TCPConn {
	x.t.Helper()
	c, err := net.Dial("tcp", x.address)
	if err != nil {
		x.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// ends reads until the server closes the connection, and returns the start of what it said.
func ends(t testing.TB, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.LimitReader(c, 64<<10))
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		t.Errorf("the connection stays open after %q", text)
	}
	return string(text)
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// TestSlowHeader opens connections that send the start of a header, or nothing at all.
func TestSlowHeader(t *testing.T) {
	x := newTarget(t, false, Limits{Header: time.Second}, nil) // in which the test's last request is sent
	var open []net.Conn
	for i := range 100 {
		c := x.dial()
		defer c.Close()
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "[:i%43])
		open = append(open, c)
	}
	for _, c := range open {
		ends(t, c)
	}
}

// TestSlowBody sends the start of a body, to a route that reads it and to one that does not, whose
// response net/http holds back until it has discarded the body.
func TestSlowBody(t *testing.T) {
	x := newTarget(t, false, Limits{Body: short}, nil)
	for path, want := range map[string]string{"/api/v1/ask": " 408 ", "/nope": ""} {
		for _, framing := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{"} {
			c := x.dial()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s", path, framing)
			if got := ends(t, c); !strings.Contains(got, want) {
				t.Errorf("%s, %q: %q, want %s", path, framing, got, want)
			}
			c.Close()
		}
	}
}

// TestTrickledBody sends a body byte by byte, each in time.
func TestTrickledBody(t *testing.T) {
	x := newTarget(t, false, Limits{Body: short}, nil)
	c := x.dial()
	defer c.Close()
	fmt.Fprint(c, "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
	answered := make(chan string)
	go func() { answered <- ends(t, c) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case got := <-answered:
			if !strings.Contains(got, " 408 ") {
				t.Errorf("it answers %q, want 408", got)
			}
			return
		case <-tick.C:
			_, _ = c.Write([]byte(" ")) // the server may have closed the connection
		}
	}
}

// TestGiantHeaders sends headers beyond the limit in several forms.
func TestGiantHeaders(t *testing.T) {
	x := newTarget(t, false, Limits{}, nil)
	for name, text := range map[string]string{
		"one line":  "X: " + strings.Repeat("x", 1<<20),
		"lines":     strings.Repeat("X: y\r\n", 100_000),
		"no end":    strings.Repeat("x", 1<<20),
		"one name":  strings.Repeat("x", 1<<20) + ": y",
		"host":      "Host: " + strings.Repeat("x", 1<<20),
		"cookies":   strings.Repeat("Cookie: a=b; ", 100_000),
		"folded":    "X: y\r\n" + strings.Repeat(" z\r\n", 100_000),
		"content":   strings.Repeat("Content-Length: 1\r\n", 50_000),
		"authorize": "Authorization: Bearer " + strings.Repeat("x", 1<<20),
	} {
		c := x.dial()
		go func() { _, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", text) }()
		if got := ends(t, c); got != "" && !strings.HasPrefix(got, "HTTP/1.1 4") {
			t.Errorf("%s: %.100q", name, got)
		}
		c.Close()
	}
	c := x.dial()
	defer c.Close()
	go func() {
		_, _ = fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", strings.Repeat("x", 1<<20))
	}()
	if got := ends(t, c); got != "" && !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("a giant path: %.100q", got)
	}
}

// malformed are requests without a valid form, or with two meanings. %s is a random text.
var malformed = []string{
	"%s",
	"%s\r\n\r\n",
	"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"%s /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /healthz %s\r\nHost: localhost\r\n\r\n",
	"GET /healthz HTTP/9.%s\r\nHost: localhost\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n%s\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: %s\r\n\r\n",
	"GET http://%s/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET http://evil.example/api/v1/runs/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /api/v1/runs/%%zz%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /api/v1/runs/%%00%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /api/v1/runs/../../%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /api/v1/runs/%%2e%%2e%%2f%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /healthz?%s=%%zz&;;&=& HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET //evil.example//%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"CONNECT %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nX: %s\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n",
	"TRACE / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n{}",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;%s\r\n{\r\n0\r\n\r\n",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nHost: %s\r\n\r\n",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nExpect: %s\r\nContent-Length: 2\r\n\r\n{}",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000000\r\n\r\n%s",
	"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 2\r\n\r\n{",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b%s\r\n\r\n",
	"GET /healthz HTTP/1.1\nHost: localhost\n%s\n\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nHTTP2-Settings: %s\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
	"GET /api/v1/runs/x/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %s\r\n\r\n",
	"GET /api/v1/runs/x/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
	"GET /api/v1/runs/x/events HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\nX-API-Key: b\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\n\r\n",
}

// randomText returns up to 200 bytes: any ones, or such as have a meaning in HTTP.
func randomText(random *rand.Rand) string {
	const telling = "\r\n\x00\t :;,/%?&=#\"'\\{}[]0123456789abcfxyzGET\x7f\x80\xff"
	n := random.IntN(200)
	var b strings.Builder
	for range n {
		if n%2 == 0 {
			b.WriteByte(byte(random.IntN(256)))
		} else {
			b.WriteByte(telling[random.IntN(len(telling))])
		}
	}
	return b.String()
}

// TestMalformed sends 10,000 malformed requests. Each is refused or has no effect, and none is a
// failure of the server.
func TestMalformed(t *testing.T) {
	x := newTarget(t, false, Limits{}, nil)
	const workers, each = 8, 1250
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range each {
				text := strings.Replace(malformed[i%len(malformed)], "%s", randomText(random), 1)
				x.send(strings.ReplaceAll(text, "%%", "%"))
			}
		})
	}
	work.Wait()
}

// send sends one request and checks the responses.
func (x *target) send(text string) {
	c := x.dial()
	defer c.Close()
	_, _ = io.WriteString(c, text) // the server may refuse it before the end
	_ = c.CloseWrite()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		x.t.Error(err)
	}
	r := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(r, nil)
		if isTimeout(err) {
			x.t.Errorf("no response and no end after %q", text)
		}
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if s := response.StatusCode; s >= 500 && s != http.StatusNotImplemented && s != http.StatusHTTPVersionNotSupported {
			x.t.Errorf("the status is %d after %q", s, text)
		}
		if err != nil {
			return
		}
	}
}

// TestManyConnections opens 2,000 connections at once, and sends a request on each.
func TestManyConnections(t *testing.T) {
	x := newTarget(t, false, Limits{}, nil)
	var open []net.Conn
	for range 2000 {
		c := x.dial()
		defer c.Close()
		open = append(open, c)
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	}
	for _, c := range open {
		if got := ends(t, c); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Fatalf("one of them has %q", got)
		}
	}
}

// TestUnreadResponses requests a response that does not end, and many small ones, and reads none.
func TestUnreadResponses(t *testing.T) {
	gone := make(chan error, 1)
	x := newTarget(t, false, Limits{Body: short}, map[string]http.HandlerFunc{
		"GET /endless": func(w http.ResponseWriter, _ *http.Request) {
			data := make([]byte, 1<<10)
			for {
				if _, err := w.Write(data); err != nil {
					gone <- err
					return
				}
			}
		},
	})
	c := x.dial()
	defer c.Close()
	fmt.Fprint(c, "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-gone; !isTimeout(err) {
		t.Errorf("the response ends with %v, want a timeout", err)
	}
	c = x.dial()
	defer c.Close()
	pipelined := strings.Repeat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
	if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for { // until the server gives up
		if _, err := io.WriteString(c, pipelined); err != nil {
			if isTimeout(err) {
				t.Error("the server waits forever for a client that does not read")
			}
			return
		}
	}
}

// TestGoneClients ends connections in the middle of requests and responses.
func TestGoneClients(t *testing.T) {
	x := newTarget(t, false, Limits{}, map[string]http.HandlerFunc{
		"GET /wait": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	for _, text := range []string{
		"", "GET /wait HTTP/1.1\r\n", "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
	} {
		for _, reset := range []bool{false, true} {
			c := x.dial()
			fmt.Fprint(c, text)
			if reset {
				if err := c.SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
		}
	}
}

// dialHTTP2 opens a connection for frames.
func (x *target) dialHTTP2() (net.Conn, *http2.Framer) {
	x.t.Helper()
	c, err := tls.Dial("tcp", x.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		x.t.Fatal(err)
	}
	if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
		x.t.Fatalf("the protocol is %q", got)
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		x.t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		x.t.Fatal(err)
	}
	return c, f
}

// frameHeader encodes the header of a request.
func frameHeader(method, path string, more ...hpack.HeaderField) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path},
	}, more...) {
		_ = e.WriteField(f) // a bytes.Buffer takes all
	}
	return b.Bytes()
}

// drainFrames reads frames until the server closes the connection, so that it is never blocked.
func drainFrames(c net.Conn) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c)
	}()
	return done
}

// TestHTTP2RapidReset opens and resets streams (CVE-2023-44487).
func TestHTTP2RapidReset(t *testing.T) {
	x := newTarget(t, true, Limits{}, map[string]http.HandlerFunc{
		"GET /wait": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	for range 4 {
		c, f := x.dialHTTP2()
		done := drainFrames(c)
		for i := range uint32(10_000) {
			id := 2*i + 1
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: frameHeader("GET", "/wait"), EndStream: true, EndHeaders: true})
			if err == nil {
				err = f.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			if err != nil {
				break // the server has had enough
			}
		}
		c.Close()
		<-done
	}
}

// TestHTTP2Floods sends frames that cost the server work or memory.
func TestHTTP2Floods(t *testing.T) {
	x := newTarget(t, true, Limits{}, nil)
	for name, send := range map[string]func(f *http2.Framer, i uint32) error{
		"settings": func(f *http2.Framer, _ uint32) error { return f.WriteSettings() },
		"pings":    func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{}) },
		"empty data": func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: frameHeader("POST", "/api/v1/ask"), EndHeaders: true})
			}
			return f.WriteData(1, false, nil)
		},
		"continuations": func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: frameHeader("GET", "/healthz")})
			}
			return f.WriteContinuation(1, false, frameHeader("GET", "/x", hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 1000), Sensitive: true})[30:])
		},
		"giant headers": func(f *http2.Framer, i uint32) error {
			field := hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 15_000), Sensitive: true}
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: frameHeader("GET", "/healthz", field), EndStream: true, EndHeaders: true})
		},
		"forbidden headers": func(f *http2.Framer, i uint32) error {
			field := hpack.HeaderField{Name: "Transfer-Encoding", Value: "chunked\r\nX: y"}
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: frameHeader("GET", "/healthz", field), EndStream: true, EndHeaders: true})
		},
		"priorities": func(f *http2.Framer, i uint32) error {
			return f.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 0})
		},
		"windows": func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1<<30) },
		"raw": func(f *http2.Framer, i uint32) error {
			return f.WriteRawFrame(http2.FrameType(i%16), http2.Flags(i), i, []byte("xxxx"))
		},
	} {
		c, f := x.dialHTTP2()
		f.AllowIllegalWrites = true
		done := drainFrames(c)
		for i := range uint32(2000) {
			if send(f, i) != nil {
				break
			}
		}
		c.Close()
		<-done
		x.answers()
		if t.Failed() {
			t.Fatalf("after %s", name)
		}
	}
}

// TestHTTP2Unread takes no window for a response that does not end.
func TestHTTP2Unread(t *testing.T) {
	gone := make(chan error, 1)
	x := newTarget(t, true, Limits{Body: short}, map[string]http.HandlerFunc{
		"GET /endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					gone <- err
					return
				}
			}
		},
	})
	c, f := x.dialHTTP2()
	done := drainFrames(c)
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: frameHeader("GET", "/endless"), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	<-gone
	c.Close()
	<-done
}

// TestHTTP2IdleStream checks that the time limit of a write does not end a stream that has no event.
func TestHTTP2IdleStream(t *testing.T) {
	x := newTarget(t, true, Limits{Body: short}, map[string]http.HandlerFunc{
		"GET /idle": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("first "))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(time.Second): // three times the limit
			case <-r.Context().Done():
			}
			_, _ = w.Write([]byte("second"))
		},
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + x.address + "/idle")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); string(text) != "first second" || err != nil || response.ProtoMajor != 2 {
		t.Errorf("HTTP/%d: %q, %v", response.ProtoMajor, text, err)
	}
}
