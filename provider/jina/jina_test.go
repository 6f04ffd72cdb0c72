package jina_test

import (
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/jina/jinatest"
)

func TestContract(t *testing.T) {
	t.Run("rerank", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.Rerank()) })
	t.Run("voyage", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.Voyage()) })
	t.Run("tei", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.TEI()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, jinatest.Embed()) })
}
