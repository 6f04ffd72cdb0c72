package openai_test

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// Both formats keep the contract of providers, in every server's way. The servers
// differ in what TestExchanges and TestFailures show in a moment; the whole suite for
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
