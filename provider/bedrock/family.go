package bedrock

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A SchemaMode is a way to request JSON that follows a schema.
type SchemaMode string

// The modes.
const (
	SchemaFormat SchemaMode = "format" // Bedrock's structured output: generation is constrained by the schema
	SchemaTool   SchemaMode = "tool"   // a forced call of a tool whose parameters are the schema
	SchemaWords  SchemaMode = "words"  // an instruction
)

// A family lists the request features that a model supports. Bedrock rejects a request with an
// unsupported feature, so they must be known beforehand.
type family struct {
	schemas     SchemaMode
	forced      bool // tool choices "any" and "tool" are supported
	cacheSystem bool // so is a cache point after the system text
	cacheTools  bool // so is a cache point after the tools
	temperature bool
	status      bool   // so is the status of a tool's result
	thinking    string // the type of thinking to request of Claude; empty: none
	effort      string // effort for a model that cannot switch off thinking
	nova        bool   // effort is requested in Nova's form
}

// familyOf returns the family of a model, given its ID or ARN.
//
// Sources, as of November 2026: AWS, Amazon Bedrock User Guide, "Get validated JSON results from
// models" and "Claude structured outputs" (models with outputConfig.textFormat), "Prompt caching
// for faster model inference" (models with cache points, and their positions); API reference of
// ToolChoice (models with forced tool calls) and ToolResultBlock (models with a status).
func (p *Provider) familyOf(model string) family {
	f := foundationFamily(p.foundation(model))
	if p.config.Schemas != "" {
		f.schemas = p.config.Schemas
	}
	return f
}

func foundationFamily(id string) family {
	is := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
	}
	switch {
	case is("anthropic.claude"):
		return claude(id)
	case is("amazon.nova"):
		return family{schemas: SchemaTool, forced: true, cacheSystem: true, temperature: true, status: true, nova: true}
	case is("qwen.", "google.", "moonshot.", "moonshotai.", "minimax.", "nvidia.", "openai.gpt-oss", "deepseek.v3", "mistral.ministral", "mistral.magistral", "mistral.mistral-large-3", "mistral.voxtral"):
		return family{schemas: SchemaFormat, temperature: true}
	case is("mistral.mistral-large", "mistral.mistral-small", "mistral.pixtral"):
		return family{schemas: SchemaTool, forced: true, temperature: true}
	}
	return family{schemas: SchemaWords, temperature: true}
}

// claudeVersion matches a Claude's line and version in its ID: claude-3-5-haiku-20241022,
// claude-opus-4-20250514, claude-sonnet-4-5-20250929.
var claudeVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-(?:([a-z]+)-)?v?(\d)(?:[-.](\d{1,2}))?(?:\D|$)`)
})

// claude returns the family of a Claude. An unknown one is treated as a newer one, which supports
// less.
//
// Source: Anthropic, the migration guides of Claude Opus 5.5, Sonnet 5.5 and Haiku 5.5, and
// "Troubleshooting thinking", support by model.
func claude(id string) family {
	found := claudeVersion().FindStringSubmatch(id)
	if found == nil {
		return family{schemas: SchemaFormat, cacheSystem: true, cacheTools: true, status: true}
	}
	major, _ := strconv.Atoi(found[2])
	minor, _ := strconv.Atoi(found[3])
	line, v := found[1], 100*major+minor
	always := line == "fable" || line == "mythos" // they cannot switch off thinking
	f := family{
		schemas: SchemaTool, temperature: v < 407, status: v >= 300,
		forced:      v >= 300 && v <= 500 && !always || line == "haiku" && v <= 505,
		cacheSystem: v >= 307 || v == 305 && strings.Contains(id, "haiku"),
	}
	f.cacheTools = f.cacheSystem
	switch {
	case v >= 405:
		f.schemas = SchemaFormat
	case v < 300:
		f.schemas = SchemaWords
	}
	switch {
	case line == "haiku" && v == 505, (line == "opus" || line == "sonnet") && v == 500:
		f.thinking = "disabled"
	case line == "sonnet" && v == 505:
		f.thinking = "between_tools"
	case line == "opus" && v == 505, always:
		f.effort = "low"
	}
	return f
}

// foundation returns the ID of the foundation model in an ID or ARN, if it contains one:
// "anthropic.claude-haiku-4-5-20251001-v1:0" for
// "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0".
func (p *Provider) foundation(model string) string {
	if id, ok := p.config.Models[model]; ok {
		model = id
	}
	if i := strings.LastIndexByte(model, '/'); strings.HasPrefix(model, "arn:") && i >= 0 {
		model = model[i+1:]
	}
	if geo := geography(model); geo != "" {
		return model[len(geo)+1:]
	}
	return model
}

// geographies are the prefixes of IDs of inference profiles, which give the regions that they route
// to.
//
// Source: AWS, Amazon Bedrock User Guide, "Supported Regions and models for inference profiles".
var geographies = []string{"us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"}

// geography returns the geography of an inference profile, or "" if the ID is not one of AWS's
// profiles.
func geography(id string) string {
	before, after, ok := strings.Cut(id, ".")
	if !ok || !strings.Contains(after, ".") {
		return ""
	}
	for _, g := range geographies {
		if before == g {
			return g
		}
	}
	return ""
}
