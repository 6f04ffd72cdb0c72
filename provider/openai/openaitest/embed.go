package openaitest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wire"
	"github.com/assay-rag/assay/provider/openai"
)

// Embed returns the wire of the embeddings endpoint, with vectors of the same dimensions as
// llmtest.Hashing.
//
// Source: OpenAI, API reference, "Create embeddings" and "The embedding object".
func Embed() llmtest.EmbedWire {
	const batch = 3
	return llmtest.EmbedWire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Embedder {
			p, err := openai.New(openai.Config{
				BaseURL: s.BaseURL + "/v1", Key: wire.NewSecret(llmtest.Canary), HTTP: s.HTTP, Idle: s.Idle, First: s.Idle, MaxBytes: s.MaxBytes,
			})
			if err != nil {
				t.Fatal(err)
			}
			dimensions := len(new(llmtest.Hashing).Vector("a"))
			e, err := p.Embedder(t.Context(), "nomic-embed-text", openai.EmbedConfig{Dimensions: dimensions, Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Batch: batch,
		Texts: func(t testing.TB, r *http.Request, body []byte) []string {
			checkRequest(t, r, "embeddings")
			var in struct {
				Input []string
				Model string
			}
			if err := json.Unmarshal(body, &in); err != nil || in.Model != "nomic-embed-text" {
				t.Errorf("the request for vectors of %q: %v", in.Model, err)
			}
			for i, text := range in.Input {
				if text == " " { // replaces an empty text
					in.Input[i] = ""
				}
			}
			return in.Input
		},
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			data := []any{}
			for _, v := range vectors {
				data = append(data, object{"object": "embedding", "index": v.Index, "embedding": v.JSON()})
			}
			return llmtest.Document(0, object{"object": "list", "data": data, "model": "nomic-embed-text", "usage": object{"prompt_tokens": 8, "total_tokens": 8}})
		},
		Indexed: true,
		Fail:    failWith(openaiError),
	}
}
