// Package brave searches the web with the Brave Search API.
//
// Sources: Brave, "Web Search", "Response Headers" and "Rate limiting" at
// api-dashboard.search.brave.com/documentation.
package brave

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/websearch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is the address of the API at Brave.
const DefaultURL = "https://api.search.brave.com/res/v1"

// MaxResults is the largest number of results of a search.
const MaxResults = 20

// A Config configures access to Brave. Key is required.
type Config struct {
	Name    string // in errors and answers; empty: "brave"
	BaseURL string // empty: DefaultURL
	Key     secret.Secret

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// New returns a searcher of at most MaxResults results. An invalid address is assay.ErrInvalid. A
// query over Brave's limits of 400 characters and 50 words is an *llm.Error.
func New(c Config) (assay.WebSearcher, error) {
	client, base, err := wire.Endpoint(c).Client(wire.Service{Name: "brave", URL: DefaultURL, Header: "X-Subscription-Token", Explain: explain})
	if err != nil {
		return nil, err
	}
	s := &websearch.Searcher{Client: client, Most: MaxResults}
	s.Fetch = func(ctx context.Context, query string, n int) ([]websearch.Result, error) {
		parameters := url.Values{"q": {query}, "count": {strconv.Itoa(n)}, "text_decorations": {"false"}, "result_filter": {"web"}}
		return fetch(ctx, &client, base+"/web/search?"+parameters.Encode())
	}
	return s, nil
}

// fetch makes one request.
func fetch(ctx context.Context, client *wire.Client, address string) ([]websearch.Result, error) {
	var out struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct {
				URL         string `json:"url"`
				Title       string `json:"title"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"` // missing if there are no results
	}
	if err := client.JSON(ctx, http.MethodGet, address, nil, &out); err != nil {
		return nil, err
	}
	if out.Type != "search" {
		return nil, client.Fail(llm.BadReply, "unexpected reply: its type is %q, not search", out.Type)
	}
	raw := make([]websearch.Result, len(out.Web.Results))
	for i, r := range out.Web.Results {
		raw[i] = websearch.Result{URL: r.URL, Title: r.Title, Text: r.Description}
	}
	return raw, nil
}

// explain parses a failed response. Brave's error codes are more specific than the status.
func explain(status int, header http.Header, body []byte) wire.Fault {
	var reply struct {
		Error struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &reply) // without JSON only the status counts
	f := wire.Fault{Message: reply.Error.Detail}
	switch {
	case strings.HasPrefix(reply.Error.Code, "SUBSCRIPTION_"): // with the status 422
		f.Kind = llm.BadKey
	case strings.HasPrefix(reply.Error.Code, "QUOTA_"):
		f.Kind = llm.NoQuota
	case status == http.StatusTooManyRequests:
		f.RetryAfter = reset(header)
	}
	return f
}

// reset returns the longest wait until an exhausted rate limit window ends. The headers list
// several windows, for example "0, 14523" remaining requests and "1, 1419704" seconds.
func reset(h http.Header) time.Duration {
	left, until := strings.Split(h.Get("X-RateLimit-Remaining"), ","), strings.Split(h.Get("X-RateLimit-Reset"), ",")
	const day = 24 * 60 * 60
	longest := 0
	for i := range min(len(left), len(until)) {
		n, err := strconv.Atoi(strings.TrimSpace(left[i]))
		seconds, errUntil := strconv.Atoi(strings.TrimSpace(until[i]))
		if err == nil && errUntil == nil && n <= 0 {
			longest = max(longest, min(seconds, day))
		}
	}
	return time.Duration(longest) * time.Second
}
