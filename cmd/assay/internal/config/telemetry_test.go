package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTelemetry reads a section with every key.
func TestTelemetry(t *testing.T) {
	c := mustLoad(t, `
telemetry:
  endpoint: https://otlp.example.com/base/
  headers: {x-team: search, x-key: !env OTLP_KEY}
  headers_env: {Authorization: OTLP_AUTH}
  service: handbook
  texts: true
  sampling: 0.25
  openinference: true
  cloudwatch_emf: stdout
  logs: json
`, env{"OTLP_KEY": "key-of-the-receiver", "OTLP_AUTH": "Bearer of-the-receiver", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"})
	got := c.Telemetry
	headers := got.Plain()
	got.Headers = nil
	want := Telemetry{
		Traces: "https://otlp.example.com/base/v1/traces", Metrics: "https://otlp.example.com/base/v1/metrics",
		Service: "handbook", Texts: true, Sampling: 0.25, OpenInference: true, EMF: EMFStdout, Logs: "json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"x-team": "search", "x-key": "key-of-the-receiver", "Authorization": "Bearer of-the-receiver"}, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if text := c.Secrets.Scrub("Bearer of-the-receiver, key-of-the-receiver"); regexp.MustCompile("receiver").MatchString(text) {
		t.Errorf("a header is not hidden: %s", text)
	}
}

// TestTelemetryVariables reads the variables of OpenTelemetry.
func TestTelemetryVariables(t *testing.T) {
	for _, c := range []struct {
		env             env
		file            string
		traces, metrics string
		headers         map[string]string
	}{
		{env: nil},
		{env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "", "http://a:4318/v1/traces", "http://a:4318/v1/metrics", map[string]string{}},
		{env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a/t", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c, d=e=,=x,f"}, "", "http://a/t", "", map[string]string{"a": "b c", "d": "e="}},
		{env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, "", "", "http://a/v1/metrics", nil},
		{env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_METRICS_EXPORTER": "none"}, "", "http://a/v1/traces", "", nil},
		{env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "", "", nil},
		{env{"OTEL_SDK_DISABLED": "true"}, "telemetry: {endpoint: 'http://b'}", "", "", nil},
		{nil, "telemetry: {endpoint: 'http://b', metrics: false}", "http://b/v1/traces", "", nil},
	} {
		got := mustLoad(t, c.file, c.env).Telemetry
		if got.Traces != c.traces || got.Metrics != c.metrics || got.On() != (c.traces+c.metrics != "") {
			t.Errorf("%v, %q: traces to %q, metrics to %q, want %q, %q", c.env, c.file, got.Traces, got.Metrics, c.traces, c.metrics)
		}
		if diff := cmp.Diff(c.headers, got.Plain()); diff != "" && c.headers != nil {
			t.Errorf("%v: headers (-want +got):\n%s", c.env, diff)
		}
	}
}

// TestTelemetryExample checks that the example of docs/telemetry.md is complete and valid.
func TestTelemetryExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/telemetry.md has no example")
	}
	if c := mustLoad(t, string(m[1]), nil); !c.Telemetry.On() || len(c.Warnings) > 0 {
		t.Errorf("the example gives %+v, warnings %q", c.Telemetry, c.Warnings)
	}
	for _, key := range keys(reflect.TypeFor[fileTelemetry]()) {
		if key != "headers_env" && !regexp.MustCompile(`(?m)^  `+key+`:`).Match(m[1]) {
			t.Errorf("the example does not have %s", key)
		}
	}
}

// TestTelemetryErrors checks that each mistake names its key and its line, and quotes no credential.
func TestTelemetryErrors(t *testing.T) {
	for text, want := range map[string]string{
		"telemetry: {endpoint: 'otlp.example'}":                                         "telemetry.endpoint: it is not an http or https URL",
		"telemetry: {endpoint: 'http://u:hunter2@a'}":                                   "telemetry.endpoint: it contains a user name or a password",
		"telemetry: {endpoint: 'http://a?key=hunter2'}":                                 "telemetry.endpoint: it contains a query",
		"telemetry: {sampling: 0}":                                                      "telemetry.sampling: ",
		"telemetry: {sampling: 1.5}":                                                    "telemetry.sampling: ",
		"telemetry: {logs: xml}":                                                        "telemetry.logs: want json or text",
		"telemetry: {endpiont: x}":                                                      "unknown key",
		"telemetry: {endpoint: 'http://a', headers_env: {Authorization: NOT_SET}}":      "telemetry.headers_env.Authorization: the variable \"NOT_SET\" is not set",
		"telemetry: {endpoint: 'http://a', headers: {Authorization: 'Bearer hunter2'}}": "telemetry.headers.Authorization: a credential must not be",
		"telemetry: {endpoint: 'http://a', headers: {x: !command 'pass show x'}}":       "a header is not read from a command",
		"telemetry: {endpoint: 'http://a', headers: {'x y': z}}":                        "not a valid HTTP header",
	} {
		_, err := load(t, text, nil)
		wrong, ok := errors.AsType[*Error](err)
		if !ok || !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}
		if regexp.MustCompile("hunter2").MatchString(err.Error() + wrong.Hint) {
			t.Errorf("%s: the error quotes a credential: %v", text, err)
		}
	}
}
