// Package tavilytest implements the server side of Tavily's search API, for tests.
//
// It is written from "Tavily Search" at docs.tavily.com/api-reference/endpoint/search and from
// "Errors Code" at help.tavily.com.
package tavilytest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wiretest"
	"github.com/assay-rag/assay/provider/tavily"
)

// Search returns the wire of Tavily's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: wiretest.Open(func(s llmtest.Setup) (assay.WebSearcher, error) {
			return tavily.New(tavily.Config(wiretest.Endpoint(s)))
		}),
		Asked: func(t testing.TB, r *http.Request, body []byte) (string, int) {
			var in struct {
				Query      string `json:"query"`
				MaxResults int    `json:"max_results"`
				Answer     bool   `json:"include_answer"`
				Depth      string `json:"search_depth"`
			}
			llmtest.Read(t, r, "/search", body, &in)
			if in.Answer || in.Depth != "basic" {
				t.Errorf("the request has %+v", in)
			}
			return in.Query, in.MaxResults
		},
		Reply: func(found []assay.WebResult) llmtest.Body {
			list := []any{}
			for _, r := range found {
				list = append(list, map[string]any{"url": r.URL, "title": r.Title, "content": r.Snippet, "score": 0.81, "raw_content": nil})
			}
			return llmtest.Document(0, map[string]any{
				"query": "q", "follow_up_questions": nil, "answer": nil, "images": []any{}, "results": list, "response_time": 1.09, "request_id": "123e4567",
			})
		},
		Fail: func(f llmtest.Failure) (llmtest.Body, bool) {
			b, ok := failures(f)
			if f.RetryAfter > 0 {
				b.Header = http.Header{"Retry-After": {fmt.Sprint(int(f.RetryAfter / time.Second))}}
			}
			return b, ok
		},
	}
}

var failures = wiretest.Failures(map[llm.ErrorKind]wiretest.Code{
	llm.BadRequest: {Status: 400}, llm.BadKey: {Status: 401}, llm.NoQuota: {Status: 432}, llm.RateLimited: {Status: 429}, llm.ServerError: {Status: 500},
}, func(_ wiretest.Code, message string) any {
	return map[string]any{"detail": map[string]any{"error": message}}
})
