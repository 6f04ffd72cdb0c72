// Package anthropic reaches Claude, and whoever else speaks the Messages API of
// Anthropic, as an [llm.Model].
//
// It speaks plain HTTP instead of using Anthropic's SDK. What matters here has to be
// exact: how many bytes are read, that a reply without its end is no reply, that
// nothing of a call is left when it returns, that no credential gets into an error.
// Package wire does that for every provider alike. The SDK (1.84.0) reads replies
// without a limit, takes a stream that stops early for its end, and makes a program
// larger by 8 MB (17.3 instead of 8.9, beside one with net/http and encoding/json).
//
// Sources, in all of the package: the Messages API reference and the guides on
// streaming, errors, tool use, prompt caching, structured outputs and thinking at
// platform.claude.com/docs, and anthropics/anthropic-sdk-go 1.84.0, which is
// generated from Anthropic's OpenAPI description.
package anthropic

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is where Anthropic itself serves the API.
const DefaultURL = "https://api.anthropic.com"

// apiVersion is the version of the API that the package speaks.
const apiVersion = "2023-06-01"

// A Config says which service to reach, and how. Everything may be left out but the
// Key, which a service of one's own may do without.
type Config struct {
	Name    string        // of the provider, before the model's name; empty: "anthropic"
	BaseURL string        // with or without /v1 at its end; empty: DefaultURL
	Key     secret.Secret // sent as x-api-key

	// Headers go with each request. Their values are taken for credentials.
	Headers map[string]string

	// Stream asks for replies as streams, whether or not a caller wants to see them
	// arrive: a long reply then fails by silence, not by its length.
	Stream bool

	// Effort is how much a model thinks before it replies, in Anthropic's words: "low",
	// "medium", "high", "xhigh" or "max". Empty or "none": as little as the model
	// allows, since thinking counts as output.
	Effort string

	HTTP     *http.Client  // nil: one with net/http's defaults
	First    time.Duration // how long until a reply begins; 0: ten minutes
	Idle     time.Duration // how long a reply that has begun may be silent; 0: a minute
	MaxBytes int64         // of a reply; 0: 8 MiB
}

// A Provider makes models of one service. It is safe for concurrent use.
type Provider struct {
	client wire.Client
	name   string
	url    string // up to and with /v1
	stream bool
	effort string
}

// New returns a provider. An address that is none is assay.ErrInvalid.
func New(c Config) (*Provider, error) {
	name := cmp.Or(c.Name, "anthropic")
	client, base, err := wire.Endpoint{
		Name: name, BaseURL: cmp.Or(c.BaseURL, DefaultURL), Key: c.Key, Headers: c.Headers,
		HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client("x-api-key", "")
	if err != nil {
		return nil, err
	}
	credentials := client.Header
	client.Header = func(r *http.Request) {
		r.Header.Set("anthropic-version", apiVersion)
		credentials(r)
	}
	client.Explain = explain
	return &Provider{client: client, name: name, url: strings.TrimSuffix(base, "/v1") + "/v1", stream: c.Stream, effort: c.Effort}, nil
}

// Model returns the model of that name, which Anthropic calls an ID:
// "claude-sonnet-5-5".
func (p *Provider) Model(name string) llm.Model {
	c := p.client
	c.Name = p.name + "/" + name
	return &model{client: c, url: p.url + "/messages", id: name, stream: p.stream, can: abilities(name, p.effort)}
}

// maxPages bounds how many pages of models are read.
const maxPages = 20

// Models returns the names of the models that the service serves, in its order:
// newest first.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	var names []string
	after := ""
	for range maxPages {
		var page struct {
			Data []struct {
				ID        string `json:"id"`
				Lifecycle string `json:"lifecycle"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		if err := p.client.JSON(ctx, http.MethodGet, p.url+"/models?limit=1000"+after, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if m.Lifecycle != "retired" { // it is in the catalogue as a matter of record
				names = append(names, m.ID)
			}
		}
		if !page.HasMore || page.LastID == "" {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.LastID)
	}
	return names, nil
}

// A model is one model of a service.
type model struct {
	client wire.Client
	url    string
	id     string
	stream bool
	can    ability
}

// Model implements llm.Model.
func (m *model) Model() string { return m.client.Name }

// Generate implements llm.Model.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	body, err := m.encode(req)
	if err != nil {
		return llm.Response{}, err
	}
	r := reader{client: &m.client, scrub: m.client.Scrubber(), stream: stream}
	if m.stream {
		err = m.client.Stream(ctx, m.url, body, r.event)
		if err == nil && !r.ended {
			err = m.client.Fail(llm.BrokeOff, "the stream ended before the reply did")
		}
	} else {
		var whole message
		if err = m.client.JSON(ctx, http.MethodPost, m.url, body, &whole); err == nil {
			err = r.whole(whole)
		}
	}
	if err != nil {
		return llm.Response{}, r.spent(req, err)
	}
	return r.response(req), nil
}
