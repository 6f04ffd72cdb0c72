package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Limits bound the requests that a server works on. A zero field is its default.
type Limits struct {
	Connections int // open at once; default 4096
	PerAddress  int // of them from one address that is not of this machine; default 1024
	Requests    int // worked on at once, without streams; as many again wait for 5 s; default 256
	Streams     int // requests for answers, streams of events and those of Handle at once; default 2048

	Header time.Duration // to read the header of a request, and for the TLS handshake; default 10 s
	Body   time.Duration // to read or write a body, and a second for each 16 KiB of it; default 30 s
	Idle   time.Duration // of a connection between two requests; default 2 min
}

// DefaultLimits are the limits of a zero Limits.
var DefaultLimits = Limits{
	Connections: 4096, PerAddress: 1024, Requests: 256, Streams: 2048,
	Header: 10 * time.Second, Body: 30 * time.Second, Idle: 2 * time.Minute,
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	return Limits{
		Connections: cmp.Or(l.Connections, d.Connections), PerAddress: cmp.Or(l.PerAddress, d.PerAddress),
		Requests: cmp.Or(l.Requests, d.Requests), Streams: cmp.Or(l.Streams, d.Streams),
		Header: cmp.Or(l.Header, d.Header), Body: cmp.Or(l.Body, d.Body), Idle: cmp.Or(l.Idle, d.Idle),
	}
}

const (
	// requestPatience is how long a request waits for others to end.
	requestPatience = 5 * time.Second

	// maxHeader is the most bytes of a request's header.
	maxHeader = 32 << 10

	// bodyRate is how many bytes a second a client must send or take after Limits.Body.
	bodyRate = 16 << 10
)

// NewHTTP returns an http.Server for a handler, which is a Server or contains one. It speaks HTTP/1.1,
// and HTTP/2 over TLS.
func NewHTTP(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	l = l.withDefaults()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true) // over TLS only
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.Header, IdleTimeout: l.Idle, MaxHeaderBytes: maxHeader,
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 256 << 10,
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: l.Body,
		},
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(quietHandler{log.Handler()}, slog.LevelWarn),
	}
}

// A timedBody reads a request's body. Its client has Limits.Body and a second for each 16 KiB.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	start   time.Time
	grace   time.Duration
	read    int64
}

// newTimedBody sets the deadline for the first bytes. It holds for those that no handler reads, too.
func newTimedBody(w http.ResponseWriter, body io.ReadCloser, grace time.Duration) *timedBody {
	b := &timedBody{ReadCloser: body, control: http.NewResponseController(w), start: time.Now(), grace: grace}
	b.extend()
	return b
}

func (b *timedBody) extend() {
	allowed := b.grace + time.Duration(b.read)*time.Second/bodyRate
	_ = b.control.SetReadDeadline(b.start.Add(allowed)) // not supported by the recorder of a test
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case err == nil:
		b.extend()
	case errors.Is(err, io.EOF):
		// A deadline that passes later would cancel the request.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// quietHandler logs messages of net/http about single connections, which clients cause, as debugging.
type quietHandler struct{ slog.Handler }

func isAboutClient(message string) bool {
	return strings.HasPrefix(message, "http: TLS handshake error") || strings.HasPrefix(message, "http2: ") ||
		strings.HasPrefix(message, "http: URL query contains semicolon")
}

// Handle implements slog.Handler.
func (q quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if !isAboutClient(r.Message) {
		return q.Handler.Handle(ctx, r)
	}
	r.Level = slog.LevelDebug
	if !q.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}
