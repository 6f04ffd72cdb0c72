package bedrock

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go/transport/http/protocol/restjson1"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/schema"
)

// Model returns a language model by its ID ("amazon.nova-lite-v1:0"), the ID of an inference
// profile ("eu.amazon.nova-lite-v1:0") or an ARN. A model that does not exist is detected at the
// first call.
//
// Bedrock rejects messages without text. A message without text, calls and results is sent as "(no
// text)". Arguments of a call that are no JSON object are sent as the member "arguments" of one.
func (p *Provider) Model(name string) llm.Model {
	return &model{provider: p, id: name, name: p.config.Name + "/" + name, family: p.familyOf(name)}
}

type model struct {
	provider *Provider
	id       string // or ARN
	name     string
	family   family
}

// Model implements llm.Model.
func (m *model) Model() string { return m.name }

// Generate implements llm.Model.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, fmt.Errorf("ask %s: %w", m.name, err)
	}
	in, err := m.input(req)
	if err != nil {
		return llm.Response{}, &llm.Error{Model: m.name, Kind: llm.BadRequest, Message: err.Error()}
	}
	x, err := m.provider.exchange(ctx, m.name)
	if err != nil {
		return llm.Response{}, err
	}
	defer x.End()
	r := &reading{request: req, schemaTool: in.schemaTool, client: &x.Errors, scrubber: x.Errors.Scrubber()}
	if m.provider.config.Stream {
		err = m.converseStream(x, in, r, stream)
	} else {
		err = m.converse(x, in, r, stream)
	}
	if err != nil {
		return llm.Response{}, err
	}
	return r.response(), nil
}

// An input contains the common parameters of Converse and ConverseStream.
type input struct {
	messages   []types.Message
	system     []types.SystemContentBlock
	inference  *types.InferenceConfiguration
	tools      *types.ToolConfiguration
	output     *types.OutputConfig
	more       document.Interface // model-specific fields
	schemaTool string             // the tool that represents a schema; empty: none
}

// minCached is the smallest system text, in tokens, that gets a cache point. No model caches a
// smaller one.
//
// Source: AWS, Amazon Bedrock User Guide, "Prompt caching for faster model inference", the minimum
// number of tokens per cache checkpoint.
const minCached = 1024

func (m *model) input(req llm.Request) (input, error) {
	in := input{inference: &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(min(req.MaxTokens, 1<<31-1)))}}
	if m.family.temperature {
		in.inference.Temperature = aws.Float32(float32(min(req.Temperature, 1))) // Bedrock accepts [0, 1]
	}
	system := req.System
	if err := m.asTools(&in, req); err != nil {
		return in, err
	}
	if in.tools != nil && req.Choice == llm.ToolsRequired && !m.family.forced {
		system = strings.TrimSpace(system + "\n\nCall at least one of the tools.")
	}
	if req.Schema != nil {
		words, err := m.asSchema(&in, req)
		if err != nil {
			return in, err
		}
		system = strings.TrimSpace(system + "\n\n" + words)
	}
	if system != "" {
		in.system = append(in.system, &types.SystemContentBlockMemberText{Value: system})
		if m.family.cacheSystem && llm.EstimateTokens(system) >= minCached {
			in.system = append(in.system, &types.SystemContentBlockMemberCachePoint{Value: types.CachePointBlock{Type: types.CachePointTypeDefault}})
		}
	}
	m.think(&in)
	return in, m.asMessages(&in, req)
}

// think requests the configured effort or, without one, the least thinking that the model supports,
// since thinking counts as output.
//
// Sources: AWS, Amazon Bedrock API Reference, OutputConfig; Amazon Nova User Guide, "Extended
// thinking" of Nova 2; Anthropic, "Troubleshooting thinking".
func (m *model) think(in *input) {
	effort := m.provider.config.Effort
	if effort == "none" {
		effort = ""
	}
	switch {
	case effort != "" && m.family.nova:
		in.more = document.NewLazyDocument(map[string]any{"reasoningConfig": map[string]any{"type": "enabled", "maxReasoningEffort": effort}})
		return
	case effort == "" && m.family.thinking != "":
		in.more = document.NewLazyDocument(map[string]any{"thinking": map[string]any{"type": m.family.thinking}})
	}
	if effort = cmp.Or(effort, m.family.effort); effort == "" {
		return
	}
	if in.output == nil {
		in.output = new(types.OutputConfig)
	}
	in.output.Effort = &effort
}

// asSchema adds the request's schema. It returns the part that must be expressed in words.
func (m *model) asSchema(in *input, req llm.Request) (words string, err error) {
	mode := m.family.schemas
	if mode == SchemaTool && in.tools != nil {
		mode = SchemaWords // the model must be free to call the other tools
	}
	switch mode {
	case SchemaFormat:
		fitted, err := schema.Fit(req.Schema.Schema, dialect)
		if err != nil {
			return "", err
		}
		in.output = &types.OutputConfig{TextFormat: &types.OutputFormat{
			Type: types.OutputFormatTypeJsonSchema,
			Structure: &types.OutputFormatStructureMemberJsonSchema{Value: types.JsonSchemaDefinition{
				Schema: aws.String(string(fitted)), Name: &req.Schema.Name,
			}},
		}}
		return "", nil
	case SchemaTool:
		parameters, err := fromJSON(req.Schema.Schema)
		if err != nil {
			return "", fmt.Errorf("JSON schema: %w", err)
		}
		in.schemaTool = req.Schema.Name
		in.tools = &types.ToolConfiguration{
			Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
				Name: &req.Schema.Name, Description: aws.String("Gives the reply."),
				InputSchema: &types.ToolInputSchemaMemberJson{Value: parameters},
			}}},
		}
		if m.family.forced {
			in.tools.ToolChoice = &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: &req.Schema.Name}}
			return "", nil
		}
		return "Reply by calling the tool " + req.Schema.Name + ", once, and with nothing else.", nil
	}
	return schema.InWords(*req.Schema), nil
}

// dialect is the subset of JSON schema that Bedrock's structured output supports.
//
// Source: AWS, Amazon Bedrock User Guide, "Get validated JSON results from models", supported and
// unsupported features of JSON Schema Draft 2020-12.
var dialect = schema.Dialect{
	Keep: func(keyword string, value json.RawMessage) bool {
		switch keyword {
		case "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "allOf",
			"$ref", "$defs", "definitions", "default", "description", "title", "format":
			return true
		case "minItems":
			return string(value) == "0" || string(value) == "1"
		}
		return false
	},
	Closed: true,
}

// asTools adds the tools. Bedrock has no tool choice "none", so tools are omitted in that case,
// unless the conversation contains calls, which Bedrock rejects without their tools.
func (m *model) asTools(in *input, req llm.Request) error {
	tools := req.Tools
	if req.Choice == llm.ToolsNone {
		tools = nil
	}
	used := usedTools(req)
	if len(tools) == 0 && len(used) > 0 {
		tools = used
		if len(req.Tools) > 0 {
			tools = req.Tools
		}
	}
	if len(tools) == 0 {
		return nil
	}
	in.tools = new(types.ToolConfiguration)
	for _, t := range tools {
		parameters, err := fromJSON(t.Parameters)
		if err != nil {
			return fmt.Errorf("parameters of tool %q: %w", t.Name, err)
		}
		spec := types.ToolSpecification{Name: &t.Name, InputSchema: &types.ToolInputSchemaMemberJson{Value: parameters}}
		if t.Description != "" {
			spec.Description = &t.Description
		}
		in.tools.Tools = append(in.tools.Tools, &types.ToolMemberToolSpec{Value: spec})
	}
	// A cache point after the system text also covers the tools, which precede it.
	if m.family.cacheTools && req.System == "" && req.InputTokens() >= minCached {
		in.tools.Tools = append(in.tools.Tools, &types.ToolMemberCachePoint{Value: types.CachePointBlock{Type: types.CachePointTypeDefault}})
	}
	if req.Choice == llm.ToolsRequired && m.family.forced {
		in.tools.ToolChoice = &types.ToolChoiceMemberAny{}
	}
	return nil
}

// usedTools returns the tools called in a conversation, as far as the calls describe them.
func usedTools(req llm.Request) []llm.Tool {
	var tools []llm.Tool
	seen := map[string]bool{}
	for _, msg := range req.Messages {
		for _, c := range msg.Calls {
			if !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, llm.Tool{Name: c.Name, Parameters: json.RawMessage(`{"type":"object"}`)})
			}
		}
	}
	return tools
}

// asMessages adds the conversation. Bedrock requires alternating speakers, so consecutive messages
// of one speaker are joined.
func (m *model) asMessages(in *input, req llm.Request) error {
	for _, msg := range req.Messages {
		content, err := m.content(msg)
		if err != nil {
			return err
		}
		role := types.ConversationRoleUser
		if msg.Speaker == llm.Assistant {
			role = types.ConversationRoleAssistant
		}
		if n := len(in.messages); n > 0 && in.messages[n-1].Role == role {
			in.messages[n-1].Content = append(in.messages[n-1].Content, content...)
			continue
		}
		in.messages = append(in.messages, types.Message{Role: role, Content: content})
	}
	return nil
}

// content returns the blocks of a message: thoughts before its calls, results, text, calls.
func (m *model) content(msg llm.Message) ([]types.ContentBlock, error) {
	blocks := thoughts(msg.Calls)
	for _, res := range msg.Results {
		text := res.Text
		if strings.TrimSpace(text) == "" {
			text = noText
		}
		block := types.ToolResultBlock{
			ToolUseId: &res.Call,
			Content:   []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: text}},
		}
		if m.family.status {
			block.Status = types.ToolResultStatusSuccess
			if res.Error {
				block.Status = types.ToolResultStatusError
			}
		}
		blocks = append(blocks, &types.ContentBlockMemberToolResult{Value: block})
	}
	for _, img := range msg.Images {
		blocks = append(blocks, &types.ContentBlockMemberImage{Value: types.ImageBlock{
			Format: types.ImageFormat(strings.TrimPrefix(img.Type, "image/")),
			Source: &types.ImageSourceMemberBytes{Value: img.Data},
		}})
	}
	if strings.TrimSpace(msg.Text) != "" {
		blocks = append(blocks, &types.ContentBlockMemberText{Value: msg.Text})
	}
	for _, c := range msg.Calls {
		blocks = append(blocks, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
			ToolUseId: &c.ID, Name: &c.Name, Input: arguments(c.Arguments),
		}})
	}
	if len(blocks) == 0 {
		blocks = append(blocks, &types.ContentBlockMemberText{Value: noText})
	}
	return blocks, nil
}

// noText is the text that is sent if Bedrock requires one and there is none.
const noText = "(no text)"

// converse makes the call and reads its whole reply.
func (m *model) converse(x *exchange, in input, r *reading, stream func(llm.Delta)) error {
	out, err := x.session.runtime.Converse(x.Context, &bedrockruntime.ConverseInput{
		ModelId: &m.id, Messages: in.messages, System: in.system, InferenceConfig: in.inference,
		ToolConfig: in.tools, OutputConfig: in.output, AdditionalModelRequestFields: in.more,
	}, func(o *bedrockruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.Fail(err, m.explain)
	}
	if err := r.whole(out); err != nil {
		return x.Fail(err, nil)
	}
	r.rest()
	if stream != nil && r.text.Len() > 0 {
		stream(llm.Delta{Text: r.text.String()})
	}
	return nil
}

// converseStream makes the call and reads its reply as it arrives.
func (m *model) converseStream(x *exchange, in input, r *reading, stream func(llm.Delta)) error {
	out, err := x.session.runtime.ConverseStream(x.Context, &bedrockruntime.ConverseStreamInput{
		ModelId: &m.id, Messages: in.messages, System: in.system, InferenceConfig: in.inference,
		ToolConfig: in.tools, OutputConfig: in.output, AdditionalModelRequestFields: in.more,
	}, func(o *bedrockruntime.Options) {
		o.HTTPClient = x
		// One per call, since it contains the event decoder, which does not support concurrent
		// streams (a data race in smithy-go 1.28.8).
		o.Protocol = restjson1.New(schemas.AmazonBedrockFrontendService)
	})
	if err != nil {
		return x.Fail(err, m.explain)
	}
	events := out.GetStream()
	defer closeStream(events, events.Reader)
	for event := range events.Events() {
		if x.Parent.Err() != nil { // text may arrive after the call was cancelled
			break
		}
		text := r.event(event)
		if text != "" && stream != nil {
			stream(llm.Delta{Text: text})
		}
		if r.done() {
			x.Ended()
		}
	}
	switch err := events.Err(); {
	case r.done() && x.Parent.Err() == nil:
		if text := r.rest(); text != "" && stream != nil {
			stream(llm.Delta{Text: text})
		}
		return nil
	case err != nil || x.Parent.Err() != nil:
		return x.Fail(err, m.explain)
	case x.FailedReading():
		return x.Fail(errCut, nil)
	default:
		return x.Errors.Fail(llm.BrokeOff, "%v", errCut)
	}
}

// errCut reports a stream that ended before the reply's end.
var errCut = fmt.Errorf("the reply ends early")

// closeStream closes an event stream and waits for the SDK's goroutines that read it.
func closeStream(stream interface{ Close() error }, reader any) {
	_ = stream.Close()
	if r, ok := reader.(interface{ Closed() <-chan struct{} }); ok {
		select {
		case <-r.Closed():
		case <-time.After(time.Second): // its connection is closed, so nothing can block it
		}
	}
}

// explain returns a message for a model that the region does not have, or has only in an inference
// profile.
//
// Source: AWS, "Troubleshooting Amazon Bedrock API Error Codes"; the messages of
// ValidationException and AccessDeniedException as reported by users of Bedrock.
func (m *model) explain(code, message string) (llm.ErrorKind, string) {
	return explainModel(m.id, m.provider.knownRegion(), code, message)
}

func explainModel(id, region, code, message string) (llm.ErrorKind, string) {
	said := strings.ToLower(message)
	where := fmt.Sprintf("model %s in region %s", id, region)
	switch {
	case strings.Contains(said, "on-demand throughput") || strings.Contains(said, "inference profile") && code == "ValidationException":
		return llm.NoModel, fmt.Sprintf("%s is available only through an inference profile; configure the profile's ID (such as %q) or ARN. Bedrock says: %s", where, suggestion(id, region), message)
	case code == "ResourceNotFoundException",
		strings.Contains(said, "model identifier is invalid"),
		strings.Contains(said, "model not found"),
		strings.Contains(said, "could not resolve the foundation model"),
		strings.Contains(said, "is not supported in this region"),
		strings.Contains(said, "doesn't support the model"),
		strings.Contains(said, "end of its life"):
		return llm.NoModel, fmt.Sprintf("%s does not exist; configure another model or region. Bedrock says: %s", where, message)
	case code == "AccessDeniedException" && strings.Contains(said, "access to the model"):
		return llm.NoModel, fmt.Sprintf("the account has no access to %s; request access in AWS, or configure another model. Bedrock says: %s", where, message)
	case code == "AccessDeniedException":
		return llm.BadKey, fmt.Sprintf("the credentials may not call %s. Bedrock says: %s", where, message)
	}
	return "", ""
}

// suggestion returns the inference profile that most likely serves a model in a region.
func suggestion(id, region string) string {
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	area, _, _ := strings.Cut(region, "-")
	switch {
	case strings.HasPrefix(region, "us-gov-"):
		area = "us-gov"
	case area == "ap":
		area = "apac"
	case area != "us" && area != "eu":
		area = "global"
	}
	return area + "." + id
}

// knownRegion returns the region of calls after the first call, and the configured region before.
func (p *Provider) knownRegion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return p.config.Region
	}
	return p.open.Region
}
