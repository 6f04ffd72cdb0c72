package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// The rules of CloudWatch's embedded metric format: "Specification: Embedded metric format" and
// "PutMetricData" in its documentation.
var (
	emfNamespaces = regexp.MustCompile(`^[0-9A-Za-z.\-_/#:]{1,255}$`)
	emfUnits      = []string{
		"Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes", "Bits", "Kilobits", "Megabits",
		"Gigabits", "Terabits", "Percent", "Count", "Bytes/Second", "Count/Second", "None",
	}
)

const (
	emfMaxMetrics    = 100
	emfMaxDimensions = 30
	emfMaxName       = 1024
	emfMaxDimension  = 250
	emfMaxLine       = 256 << 10
)

// checkEMF checks one line against the rules.
func checkEMF(t *testing.T, line []byte, now time.Time) map[string]any {
	t.Helper()
	if len(line) > emfMaxLine || bytes.ContainsRune(line, '\n') {
		t.Errorf("the line has %d bytes, or is several", len(line))
	}
	var root map[string]any
	var typed struct {
		AWS emfMetadata `json:"_aws"`
	}
	if err := errors.Join(json.Unmarshal(line, &root), json.Unmarshal(line, &typed)); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if typed.AWS.Timestamp != now.UnixMilli() {
		t.Errorf("timestamp %d, want %d", typed.AWS.Timestamp, now.UnixMilli())
	}
	if len(typed.AWS.CloudWatchMetrics) == 0 {
		t.Error("no metrics are declared")
	}
	for _, d := range typed.AWS.CloudWatchMetrics {
		if !emfNamespaces.MatchString(d.Namespace) {
			t.Errorf("namespace %q", d.Namespace)
		}
		if len(d.Metrics) == 0 || len(d.Metrics) > emfMaxMetrics || len(d.Dimensions) == 0 {
			t.Errorf("%d metrics, %d sets of dimensions", len(d.Metrics), len(d.Dimensions))
		}
		for _, set := range d.Dimensions {
			if len(set) == 0 || len(set) > emfMaxDimensions {
				t.Errorf("a set of %d dimensions", len(set))
			}
			for _, name := range set {
				if value, ok := root[name].(string); !ok || value == "" || len(value) > emfMaxDimension {
					t.Errorf("the dimension %s is %v", name, root[name])
				}
			}
		}
		for _, m := range d.Metrics {
			if m.Name == "" || len(m.Name) > emfMaxName || !slices.Contains(emfUnits, m.Unit) {
				t.Errorf("the metric %q has the unit %q", m.Name, m.Unit)
			}
			if _, ok := root[m.Name].(float64); !ok {
				t.Errorf("the metric %s is %v", m.Name, root[m.Name])
			}
		}
	}
	return root
}

func TestEMF(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	tel, _ := newTelemetry(t, Config{EMF: &out, Service: "handbook", Now: func() time.Time { return now }})
	e := open(t, tel, withModel)
	for _, strategy := range []string{"static", "corrective"} {
		if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: strategy}); err != nil {
			t.Fatal(err)
		}
	}
	_, o := tel.BeginRun(t.Context(), engine.ObservedRun{ID: "failed"})
	o.End(engine.RunOutcome{State: assay.RunFailed, Err: assay.ErrUnavailable})
	lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	if len(lines) != 3 {
		t.Fatalf("%d lines, want one for each run", len(lines))
	}
	for i, want := range []map[string]any{
		{"Strategy": "static", "State": "done", "Service": "handbook", "Runs": 1.0},
		{"Strategy": "corrective", "State": "done"},
		{"Strategy": "none", "State": "failed", "Status": "none"},
	} {
		root := checkEMF(t, lines[i], now)
		for name, value := range want {
			if root[name] != value {
				t.Errorf("line %d: %s is %v, want %v", i, name, root[name], value)
			}
		}
	}
}

// failingWriter is a writer on a full disk.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, assay.ErrFull }

func TestEMFFails(t *testing.T) {
	t.Parallel()
	tel, end := newTelemetry(t, Config{EMF: failingWriter{}})
	e := open(t, tel, nil)
	if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question}); err != nil {
		t.Fatal(err)
	}
	if err := end(); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("Close: %v, want the failure", err)
	}
}
