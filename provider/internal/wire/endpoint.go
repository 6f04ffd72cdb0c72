package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// An Endpoint is the user's configuration of a service over HTTP.
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

// Client returns a client of the service and the service's base URL without trailing slashes. The
// key is sent in the given header, after a prefix such as "Bearer ". An invalid address is
// assay.ErrInvalid.
func (e Endpoint) Client(header, prefix string) (Client, string, error) {
	base := strings.TrimRight(e.BaseURL, "/")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Client{}, "", fmt.Errorf("the address of %s is not one of HTTP: %w", e.Name, assay.ErrInvalid)
	}
	secrets := []Secret{e.Key}
	for _, value := range e.Headers {
		secrets = append(secrets, NewSecret(value))
	}
	return Client{
		Name: e.Name, HTTP: e.HTTP, Secrets: secrets, First: e.First, Idle: e.Idle, MaxBytes: e.MaxBytes,
		Header: func(r *http.Request) {
			if !e.Key.Empty() {
				r.Header.Set(header, prefix+e.Key.Reveal())
			}
			for name, value := range e.Headers {
				r.Header.Set(name, value)
			}
		},
	}, base, nil
}
