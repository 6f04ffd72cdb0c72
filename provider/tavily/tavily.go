// Package tavily searches the web with Tavily's API.
//
// Sources: Tavily, "Tavily Search" at docs.tavily.com/api-reference/endpoint/search, and "Errors
// Code" at help.tavily.com.
package tavily

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/websearch"
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

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// New returns a searcher of at most MaxResults results, which does not request Tavily's own answer.
// An invalid address is assay.ErrInvalid.
func New(c Config) (assay.WebSearcher, error) {
	client, base, err := wire.Endpoint(c).Client(wire.Service{Name: "tavily", URL: DefaultURL, Header: "Authorization", Prefix: "Bearer ", Explain: explain})
	if err != nil {
		return nil, err
	}
	s := &websearch.Searcher{Client: client, Most: MaxResults}
	s.Fetch = func(ctx context.Context, query string, n int) ([]websearch.Result, error) {
		var out struct {
			Results json.RawMessage `json:"results"`
		}
		in := request{Query: query, MaxResults: n, Depth: "basic"}
		if err := client.JSON(ctx, http.MethodPost, base+"/search", in, &out); err != nil {
			return nil, err
		}
		return websearch.Listed(&client, out.Results)
	}
	return s, nil
}

type request struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	Depth      string `json:"search_depth"`
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
