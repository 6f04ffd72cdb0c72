package bedrock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

func TestReranker(t *testing.T) { llmtest.TestRerankWire(t, bedrocktest.Rerank()) }

func TestTitan(t *testing.T) { llmtest.TestEmbedWire(t, bedrocktest.EmbedTitan()) }

func TestCohere(t *testing.T) { llmtest.TestEmbedWire(t, bedrocktest.EmbedCohere()) }

// TestTooLong checks that the error for a text that is too long has its index, and that the vectors
// of the texts before it are returned.
func TestTooLong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "LONG") {
			bedrocktest.Refuse(w, 400, "ValidationException", "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		n := strings.Count(string(body), "text ")
		if strings.Contains(r.URL.Path, "titan") {
			_, _ = io.WriteString(w, `{"embedding":[0.6,0.8],"inputTextTokenCount":3}`)
			return
		}
		_, _ = io.WriteString(w, `{"embeddings":{"float":[`+strings.TrimSuffix(strings.Repeat("[0.6,0.8],", n), ",")+`]}}`)
	}))
	defer server.Close()
	p := bedrocktest.Open(t, server.URL)
	for _, model := range []string{"amazon.titan-embed-text-v2:0", "cohere.embed-english-v3"} {
		e, err := p.Embedder(model, 0)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i := range 203 {
			texts = append(texts, fmt.Sprintf("text %d", i))
		}
		vectors, err := e.Embed(t.Context(), llm.Passage, texts)
		if err != nil || len(vectors) != len(texts) {
			t.Errorf("%s: %d vectors, %v", model, len(vectors), err)
		}
		texts[150] = "text LONG"
		vectors, err = e.Embed(t.Context(), llm.Passage, texts)
		if long, ok := errors.AsType[*llm.TooLongError](err); !ok || long.Text != 150 || len(vectors) > 150 {
			t.Errorf("%s: %d vectors, %v", model, len(vectors), err)
		}
	}
	r := p.Reranker("cohere.rerank-v3-5:0")
	for _, texts := range [][]string{{"a", strings.Repeat("word ", 5000)}, {"a", "LONG"}} {
		if _, err := r.Rerank(t.Context(), "q", texts); err == nil {
			t.Errorf("%.20q: no error", texts)
		} else if long, ok := errors.AsType[*llm.TooLongError](err); !ok || long.Text != 1 || long.Limit != 4096 {
			t.Errorf("%v", err)
		}
	}
	for model, dimensions := range map[string]int{"amazon.nova-lite-v1:0": 0, "amazon.titan-embed-text-v2:0": -1, "cohere.embed-v4:0": 1 << 20} {
		if _, err := p.Embedder(model, dimensions); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s with %d dimensions: %v", model, dimensions, err)
		}
	}
}
