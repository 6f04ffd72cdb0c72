package openai_test

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// TestContract checks both formats, as used by each server, against the contract of providers.
// TestExchanges and TestFailures cover the differences between servers quickly; the whole suite for
// each of them (a minute) runs with ASSAY_LONG=1.
func TestContract(t *testing.T) {
	t.Run("chat", func(t *testing.T) { llmtest.TestModel(t, openaitest.Chat()) })
	if testing.Short() {
		return
	}
	t.Run("responses", func(t *testing.T) { llmtest.TestModel(t, openaitest.Responses()) })
	if os.Getenv("ASSAY_LONG") == "" {
		return
	}
	for name, w := range map[string]llmtest.Wire{
		"azure": openaitest.Azure(), "ollama": openaitest.Ollama(), "llama.cpp": openaitest.LlamaCpp(), "vllm": openaitest.VLLM(), "openrouter": openaitest.OpenRouter(),
	} {
		t.Run(name, func(t *testing.T) { llmtest.TestModel(t, w) })
	}
}

func TestEmbedderContract(t *testing.T) {
	llmtest.TestEmbedWire(t, openaitest.Embed())
}
