//lint:file-ignore SA1019 the conformance suite uses deprecated parts of the protocol

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The conformance suite of the protocol calls tools, resources and prompts that its README names. This
// file has them, for a handler whose stack is that of the program.

type (
	toolRequest = mcp.CallToolRequest
	toolResult  = mcp.CallToolResult
)

// A fixture is a tool of the suite. It has no input that is checked.
type fixture func(context.Context, *toolRequest) (*toolResult, error)

func says(text string) *toolResult {
	return &toolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func always(r *toolResult) fixture {
	return func(context.Context, *toolRequest) (*toolResult, error) { return r, nil }
}

// The smallest files that are a picture and a sound.
var (
	picture = &mcp.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"}
	sound   = &mcp.AudioContent{Data: []byte("RIFF\x24\x00\x00\x00WAVEfmt "), MIMEType: "audio/wav"}
)

func embedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
}

// form is a form with one field.
func form(message, field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{field: {Type: kind}}, Required: []string{field},
	}}
}

func sample() *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 50, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "What is the capital of France?"}}}}
}

// filled returns a field of a form that the user has sent, or nil.
func filled(responses mcp.InputResponseMap, entry, field string) any {
	if r, ok := responses[entry].(*mcp.ElicitResult); ok && r.Action == "accept" {
		return r.Content[field]
	}
	return nil
}

// wants returns a fixture that needs input: all of the entries. then gets the request with them.
func wants(state string, inputs mcp.InputRequestMap, then fixture) fixture {
	return func(ctx context.Context, req *toolRequest) (*toolResult, error) {
		for entry := range inputs {
			if req.Params.InputResponses[entry] == nil {
				return &toolResult{InputRequests: inputs, RequestState: state}, nil
			}
		}
		if req.Params.RequestState != state {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState was changed"}
		}
		return then(ctx, req)
	}
}

var (
	nameForm  = form("What is your name?", "name", "string")
	rootsWish = &mcp.ListRootsParams{}
)

// fixtures are the tools of the suite.
var fixtures = map[string]fixture{
	"test_simple_text":            always(says("This is a simple text response for testing.")),
	"test_image_content":          always(&toolResult{Content: []mcp.Content{picture}}),
	"test_audio_content":          always(&toolResult{Content: []mcp.Content{sound}}),
	"test_embedded_resource":      always(&toolResult{Content: []mcp.Content{embedded("test://embedded-resource")}}),
	"test_multiple_content_types": always(&toolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Text"}, picture, embedded("test://mixed")}}),
	"test_streaming_elicitation":  always(says("done")),
	"json_schema_2020_12_tool":    always(says("done")),
	"test_x_mcp_header":           always(says("done")),
	"test_error_handling": func(context.Context, *toolRequest) (*toolResult, error) {
		return &toolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "This tool intentionally returns an error for testing"}}}, nil
	},
	"test_tool_with_logging": logs,
	"test_logging_tool":      logs,
	"test_tool_with_progress": func(ctx context.Context, req *toolRequest) (*toolResult, error) {
		token := req.Params.GetProgressToken()
		for _, progress := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: 100}); err != nil {
				return nil, err
			}
		}
		return says(fmt.Sprint(token)), nil
	},
	"test_sampling": func(ctx context.Context, req *toolRequest) (*toolResult, error) {
		r, err := req.Session.CreateMessage(ctx, sample())
		if err != nil {
			return nil, err
		}
		return says("LLM response: " + r.Content.(*mcp.TextContent).Text), nil
	},
	"test_elicitation": elicitation(form("Please name yourself", "username", "string")),
	"test_elicitation_sep1034_defaults": elicitation(&mcp.ElicitParams{Message: "Defaults", RequestedSchema: json.RawMessage(`{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)}),
	"test_elicitation_sep1330_enums": elicitation(&mcp.ElicitParams{Message: "Enums", RequestedSchema: json.RawMessage(`{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)}),
	"test_reconnection": func(ctx context.Context, req *toolRequest) (*toolResult, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return says("done"), nil
	},
	"test_missing_capability": func(_ context.Context, req *toolRequest) (*toolResult, error) {
		if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
			return says("done"), nil
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is required", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	},
	"test_input_required_result_elicitation": func(_ context.Context, req *toolRequest) (*toolResult, error) {
		if name, _ := filled(req.Params.InputResponses, "user_name", "name").(string); name != "" {
			return says("Hello, " + name + "!"), nil
		}
		return &toolResult{InputRequests: mcp.InputRequestMap{"user_name": nameForm}}, nil
	},
	"test_input_required_result_sampling":   wants("", mcp.InputRequestMap{"capital_question": sample()}, always(says("Sampling response: Paris"))),
	"test_input_required_result_list_roots": wants("", mcp.InputRequestMap{"client_roots": rootsWish}, always(says("Client exposed 1 root(s)"))),
	"test_input_required_result_request_state": wants("state", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")},
		always(says("state-ok: requestState received"))),
	"test_input_required_result_tampered_state": wants("state", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")},
		always(says("state-ok: requestState received"))),
	"test_input_required_result_multiple_inputs": wants("several", mcp.InputRequestMap{"user_name": nameForm, "greeting": sample(), "client_roots": rootsWish},
		always(says("Hello, you"))),
	"test_input_required_result_multi_round": rounds,
	"test_input_required_result_capabilities": func(_ context.Context, req *toolRequest) (*toolResult, error) {
		inputs := mcp.InputRequestMap{}
		c := req.ClientCapabilities()
		if c.Elicitation != nil {
			inputs["user_name"] = nameForm
		}
		if c.Sampling != nil {
			inputs["greeting"] = sample()
		}
		if len(req.Params.InputResponses) > 0 || len(inputs) == 0 {
			return says("done"), nil
		}
		return &toolResult{InputRequests: inputs}, nil
	},
}

func logs(ctx context.Context, req *toolRequest) (*toolResult, error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: text}); err != nil {
			return nil, err
		}
	}
	return says("done"), nil
}

func elicitation(p *mcp.ElicitParams) fixture {
	return func(ctx context.Context, req *toolRequest) (*toolResult, error) {
		r, err := req.Session.Elicit(ctx, p)
		if err != nil {
			return nil, err
		}
		return says(fmt.Sprintf("Elicitation completed: action=%s, content=%v", r.Action, r.Content)), nil
	}
}

// rounds asks two questions, one after the other.
func rounds(_ context.Context, req *toolRequest) (*toolResult, error) {
	name, second := strings.CutPrefix(req.Params.RequestState, "second ")
	switch {
	case second:
		return says(fmt.Sprintf("%s likes %v", name, filled(req.Params.InputResponses, "step2", "color"))), nil
	case req.Params.RequestState == "first":
		state := fmt.Sprintf("second %v", filled(req.Params.InputResponses, "step1", "name"))
		return &toolResult{InputRequests: mcp.InputRequestMap{"step2": form("What is your favorite color?", "color", "string")}, RequestState: state}, nil
	}
	return &toolResult{InputRequests: mcp.InputRequestMap{"step1": nameForm}, RequestState: "first"}, nil
}

// fixtureSchemas are the input schemas that the suite looks at.
var fixtureSchemas = map[string]string{
	"test_x_mcp_header": `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
	"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`,
}

// mount adds the fixtures to a server of the handler.
func mount(m *mcp.Server) {
	for name, f := range fixtures {
		schema := json.RawMessage(`{"type":"object"}`)
		if text := fixtureSchemas[name]; text != "" {
			schema = json.RawMessage(text)
		}
		m.AddTool(&mcp.Tool{Name: name, Description: "a fixture", InputSchema: schema}, func(ctx context.Context, req *toolRequest) (*toolResult, error) {
			r, err := f(ctx, req)
			if _, ok := errors.AsType[*jsonrpc.Error](err); err != nil && !ok {
				r, err = &toolResult{IsError: true, Content: says(err.Error()).Content}, nil
			}
			if r != nil {
				copied := *r // the SDK completes it
				r = &copied
			}
			return r, err
		})
	}
	mountResources(m)
	mountPrompts(m)
}

func mountResources(m *mcp.Server) {
	read := func(c mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			content := c
			content.URI = req.Params.URI
			if content.Text == "template" {
				id, _, _ := strings.Cut(strings.TrimPrefix(req.Params.URI, "test://template/"), "/")
				content.Text = fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&content}}, nil
		}
	}
	m.AddResource(&mcp.Resource{Name: "static-text", URI: "test://static-text"}, read(mcp.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}))
	m.AddResource(&mcp.Resource{Name: "static-binary", URI: "test://static-binary"}, read(mcp.ResourceContents{MIMEType: "image/png", Blob: picture.Data}))
	m.AddResource(&mcp.Resource{Name: "watched", URI: "test://watched-resource"}, read(mcp.ResourceContents{MIMEType: "text/plain", Text: "watched"}))
	m.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data"}, read(mcp.ResourceContents{MIMEType: "application/json", Text: "template"}))
}

func mountPrompts(m *mcp.Server) {
	add := func(name string, arguments []string, say func(map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "a fixture"}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
		}
		m.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := &mcp.GetPromptResult{}
			for _, c := range say(req.Params.Arguments) {
				r.Messages = append(r.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return r, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.TextContent{Text: "This is a simple prompt for testing."}}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{embedded(a["resourceUri"]), &mcp.TextContent{Text: "Please process the embedded resource above."}}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{picture, &mcp.TextContent{Text: "Please analyze the image above."}}
	})
	m.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "a fixture"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if said, ok := filled(req.Params.InputResponses, "user_context", "context").(string); ok {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Context: " + said}}}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": form("Please provide context", "context", "string")}}, nil
	})
}
