// Package tavily searches the web with Tavily's API.
//
// Sources: Tavily, "Tavily Search" at docs.tavily.com/api-reference/endpoint/search, and "Errors
// Code" at help.tavily.com.
package tavily

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/results"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is the address of the API at Tavily.
const DefaultURL = "https://api.tavily.com"

// MaxResults is the largest number of results of a search.
const MaxResults = 20

// A Config configures access to Tavily. Key is required.
type Config struct {
	Name    string // in errors and answers; empty: "tavily"
	BaseURL string // empty: DefaultURL
	Key     secret.Secret

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
	client, base, err := wire.Endpoint{
		Name: cmp.Or(c.Name, "tavily"), BaseURL: cmp.Or(c.BaseURL, DefaultURL), Key: c.Key, Headers: c.Headers,
		HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client("Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	client.Explain = explain
	return &Searcher{client: client, base: base}, nil
}

// Name implements assay.WebSearcher.
func (s *Searcher) Name() string { return s.client.Name }

type request struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	Depth      string `json:"search_depth"`
}

// SearchWeb implements assay.WebSearcher. It returns at most MaxResults results and does not
// request Tavily's own answer. Failures are *llm.Error.
func (s *Searcher) SearchWeb(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	if n < 1 || strings.TrimSpace(query) == "" {
		return nil, fmt.Errorf("search the web for %d results of %q: %w", n, query, assay.ErrInvalid)
	}
	in := request{Query: query, MaxResults: min(n, MaxResults), Depth: "basic"}
	var out struct {
		Results *[]struct {
			URL     string `json:"url"`
			Title   string `json:"title"`
			Content string `json:"content"`
		} `json:"results"`
	}
	if err := s.client.JSON(ctx, http.MethodPost, s.base+"/search", in, &out); err != nil {
		return nil, err
	}
	if out.Results == nil {
		return nil, s.client.Fail(llm.BadReply, "the reply is not the JSON expected: it has no results, not even none")
	}
	raw := make([]results.Raw, len(*out.Results))
	for i, r := range *out.Results {
		raw[i] = results.Raw{URL: r.URL, Title: r.Title, Text: r.Content}
	}
	return results.Clean(&s.client, raw, n)
}

// Tavily's own statuses: the limit of the plan, or of pay-as-you-go, is exhausted.
const (
	statusPlan     = 432
	statusPayAsYou = 433
)

func explain(status int, _ http.Header, body []byte) wire.Fault {
	switch {
	case status == statusPlan || status == statusPayAsYou:
		return wire.Fault{Kind: llm.NoQuota}
	case status == http.StatusBadRequest && strings.Contains(strings.ToLower(wire.Message(body)), "too long"):
		return wire.Fault{Kind: llm.TooLong}
	}
	return wire.Fault{}
}
