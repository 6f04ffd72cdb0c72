package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
)

// meters are the instruments of all metrics, by name.
type meters struct {
	counters   map[string]otelmetric.Float64Counter
	upDowns    map[string]otelmetric.Float64UpDownCounter
	histograms map[string]otelmetric.Float64Histogram
}

func newMeters(m otelmetric.Meter) (*meters, error) {
	out := &meters{
		counters: map[string]otelmetric.Float64Counter{}, upDowns: map[string]otelmetric.Float64UpDownCounter{},
		histograms: map[string]otelmetric.Float64Histogram{},
	}
	for _, d := range metrics {
		unit, help := otelmetric.WithUnit(d.unit), otelmetric.WithDescription(d.help)
		var err error
		switch d.kind {
		case counter:
			out.counters[d.name], err = m.Float64Counter(d.name, unit, help)
		case upDown:
			out.upDowns[d.name], err = m.Float64UpDownCounter(d.name, unit, help)
		case histogram:
			out.histograms[d.name], err = m.Float64Histogram(d.name, unit, help, otelmetric.WithExplicitBucketBoundaries(d.buckets...))
		}
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", d.name, err)
		}
	}
	return out, nil
}

// add adds to a counter.
func (m *meters) add(name string, v float64, labels ...attribute.KeyValue) {
	m.counters[name].Add(context.Background(), v, otelmetric.WithAttributes(labels...))
}

// move adds to a metric that goes up and down.
func (m *meters) move(name string, v float64) { m.upDowns[name].Add(context.Background(), v) }

// record adds an observation to a histogram.
func (m *meters) record(name string, v float64, labels ...attribute.KeyValue) {
	m.histograms[name].Record(context.Background(), v, otelmetric.WithAttributes(labels...))
}

func label(name, value string) attribute.KeyValue { return attribute.String(name, value) }
