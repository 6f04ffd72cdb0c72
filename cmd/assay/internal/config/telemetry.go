package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/egress"
)

// fileTelemetry is the section telemetry. docs/telemetry.md describes each key.
type fileTelemetry struct {
	Endpoint      string            `yaml:"endpoint"`
	Metrics       *bool             `yaml:"metrics"`
	Headers       map[string]string `yaml:"headers"`
	HeadersEnv    map[string]string `yaml:"headers_env"`
	Service       string            `yaml:"service"`
	Texts         bool              `yaml:"texts"`
	Sampling      *float64          `yaml:"sampling"`
	OpenInference bool              `yaml:"openinference"`
	CloudWatchEMF string            `yaml:"cloudwatch_emf"`
	Logs          string            `yaml:"logs"`
}

// A Telemetry says where traces and metrics go.
type Telemetry struct {
	Traces, Metrics string // addresses of an OTLP receiver; empty: they are not exported
	Headers         map[string]Key
	Service         string
	Texts           bool
	Sampling        float64 // 0: all, or as OTEL_TRACES_SAMPLER says
	OpenInference   bool
	EMF             string // path of a file, or EMFStdout; empty: none
	Logs            string // form of the logs of serve: json, or text
}

// EMFStdout is the value of cloudwatch_emf for standard output.
const EMFStdout = "stdout"

// On reports whether anything is exported.
func (t Telemetry) On() bool { return t.Traces != "" || t.Metrics != "" || t.EMF != "" }

// The variables of OpenTelemetry that are read here. Those of the sampler, of the batches and of the
// resource are read by its SDK.
const (
	otelDisabled        = "OTEL_SDK_DISABLED"
	otelEndpoint        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelMetricsEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	otelHeaders         = "OTEL_EXPORTER_OTLP_HEADERS"
	otelProtocol        = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTraces          = "OTEL_TRACES_EXPORTER"
	otelMetrics         = "OTEL_METRICS_EXPORTER"
)

// telemetry reads the section telemetry and the variables of OpenTelemetry. The section takes
// precedence.
func (c *Config) telemetry() error {
	in := c.file.Telemetry
	if in == nil {
		in = &fileTelemetry{}
	}
	t := &c.Telemetry
	if t.Logs = cmp.Or(in.Logs, "text"); t.Logs != "text" && t.Logs != "json" {
		return c.file.wrong([]string{"telemetry", "logs"}, "as in logs: json", "want json or text")
	}
	if strings.EqualFold(c.getenv(otelDisabled), "true") {
		return nil
	}
	t.Service, t.Texts, t.OpenInference = in.Service, in.Texts, in.OpenInference
	if in.Sampling != nil {
		if t.Sampling = *in.Sampling; !(t.Sampling > 0 && t.Sampling <= 1) {
			return c.file.wrong([]string{"telemetry", "sampling"}, "as in sampling: 0.1", "a share of traces must be more than 0 and at most 1")
		}
	}
	if t.EMF = in.CloudWatchEMF; t.EMF != "" && t.EMF != EMFStdout {
		t.EMF = c.beside(t.EMF)
	}
	if err := c.telemetryEndpoints(in); err != nil {
		return err
	}
	return c.telemetryHeaders(in)
}

// telemetryEndpoints sets the addresses of the receiver.
func (c *Config) telemetryEndpoints(in *fileTelemetry) error {
	t := &c.Telemetry
	base := cmp.Or(in.Endpoint, strings.TrimSpace(c.getenv(otelEndpoint)))
	if base != "" {
		t.Traces, t.Metrics = strings.TrimRight(base, "/")+"/v1/traces", strings.TrimRight(base, "/")+"/v1/metrics"
	}
	if in.Endpoint == "" {
		t.Traces = cmp.Or(strings.TrimSpace(c.getenv(otelTracesEndpoint)), t.Traces)
		t.Metrics = cmp.Or(strings.TrimSpace(c.getenv(otelMetricsEndpoint)), t.Metrics)
	}
	for _, address := range []string{t.Traces, t.Metrics} {
		if detail := badReceiver(address); detail != "" && in.Endpoint != "" {
			return c.file.wrong([]string{"telemetry", "endpoint"}, "as in http://localhost:4318", "%s", detail)
		} else if detail != "" {
			return &Error{Where: otelEndpoint, Detail: detail, Hint: "as in http://localhost:4318"}
		}
	}
	if p := c.getenv(otelProtocol); in.Endpoint == "" && p != "" && p != "http/protobuf" && t.Traces != "" {
		c.Warnings = append(c.Warnings, otelProtocol+" is "+shown(p)+", and only http/protobuf is supported: nothing is exported")
		t.Traces, t.Metrics = "", ""
	}
	if c.getenv(otelTraces) == "none" {
		t.Traces = ""
	}
	if c.getenv(otelMetrics) == "none" || in.Metrics != nil && !*in.Metrics {
		t.Metrics = ""
	}
	return nil
}

// badReceiver returns the reason why the address of a receiver is not valid, or "" if it is.
func badReceiver(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "it is not an http or https URL"
	case u.User != nil:
		return "it contains a user name or a password; send them with headers_env"
	case u.RawQuery != "" || u.Fragment != "":
		return "it contains a query or a fragment"
	}
	return ""
}

// telemetryHeaders reads the headers of exports. All values are treated as secret.
func (c *Config) telemetryHeaders(in *fileTelemetry) error {
	t := &c.Telemetry
	t.Headers = map[string]Key{}
	if in.Endpoint == "" {
		for name, value := range otelHeaderList(c.getenv(otelHeaders)) {
			t.Headers[name] = newKey(value, otelHeaders)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		k, err := c.telemetryHeader(name, in.Headers[name])
		if err != nil {
			return err
		}
		t.Headers[name] = k
	}
	for _, name := range slices.Sorted(maps.Keys(in.HeadersEnv)) {
		path := []string{"telemetry", "headers_env", name}
		k, _, err := c.fromEnv(in.HeadersEnv[name], path...)
		if err != nil {
			return err
		}
		if k.Empty() {
			return c.file.wrong(path, "set it, or remove the header", "the variable %s is not set", shown(in.HeadersEnv[name]))
		}
		t.Headers[name] = k
	}
	for name, value := range t.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value.Reveal(), "\r\n\x00") {
			return c.file.wrong([]string{"telemetry", "headers"}, "", "one of them is not a valid HTTP header")
		}
		c.Secrets.add(value.Secret)
	}
	return nil
}

// telemetryHeader reads a header of the file: a value, or !env NAME or !file PATH.
func (c *Config) telemetryHeader(name, value string) (Key, error) {
	path := []string{"telemetry", "headers", name}
	switch c.file.tag(path...) {
	case tagEnv, tagFile:
		k, _, err := c.credential(value, path...)
		if err == nil && k.Empty() {
			err = c.file.wrong(path, "set it, or remove the header", "the variable %s is not set", shown(value))
		}
		return k, err
	case "":
	default:
		return Key{}, c.file.wrong(path, "write !env NAME or !file PATH", "a header is not read from a command")
	}
	if sendsCredential(name) || likeKey(value) {
		return Key{}, c.file.wrong(path, "as in "+name+": !env VARIABLE", "a credential must not be in the file itself")
	}
	return newKey(value, fmt.Sprintf("telemetry.headers.%s in %s", name, c.Path)), nil
}

// otelHeaderList parses a list of the form "name=value,name=value", whose values are percent-encoded,
// as OpenTelemetry's specification of OTLP exporters has it.
func otelHeaderList(text string) map[string]string {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			continue
		}
		value = strings.TrimSpace(value)
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		all[name] = value
	}
	return all
}

// TelemetryClient returns the HTTP client for exports, which reaches the receivers alone.
func (c *Config) TelemetryClient() *http.Client {
	hosts := egress.List{}
	for _, address := range []string{c.Telemetry.Traces, c.Telemetry.Metrics} {
		if r, ok := egress.HostOf(address); ok {
			hosts = append(hosts, r)
		}
	}
	return c.Egress.Scope(egress.Scope{Purpose: egress.Telemetry, Hosts: hosts, Private: true, Proxy: true}).Client(0)
}

// Plain returns the headers of exports.
func (t Telemetry) Plain() map[string]string {
	out := map[string]string{}
	for name, value := range t.Headers {
		out[name] = value.Reveal()
	}
	return out
}
