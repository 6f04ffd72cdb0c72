package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector is a receiver of OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics []*metricspb.Metric // of the last export
	headers []http.Header
}

func newCollector(t testing.TB) *collector {
	t.Helper()
	c := &collector{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) {
		var in collectortrace.ExportTraceServiceRequest
		c.read(t, r, &in)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range in.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	})
	mux.HandleFunc("POST /v1/metrics", func(_ http.ResponseWriter, r *http.Request) {
		var in collectormetrics.ExportMetricsServiceRequest
		c.read(t, r, &in)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.metrics = nil
		for _, resource := range in.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				c.metrics = append(c.metrics, scope.Metrics...)
			}
		}
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) read(t testing.TB, r *http.Request, into proto.Message) {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(data, into)
	}
	if err != nil {
		t.Errorf("%s: %v", r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header)
}

// config returns a configuration that exports everything to c.
func (c *collector) config() Config {
	return Config{Traces: c.URL + "/v1/traces", Metrics: c.URL + "/v1/metrics", Client: c.Client()}
}

// newTelemetry returns a Telemetry, and a function that closes it, however long a busy machine takes to
// export what is left, and returns whether an export failed.
func newTelemetry(t testing.TB, c Config) (*Telemetry, func() error) {
	t.Helper()
	tel, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	var closed error
	end := func() error {
		once.Do(func() { closed = tel.close(t.Context()) })
		return closed
	}
	t.Cleanup(func() { _ = end() })
	return tel, end
}

// attributesOf returns the attributes of a span by name.
func attributesOf(span *tracepb.Span) map[string]*commonpb.AnyValue {
	all := map[string]*commonpb.AnyValue{}
	for _, kv := range span.Attributes {
		all[kv.Key] = kv.Value
	}
	return all
}

func text(span *tracepb.Span, name string) string { return attributesOf(span)[name].GetStringValue() }
