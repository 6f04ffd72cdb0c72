// Package searxng searches the web with the search API of a SearXNG server, which is usually
// self-hosted.
//
// Source: SearXNG, "Search API" at docs.searxng.org/dev/search_api.html.
package searxng

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/websearch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Config configures a server. BaseURL is required.
type Config struct {
	Name    string        // in errors and answers; empty: "searxng"
	BaseURL string        // of the server: "http://127.0.0.1:8080"
	Key     secret.Secret // sent as a bearer token, for a server behind an authenticating proxy

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// New returns a searcher. An invalid address is assay.ErrInvalid. A search without results because
// the server's engines failed is an *llm.Error.
func New(c Config) (assay.WebSearcher, error) {
	client, base, err := wire.Endpoint(c).Client(wire.Service{Name: "searxng", Header: "Authorization", Prefix: "Bearer ", Explain: explain})
	if err != nil {
		return nil, err
	}
	base = strings.TrimSuffix(base, "/search")
	s := &websearch.Searcher{Client: client}
	s.Fetch = func(ctx context.Context, query string, _ int) ([]websearch.Result, error) {
		var out struct {
			Results      json.RawMessage `json:"results"`
			Unresponsive []any           `json:"unresponsive_engines"` // each is a list of a name and a reason
		}
		parameters := url.Values{"q": {query}, "format": {"json"}}
		if err := client.JSON(ctx, http.MethodGet, base+"/search?"+parameters.Encode(), nil, &out); err != nil {
			return nil, err
		}
		found, err := websearch.Listed(&client, out.Results)
		if err == nil && len(found) == 0 && len(out.Unresponsive) > 0 {
			err = client.Fail(llm.ServerError, "none of its engines responded: %v", out.Unresponsive)
		}
		return found, err
	}
	return s, nil
}

// explain parses a failed response. A server without JSON output answers 403, and so does one that
// requires authentication.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	if status != http.StatusForbidden {
		return wire.Fault{}
	}
	return wire.Fault{Kind: llm.BadRequest, Message: "it does not reply with JSON; add json to search.formats in its settings.yml. It says: " + wire.Message(body)}
}
