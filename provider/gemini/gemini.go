// Package gemini implements [llm.Model] and [llm.Embedder] for Google's Gemini API.
//
// It uses plain HTTP instead of Google's SDK, for the reasons given in package anthropic. The key
// is sent in a header, never in a URL, which proxies log.
//
// Sources for the whole package: the API reference and the guides on text generation, function
// calling, structured outputs, thinking, thought signatures, embeddings and troubleshooting at
// ai.google.dev/gemini-api/docs, and google.golang.org/genai 1.77.0, which is generated from
// Google's description of the API.
package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is the address of the API at Google.
const DefaultURL = "https://generativelanguage.googleapis.com"

// apiVersion is the supported version of the API.
const apiVersion = "/v1beta"

// A Config configures access to the API. All fields but Key are optional.
type Config struct {
	Name    string        // provider name, prefix of the model's name; empty: "gemini"
	BaseURL string        // with or without /v1beta at its end; empty: DefaultURL
	Key     secret.Secret // sent as x-goog-api-key

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	// Stream requests replies as streams, even if no caller consumes them as streams. A long reply
	// is then limited by silence, not by its total time.
	Stream bool

	// Effort controls how much a model thinks before it replies, in Google's terms: "minimal",
	// "low", "medium" or "high". Empty or "none" selects the least that the model allows, since
	// thinking counts as output.
	Effort string

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// A Provider returns models of the API. It is safe for concurrent use.
type Provider struct {
	client wire.Client
	name   string
	url    string // up to and including /v1beta
	stream bool
	effort string
}

// New returns a provider. An invalid address is assay.ErrInvalid.
func New(c Config) (*Provider, error) {
	client, base, err := wire.Endpoint{
		Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, Headers: c.Headers, HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client(wire.Service{Name: "gemini", URL: DefaultURL, Header: "x-goog-api-key", Explain: explain})
	if err != nil {
		return nil, err
	}
	return &Provider{client: client, name: client.Name, url: strings.TrimSuffix(base, apiVersion) + apiVersion, stream: c.Stream, effort: c.Effort}, nil
}

// of returns a client whose errors name a model, and the model's URL.
func (p *Provider) of(name string) (wire.Client, string) {
	c := p.client
	c.Name = p.name + "/" + name
	return c, p.url + "/models/" + url.PathEscape(name)
}

// Model returns the model with the given name, for example "gemini-3.8-flash".
func (p *Provider) Model(name string) llm.Model {
	name = strings.TrimPrefix(name, "models/")
	m := &model{stream: p.stream, can: abilities(name, p.effort)}
	m.client, m.url = p.of(name)
	return m
}

// maxPages is the largest number of pages of models that are read.
const maxPages = 20

// List returns the models that generate text, in the API's order. The window of a model is its
// limit on input, since Google limits input and output apart.
func (p *Provider) List(ctx context.Context) ([]llm.Listed, error) {
	var models []llm.Listed
	token := ""
	for range maxPages {
		var page struct {
			Models []struct {
				Name    string   `json:"name"`
				Methods []string `json:"supportedGenerationMethods"`
				Input   int      `json:"inputTokenLimit"`
				Output  int      `json:"outputTokenLimit"`
			} `json:"models"`
			Next string `json:"nextPageToken"`
		}
		if err := p.client.JSON(ctx, http.MethodGet, p.url+"/models?pageSize=1000"+token, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Models {
			if slices.Contains(m.Methods, "generateContent") {
				facts := llm.Facts{Window: max(0, m.Input), MaxOutput: max(0, m.Output)}
				models = append(models, llm.Listed{Name: strings.TrimPrefix(m.Name, "models/"), Facts: facts})
			}
		}
		if page.Next == "" {
			break
		}
		token = "&pageToken=" + url.QueryEscape(page.Next)
	}
	return models, nil
}

// A model is one model of the API.
type model struct {
	client wire.Client
	url    string
	stream bool
	can    ability
}

// Model implements llm.Model.
func (m *model) Model() string { return m.client.Name }

// Generate implements llm.Model.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	body, err := m.encode(req)
	if err != nil {
		e := m.client.Fail(llm.BadRequest, "%v", err)
		e.Usage = assay.Usage{} // nothing was sent
		return llm.Response{}, e
	}
	r := reader{client: &m.client, scrub: m.client.Scrubber(), stream: stream}
	if m.stream {
		err = m.client.Stream(ctx, m.url+":streamGenerateContent?alt=sse", body, r.event)
		if err == nil && !r.ended {
			err = m.client.Fail(llm.BrokeOff, "the stream ended before the reply did")
		}
	} else {
		var whole reply
		if err = m.client.JSON(ctx, http.MethodPost, m.url+":generateContent", body, &whole); err == nil {
			err = r.whole(whole)
		}
	}
	if err != nil {
		if failed, ok := errors.AsType[*llm.Error](err); ok && r.usage != nil {
			failed.Usage, _ = r.spends(req)
		}
		return llm.Response{}, err
	}
	return r.response(req), nil
}
