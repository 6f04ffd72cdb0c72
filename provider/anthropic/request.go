package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/schema"
)

// A request is the body of POST /v1/messages.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *typed        `json:"tool_choice,omitempty"`
	System       []block       `json:"system,omitempty"`
	Messages     []turn        `json:"messages"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	Thinking     *typed        `json:"thinking,omitempty"`
	Temperature  *float64      `json:"temperature,omitempty"`
	Stream       bool          `json:"stream,omitempty"`
}

// A typed is an object with only a type.
type typed struct {
	Type string `json:"type"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *typed          `json:"cache_control,omitempty"`
}

type turn struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // of block, and of thinking blocks as received
}

// A block is a content block written by assay.
type block struct {
	Type string `json:"type"`

	Text string `json:"text,omitempty"` // of type text

	Source *imageSource `json:"source,omitempty"` // of type image

	ID    string          `json:"id,omitempty"` // of type tool_use
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`

	ToolUseID string `json:"tool_use_id,omitempty"` // of type tool_result
	Content   string `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`

	CacheControl *typed `json:"cache_control,omitempty"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// cached marks the end of a prefix that the API may cache for the next call. A prefix consists of
// tools, system and messages, in this order.
var cached = &typed{Type: "ephemeral"}

// mustCall is the instruction for models that cannot be forced to call a tool.
const mustCall = "Answer by calling one or more of the tools, not with text."

// encode returns the request in the API's format. Parts that vary from call to call come after the
// cacheable prefix.
func (m *model) encode(req llm.Request) (*request, error) {
	out := &request{Model: m.id, MaxTokens: req.MaxTokens, Stream: m.stream}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object"}`)
		}
		out.Tools = append(out.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: parameters})
	}
	if n := len(out.Tools); n > 0 {
		out.Tools[n-1].CacheControl = cached
	}
	if strings.TrimSpace(req.System) != "" {
		out.System = append(out.System, block{Type: "text", Text: req.System, CacheControl: cached})
	}
	m.choose(out, req.Choice)
	for _, msg := range req.Messages {
		if t := encodeTurn(msg); len(t.Content) > 0 { // the API rejects empty ones and joins neighbours of one role
			out.Messages = append(out.Messages, t)
		}
	}
	if m.can.temperature {
		t := min(req.Temperature, 1) // the maximum of the API
		out.Temperature = &t
	}
	if m.can.thinking != "" {
		out.Thinking = &typed{m.can.thinking}
	}
	if m.can.effort != "" {
		out.OutputConfig = &outputConfig{Effort: m.can.effort}
	}
	if req.Schema != nil {
		if err := m.demand(out, *req.Schema); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose sets the tool choice.
func (m *model) choose(out *request, choice llm.ToolChoice) {
	if len(out.Tools) == 0 {
		return
	}
	switch {
	case choice == llm.ToolsNone:
		out.ToolChoice = &typed{"none"}
	case choice == llm.ToolsRequired && m.can.forced:
		out.ToolChoice = &typed{"any"}
	case choice == llm.ToolsRequired:
		out.System = append(out.System, block{Type: "text", Text: mustCall})
	}
}

// demand requests a reply that follows s.
func (m *model) demand(out *request, s llm.Schema) error {
	if !m.can.schema {
		out.System = append(out.System, block{Type: "text", Text: schema.InWords(s)})
		return nil
	}
	fitted, err := schema.Fit(s.Schema, dialect)
	if err != nil {
		e := m.client.Fail(llm.BadRequest, "%v", err)
		e.Usage = assay.Usage{} // nothing was sent
		return e
	}
	if out.OutputConfig == nil {
		out.OutputConfig = new(outputConfig)
	}
	out.OutputConfig.Format = &outputFormat{"json_schema", fitted}
	return nil
}

// dialect is the subset of JSON schema that structured outputs support.
//
// Source: "JSON Schema limitations" in the guide on structured outputs. Anthropic's own SDKs also
// move unsupported keywords into the description.
var dialect = schema.Dialect{
	Closed: true,
	Rename: map[string]string{"oneOf": "anyOf"},
	Keep: func(keyword string, value json.RawMessage) bool {
		switch keyword {
		case "type", "title", "description", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "allOf", "$ref", "$defs":
			return true
		case "minItems":
			return string(value) == "0" || string(value) == "1"
		case "format":
			return slices.Contains(formats, string(value))
		}
		return false
	},
}

var formats = []string{`"date-time"`, `"time"`, `"date"`, `"duration"`, `"email"`, `"hostname"`, `"uri"`, `"ipv4"`, `"ipv6"`, `"uuid"`}

// An imageSource is the bytes of an image, in base64.
type imageSource struct {
	Type      string `json:"type"` // "base64"
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// encodeTurn returns a message in the API's format: results before text, and thinking before the
// calls that it led to.
func encodeTurn(msg llm.Message) turn {
	t := turn{Role: "user"}
	for _, r := range msg.Results {
		t.Content = append(t.Content, block{Type: "tool_result", ToolUseID: r.Call, Content: r.Text, IsError: r.Error})
	}
	calls := msg.Calls
	if msg.Speaker == llm.Assistant {
		t.Role = "assistant"
		if len(calls) > 0 {
			t.Content = append(t.Content, thoughts(calls[0].Opaque)...)
		}
	}
	for _, img := range msg.Images {
		t.Content = append(t.Content, block{Type: "image", Source: &imageSource{"base64", img.Type, img.Data}})
	}
	if strings.TrimSpace(msg.Text) != "" {
		t.Content = append(t.Content, block{Type: "text", Text: msg.Text})
	}
	for i, c := range calls {
		if i > 0 {
			t.Content = append(t.Content, thoughts(c.Opaque)...)
		}
		t.Content = append(t.Content, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input(c.Arguments)})
	}
	return t
}

// input returns arguments as the JSON object that the API requires. Other arguments are wrapped in
// an object, unchanged.
func input(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return json.RawMessage(arguments)
	}
	wrapped, _ := json.Marshal(map[string]string{"arguments": arguments})
	return wrapped
}

// opaque is the format of ToolCall.Opaque: the thinking that led to the call.
type opaque struct {
	Thinking []json.RawMessage `json:"anthropic_thinking"`
}

// thoughts returns the thinking blocks that precede a call.
func thoughts(text string) []any {
	var o opaque
	if text == "" || json.Unmarshal([]byte(text), &o) != nil {
		return nil // of another provider
	}
	blocks := make([]any, len(o.Thinking))
	for i, raw := range o.Thinking {
		blocks[i] = raw
	}
	return blocks
}
