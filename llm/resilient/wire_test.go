package resilient_test

import (
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/jina/jinatest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// TestGuardedProvider checks that a guarded provider still passes the contract tests for providers.
func TestGuardedProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole suite, three times")
	}
	guard := func() *resilient.Guard { return resilient.New(resilient.Config{Attempts: 1, OpenAfter: 1 << 20}) }
	t.Run("model", func(t *testing.T) {
		w := openaitest.Chat()
		open := w.Open
		w.Open = func(t testing.TB, s llmtest.Setup) llm.Model { return guard().Model(open(t, s), llm.Facts{}) }
		llmtest.TestModel(t, w)
	})
	t.Run("embedder", func(t *testing.T) {
		w := openaitest.Embed()
		open := w.Open
		w.Open = func(t testing.TB, s llmtest.Setup) llm.Embedder { return guard().Embedder(open(t, s)) }
		llmtest.TestEmbedWire(t, w)
	})
	t.Run("reranker", func(t *testing.T) {
		w := jinatest.Rerank()
		open := w.Open
		w.Open = func(t testing.TB, s llmtest.Setup) llm.Reranker { return guard().Reranker(open(t, s)) }
		llmtest.TestRerankWire(t, w)
	})
}
