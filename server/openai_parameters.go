package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A parameterUse says whether a parameter of OpenAI's interface is honoured, ignored or refused.
type parameterUse string

// The uses.
const (
	honoured parameterUse = "honoured"
	ignored  parameterUse = "ignored" // it has no effect, and metadata.assay_ignored names it
	refused  parameterUse = "refused" // 400, unless it has one of its allowed values
)

// A parameter is a member of the body of a request. A member that is null is as if it were absent,
// and members that are in no table have no effect.
type parameter struct {
	name    string
	use     parameterUse
	types   string   // its types in JSON, separated by "|"
	note    string   // for docs/openai.md
	allowed []string // values, as compact JSON, of a parameter that is refused otherwise
}

// askParameters are those that chat completions and responses have in common.
var askParameters = []parameter{
	{name: "model", use: honoured, types: "string", note: "required; where and how to search, see [models](#models)"},
	{name: "stream", use: honoured, types: "boolean", note: "server-sent events"},
	{name: "store", use: honoured, types: "boolean", note: "whether the run goes on when its client is gone; it is in the journal in any case"},
	{name: "metadata", use: ignored, types: "object", note: "the response has metadata of its own"},
	{name: "user", use: ignored, types: "string", note: "the credential says who asks"},
	{name: "safety_identifier", use: ignored, types: "string", note: "as `user`"},
	{name: "prompt_cache_key", use: ignored, types: "string"},
	{name: "prompt_cache_retention", use: ignored, types: "string"},
	{name: "prompt_cache_options", use: ignored, types: "object"},
	{name: "service_tier", use: ignored, types: "string"},
	{name: "temperature", use: ignored, types: "number", note: "the roles' models have settings of their own"},
	{name: "top_p", use: ignored, types: "number", note: "as `temperature`"},
	{name: "tools", use: ignored, types: "array", note: "assay searches by itself and calls no tools of the client"},
	{name: "parallel_tool_calls", use: ignored, types: "boolean", note: "as `tools`"},
	{name: "top_logprobs", use: refused, types: "number", allowed: []string{"0"}, note: "there are no log probabilities of verified text"},
}

// chatParameters are those of chat completions.
var chatParameters = append(slices.Clip(askParameters), []parameter{
	{name: "messages", use: honoured, types: "array", note: "required; see [conversations](#conversations)"},
	{name: "stream_options", use: honoured, types: "object", note: "`include_usage` adds a chunk with the usage"},
	{name: "reasoning_effort", use: honoured, types: "string", note: "`none`, `minimal` and `low` are quick, `medium` normal, `high`, `xhigh` and `max` thorough; an effort in the model's name comes first"},
	{name: "max_tokens", use: ignored, types: "number", note: "a verified answer is not cut off; budgets and limits bound a run"},
	{name: "max_completion_tokens", use: ignored, types: "number", note: "as `max_tokens`"},
	{name: "frequency_penalty", use: ignored, types: "number", note: "as `temperature`"},
	{name: "presence_penalty", use: ignored, types: "number", note: "as `temperature`"},
	{name: "logit_bias", use: ignored, types: "object", note: "as `temperature`"},
	{name: "seed", use: ignored, types: "number", note: "as `temperature`"},
	{name: "verbosity", use: ignored, types: "string"},
	{name: "prediction", use: ignored, types: "object"},
	{name: "n", use: refused, types: "number", allowed: []string{"1"}, note: "a question has one answer"},
	{name: "logprobs", use: refused, types: "boolean", allowed: []string{"false"}, note: "as `top_logprobs`"},
	{name: "stop", use: refused, types: "string|array", allowed: []string{`""`, "[]"}, note: "a verified answer is not cut off"},
	{name: "tool_choice", use: refused, types: "string|object", allowed: []string{`"auto"`, `"none"`}, note: "no tool of the client can be called"},
	{name: "functions", use: refused, types: "array", allowed: []string{"[]"}, note: "as `tool_choice`"},
	{name: "function_call", use: refused, types: "string|object", allowed: []string{`"auto"`, `"none"`}, note: "as `tool_choice`"},
	{name: "response_format", use: refused, types: "object", allowed: []string{`{"type":"text"}`}, note: "the answer is text"},
	{name: "modalities", use: refused, types: "array", allowed: []string{`["text"]`}, note: "the answer is text"},
	{name: "audio", use: refused, types: "object", note: "the answer is text"},
	{name: "web_search_options", use: refused, types: "object", note: "whether the web is searched is set in the native interface"},
}...)

// responseParameters are those of responses.
var responseParameters = append(slices.Clip(askParameters), []parameter{
	{name: "input", use: honoured, types: "string|array", note: "required; see [conversations](#conversations)"},
	{name: "previous_response_id", use: honoured, types: "string", note: "the question follows up that response; `input` then has only the new question"},
	{name: "background", use: honoured, types: "boolean", note: "the response comes at once; ask for it with `GET /v1/responses/{id}`"},
	{name: "reasoning", use: honoured, types: "object", note: "`effort` as `reasoning_effort` of chat completions"},
	{name: "include", use: honoured, types: "array", note: "results of the search are always included"},
	{name: "instructions", use: ignored, types: "string|array", note: "as system messages"},
	{name: "max_output_tokens", use: ignored, types: "number", note: "a verified answer is not cut off; budgets and limits bound a run"},
	{name: "max_tool_calls", use: ignored, types: "number", note: "as `tools`"},
	{name: "truncation", use: ignored, types: "string", note: "only the newest turns of a conversation count"},
	{name: "stream_options", use: ignored, types: "object", note: "there is no obfuscation"},
	{name: "context_management", use: ignored, types: "array"},
	{name: "tool_choice", use: refused, types: "string|object", allowed: []string{`"auto"`, `"none"`, `{"type":"file_search"}`}, note: "no tool of the client can be called"},
	{name: "text", use: refused, types: "object", allowed: []string{"{}", `{"format":{"type":"text"}}`, `{"verbosity":"low"}`, `{"verbosity":"medium"}`, `{"verbosity":"high"}`}, note: "the answer is text"},
	{name: "conversation", use: refused, types: "string|object", note: "use `previous_response_id`"},
	{name: "prompt", use: refused, types: "object", note: "there are no stored prompts"},
}...)

// embedParameters are those of embeddings.
var embedParameters = []parameter{
	{name: "model", use: honoured, types: "string", note: "required; `assay-embedding`, or the name of the tenant's encoder"},
	{name: "input", use: honoured, types: "string|array", note: "required; a text or up to 2,048 texts; token numbers are refused"},
	{name: "encoding_format", use: honoured, types: "string", note: "`float` or `base64`: float32, little-endian"},
	{name: "dimensions", use: honoured, types: "number", note: "must be that of the encoder"},
	{name: "input_type", use: honoured, types: "string", note: "`passage` (the default) or `query`, for encoders that distinguish them"},
	{name: "user", use: ignored, types: "string", note: "the credential says who asks"},
}

// decodeParameters checks the members of a body by a table, and decodes it into out. It returns the
// names of the ignored ones that the body has.
func decodeParameters(data []byte, table []parameter, out any) (skipped []string, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return nil, invalidParameter("", "the body is not a JSON object")
	}
	for _, p := range table {
		value, given := members[p.name]
		if !given || string(value) == "null" {
			continue
		}
		if err := p.check(value); err != nil {
			return nil, err
		}
		if p.use == ignored {
			skipped = append(skipped, p.name)
		}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(data, out)); ok {
		return nil, invalidParameter(wrong.Field, "%s is a JSON %s", wrong.Field, wrong.Value)
	}
	return skipped, nil
}

// check checks the value of a parameter.
func (p parameter) check(value json.RawMessage) error {
	if got := typeOf(value); !slices.Contains(strings.Split(p.types, "|"), got) {
		return invalidParameter(p.name, "%s is a JSON %s, want %s", p.name, got, strings.ReplaceAll(p.types, "|", " or "))
	}
	if p.use != refused {
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return invalidParameter(p.name, "%s: %v", p.name, err)
	}
	if slices.Contains(p.allowed, compact.String()) {
		return nil
	}
	return &parameterError{
		param: p.name, code: "unsupported_parameter", kind: assay.ErrInvalid,
		text: p.name + " is not supported with this value: " + p.note,
	}
}

// typeOf returns the JSON type of a valid value.
func typeOf(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
