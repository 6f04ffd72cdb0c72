package telemetry

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// headerXRay carries the trace of AWS X-Ray.
const headerXRay = "X-Amzn-Trace-Id"

var w3c propagation.TraceContext

// extract returns ctx with the trace that a request belongs to: that of its header traceparent, or
// else of X-Amzn-Trace-Id. Headers that are not valid are ignored. Baggage is not read.
func extract(ctx context.Context, h http.Header) context.Context {
	inner := w3c.Extract(ctx, propagation.HeaderCarrier(h))
	if trace.SpanContextFromContext(inner).IsRemote() {
		return inner
	}
	if sc, ok := parseXRay(h.Get(headerXRay)); ok {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// inject sets the headers of the trace that ctx belongs to.
func inject(ctx context.Context, h http.Header) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return
	}
	w3c.Inject(ctx, propagation.HeaderCarrier(h))
	h.Set(headerXRay, formatXRay(sc))
}

// maxXRay is the most bytes of a header that parseXRay reads.
const maxXRay = 512

// parseXRay reads a header of the form "Root=1-5759e988-bd862e3fe1be46a994272793;
// Parent=53995c3f42cd8ad8;Sampled=1", as AWS documents it ("X-Ray concepts: tracing header"). Other
// fields are ignored. A header without a root and a parent names no trace.
func parseXRay(header string) (trace.SpanContext, bool) {
	if len(header) > maxXRay {
		return trace.SpanContext{}, false
	}
	var c trace.SpanContextConfig
	for field := range strings.SplitSeq(header, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch key {
		case "Root":
			c.TraceID = parseRoot(value)
		case "Parent":
			if id, err := trace.SpanIDFromHex(value); err == nil {
				c.SpanID = id
			}
		case "Sampled":
			if value == "1" {
				c.TraceFlags = trace.FlagsSampled
			}
		}
	}
	sc := trace.NewSpanContext(c)
	return sc, sc.IsValid()
}

// parseRoot reads "1-" and 8 and 24 hexadecimal digits. It returns the zero ID for anything else.
func parseRoot(value string) trace.TraceID {
	const seconds, unique = 8, 24 // hexadecimal digits
	parts := strings.Split(value, "-")
	if len(parts) != 3 || parts[0] != "1" || len(parts[1]) != seconds || len(parts[2]) != unique {
		return trace.TraceID{}
	}
	id, err := trace.TraceIDFromHex(parts[1] + parts[2])
	if err != nil {
		return trace.TraceID{}
	}
	return id
}

// formatXRay returns the header for a span.
func formatXRay(sc trace.SpanContext) string {
	id := sc.TraceID()
	text := hex.EncodeToString(id[:])
	sampled := "0"
	if sc.IsSampled() {
		sampled = "1"
	}
	return "Root=1-" + text[:8] + "-" + text[8:] + ";Parent=" + sc.SpanID().String() + ";Sampled=" + sampled
}

// Transport returns a transport that adds the headers traceparent, tracestate and X-Amzn-Trace-Id to
// requests that are made within a span. It changes nothing else. It is for services that the
// configuration names, never for pages or links.
func (t *Telemetry) Transport(base http.RoundTripper) http.RoundTripper {
	if t == nil || !t.tracing {
		return base
	}
	return tracedTransport{base}
}

type tracedTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tracedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !trace.SpanContextFromContext(r.Context()).IsValid() {
		return t.base.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	inject(r.Context(), r.Header)
	return t.base.RoundTrip(r)
}

// CloseIdleConnections closes the connections that the transport keeps open.
func (t tracedTransport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
