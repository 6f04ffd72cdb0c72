package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// An Endpoint is the user's configuration of a service over HTTP. The Configs of several adapters
// have the same fields, so that they can be converted.
type Endpoint struct {
	Name    string
	BaseURL string
	Key     Secret
	Headers map[string]string // sent with each request; values are treated as credentials

	HTTP     *http.Client
	First    time.Duration
	Idle     time.Duration
	MaxBytes int64
}

// A Service describes what is the same for all configurations of a service.
type Service struct {
	Name   string // default of Endpoint.Name
	URL    string // default of Endpoint.BaseURL; empty: none
	Header string // that the key is sent in
	Prefix string // of the key in it, such as "Bearer "

	Explain func(status int, header http.Header, body []byte) Fault // as in Client
}

// Client returns a client of the service and the service's base URL without trailing slashes. An
// invalid address is assay.ErrInvalid.
func (e Endpoint) Client(s Service) (Client, string, error) {
	name := cmp.Or(e.Name, s.Name)
	base := strings.TrimRight(cmp.Or(e.BaseURL, s.URL), "/")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Client{}, "", fmt.Errorf("the address of %s is not an HTTP URL: %w", name, assay.ErrInvalid)
	}
	if e.HTTP == nil {
		e.HTTP = HTTP(base)
	}
	secrets := []Secret{e.Key}
	for _, value := range e.Headers {
		secrets = append(secrets, NewSecret(value))
	}
	return Client{
		Name: name, HTTP: e.HTTP, Secrets: secrets, First: e.First, Idle: e.Idle, MaxBytes: e.MaxBytes, Explain: s.Explain,
		Header: func(r *http.Request) {
			if !e.Key.Empty() {
				r.Header.Set(s.Header, s.Prefix+e.Key.Reveal())
			}
			for name, value := range e.Headers {
				r.Header.Set(name, value)
			}
		},
	}, base, nil
}
