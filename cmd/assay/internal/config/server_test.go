package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentedServer checks that the documented section server has every key and that its values
// are the defaults.
func TestDocumentedServer(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(server:.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/operations.md does not have the section")
	}
	for _, key := range keys(reflect.TypeFor[fileServer]()) {
		if !regexp.MustCompile(`(?m)(^|[\s{])` + key + `:`).Match(m[1]) {
			t.Errorf("the documented section does not have %s", key)
		}
	}
	documented, without := mustLoad(t, string(m[1]), nil).Server, mustLoad(t, "", nil).Server
	documented.Hosts, documented.Origins, documented.URLs, documented.Sources, documented.Credentials = nil, nil, nil, nil, nil // empty
	if diff := cmp.Diff(without, documented); diff != "" {
		t.Errorf("(-default +documented):\n%s", diff)
	}
}

// TestServer reads a section with every key, and the variables that take precedence over it.
func TestServer(t *testing.T) {
	const text = `
server:
  listen: 0.0.0.0:8443
  url: https://assay.example.com
  tls: {cert: /c.pem, key: /k.pem}
  metrics: 127.0.0.1:9484
  keys: true
  hosts: [assay.example.com]
  origins: [https://chat.example.com]
  urls: ["*.example.org", docs.example.com]
  folders: [/srv/handbook]
  sources: [web]
  credentials: [env:TOKEN]
  grace: 1m
  version_header: true
  limits: {connections: 1, connections_per_address: 2, requests: 3, streams: 4, runs: 5, waiting_runs: 6}
`
	want := Server{
		Listen: "0.0.0.0:8443", URL: "https://assay.example.com", TLS: TLS{"/c.pem", "/k.pem"}, Metrics: "127.0.0.1:9484", Keys: true,
		Hosts: []string{"assay.example.com"}, Origins: []string{"https://chat.example.com"}, URLs: []string{"*.example.org", "docs.example.com"},
		Folders: []string{"/srv/handbook"}, Sources: []string{"web"}, Credentials: []string{"env:TOKEN"}, Grace: time.Minute, Version: true,
		Limits: ServerLimits{1, 2, 3, 4, 5, 6},
	}
	if diff := cmp.Diff(want, mustLoad(t, text, nil).Server); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := mustLoad(t, text, env{
		"ASSAY_LISTEN": "127.0.0.1:1", "ASSAY_URL": "http://a.example", "ASSAY_TLS_CERT": "c", "ASSAY_TLS_KEY": "k", "ASSAY_METRICS": "127.0.0.1:2",
		"ASSAY_KEYS": "0", "ASSAY_HOSTS": "a.example, b.example", "ASSAY_ORIGINS": "http://a.example",
	}).Server
	want.Listen, want.URL, want.TLS, want.Metrics, want.Keys = "127.0.0.1:1", "http://a.example", TLS{"c", "k"}, "127.0.0.1:2", false
	want.Hosts, want.Origins = []string{"a.example", "b.example"}, []string{"http://a.example"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with variables (-want +got):\n%s", diff)
	}
	flagged, err := got.With("127.0.0.1:3", "fc", "fk", "127.0.0.1:4", true)
	if err != nil {
		t.Fatal(err)
	}
	want.Listen, want.TLS, want.Metrics, want.Keys = "127.0.0.1:3", TLS{"fc", "fk"}, "127.0.0.1:4", true
	if diff := cmp.Diff(want, flagged); diff != "" {
		t.Errorf("with flags (-want +got):\n%s", diff)
	}
	if _, err := got.With("x", "", "", "", false); err == nil || !strings.Contains(err.Error(), "--listen: want HOST:PORT") {
		t.Errorf("a flag that is not valid: %v", err)
	}
}

// TestServerErrors checks that each mistake names its place.
func TestServerErrors(t *testing.T) {
	for _, test := range []struct {
		text string
		env  env
		want string
	}{
		{"server:\n  listen: 8484\n", nil, ":2: server.listen: want HOST:PORT"},
		{"server:\n  listen: \"a:b\"\n", nil, ":2: server.listen: the port"},
		{"server:\n  listen: \"a:70000\"\n", nil, ":2: server.listen: the port"},
		{"server:\n  listen: \"unix:\"\n", nil, ":2: server.listen: the path"},
		{"server:\n  metrics: \"unix:/m\"\n", nil, ":2: server.metrics: want HOST:PORT"},
		{"server:\n  tls: {cert: x}\n", nil, ":2: server.tls: one of"},
		{"server:\n  url: https://a.example/path\n", nil, ":2: server.url: "},
		{"server:\n  url: a.example\n", nil, ":2: server.url: "},
		{"server:\n  hosts: [\"*.example\"]\n", nil, ":2: server.hosts: "},
		{"server:\n  origins: [\"*\"]\n", nil, ":2: server.origins: "},
		{"server:\n  origins: [https://a.example/]\n", nil, ":2: server.origins: "},
		{"server:\n  urls: [\"https://a.example\"]\n", nil, ":2: server.urls: "},
		{"server:\n  grace: 5\n", nil, ":2: server.grace: want a duration"},
		{"server:\n  limits:\n    streams: 9999999\n", nil, ":3: server.limits.streams: "},
		{"server:\n  limits:\n    stream: 1\n", nil, ":3: unknown key"},
		{"", env{"ASSAY_LISTEN": "8484"}, "ASSAY_LISTEN: want"},
		{"", env{"ASSAY_ORIGINS": "*"}, "ASSAY_ORIGINS: "},
		{"", env{"ASSAY_KEYS": "yes"}, "ASSAY_KEYS: want 1"},
		{"server:\n  keys: true\n", env{"ASSAY_KEYS": "no"}, "ASSAY_KEYS: want 1"},
		{"", env{"ASSAY_TLS_KEY": "x"}, "one of certificate and key"},
	} {
		_, err := load(t, test.text, test.env)
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), test.want) {
			t.Errorf("%q, %v: %v, want %q", test.text, test.env, err, test.want)
		}
	}
}

func TestReadsURL(t *testing.T) {
	s := Server{URLs: []string{"docs.example.com", "*.Example.org"}}
	for address, want := range map[string]bool{
		"https://docs.example.com/x": true, "https://DOCS.example.com:8443/": true, "https://a.example.org": true, "https://a.b.example.org.": true,
		"https://example.org": false, "https://example.com": false, "https://docs.example.com.evil": false, "https://evilexample.org": false,
		"https://docs.example.com@evil.example": false, "": false, "file:///etc/passwd": false,
	} {
		if s.ReadsURL(address) != want {
			t.Errorf("ReadsURL(%q) = %t", address, !want)
		}
	}
	if s.URLs = []string{"public"}; !s.ReadsURL("https://any.example") {
		t.Error("public does not admit a host")
	}
}
