// Package searxng searches the web with the search API of a SearXNG server, which is usually
// self-hosted.
//
// Source: SearXNG, "Search API" at docs.searxng.org/dev/search_api.html.
package searxng

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/results"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Config configures a server. BaseURL is required.
type Config struct {
	Name    string        // in errors and answers; empty: "searxng"
	BaseURL string        // of the server: "http://127.0.0.1:8080"
	Key     secret.Secret // sent as a bearer token, for a server behind an authenticating proxy

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	HTTP     *http.Client  // nil: net/http's defaults
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// A Searcher searches the web. It implements assay.WebSearcher.
type Searcher struct {
	client wire.Client
	base   string
}

// New returns a searcher. An invalid address is assay.ErrInvalid.
func New(c Config) (*Searcher, error) {
	name := cmp.Or(c.Name, "searxng")
	client, base, err := wire.Endpoint{
		Name: name, BaseURL: c.BaseURL, Key: c.Key, Headers: c.Headers, HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client("Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	client.Explain = explain
	return &Searcher{client: client, base: strings.TrimSuffix(base, "/search")}, nil
}

// Name implements assay.WebSearcher.
func (s *Searcher) Name() string { return s.client.Name }

// SearchWeb implements assay.WebSearcher. Failures are *llm.Error. A search without results because
// the server's engines failed is one.
func (s *Searcher) SearchWeb(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	if n < 1 || strings.TrimSpace(query) == "" {
		return nil, fmt.Errorf("search the web for %d results of %q: %w", n, query, assay.ErrInvalid)
	}
	var out struct {
		Results *[]struct {
			URL     string `json:"url"`
			Title   string `json:"title"`
			Content string `json:"content"`
		} `json:"results"`
		Unresponsive []any `json:"unresponsive_engines"` // each is a list of a name and a reason
	}
	parameters := url.Values{"q": {query}, "format": {"json"}}
	if err := s.client.JSON(ctx, http.MethodGet, s.base+"/search?"+parameters.Encode(), nil, &out); err != nil {
		return nil, err
	}
	if out.Results == nil {
		return nil, s.client.Fail(llm.BadReply, "the reply is not the JSON expected: it has no results, not even none")
	}
	raw := make([]results.Raw, len(*out.Results))
	for i, r := range *out.Results {
		raw[i] = results.Raw{URL: r.URL, Title: r.Title, Text: r.Content}
	}
	found, err := results.Clean(&s.client, raw, n)
	if err == nil && len(raw) == 0 && len(out.Unresponsive) > 0 {
		return nil, s.client.Fail(llm.ServerError, "the engines that it asks do not answer: %v", out.Unresponsive)
	}
	return found, err
}

// explain parses a failed response. A server without JSON output answers 403, and so does one that
// requires authentication.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	if status != http.StatusForbidden {
		return wire.Fault{}
	}
	return wire.Fault{Kind: llm.BadRequest, Message: "it gives no JSON: add json to search.formats in its settings.yml. It says: " + wire.Message(body)}
}
