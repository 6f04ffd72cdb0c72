package bedrock_test

import (
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

func TestReranker(t *testing.T) { llmtest.TestRerankWire(t, bedrocktest.Rerank()) }

func TestTitan(t *testing.T) { llmtest.TestEmbedWire(t, bedrocktest.EmbedTitan()) }

func TestCohere(t *testing.T) { llmtest.TestEmbedWire(t, bedrocktest.EmbedCohere()) }
