package geminitest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/gemini"
)

// Embed returns the wire of an embedding model.
func Embed() llmtest.EmbedWire {
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			e, err := provider(t, s).Embedder("gemini-embedding-001", gemini.EmbedConfig{Dimensions: 768})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Batch: 100,
		Texts: func(t testing.TB, r *http.Request, body []byte) []string {
			var in struct {
				Requests []struct {
					Model      string `json:"model"`
					Task       string `json:"taskType"`
					Dimensions int    `json:"outputDimensionality"`
					Content    struct {
						Parts []part `json:"parts"`
					} `json:"content"`
				} `json:"requests"`
			}
			if err := json.Unmarshal(body, &in); err != nil {
				t.Fatalf("the request is not of the format: %v", err)
			}
			checkHeaders(t, r)
			if r.URL.Path != "/v1beta/models/gemini-embedding-001:batchEmbedContents" {
				t.Errorf("the path is %s", r.URL.Path)
			}
			var texts []string
			for _, q := range in.Requests {
				if q.Model != "models/gemini-embedding-001" || q.Dimensions != 768 || q.Task != "RETRIEVAL_DOCUMENT" && q.Task != "RETRIEVAL_QUERY" || len(q.Content.Parts) != 1 || q.Content.Parts[0].Text == "" {
					t.Errorf("the request has %+v", q)
					continue
				}
				texts = append(texts, q.Content.Parts[0].Text)
			}
			return texts
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			rows := []any{}
			for _, v := range vectors {
				rows = append(rows, map[string]any{"values": v.JSON()})
			}
			return llmtest.Body{Type: "application/json; charset=UTF-8", Parts: [][]byte{llmtest.JSON(map[string]any{"embeddings": rows})}}
		},
		Fail: func(f llmtest.Failure) (llmtest.Body, bool) {
			if f.Kind == llm.TooLong {
				return llmtest.Body{}, false // the API truncates texts instead
			}
			return fail(f)
		},
	}
}
