package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/schema"
)

// A request is the body of generateContent.
type request struct {
	System     *content   `json:"systemInstruction,omitempty"`
	Contents   []content  `json:"contents"`
	Tools      []tools    `json:"tools,omitempty"`
	ToolConfig *config    `json:"toolConfig,omitempty"`
	Generation generation `json:"generationConfig"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// A part is a piece of content of a request or a reply.
type part struct {
	Text      string            `json:"text,omitempty"`
	Inline    *inlineData       `json:"inlineData,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
	Call      *functionCall     `json:"functionCall,omitempty"`
	Response  *functionResponse `json:"functionResponse,omitempty"`
}

// inlineData is the bytes of an image, in base64.
type inlineData struct {
	Type string `json:"mimeType"`
	Data []byte `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type tools struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type config struct {
	Calling struct {
		Mode string `json:"mode"`
	} `json:"functionCallingConfig"`
}

type generation struct {
	MaxTokens   int             `json:"maxOutputTokens"`
	Temperature *float64        `json:"temperature,omitempty"`
	MIMEType    string          `json:"responseMimeType,omitempty"`
	Schema      json.RawMessage `json:"responseJsonSchema,omitempty"`
	Thinking    *thinking       `json:"thinkingConfig,omitempty"`
}

// unsigned is the placeholder signature for a call by another model or a person. Gemini 3 rejects a
// conversation with an unsigned call.
//
// Source: "Thought signatures", the question on history of other models.
const unsigned = "skip_thought_signature_validator"

// modes maps tool choices to the API's modes.
var modes = map[llm.ToolChoice]string{llm.ToolsAuto: "AUTO", llm.ToolsRequired: "ANY", llm.ToolsNone: "NONE"}

// encode returns the request in the API's format.
func (m *model) encode(req llm.Request) (*request, error) {
	out := &request{Generation: generation{MaxTokens: req.MaxTokens, Thinking: m.can.thinking}}
	if m.can.temperature {
		out.Generation.Temperature = &req.Temperature
	}
	system := []part{}
	if req.System != "" {
		system = append(system, part{Text: req.System})
	}
	if s := req.Schema; s != nil && (m.can.together || len(req.Tools) == 0) {
		fitted, err := schema.Fit(s.Schema, dialect)
		if err != nil {
			return nil, err
		}
		out.Generation.MIMEType, out.Generation.Schema = "application/json", fitted
	} else if s != nil {
		system = append(system, part{Text: schema.InWords(*s)})
	}
	if len(system) > 0 {
		out.System = &content{Parts: system}
	}
	for _, msg := range req.Messages {
		if c := m.encodeMessage(msg); len(c.Parts) > 0 { // the API rejects empty ones
			out.Contents = append(out.Contents, c)
		}
	}
	return out, m.offer(out, req)
}

// offer adds the tools of a request.
func (m *model) offer(out *request, req llm.Request) error {
	if len(req.Tools) == 0 {
		return nil
	}
	var functions []function
	for _, t := range req.Tools {
		f := function{Name: t.Name, Description: t.Description}
		if len(t.Parameters) > 0 {
			fitted, err := schema.Fit(t.Parameters, dialect)
			if err != nil {
				return fmt.Errorf("tool %s: %w", t.Name, err)
			}
			f.Parameters = fitted
		}
		functions = append(functions, f)
	}
	out.Tools, out.ToolConfig = []tools{{functions}}, new(config)
	out.ToolConfig.Calling.Mode = modes[req.Choice]
	return nil
}

// dialect is the subset of JSON schema that the API supports.
//
// Source: GenerationConfig.responseJsonSchema in the API reference.
var dialect = schema.Dialect{
	Rename: map[string]string{"const": "enum"},
	Keep: func(keyword string, _ json.RawMessage) bool {
		switch keyword {
		case "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
			"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering":
			return true
		}
		return false
	},
}

// encodeMessage returns a message in the API's format.
func (m *model) encodeMessage(msg llm.Message) content {
	c := content{Role: "user"}
	if msg.Speaker == llm.Assistant {
		c.Role = "model"
	}
	for _, r := range msg.Results {
		key := "output"
		if r.Error {
			key = "error"
		}
		c.Parts = append(c.Parts, part{Response: &functionResponse{ID: r.Call, Name: r.Name, Response: map[string]string{key: r.Text}}})
	}
	for _, img := range msg.Images {
		c.Parts = append(c.Parts, part{Inline: &inlineData{img.Type, img.Data}})
	}
	if msg.Text != "" {
		c.Parts = append(c.Parts, part{Text: msg.Text})
	}
	for i, call := range msg.Calls {
		p := part{Call: &functionCall{ID: call.ID, Name: call.Name, Args: arguments(call.Arguments)}, Signature: signature(call.Opaque)}
		if i == 0 && p.Signature == "" && m.can.signatures {
			p.Signature = unsigned // of parallel calls only the first has one
		}
		c.Parts = append(c.Parts, p)
	}
	return c
}

// arguments returns arguments as the JSON object that the API requires. Other arguments are wrapped
// in an object, unchanged.
func arguments(text string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	wrapped, _ := json.Marshal(map[string]string{"arguments": text})
	return wrapped
}

// opaque is the format of ToolCall.Opaque: the call's signature.
type opaque struct {
	Signature string `json:"gemini_signature"`
}

// signature returns the signature of a call, or "" if there is none or it is of another provider.
func signature(text string) string {
	var o opaque
	if json.Unmarshal([]byte(text), &o) != nil {
		return ""
	}
	return o.Signature
}
