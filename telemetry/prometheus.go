package telemetry

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// MetricsHandler returns the handler for scrapes of Prometheus. It belongs on a listener of its own,
// since metrics are of all tenants together.
func (t *Telemetry) MetricsHandler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(prometheus.Gatherers{t.registry, process}, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// A promCollector shows the metrics of a reader to Prometheus.
type promCollector struct{ reader *sdkmetric.ManualReader }

// Describe implements prometheus.Collector. It describes nothing, because series appear with their
// first value.
func (promCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c promCollector) Collect(to chan<- prometheus.Metric) {
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(context.Background(), &all); err != nil {
		to <- prometheus.NewInvalidMetric(prometheus.NewDesc("assay_telemetry", "Metrics that cannot be read.", nil, nil), err)
		return
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			i := slices.IndexFunc(metrics, func(d metric) bool { return d.name == m.Name })
			if i >= 0 {
				collect(to, metrics[i], m.Data)
			}
		}
	}
}

// collect sends the series of one metric.
func collect(to chan<- prometheus.Metric, d metric, data metricdata.Aggregation) {
	send := func(set attribute.Set, of func(*prometheus.Desc, []string) (prometheus.Metric, error)) {
		names, values := labelsOf(set)
		desc := prometheus.NewDesc(d.prometheus(), d.help, names, nil)
		m, err := of(desc, values)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		to <- m
	}
	switch data := data.(type) {
	case metricdata.Sum[float64]:
		kind := prometheus.GaugeValue
		if data.IsMonotonic {
			kind = prometheus.CounterValue
		}
		for _, p := range data.DataPoints {
			send(p.Attributes, func(desc *prometheus.Desc, values []string) (prometheus.Metric, error) {
				return prometheus.NewConstMetric(desc, kind, p.Value, values...)
			})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			send(p.Attributes, func(desc *prometheus.Desc, values []string) (prometheus.Metric, error) {
				return prometheus.NewConstHistogram(desc, p.Count, p.Sum, cumulative(p.Bounds, p.BucketCounts), values...)
			})
		}
	}
}

// cumulative returns the counts of buckets in the form of Prometheus.
func cumulative(bounds []float64, counts []uint64) map[float64]uint64 {
	buckets := make(map[float64]uint64, len(bounds))
	sum := uint64(0)
	for i, bound := range bounds {
		sum += counts[i]
		buckets[bound] = sum
	}
	return buckets
}

func labelsOf(set attribute.Set) (names, values []string) {
	for _, kv := range set.ToSlice() {
		names = append(names, strings.ReplaceAll(string(kv.Key), ".", "_"))
		values = append(values, kv.Value.String())
	}
	return names, values
}

// prometheus returns the name of a metric in Prometheus.
func (d metric) prometheus() string {
	name := strings.ReplaceAll(d.name, ".", "_")
	if d.unit == "s" {
		name += "_seconds"
	}
	if d.kind == counter {
		name += "_total"
	}
	return name
}
