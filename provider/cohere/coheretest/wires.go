// Package coheretest implements the server side of Cohere's API, version 2, for tests.
//
// It is written from "Rerank", "Embed" and "Errors" in the API reference at docs.cohere.com.
package coheretest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/cohere"
	"github.com/assay-rag/assay/provider/internal/wiretest"
)

var open = wiretest.Open(func(s llmtest.Setup) (*cohere.Provider, error) {
	return cohere.New(cohere.Config(wiretest.Endpoint(s)))
})

// Rerank returns the wire of a reranker.
func Rerank() llmtest.RerankWire {
	return llmtest.RerankWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Reranker {
			return open(t, s).Reranker("rerank-v3.5", cohere.RerankConfig{})
		},
		Texts: func(t testing.TB, r *http.Request, body []byte) (string, []string) {
			var in struct {
				Model           string   `json:"model"`
				Query           string   `json:"query"`
				Documents       []string `json:"documents"`
				MaxTokensPerDoc int      `json:"max_tokens_per_doc"`
				TopN            *int     `json:"top_n"`
			}
			llmtest.Read(t, r, "/v2/rerank", body, &in)
			if in.Model != "rerank-v3.5" || in.MaxTokensPerDoc != 4096 || in.TopN != nil {
				t.Errorf("the request has %+v", in)
			}
			return in.Query, in.Documents
		},
		Reply: func(scores []llmtest.Score) llmtest.Body {
			return llmtest.Document(0, map[string]any{
				"id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf", "results": wiretest.Scores(scores, "relevance_score"),
				"meta": map[string]any{"api_version": map[string]any{"version": "2"}, "billed_units": map[string]any{"search_units": 1}},
			})
		},
		Fail:  fail,
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// Embed returns the wire of an embedding model.
func Embed() llmtest.EmbedWire {
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			e, err := open(t, s).Embedder("embed-v4.0", cohere.EmbedConfig{Dimensions: 1024})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Batch: 96,
		Texts: func(t testing.TB, r *http.Request, body []byte) []string {
			var in struct {
				Model      string   `json:"model"`
				Texts      []string `json:"texts"`
				InputType  string   `json:"input_type"`
				Types      []string `json:"embedding_types"`
				Truncate   string   `json:"truncate"`
				Dimensions int      `json:"output_dimension"`
			}
			llmtest.Read(t, r, "/v2/embed", body, &in)
			if in.Model != "embed-v4.0" || in.Truncate != "NONE" || in.Dimensions != 1024 || fmt.Sprint(in.Types) != "[float]" || in.InputType != "search_document" && in.InputType != "search_query" {
				t.Errorf("the request has %+v", in)
			}
			return in.Texts
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			rows := []any{}
			for _, v := range vectors {
				rows = append(rows, v.JSON())
			}
			return llmtest.Document(0, map[string]any{
				"id": "da6e531f-54c5-4a73-bf92-f60566d8d753", "embeddings": map[string]any{"float": rows}, "texts": []any{},
				"meta": map[string]any{"api_version": map[string]any{"version": "2"}, "billed_units": map[string]any{"input_tokens": 2}},
			})
		},
		Fail:  fail,
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// fail returns errors, with a prefix of the message if the status is ambiguous.
var fail = wiretest.Failures(map[llm.ErrorKind]wiretest.Code{
	llm.BadRequest:  {Status: 400, Words: "invalid request: "},
	llm.BadKey:      {Status: 401, Words: "invalid api token: "},
	llm.NoQuota:     {Status: 402},
	llm.NoModel:     {Status: 404, Words: "model not found: "},
	llm.RateLimited: {Status: 429, Words: "You are using a Trial key, which is limited to 40 API calls / minute. "},
	llm.Filtered:    {Status: 498},
	llm.ServerError: {Status: 500},
	llm.Overloaded:  {Status: 503},
	llm.TimedOut:    {Status: 504},
}, func(c wiretest.Code, message string) any {
	return map[string]any{"id": "7f4a0a1e-5f8a-4f4e-8e1e-3f6c8a1f7c8d", "message": c.Words + message}
})
