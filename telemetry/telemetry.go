package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// A Config configures a Telemetry. With the zero Config nothing leaves the process, and metrics are
// kept for MetricsHandler.
type Config struct {
	Service string // service.name; empty: OTEL_SERVICE_NAME, or "assay"
	Version string // service.version; empty: none

	// Traces and Metrics are the addresses of an OTLP receiver, with their paths: as in
	// "http://localhost:4318/v1/traces". Empty: nothing of that kind is exported.
	Traces, Metrics string

	// Headers are sent with each export. Their values are treated as credentials.
	Headers map[string]string

	// Client makes the exports. It and its transport are required if Traces or Metrics is set. Redirects are not
	// followed.
	Client *http.Client

	// Sampling is the share of traces that are exported, in (0, 1]; 0: as OTEL_TRACES_SAMPLER says,
	// or all. A trace that a request belongs to is sampled as its header says.
	Sampling float64

	// Texts exports questions, prompts, replies, passages and answers with the spans. They may hold
	// anything that is in the documents.
	Texts bool

	// OpenInference adds the attributes by which Phoenix shows spans that are not language models.
	OpenInference bool

	// EMF receives one line in CloudWatch's embedded metric format for each run that ends; nil: none.
	EMF io.Writer

	// Logger receives a record for each run that ends; nil: none. Records contain no texts.
	Logger *slog.Logger

	Strategies []string         // names of strategies besides those of package strategy
	Now        func() time.Time // nil: time.Now
}

// A Telemetry reports runs and requests. It is safe for concurrent use. A nil Telemetry reports
// nothing.
type Telemetry struct {
	config   Config
	tracing  bool
	tracer   trace.Tracer
	exports  exports
	meters   *meters
	registry *prometheus.Registry

	strategies *bounded
	models     *bounded // full names, from the configuration
	routes     *bounded // patterns of the server

	emf sync.Mutex

	end   []func(context.Context) error // stop the exports, in order
	abort context.CancelFunc            // ends exports that are under way
}

// New returns a Telemetry, which must be closed. A Config that contradicts itself is
// assay.ErrInvalid. New connects to no receiver. It makes itself the handler of errors inside
// OpenTelemetry, which is global to the process.
func New(ctx context.Context, c Config) (*Telemetry, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	t := &Telemetry{
		config: c, tracer: noop.NewTracerProvider().Tracer(""), registry: prometheus.NewRegistry(),
		strategies: newBounded(slices.Concat(strategy.Names(), c.Strategies)...), models: newBounded[string](), routes: newBounded[string](),
	}
	closing, abort := context.WithCancel(context.WithoutCancel(ctx))
	t.abort = abort
	client := exportClient(c.Client, closing)
	described, err := c.resource(ctx)
	if err != nil {
		abort()
		return nil, err
	}
	if err := t.startMetrics(ctx, described, client); err != nil {
		abort()
		return nil, err
	}
	if err := t.startTraces(ctx, described, client); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.exports.failed))
	return t, nil
}

// check returns assay.ErrInvalid if c contradicts itself.
func (c Config) check() error {
	for _, address := range []string{c.Traces, c.Metrics} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("telemetry: the address of the receiver is not an HTTP URL: %w", assay.ErrInvalid)
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("telemetry: the address of the receiver has a user, a query or a fragment: %w", assay.ErrInvalid)
		}
		if c.Client == nil || c.Client.Transport == nil {
			return fmt.Errorf("telemetry: exports have no HTTP client: %w", assay.ErrInvalid)
		}
	}
	if !(c.Sampling >= 0 && c.Sampling <= 1) {
		return fmt.Errorf("telemetry: the sampling ratio %v is not between 0 and 1: %w", c.Sampling, assay.ErrInvalid)
	}
	return nil
}

// resource returns the description of this process. It has no name of the machine or the user.
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES add to it.
func (c Config) resource(ctx context.Context) (*resource.Resource, error) {
	given := []attribute.KeyValue{}
	if c.Service != "" {
		given = append(given, attribute.String("service.name", c.Service))
	}
	if c.Version != "" {
		given = append(given, attribute.String("service.version", c.Version))
	}
	r, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "assay")),
		resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(given...))
	if err != nil {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w: %w", assay.ErrInvalid, err)
	}
	return r, nil
}

// startMetrics makes the instruments. Prometheus reads them on demand.
func (t *Telemetry) startMetrics(ctx context.Context, described *resource.Resource, client *http.Client) error {
	manual := sdkmetric.NewManualReader()
	options := []sdkmetric.Option{sdkmetric.WithResource(described), sdkmetric.WithReader(manual)}
	if t.config.Metrics != "" {
		exporter, err := t.metricExporter(ctx, client)
		if err != nil {
			return fmt.Errorf("telemetry: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.end = append(t.end, provider.Shutdown)
	var err error
	if t.meters, err = newMeters(provider.Meter(scopeName)); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	t.exports.counted = func(signal, outcome string) {
		t.meters.add(metricExports, 1, label(labelSignal, signal), label(labelOutcome, outcome))
	}
	return t.registry.Register(promCollector{manual})
}

// scopeName is the name of the instrumentation scope of all spans and metrics.
const scopeName = "github.com/assay-rag/assay/telemetry"

// startTraces makes the tracer, if traces are exported.
func (t *Telemetry) startTraces(ctx context.Context, described *resource.Resource, client *http.Client) error {
	if t.config.Traces == "" {
		return nil
	}
	exporter, err := t.spanExporter(ctx, client)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(described), sdktrace.WithBatcher(exporter)}
	if t.config.Sampling > 0 {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(t.config.Sampling))))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.end = append([]func(context.Context) error{provider.Shutdown}, t.end...)
	t.tracer, t.tracing = provider.Tracer(scopeName), true
	return nil
}

// Know makes the models of an engine's configuration known as values of labels. Calls of any other
// model are counted as "other".
func (t *Telemetry) Know(c engine.Config) {
	if t == nil {
		return
	}
	for _, m := range c.Models.Roles {
		t.models.add(m.Model())
	}
	if c.Models.Small != nil {
		t.models.add(c.Models.Small.Model())
	}
	if v, ok := c.Models.Verifier.(interface{ Model() string }); ok {
		t.models.add(v.Model())
	}
	if c.Models.Reranker != nil {
		t.models.add(c.Models.Reranker.Model())
	}
	if c.Encoders != nil {
		t.models.add(encoderModel(c.Encoders.Default()))
	}
	for _, s := range c.Strategies {
		t.strategies.add(s.Name)
	}
}

// closeLimit is the longest time that Close takes.
const closeLimit = 5 * time.Second

// Close exports what is left and stops. It takes at most five seconds, or as long as ctx allows. It
// returns an error if an export has failed since New.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	return t.close(ctx)
}

// close is Close without a limit of its own.
func (t *Telemetry) close(ctx context.Context) error {
	var errs []error
	for _, end := range t.end {
		errs = append(errs, end(ctx))
	}
	t.abort()
	t.end = nil
	if err := errors.Join(errs...); err != nil {
		t.exports.failed(err)
	}
	return t.exports.problem()
}

// exports counts the exports and keeps their last error.
type exports struct {
	mu      sync.Mutex
	last    error
	times   int
	counted func(signal, outcome string) // may be nil
}

// failed records an error of an export.
func (e *exports) failed(err error) {
	if err == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
	e.times++
}

// ended records the end of an export.
func (e *exports) ended(signal string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
		e.failed(err)
	}
	if e.counted != nil {
		e.counted(signal, outcome)
	}
}

// problem returns the last error; nil: no export has failed.
func (e *exports) problem() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		return nil
	}
	return fmt.Errorf("telemetry: exports failed (%d), the last with: %s: %w", e.times, cut(e.last.Error(), 200), assay.ErrUnavailable)
}

// cut returns the first bytes of a text, on one line of printable characters.
func cut(s string, n int) string {
	out := make([]rune, 0, n)
	for _, r := range s {
		if len(out) == n {
			return string(out) + "…"
		}
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		out = append(out, r)
	}
	return cmp.Or(string(out), "no reason is given")
}
