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
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/tavily"
)

// Search returns the wire of Tavily's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: func(t testing.TB, s llmtest.Setup) assay.WebSearcher {
			x, err := tavily.New(tavily.Config{
				BaseURL: s.BaseURL, HTTP: s.HTTP, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
				Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
			})
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
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
			status, ok := map[llm.ErrorKind]int{llm.BadRequest: 400, llm.BadKey: 401, llm.NoQuota: 432, llm.RateLimited: 429, llm.ServerError: 500}[f.Kind]
			if !ok {
				return llmtest.Body{}, false
			}
			b := llmtest.Document(status, map[string]any{"detail": map[string]any{"error": f.Message}})
			if f.RetryAfter > 0 {
				b.Header = http.Header{"Retry-After": {fmt.Sprint(int(f.RetryAfter / time.Second))}}
			}
			return b, true
		},
	}
}
