package bedrocktest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
)

// Rerank returns the wire of a reranking model.
//
// Source: AWS, Amazon Bedrock API Reference, Rerank.
func Rerank() llmtest.RerankWire {
	return llmtest.RerankWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Reranker {
			return provider(t, s).Reranker("cohere.rerank-v3-5:0")
		},
		Texts: func(t testing.TB, r *http.Request, body []byte) (string, []string) {
			var in struct {
				Queries []struct {
					TextQuery struct{ Text string } `json:"textQuery"`
					Type      string                `json:"type"`
				} `json:"queries"`
				Sources []struct {
					Inline struct {
						TextDocument struct{ Text string } `json:"textDocument"`
						Type         string                `json:"type"`
					} `json:"inlineDocumentSource"`
					Type string `json:"type"`
				} `json:"sources"`
			}
			read(t, body, &in)
			if r.URL.Path != "/rerank" || len(in.Queries) != 1 || in.Queries[0].Type != "TEXT" {
				t.Errorf("the request goes to %s with %d queries", r.URL.Path, len(in.Queries))
				return "", nil
			}
			var texts []string
			for _, s := range in.Sources {
				if s.Type != "INLINE" || s.Inline.Type != "TEXT" {
					t.Errorf("a source is %+v", s)
				}
				texts = append(texts, s.Inline.TextDocument.Text)
			}
			return in.Queries[0].TextQuery.Text, texts
		},
		Reply: func(scores []llmtest.Score) llmtest.Body {
			results := []any{}
			for _, s := range scores {
				results = append(results, map[string]any{"index": s.Index, "relevanceScore": json.RawMessage(s.Value)})
			}
			return llmtest.Document(0, map[string]any{"results": results})
		},
		Fail: failVectors,
	}
}

// EmbedTitan returns the wire of Titan Text Embeddings.
//
// Source: AWS, Amazon Bedrock User Guide, "Amazon Titan Embeddings G1 - Text" and "Amazon Titan
// Text Embeddings V2".
func EmbedTitan() llmtest.EmbedWire {
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			return embedder(t, s, "amazon.titan-embed-text-v2:0")
		},
		Batch: 1,
		Texts: func(t testing.TB, _ *http.Request, body []byte) []string {
			var in struct {
				InputText string `json:"inputText"`
			}
			read(t, body, &in)
			return []string{in.InputText}
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			out := map[string]any{"inputTextTokenCount": 5}
			for _, v := range vectors {
				out["embedding"] = v.JSON()
			}
			return llmtest.Document(0, out)
		},
		Fail: failVectors,
	}
}

// EmbedCohere returns the wire of Cohere Embed.
//
// Source: AWS, Amazon Bedrock User Guide, "Cohere Embed models".
func EmbedCohere() llmtest.EmbedWire {
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			return embedder(t, s, "cohere.embed-multilingual-v3")
		},
		Batch: 96,
		Texts: func(t testing.TB, _ *http.Request, body []byte) []string {
			var in struct {
				Texts     []string `json:"texts"`
				InputType string   `json:"input_type"`
				Truncate  string   `json:"truncate"`
			}
			read(t, body, &in)
			if !strings.HasPrefix(in.InputType, "search_") || in.Truncate != "NONE" {
				t.Errorf("texts are embedded as %q and cut %q", in.InputType, in.Truncate)
			}
			return in.Texts
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			list := []json.RawMessage{}
			for _, v := range vectors {
				list = append(list, v.JSON())
			}
			return llmtest.Document(0, map[string]any{"embeddings": map[string]any{"float": list}, "id": "8b1b3c4d", "response_type": "embeddings_by_type"})
		},
		Fail: failVectors,
	}
}

// failVectors is Fail without llm.TooLong, which embedders report as a *TooLongError.
func failVectors(f llmtest.Failure) (llmtest.Body, bool) {
	if f.Kind == llm.TooLong {
		return llmtest.Body{}, false
	}
	return Fail(f)
}

func provider(t testing.TB, s llmtest.Setup) *bedrock.Provider {
	p, err := bedrock.New(Config(s))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func embedder(t testing.TB, s llmtest.Setup, model string) llm.Embedder {
	e, err := provider(t, s).Embedder(model, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func read(t testing.TB, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Errorf("the request is no JSON: %v: %s", err, body)
	}
}
