// Package anthropic implements [llm.Model] for Claude and for other services with Anthropic's
// Messages API.
//
// It uses plain HTTP instead of Anthropic's SDK, because it needs exact guarantees: a limit on the
// bytes read, an error for an incomplete reply, no leftovers of a call after it returns, and no
// credential in an error. Package wire provides these for all providers. The SDK (1.84.0) reads
// replies without a limit, treats a truncated stream as complete, and enlarges a program by 8 MB
// (17.3 instead of 8.9, compared with one that uses net/http and encoding/json).
//
// Sources for the whole package: the Messages API reference and the guides on streaming, errors,
// tool use, prompt caching, structured outputs and thinking at platform.claude.com/docs, and
// anthropics/anthropic-sdk-go 1.84.0, which is generated from Anthropic's OpenAPI description.
package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is the address of Anthropic's own service.
const DefaultURL = "https://api.anthropic.com"

// apiVersion is the supported version of the API.
const apiVersion = "2023-06-01"

// A Config configures a service. All fields are optional, except Key, which only a self-hosted
// service may not need.
type Config struct {
	Name    string        // provider name, prefix of the model's name; empty: "anthropic"
	BaseURL string        // with or without /v1 at its end; empty: DefaultURL
	Key     secret.Secret // sent as x-api-key

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	// Stream requests replies as streams, even if no caller consumes them as streams. A long reply
	// is then limited by silence, not by its total time.
	Stream bool

	// Effort controls how much a model thinks before it replies, in Anthropic's terms: "low",
	// "medium", "high", "xhigh" or "max". Empty or "none" selects the least that the model allows,
	// since thinking counts as output.
	Effort string

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// A Provider returns models of one service. It is safe for concurrent use.
type Provider struct {
	client wire.Client
	name   string
	url    string // up to and including /v1
	stream bool
	effort string
}

// New returns a provider. An invalid address is assay.ErrInvalid.
func New(c Config) (*Provider, error) {
	client, base, err := wire.Endpoint{
		Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, Headers: c.Headers, HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client(wire.Service{Name: "anthropic", URL: DefaultURL, Header: "x-api-key", Explain: explain})
	if err != nil {
		return nil, err
	}
	credentials := client.Header
	client.Header = func(r *http.Request) {
		r.Header.Set("anthropic-version", apiVersion)
		credentials(r)
	}
	return &Provider{client: client, name: client.Name, url: strings.TrimSuffix(base, "/v1") + "/v1", stream: c.Stream, effort: c.Effort}, nil
}

// Model returns the model with the given name, which Anthropic calls an ID, for example
// "claude-sonnet-5-5".
func (p *Provider) Model(name string) llm.Model {
	c := p.client
	c.Name = p.name + "/" + name
	return &model{client: c, url: p.url + "/messages", id: name, stream: p.stream, can: abilities(name, p.effort)}
}

// maxPages is the largest number of pages of models that are read.
const maxPages = 20

// List returns the service's models, in its order, newest first.
func (p *Provider) List(ctx context.Context) ([]llm.Listed, error) {
	var models []llm.Listed
	after := ""
	for range maxPages {
		var page struct {
			Data []struct {
				ID        string `json:"id"`
				Lifecycle string `json:"lifecycle"`
				Input     int    `json:"max_input_tokens"`
				Output    int    `json:"max_tokens"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		if err := p.client.JSON(ctx, http.MethodGet, p.url+"/models?limit=1000"+after, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if m.Lifecycle != "retired" { // retired models remain in the catalogue
				models = append(models, llm.Listed{Name: m.ID, Facts: llm.Facts{Window: max(0, m.Input), MaxOutput: max(0, m.Output)}})
			}
		}
		if !page.HasMore || page.LastID == "" {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.LastID)
	}
	return models, nil
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
