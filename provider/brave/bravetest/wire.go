// Package bravetest implements the server side of the Brave Search API, for tests.
//
// It is written from "Web Search" and "Response Headers" at
// api-dashboard.search.brave.com/documentation.
package bravetest

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/brave"
	"github.com/assay-rag/assay/provider/internal/wiretest"
)

// Search returns the wire of Brave's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: wiretest.Open(func(s llmtest.Setup) (assay.WebSearcher, error) {
			s.BaseURL += "/res/v1"
			return brave.New(brave.Config(wiretest.Endpoint(s)))
		}),
		Asked: func(t testing.TB, r *http.Request, body []byte) (string, int) {
			wiretest.CheckGet(t, r, body, "/res/v1/web/search", "X-Subscription-Token", "")
			q := r.URL.Query()
			if q.Get("text_decorations") != "false" {
				t.Errorf("%s", r.URL)
			}
			n, err := strconv.Atoi(q.Get("count"))
			if err != nil {
				t.Error(err)
			}
			return q.Get("q"), n
		},
		Reply: func(found []assay.WebResult) llmtest.Body {
			reply := map[string]any{"type": "search", "query": map[string]any{"original": "q", "more_results_available": false}}
			list := []any{}
			for _, r := range found {
				list = append(list, map[string]any{"type": "search_result", "subtype": "generic", "url": r.URL, "title": r.Title, "description": r.Snippet, "language": "en", "family_friendly": true})
			}
			if len(list) > 0 { // otherwise it is missing
				reply["web"] = map[string]any{"type": "search", "results": list, "family_friendly": true}
			}
			return llmtest.Document(0, reply)
		},
		Fail: fail,
	}
}

var failures = wiretest.Failures(map[llm.ErrorKind]wiretest.Code{
	llm.BadRequest: {Status: 422, Words: "VALIDATION"}, llm.BadKey: {Status: 422, Words: "SUBSCRIPTION_TOKEN_INVALID"}, llm.NoQuota: {Status: 429, Words: "QUOTA_LIMITED"},
	llm.RateLimited: {Status: 429, Words: "RATE_LIMITED"}, llm.ServerError: {Status: 500, Words: "INTERNAL"},
}, func(c wiretest.Code, message string) any {
	return map[string]any{
		"type": "ErrorResponse", "time": 1732000000,
		"error": map[string]any{"id": "4f1a", "status": c.Status, "code": c.Words, "detail": message},
	}
})

func fail(f llmtest.Failure) (llmtest.Body, bool) {
	b, ok := failures(f)
	switch {
	case f.RetryAfter > 0 && f.Kind != llm.RateLimited:
		return llmtest.Body{}, false
	case f.RetryAfter > 0:
		b.Header = http.Header{"X-Ratelimit-Remaining": {"0, 1000"}, "X-Ratelimit-Reset": {fmt.Sprintf("%d, 1419704", f.RetryAfter/time.Second)}}
	}
	return b, ok
}
