package tavily_test

import (
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/tavily/tavilytest"
)

func TestContract(t *testing.T) { llmtest.TestWebWire(t, tavilytest.Search()) }
