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
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/brave"
)

// Search returns the wire of Brave's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: func(t testing.TB, s llmtest.Setup) assay.WebSearcher {
			x, err := brave.New(brave.Config{
				BaseURL: s.BaseURL + "/res/v1", HTTP: s.HTTP, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
				Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
			})
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
		Asked: func(t testing.TB, r *http.Request, body []byte) (string, int) {
			q := r.URL.Query()
			if r.Method != http.MethodGet || r.URL.Path != "/res/v1/web/search" || q.Get("text_decorations") != "false" || len(body) > 0 ||
				r.Header.Get("X-Subscription-Token") != llmtest.Canary || r.Header.Get("X-Gateway-Key") != llmtest.Canary {
				t.Errorf("%s %s with the headers %v", r.Method, r.URL, r.Header)
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

func fail(f llmtest.Failure) (llmtest.Body, bool) {
	e, ok := map[llm.ErrorKind]struct {
		status int
		code   string
	}{
		llm.BadRequest: {422, "VALIDATION"}, llm.BadKey: {422, "SUBSCRIPTION_TOKEN_INVALID"}, llm.NoQuota: {429, "QUOTA_LIMITED"},
		llm.RateLimited: {429, "RATE_LIMITED"}, llm.ServerError: {500, "INTERNAL"},
	}[f.Kind]
	if !ok || f.RetryAfter > 0 && f.Kind != llm.RateLimited {
		return llmtest.Body{}, false
	}
	b := llmtest.Document(e.status, map[string]any{
		"type": "ErrorResponse", "time": 1732000000,
		"error": map[string]any{"id": "4f1a", "status": e.status, "code": e.code, "detail": f.Message},
	})
	if f.RetryAfter > 0 {
		b.Header = http.Header{"X-Ratelimit-Remaining": {"0, 1000"}, "X-Ratelimit-Reset": {fmt.Sprintf("%d, 1419704", f.RetryAfter/time.Second)}}
	}
	return b, true
}
