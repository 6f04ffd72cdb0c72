// Package searxngtest implements the server side of SearXNG's search API, for tests.
//
// It is written from "Search API" at docs.searxng.org.
package searxngtest

import (
	"net/http"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wiretest"
	"github.com/assay-rag/assay/provider/searxng"
)

// Search returns the wire of SearXNG's web search.
func Search() llmtest.WebWire {
	return llmtest.WebWire{
		Open: wiretest.Open(func(s llmtest.Setup) (assay.WebSearcher, error) {
			return searxng.New(searxng.Config(wiretest.Endpoint(s)))
		}),
		Asked: func(t testing.TB, r *http.Request, body []byte) (string, int) {
			wiretest.CheckGet(t, r, body, "/search", "Authorization", "Bearer ")
			q := r.URL.Query()
			if q.Get("format") != "json" {
				t.Errorf("%s", r.URL)
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
