package config

import "github.com/assay-rag/assay/llm"

// The types of provider. Each is a wire format.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Gemini    = "gemini"
	Bedrock   = "bedrock"
	Cohere    = "cohere"
	Jina      = "jina"
)

// types lists the types of provider, those with language models first.
var types = []string{OpenAI, Anthropic, Gemini, Bedrock, Cohere, Jina}

// A kind holds the known properties of a type of provider.
type kind struct {
	url          string // the vendor's endpoint; empty: it depends on the region
	keyEnv       string // variable of the vendor's own tools for the key; empty: none
	baseEnv      string // variable for the endpoint; empty: none
	large, small string // default models; empty: it serves no language models
}

// kinds holds the properties of each type. The models are the vendors' current ones for everyday
// work, as of November 2026. Aliases such as "latest" are not used, so that a run records the exact
// model.
//
// Sources: OpenAI, "Deprecations" and the model pages of gpt-6.1-sol and gpt-6-luna; Anthropic,
// "Claude Sonnet 5.5" and "Claude Haiku 5.5", overview; Google, "Gemini deprecations" and "Gemini
// 3.5 Flash-Lite"; Amazon, "Nova 2 Lite" model card, by its global inference profile, which every
// commercial region offers.
var kinds = map[string]kind{
	OpenAI:    {url: "https://api.openai.com/v1", keyEnv: "OPENAI_API_KEY", baseEnv: "OPENAI_BASE_URL", large: "gpt-6.1-sol", small: "gpt-6-luna"},
	Anthropic: {url: "https://api.anthropic.com", keyEnv: "ANTHROPIC_API_KEY", baseEnv: "ANTHROPIC_BASE_URL", large: "claude-sonnet-5-5", small: "claude-haiku-5-5"},
	Gemini:    {url: "https://generativelanguage.googleapis.com/v1beta", keyEnv: "GEMINI_API_KEY", baseEnv: "GEMINI_BASE_URL", large: "gemini-3.8-flash", small: "gemini-3.5-flash-lite"},
	Bedrock:   {large: "global.amazon.nova-2-lite-v1:0", small: "global.amazon.nova-2-lite-v1:0"},
	Cohere:    {url: "https://api.cohere.com", keyEnv: "COHERE_API_KEY"},
	Jina:      {url: "https://api.jina.ai/v1", keyEnv: "JINA_API_KEY"},
}

// facts holds the sizes that the vendors publish for their models, by name without provider. Prices
// are left out, because they change and a budget in money must not rest on an outdated price.
var facts = map[string]llm.Facts{
	"gpt-6.1-sol":                    {Window: 1_050_000, MaxOutput: 128_000},
	"gpt-6-luna":                     {Window: 1_050_000, MaxOutput: 128_000},
	"claude-sonnet-5-5":              {Window: 1_000_000, MaxOutput: 128_000},
	"claude-haiku-5-5":               {Window: 1_000_000, MaxOutput: 128_000},
	"gemini-3.8-flash":               {Window: 1_048_576, MaxOutput: 65_536},
	"gemini-3.5-flash-lite":          {Window: 1_048_576, MaxOutput: 65_536},
	"global.amazon.nova-2-lite-v1:0": {Window: 1_000_000, MaxOutput: 65_535},
}
