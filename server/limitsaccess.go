package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay/identity"
)

// runsPath is the path of runs.
const runsPath = "/api/v1/runs/"

// errRestart is the cause that ends the context of a stream when the server shuts down.
var errRestart = errors.New("the server is restarting")

// restartMessage tells the client of a stream to reconnect with the ID of the last message.
var restartMessage = []byte("event: restart\ndata: {}\n\n")

// endOnDrain ends the context of a request with errRestart when the server shuts down, unless release
// is called before.
func (s *Server) endOnDrain(ctx context.Context) (release func() bool) {
	return context.AfterFunc(s.drain, func() {
		if a := accessOf(ctx); a != nil {
			a.cancel(errRestart)
		}
	})
}

// errPanic is the error of a request whose handler panicked.
var errPanic = errors.New("panic")

// An access is one request: its response writer, which sets the deadlines of writes, and its line in
// the log.
type access struct {
	http.ResponseWriter
	control *http.ResponseController
	server  *Server
	log     *slog.Logger
	r       *http.Request
	start   time.Time
	grace   time.Duration // see Limits.Body
	cancel  context.CancelCauseFunc

	status int
	bytes  int64

	mu                    sync.Mutex
	route, run, user, key string
	asked                 string // run in the path of the request, which may be any text
}

type accessKey struct{}

// access begins a request.
func (s *Server) access(w http.ResponseWriter, r *http.Request, st *state) (*access, *http.Request) {
	a := &access{ResponseWriter: w, control: http.NewResponseController(w), server: s, log: s.config.Log, start: time.Now(), grace: st.Limits.Body}
	ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), accessKey{}, a))
	a.cancel = cancel
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = newTimedBody(w, r.Body, a.grace)
	}
	a.r = r
	return a, r
}

func accessOf(ctx context.Context) *access {
	a, _ := ctx.Value(accessKey{}).(*access)
	return a
}

// note calls set for the access of a context, if it has one.
func note(ctx context.Context, set func(*access)) {
	if a := accessOf(ctx); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		set(a)
	}
}

func noteRoute(ctx context.Context, name string) { note(ctx, func(a *access) { a.route = name }) }

// routeOf returns the name of the route of a request.
func routeOf(ctx context.Context) (name string) {
	note(ctx, func(a *access) { name = a.route })
	return name
}

func noteGrant(ctx context.Context, g identity.Grant) {
	note(ctx, func(a *access) { a.user, a.key = g.Principal.User, g.Principal.Key })
}

// NoteRun names the run of a request in its line of the log. A text that is not the ID of a run is
// left out.
func NoteRun(ctx context.Context, id string) {
	if isRunID(id) {
		note(ctx, func(a *access) { a.run = id })
	}
}

// noteAsked names the run in the path of a request. The log has it if the response shows that the
// caller has such a run, so that clients cannot write to the log.
func noteAsked(ctx context.Context, id string) {
	if isRunID(id) {
		note(ctx, func(a *access) { a.asked = id })
	}
}

func isRunID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// secure sets the headers that every response has. Handlers may replace them.
func (a *access) secure(st *state) {
	h := a.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if st.ShowVersion {
		h.Set("Server", "assay/"+st.Version)
	}
}

// end ends a request. It turns a panic of the handler into a response.
func (a *access) end() {
	defer a.cancel(nil)
	if p := recover(); p != nil {
		a.panicked(p)
	}
	a.deadline(0) // for what the http.Server still has to write
	a.write()
}

func (a *access) panicked(p any) {
	if p != http.ErrAbortHandler {
		a.log.ErrorContext(a.r.Context(), "panic", "route", a.route, "error", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	if p == http.ErrAbortHandler || a.status != 0 {
		a.write()
		panic(http.ErrAbortHandler) // breaks the connection off, so that the response is not taken for a whole one
	}
	x := &exchange{server: a.server, route: Route{Name: a.route}, w: a, r: a.r}
	x.fail(errPanic)
}

// write logs the request. It has no query, no body and no credential.
func (a *access) write() {
	if id, ok := strings.CutPrefix(a.Header().Get("Location"), runsPath); ok {
		NoteRun(a.r.Context(), id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.status < http.StatusBadRequest || a.status == http.StatusConflict
	if a.run == "" && found {
		a.run = a.asked
	}
	level := slog.LevelInfo
	if strings.HasPrefix(a.route, servicePrefix) {
		level = slog.LevelDebug // there are many
	}
	attributes := []slog.Attr{
		slog.String("method", plainMethod(a.r.Method)), slog.String("route", a.route), slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Duration("duration", time.Since(a.start).Round(time.Microsecond)),
	}
	trace := ""
	if of := a.server.config.Trace; of != nil {
		trace = of(a.r.Context())
	}
	for _, x := range []struct{ name, value string }{{"run", a.run}, {"user", a.user}, {"key", a.key}, {"trace", trace}} {
		if x.value != "" {
			attributes = append(attributes, slog.String(x.name, x.value))
		}
	}
	a.log.LogAttrs(context.WithoutCancel(a.r.Context()), level, "request", attributes...)
}

// plainMethod returns a method, or "other" for one that is not of HTTP.
func plainMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return method
	}
	return "other"
}

// deadline sets how long writing n bytes may take.
func (a *access) deadline(n int) {
	allowed := a.grace + time.Duration(n)*time.Second/bodyRate
	_ = a.control.SetWriteDeadline(time.Now().Add(allowed)) // not supported by the recorder of a test
}

// noDeadline ends the deadline, because in HTTP/2 one that passes between two writes resets the stream.
func (a *access) noDeadline() { _ = a.control.SetWriteDeadline(time.Time{}) }

// WriteHeader implements http.ResponseWriter.
func (a *access) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *access) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.deadline(len(p))
	defer a.noDeadline()
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// FlushError is for http.ResponseController.
func (a *access) FlushError() error {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.deadline(0)
	defer a.noDeadline()
	return a.control.Flush()
}

// Flush implements http.Flusher.
func (a *access) Flush() { _ = a.FlushError() }

// Unwrap is for http.ResponseController.
func (a *access) Unwrap() http.ResponseWriter { return a.ResponseWriter }
