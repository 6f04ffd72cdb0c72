package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/assay-rag/assay"
)

// NewLogger returns a logger that writes to w in the given form, "json" or "text". Any other form is
// assay.ErrInvalid.
func NewLogger(w io.Writer, form string) (*slog.Logger, error) {
	switch form {
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	return nil, fmt.Errorf("telemetry: the form of logs is json or text, not %q: %w", cut(form, 20), assay.ErrInvalid)
}

type routeKey struct{}

// SetRoute names the route of the request that ctx belongs to. Middleware takes the pattern of
// net/http by itself, unless the request that the mux receives is a copy. Routes are patterns, as in
// "GET /api/v1/runs/{id}", never paths.
func SetRoute(ctx context.Context, route string) {
	if name, ok := ctx.Value(routeKey{}).(*atomic.Pointer[string]); ok {
		name.Store(&route)
	}
}

// Middleware reports the requests of a server: a span with the name of the route, and the metrics of
// requests. It accepts the headers traceparent and X-Amzn-Trace-Id. Of a request it reports the method,
// the route and the status, never the path, the query, a header or a body. TraceID is for the log of
// the server.
func (t *Telemetry) Middleware(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.serve(w, r, next) })
}

func (t *Telemetry) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	began := t.config.Now()
	method := methods.of(r.Method)
	named := &atomic.Pointer[string]{}
	ctx := context.WithValue(extract(r.Context(), r.Header), routeKey{}, named)
	ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String(attrMethod, method)))
	r = r.WithContext(ctx)
	out := &response{ResponseWriter: w}
	t.meters.move(metricOpen, 1)
	returned := false
	defer func() {
		t.meters.move(metricOpen, -1)
		status := out.status
		switch {
		case status == 0 && returned:
			status = http.StatusOK
		case !returned: // a panic, as net/http reports it
			status = http.StatusInternalServerError
		}
		route := r.Pattern
		if name := named.Load(); name != nil {
			route = *name
		}
		t.answered(span, request{method, t.route(route), status, t.config.Now().Sub(began)})
	}()
	next.ServeHTTP(out, r)
	returned = true
}

// A request is what is reported of a request.
type request struct {
	method, route string
	status        int
	took          time.Duration
}

// TraceID returns the ID of the trace that ctx belongs to; empty: none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String()
	}
	return ""
}

// route returns a route without its method, if it is a pattern that can be told apart.
func (t *Telemetry) route(pattern string) string {
	if _, p, ok := strings.Cut(pattern, " "); ok {
		pattern = p
	}
	if pattern == "" {
		return other
	}
	t.routes.add(pattern)
	return t.routes.of(pattern)
}

// answered reports a request that was answered.
func (t *Telemetry) answered(span trace.Span, r request) {
	labels := []attribute.KeyValue{label(labelMethod, r.method), label(labelRoute, r.route), label(labelCode, codeOf(r.status))}
	t.meters.add(metricRequests, 1, labels...)
	t.meters.record(metricRequestTime, r.took.Seconds(), labels...)
	span.SetName(r.method + " " + r.route)
	span.SetAttributes(attribute.String(attrRoute, r.route), attribute.Int(attrStatusCode, r.status))
	if r.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// A response notes the status of a response.
type response struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (r *response) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap returns the writer for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
