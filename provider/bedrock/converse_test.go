package bedrock_test

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

func TestModel(t *testing.T) { llmtest.TestModel(t, bedrocktest.Converse()) }

func TestModelWithTools(t *testing.T) {
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("the suite a second time, for a model whose schemas are tools: set ASSAY_LONG=1")
	}
	llmtest.TestModel(t, bedrocktest.ConverseTools())
}
