package telemetry

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The bounds on an export: its time with all retries, that of an attempt, and the size of a reply.
const (
	exportTimeout = 20 * time.Second
	tryTimeout    = 10 * time.Second
	firstRetry    = time.Second
	maxRetry      = 5 * time.Second
	maxReplyBytes = 64 << 10
)

// exportClient returns a client that follows no redirects, since they would receive the headers, and
// whose requests end when closing does.
func exportClient(from *http.Client, closing context.Context) *http.Client {
	if from == nil {
		return nil
	}
	c := *from
	c.Timeout = tryTimeout
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Transport = closingTransport{c.Transport, closing}
	return &c
}

// A closingTransport ends its requests when its context ends.
type closingTransport struct {
	base    http.RoundTripper
	closing context.Context
}

// RoundTrip implements http.RoundTripper.
func (c closingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.closing.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.closing, cancel)
	res, err := c.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	res.Body = &endingBody{res.Body, func() { stop(); cancel() }}
	return res, nil
}

// An endingBody calls end when it is closed.
type endingBody struct {
	inner interface {
		Read([]byte) (int, error)
		Close() error
	}
	end func()
}

// Read implements io.Reader.
func (b *endingBody) Read(p []byte) (int, error) { return b.inner.Read(p) }

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.inner.Close()
}

func (t *Telemetry) spanExporter(ctx context.Context, client *http.Client) (sdktrace.SpanExporter, error) {
	inner, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(t.config.Traces), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithHeaders(headersOf(t.config.Headers)),
		otlptracehttp.WithMaxResponseSize(maxReplyBytes),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: exportTimeout}),
	)
	if err != nil {
		return nil, err
	}
	return countedSpans{inner, &t.exports}, nil
}

// countedSpans records the outcome of exports instead of returning it.
type countedSpans struct {
	sdktrace.SpanExporter
	exports *exports
}

// ExportSpans implements sdktrace.SpanExporter.
func (c countedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.exports.ended("traces", c.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

func (t *Telemetry) metricExporter(ctx context.Context, client *http.Client) (sdkmetric.Exporter, error) {
	inner, err := otlpmetrichttp.New(ctx,
		otlpmetrichttp.WithEndpointURL(t.config.Metrics), otlpmetrichttp.WithHTTPClient(client), otlpmetrichttp.WithHeaders(headersOf(t.config.Headers)),
		otlpmetrichttp.WithMaxResponseSize(maxReplyBytes),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: exportTimeout}),
	)
	if err != nil {
		return nil, err
	}
	return countedMetrics{inner, &t.exports}, nil
}

// countedMetrics records the outcome of exports instead of returning it.
type countedMetrics struct {
	sdkmetric.Exporter
	exports *exports
}

// Export implements sdkmetric.Exporter.
func (c countedMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	c.exports.ended("metrics", c.Exporter.Export(ctx, m))
	return nil
}

// headersOf returns a map that is not nil, so that the exporter does not read headers from the
// environment.
func headersOf(h map[string]string) map[string]string {
	if h == nil {
		return map[string]string{}
	}
	return h
}
