package gemini_test

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/gemini/geminitest"
)

func TestContract(t *testing.T) {
	t.Run("current", func(t *testing.T) { llmtest.TestModel(t, geminitest.Generate()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, geminitest.Embed()) })
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("what differs for earlier models is in TestRequests; ASSAY_LONG=1 runs the contract for them, too")
	}
	t.Run("earlier", func(t *testing.T) { llmtest.TestModel(t, geminitest.Earlier()) })
}
