package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// DefaultListen is the address that assay serve listens on.
const DefaultListen = "127.0.0.1:8484"

// DefaultGrace is the default of Server.Grace.
const DefaultGrace = 20 * time.Second

// keysVariable is the environment variable for Server.Keys.
const keysVariable = "ASSAY_KEYS"

// A Server is the configuration of assay serve.
type Server struct {
	Listen  string `json:"listen" yaml:"listen"`                       // HOST:PORT, or unix:PATH
	URL     string `json:"url,omitempty" yaml:"url,omitempty"`         // under which clients reach it; empty: that of Listen
	TLS     TLS    `json:"tls,omitzero" yaml:"tls,omitempty"`          //
	Metrics string `json:"metrics,omitempty" yaml:"metrics,omitempty"` // HOST:PORT for Prometheus; empty: none

	Keys    bool     `json:"keys" yaml:"keys"` // API keys are accepted
	Hosts   []string `json:"hosts,omitempty" yaml:"hosts,omitempty"`
	Origins []string `json:"origins,omitempty" yaml:"origins,omitempty"`

	URLs        []string `json:"urls,omitempty" yaml:"urls,omitempty"`               // hosts whose pages clients may have read
	Folders     []string `json:"folders,omitempty" yaml:"folders,omitempty"`         // see engine.HostConfig
	Sources     []string `json:"sources,omitempty" yaml:"sources,omitempty"`         // kinds that clients may add
	Credentials []string `json:"credentials,omitempty" yaml:"credentials,omitempty"` // references that their sources and webhooks may use

	Grace   time.Duration `json:"-" yaml:"-"` // of a shutdown
	Version bool          `json:"version_header" yaml:"version_header"`
	Limits  ServerLimits  `json:"limits" yaml:"limits"`
}

// TLS names the files of a certificate and its key.
type TLS struct {
	Certificate string `json:"cert,omitempty" yaml:"cert,omitempty"`
	Key         string `json:"key,omitempty" yaml:"key,omitempty"`
}

// ServerLimits are the numbers of server.Limits, and those of engine.HostConfig.
type ServerLimits struct {
	Connections int `json:"connections" yaml:"connections"`
	PerAddress  int `json:"connections_per_address" yaml:"connections_per_address"`
	Requests    int `json:"requests" yaml:"requests"`
	Streams     int `json:"streams" yaml:"streams"`
	Runs        int `json:"runs" yaml:"runs"`
	Waiting     int `json:"waiting_runs" yaml:"waiting_runs"`
}

// fileServer is the section server. docs/operations.md describes each key.
type fileServer struct {
	Listen      string           `yaml:"listen"`
	URL         string           `yaml:"url"`
	TLS         fileTLS          `yaml:"tls"`
	Metrics     string           `yaml:"metrics"`
	Keys        bool             `yaml:"keys"`
	Hosts       []string         `yaml:"hosts"`
	Origins     []string         `yaml:"origins"`
	URLs        []string         `yaml:"urls"`
	Folders     []string         `yaml:"folders"`
	Sources     []string         `yaml:"sources"`
	Credentials []string         `yaml:"credentials"`
	SignIn      *fileSignIn      `yaml:"sign_in"`
	Grace       string           `yaml:"grace"`
	Version     bool             `yaml:"version_header"`
	Limits      fileServerLimits `yaml:"limits"`
}

type fileTLS struct {
	Certificate string `yaml:"cert"`
	Key         string `yaml:"key"`
}

type fileServerLimits struct {
	Connections int `yaml:"connections"`
	PerAddress  int `yaml:"connections_per_address"`
	Requests    int `yaml:"requests"`
	Streams     int `yaml:"streams"`
	Runs        int `yaml:"runs"`
	Waiting     int `yaml:"waiting_runs"`
}

// server reads the section server and the variables that take precedence over it.
func (c *Config) server() error {
	in := c.file.Server
	if in == nil {
		in = &fileServer{}
	}
	s := Server{
		Listen: cmp.Or(in.Listen, DefaultListen), URL: in.URL, Metrics: in.Metrics, Keys: in.Keys, Version: in.Version,
		Hosts: in.Hosts, Origins: in.Origins, URLs: in.URLs, Sources: in.Sources, Credentials: in.Credentials,
	}
	if in.TLS.Certificate != "" {
		s.TLS.Certificate = c.beside(in.TLS.Certificate)
	}
	if in.TLS.Key != "" {
		s.TLS.Key = c.beside(in.TLS.Key)
	}
	for _, folder := range in.Folders {
		s.Folders = append(s.Folders, c.beside(folder))
	}
	grace, err := c.file.duration(in.Grace, "server", "grace")
	if err != nil {
		return err
	}
	s.Grace = cmp.Or(grace, DefaultGrace)
	if s.Limits, err = c.serverLimits(in.Limits); err != nil {
		return err
	}
	if wrong := s.mistake(); wrong != nil {
		return c.file.wrong([]string{"server", wrong.key}, wrong.hint, "%s", wrong.detail)
	}
	variables := s.fromEnvironment(c.getenv)
	switch c.getenv(keysVariable) {
	case "":
	case "1", "true":
		s.Keys = true
	case "0", "false":
		s.Keys = false
	default: // ignored, it would let everyone in
		return &Error{Where: keysVariable, Detail: "want 1 or 0", Hint: "1: API keys are accepted, and a credential is needed"}
	}
	if wrong := s.mistake(); wrong != nil {
		return &Error{Where: variables[wrong.key], Detail: wrong.detail, Hint: wrong.hint}
	}
	c.Server = s
	return nil
}

// fromEnvironment sets the fields whose variables are set. It returns the variables by key.
func (s *Server) fromEnvironment(getenv func(string) string) map[string]string {
	variables := map[string]string{}
	text := func(key, variable string, into *string) {
		variables[key] = variable
		*into = cmp.Or(getenv(variable), *into)
	}
	list := func(key, variable string, into *[]string) {
		variables[key] = variable
		if value := getenv(variable); value != "" {
			*into = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	text("listen", "ASSAY_LISTEN", &s.Listen)
	text("url", "ASSAY_URL", &s.URL)
	text("tls", "ASSAY_TLS_CERT", &s.TLS.Certificate)
	text("tls", "ASSAY_TLS_KEY", &s.TLS.Key)
	text("metrics", "ASSAY_METRICS", &s.Metrics)
	list("hosts", "ASSAY_HOSTS", &s.Hosts)
	list("origins", "ASSAY_ORIGINS", &s.Origins)
	return variables
}

func (c *Config) serverLimits(in fileServerLimits) (ServerLimits, error) {
	d := server.DefaultLimits
	out := ServerLimits{}
	for _, x := range []struct {
		key            string
		value, usually int
		into           *int
	}{
		{"connections", in.Connections, d.Connections, &out.Connections},
		{"connections_per_address", in.PerAddress, d.PerAddress, &out.PerAddress},
		{"requests", in.Requests, d.Requests, &out.Requests},
		{"streams", in.Streams, d.Streams, &out.Streams},
		{"runs", in.Runs, engine.DefaultMaxRuns, &out.Runs},
		{"waiting_runs", in.Waiting, engine.DefaultMaxWaiting, &out.Waiting},
	} {
		if x.value < 0 || x.value > 1e6 {
			return out, c.file.wrong([]string{"server", "limits", x.key}, "", "want a number from 1 to 1000000")
		}
		*x.into = cmp.Or(x.value, x.usually)
	}
	return out, nil
}

// A serverMistake is a value of the section server that is not valid.
type serverMistake struct{ key, detail, hint string }

// mistake returns the first mistake, or nil.
func (s *Server) mistake() *serverMistake {
	if _, _, err := SplitListen(s.Listen); err != "" {
		return &serverMistake{"listen", err, "as in 127.0.0.1:8484, 0.0.0.0:8484 or unix:/run/assay/assay.sock"}
	}
	if s.Metrics != "" {
		if network, _, err := SplitListen(s.Metrics); err != "" || network == "unix" {
			return &serverMistake{"metrics", cmp.Or(err, "want HOST:PORT"), "as in 127.0.0.1:9484"}
		}
	}
	if (s.TLS.Certificate == "") != (s.TLS.Key == "") {
		return &serverMistake{"tls", "one of certificate and key is missing", "set both: cert and key, --tls-cert and --tls-key, or ASSAY_TLS_CERT and ASSAY_TLS_KEY"}
	}
	if s.URL != "" && !isPublicURL(s.URL) {
		return &serverMistake{"url", "want the URL of the server without path, query and user", "as in https://assay.example.com"}
	}
	for _, host := range s.Hosts {
		if host == "" || strings.ContainsAny(host, "/*@ ") || strings.Contains(host, "://") {
			return &serverMistake{"hosts", shown(host) + " is not the name of a host", "as in hosts: [assay.example.com]"}
		}
	}
	for _, host := range s.URLs {
		if name := strings.TrimPrefix(host, "*."); name == "" || strings.ContainsAny(name, "/*@: ") {
			return &serverMistake{"urls", shown(host) + " is not the name of a host", "as in urls: [docs.example.com, \"*.example.org\"], or urls: [public] for all of the public internet"}
		}
	}
	for _, origin := range s.Origins {
		if err := server.CheckOrigin(origin); err != nil {
			return &serverMistake{"origins", withoutKind(err), ""}
		}
	}
	return nil
}

// ReadsURL reports whether clients may have the page at an address read.
func (s Server) ReadsURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return slices.ContainsFunc(s.URLs, func(allowed string) bool {
		below, wildcard := strings.CutPrefix(strings.ToLower(allowed), "*.")
		if wildcard {
			return strings.HasSuffix(host, "."+below)
		}
		return allowed == "public" || host == below
	})
}

// isPublicURL reports whether text is a scheme and a host, with a final slash or without.
func isPublicURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	bare := u.User == nil && u.RawQuery == "" && u.Fragment == ""
	return bare && u.Host != "" && strings.Trim(u.Path, "/") == ""
}

// SplitListen returns the network and the address of a setting such as 127.0.0.1:8484 or
// unix:/run/assay.sock. If the setting is not valid, wrong says why, and the others are empty.
func SplitListen(text string) (network, address, wrong string) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return "", "", "the path of the socket is missing"
		}
		return "unix", path, ""
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", "", "want HOST:PORT or unix:PATH"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", "", "the port is not a number from 0 to 65535"
	}
	return "tcp", text, ""
}

// With returns s with the flags of assay serve that were given, or an error about one of them.
func (s Server) With(listen, certificate, key, metrics string, keys bool) (Server, error) {
	s.Listen, s.Metrics = cmp.Or(listen, s.Listen), cmp.Or(metrics, s.Metrics)
	s.TLS.Certificate, s.TLS.Key = cmp.Or(certificate, s.TLS.Certificate), cmp.Or(key, s.TLS.Key)
	s.Keys = s.Keys || keys
	if wrong := s.mistake(); wrong != nil {
		flags := map[string]string{"listen": "--listen", "metrics": "--metrics", "tls": "--tls-cert"}
		return s, &Error{Where: flags[wrong.key], Detail: wrong.detail, Hint: wrong.hint}
	}
	return s, nil
}
