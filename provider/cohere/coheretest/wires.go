// Package coheretest implements the server side of Cohere's API, version 2, for tests.
//
// It is written from "Rerank", "Embed" and "Errors" in the API reference at docs.cohere.com.
package coheretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/cohere"
)

func open(t testing.TB, s llmtest.Setup) *cohere.Provider {
	p, err := cohere.New(cohere.Config{
		BaseURL: s.BaseURL, HTTP: s.HTTP, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
		Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
			results := []any{}
			for _, s := range scores {
				results = append(results, map[string]any{"index": s.Index, "relevance_score": json.RawMessage(s.Value)})
			}
			return llmtest.Document(0, map[string]any{
				"id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf", "results": results,
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

// errors maps kinds to statuses, with a prefix of the message if the status is ambiguous.
var errors = map[llm.ErrorKind]struct {
	status int
	words  string
}{
	llm.BadRequest:  {400, "invalid request: "},
	llm.BadKey:      {401, "invalid api token: "},
	llm.NoQuota:     {402, ""},
	llm.NoModel:     {404, "model not found: "},
	llm.RateLimited: {429, "You are using a Trial key, which is limited to 40 API calls / minute. "},
	llm.Filtered:    {498, ""},
	llm.ServerError: {500, ""},
	llm.Overloaded:  {503, ""},
	llm.TimedOut:    {504, ""},
}

func fail(f llmtest.Failure) (llmtest.Body, bool) {
	e, ok := errors[f.Kind]
	if !ok {
		return llmtest.Body{}, false
	}
	return llmtest.Document(e.status, map[string]any{"id": "7f4a0a1e-5f8a-4f4e-8e1e-3f6c8a1f7c8d", "message": e.words + f.Message}), true
}
