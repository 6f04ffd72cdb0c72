package bedrock

import (
	"regexp"
	"strings"
)

// A SchemaMode is a way to ask a model for JSON that follows a schema.
type SchemaMode string

// The modes.
const (
	SchemaFormat SchemaMode = "format" // Bedrock's structured output: the model's text is bound to the schema
	SchemaTool   SchemaMode = "tool"   // the model is made to call a tool whose parameters are the schema
	SchemaWords  SchemaMode = "words"  // the model is asked for it
)

// A family is what may be asked of a model. What it does not take is refused by
// Bedrock with an error, so that it has to be known beforehand.
type family struct {
	schemas     SchemaMode
	forced      bool // tool choices "any" and "tool" are taken
	cacheSystem bool // a cache point behind the system text is
	cacheTools  bool // a cache point behind the tools is
	temperature bool
	claude      bool
	nova        bool
}

// families are tried in order; a pattern is matched against the model's ID without
// its region.
//
// Sources, as of November 2026: AWS, Amazon Bedrock User Guide, "Get validated JSON
// results from models" and "Claude structured outputs" (which models have
// outputConfig.textFormat), "Prompt caching for faster model inference" (which have
// cache points, and where), API reference of ToolChoice (which can be made to call a
// tool); Anthropic, "Model migration guide" (newer models refuse a temperature and a
// forced tool).
var families = []struct {
	pattern *regexp.Regexp
	family  family
}{
	{regexp.MustCompile(`^anthropic\.claude-(instant|v2)`), family{schemas: SchemaWords, temperature: true, claude: true}},
	{regexp.MustCompile(`^anthropic\.claude-3-(haiku|sonnet|opus|5-sonnet)`), family{schemas: SchemaTool, forced: true, temperature: true, claude: true}},
	{regexp.MustCompile(`^anthropic\.claude-3`), family{schemas: SchemaTool, forced: true, cacheSystem: true, cacheTools: true, temperature: true, claude: true}},
	{regexp.MustCompile(`^anthropic\.claude-(opus|sonnet)-4(-1)?(-2\d{7}|$)`), family{schemas: SchemaTool, forced: true, cacheSystem: true, cacheTools: true, temperature: true, claude: true}},
	{regexp.MustCompile(`^anthropic\.claude-[a-z]+-4-[56]`), family{schemas: SchemaFormat, forced: true, cacheSystem: true, cacheTools: true, temperature: true, claude: true}},
	{regexp.MustCompile(`^anthropic\.claude-`), family{schemas: SchemaFormat, cacheSystem: true, cacheTools: true, claude: true}},
	{regexp.MustCompile(`^amazon\.nova-`), family{schemas: SchemaTool, forced: true, cacheSystem: true, temperature: true, nova: true}},
	{regexp.MustCompile(`^(qwen|google|moonshotai?|minimax|nvidia)\.|^openai\.gpt-oss|^deepseek\.v3|^mistral\.(ministral|magistral|mistral-large-3|voxtral)`), family{schemas: SchemaFormat, temperature: true}},
	{regexp.MustCompile(`^mistral\.(mistral-large|mistral-small|pixtral)`), family{schemas: SchemaTool, forced: true, temperature: true}},
	{regexp.MustCompile(``), family{schemas: SchemaWords, temperature: true}},
}

// familyOf returns what may be asked of a model, which is named by its ID or ARN.
func (p *Provider) familyOf(model string) family {
	id := p.foundation(model)
	for _, f := range families {
		if f.pattern.MatchString(id) {
			f := f.family
			if p.config.Schemas != "" {
				f.schemas = p.config.Schemas
			}
			return f
		}
	}
	return family{} // the last pattern matches everything
}

// foundation returns the ID of the foundation model behind an ID or ARN, as far as
// that says it: "anthropic.claude-haiku-4-5-20251001-v1:0" of
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

// geographies are the prefixes of IDs of inference profiles: where they route to.
//
// Source: AWS, Amazon Bedrock User Guide, "Supported Regions and models for inference
// profiles".
var geographies = []string{"us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"}

// geography returns where the inference profile of this ID routes to; empty: it is
// none that AWS defines.
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
