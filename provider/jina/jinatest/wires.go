// Package jinatest implements the server side of the APIs used by package jina, for tests.
//
// It is written from the OpenAPI description at api.jina.ai/openapi.json, from llama.cpp's
// tools/server/README.md, from "Text Embeddings Inference API" at
// huggingface.github.io/text-embeddings-inference, and from "Rerankers" at docs.voyageai.com.
package jinatest

import (
	"net/http"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wiretest"
	"github.com/assay-rag/assay/provider/jina"
)

var open = wiretest.Open(func(s llmtest.Setup) (*jina.Provider, error) {
	return jina.New(jina.Config(wiretest.Endpoint(s)))
})

// Rerank returns the wire of a reranker of Jina's. llama.cpp, vLLM and Infinity use the same
// format.
func Rerank() llmtest.RerankWire { return like("jina-reranker-v3", jina.Jina, "results") }

// Voyage returns the wire of a reranker of Voyage AI's.
func Voyage() llmtest.RerankWire { return like("rerank-2.5", jina.Voyage, "data") }

func like(model string, format jina.Format, field string) llmtest.RerankWire {
	return llmtest.RerankWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Reranker {
			return open(t, s).Reranker(model, jina.RerankConfig{Format: format})
		},
		Texts: func(t testing.TB, r *http.Request, body []byte) (string, []string) {
			var in struct {
				Model           string   `json:"model"`
				Query           string   `json:"query"`
				Documents       []string `json:"documents"`
				TopN            *int     `json:"top_n"`
				ReturnDocuments *bool    `json:"return_documents"`
				Truncation      *bool    `json:"truncation"`
			}
			llmtest.Read(t, r, "/v1/rerank", body, &in)
			if in.Model != model || in.TopN != nil || in.ReturnDocuments == nil || *in.ReturnDocuments {
				t.Errorf("the request has %+v", in)
			}
			if cuts := in.Truncation == nil || *in.Truncation; cuts == (format == jina.Voyage) {
				t.Errorf("the request lets texts be cut: %v", cuts)
			}
			return in.Query, in.Documents
		},
		Reply: func(scores []llmtest.Score) llmtest.Body {
			return llmtest.Document(0, map[string]any{"model": model, "object": "list", "usage": map[string]any{"total_tokens": 38}, field: wiretest.Scores(scores, "relevance_score")})
		},
		Fail:  fail,
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// TEI returns the wire of a reranker behind Text Embeddings Inference.
func TEI() llmtest.RerankWire {
	return llmtest.RerankWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Reranker {
			return open(t, s).Reranker("bge-reranker-base", jina.RerankConfig{Format: jina.TEI})
		},
		Texts: func(t testing.TB, r *http.Request, body []byte) (string, []string) {
			var in struct {
				Query     string   `json:"query"`
				Texts     []string `json:"texts"`
				Truncate  *bool    `json:"truncate"`
				RawScores bool     `json:"raw_scores"`
			}
			llmtest.Read(t, r, "/rerank", body, &in)
			if in.Truncate == nil || *in.Truncate || in.RawScores {
				t.Errorf("the request has %+v", in)
			}
			return in.Query, in.Texts
		},
		Reply: func(scores []llmtest.Score) llmtest.Body {
			return llmtest.Document(0, wiretest.Scores(scores, "score"))
		},
		Fail: func(f llmtest.Failure) (llmtest.Body, bool) {
			status, kind := 0, ""
			switch f.Kind {
			case llm.BadRequest:
				status, kind = 422, "tokenizer"
			case llm.BadKey:
				return llmtest.Body{Status: 401, Type: "text/plain", Parts: [][]byte{[]byte(f.Message)}}, true
			case llm.Overloaded:
				status, kind = 429, "overloaded"
			case llm.ServerError:
				status, kind = 424, "backend"
			default:
				return llmtest.Body{}, false
			}
			return llmtest.Document(status, map[string]any{"error": f.Message, "error_type": kind}), true
		},
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// Embed returns the wire of an embedding model.
func Embed() llmtest.EmbedWire {
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			e, err := open(t, s).Embedder("jina-embeddings-v3", jina.EmbedConfig{Dimensions: 512})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Batch:   32,
		Indexed: true,
		Texts: func(t testing.TB, r *http.Request, body []byte) []string {
			var in struct {
				Model      string   `json:"model"`
				Input      []string `json:"input"`
				Task       string   `json:"task"`
				Normalized bool     `json:"normalized"`
				Type       string   `json:"embedding_type"`
				Truncate   *bool    `json:"truncate"`
				Dimensions int      `json:"dimensions"`
			}
			llmtest.Read(t, r, "/v1/embeddings", body, &in)
			if in.Model != "jina-embeddings-v3" || in.Truncate == nil || *in.Truncate || in.Dimensions != 512 || !in.Normalized || in.Type != "float" || in.Task != "retrieval.query" && in.Task != "retrieval.passage" {
				t.Errorf("the request has %+v", in)
			}
			return in.Input
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			data := []any{}
			for _, v := range vectors {
				data = append(data, map[string]any{"object": "embedding", "index": v.Index, "embedding": v.JSON()})
			}
			return llmtest.Document(0, map[string]any{"model": "jina-embeddings-v3", "object": "list", "usage": map[string]any{"total_tokens": 6, "prompt_tokens": 6}, "data": data})
		},
		Fail:  fail,
		Lacks: []llmtest.Feature{llmtest.RetryAfter},
	}
}

// fail returns errors, with a code if the status is ambiguous.
var fail = wiretest.Failures(map[llm.ErrorKind]wiretest.Code{
	llm.BadRequest:  {Status: 422},
	llm.BadKey:      {Status: 401, Words: "AUTH_INVALID_API_KEY"},
	llm.NoQuota:     {Status: 403, Words: "AUTHZ_INSUFFICIENT_BALANCE"},
	llm.NoModel:     {Status: 400, Words: "INPUT_MODEL_NOT_FOUND"},
	llm.RateLimited: {Status: 429},
	llm.ServerError: {Status: 500},
	llm.Overloaded:  {Status: 503},
	llm.TimedOut:    {Status: 504},
}, func(c wiretest.Code, message string) any {
	if c.Words != "" {
		message = "[" + c.Words + "] " + message
	}
	return map[string]any{"detail": message}
})
