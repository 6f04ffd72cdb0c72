package cohere_test

import (
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/cohere/coheretest"
)

func TestContract(t *testing.T) {
	t.Run("rerank", func(t *testing.T) { llmtest.TestRerankWire(t, coheretest.Rerank()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, coheretest.Embed()) })
}
