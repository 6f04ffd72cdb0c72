package brave_test

import (
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/brave/bravetest"
)

func TestContract(t *testing.T) { llmtest.TestWebWire(t, bravetest.Search()) }
