// Package searxngtest implements the server side of SearXNG's search API, for tests.
//
// It is written from "Search API" at docs.searxng.org.
package searxngtest

import (
	"net/http"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/searxng"
)

// Search returns the wire of SearXNG's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: func(t testing.TB, s llmtest.Setup) assay.WebSearcher {
			x, err := searxng.New(searxng.Config{
				BaseURL: s.BaseURL, HTTP: s.HTTP, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
				Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
			})
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
		Asked: func(t testing.TB, r *http.Request, body []byte) (string, int) {
			q := r.URL.Query()
			if r.Method != http.MethodGet || r.URL.Path != "/search" || q.Get("format") != "json" || len(body) > 0 ||
				r.Header.Get("Authorization") != "Bearer "+llmtest.Canary || r.Header.Get("X-Gateway-Key") != llmtest.Canary {
				t.Errorf("%s %s with the headers %v", r.Method, r.URL, r.Header)
			}
			return q.Get("q"), 0
		},
		Reply: Reply,
		Fail: func(f llmtest.Failure) (llmtest.Body, bool) {
			status, ok := map[llm.ErrorKind]int{llm.BadRequest: 403, llm.BadKey: 401, llm.RateLimited: 429, llm.ServerError: 500, llm.Overloaded: 503, llm.TimedOut: 504}[f.Kind]
			return llmtest.Body{Status: status, Type: "text/html", Parts: [][]byte{[]byte(f.Message)}}, ok
		},
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// Reply returns the server's reply.
func Reply(found []assay.WebResult) llmtest.Body {
	list := []any{}
	for i, r := range found {
		list = append(list, map[string]any{
			"url": r.URL, "title": r.Title, "content": r.Snippet, "engine": "duckduckgo", "engines": []string{"duckduckgo"},
			"positions": []int{i + 1}, "score": 1.5, "category": "general", "template": "default.html", "publishedDate": nil,
		})
	}
	return llmtest.Document(0, map[string]any{
		"query": "q", "number_of_results": 0, "results": list, "answers": []any{}, "corrections": []any{}, "infoboxes": []any{},
		"suggestions": []any{}, "unresponsive_engines": []any{},
	})
}
