package openai

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// minOutput is the least output limit that OpenAI accepts for a response.
//
// Source: OpenAI, API reference, "Create a model response", max_output_tokens; a smaller one is
// rejected with integer_below_min_value.
const minOutput = 16

// A responseRequest is the body of a request for a response.
//
// Source: OpenAI, API reference, "Create a model response", and its OpenAPI file.
type responseRequest struct {
	Model        string            `json:"model"`
	Instructions string            `json:"instructions,omitempty"`
	Input        []json.RawMessage `json:"input"`
	Tools        []responseTool    `json:"tools,omitempty"`
	Choice       llm.ToolChoice    `json:"tool_choice,omitempty"`
	Text         *responseText     `json:"text,omitempty"`
	MaxOutput    int               `json:"max_output_tokens"`
	Temperature  *float64          `json:"temperature,omitempty"`
	Reasoning    *reasoning        `json:"reasoning,omitempty"`
	Include      []string          `json:"include,omitempty"`
	Store        bool              `json:"store"` // false: the server must not store the request
	Stream       bool              `json:"stream,omitempty"`
}

type reasoning struct {
	Effort string `json:"effort"`
}

type responseText struct {
	Format responseSchema `json:"format"`
}

type responseSchema struct {
	Type string `json:"type"` // "json_schema"
	jsonSchema
}

type responseTool struct {
	Type string `json:"type"` // "function"
	toolDeclaration
	Strict bool `json:"strict"` // false; the default is true
}

// The items of a conversation, and of a reply.
type (
	messageItem struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a string, or parts if there are images
	}
	callItem struct {
		Type      string `json:"type"` // "function_call"
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"` // "function_call_output"
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
)

// A thought is the content of llm.ToolCall.Opaque: the reasoning items before a call, encrypted by
// the server, which requires them back before the call's result.
type thought struct {
	Reasoning []json.RawMessage `json:"openai_reasoning"`
}

// responseRequest returns the body of the request for req.
func (m *model) responseRequest(req llm.Request) (responseRequest, error) {
	body := responseRequest{Model: m.name, Instructions: req.System, MaxOutput: max(req.MaxTokens, minOutput), Stream: m.p.c.Stream}
	for _, said := range req.Messages {
		for _, item := range items(said) {
			encoded, err := json.Marshal(item)
			if err != nil {
				return body, m.client.Fail(llm.BadRequest, "encode the request: %v", err)
			}
			body.Input = append(body.Input, encoded)
		}
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, responseTool{Type: "function", toolDeclaration: toolDeclaration(t)})
	}
	if len(req.Tools) > 0 {
		body.Choice = req.Choice
	}
	if req.Schema != nil {
		schema, strict := strictSchema(req.Schema.Schema)
		body.Text = &responseText{responseSchema{"json_schema", jsonSchema{req.Schema.Name, schema, strict}}}
	}
	if m.reasons() {
		if effort := m.effort(); effort != "" && m.takes("reasoning_effort") {
			body.Reasoning = &reasoning{effort}
		}
		if len(req.Tools) > 0 {
			body.Include = []string{"reasoning.encrypted_content"}
		}
	} else if m.takes("temperature") {
		body.Temperature = &req.Temperature
	}
	return body, nil
}

// items returns the items of a message.
func items(said llm.Message) []any {
	var list []any
	for _, r := range said.Results {
		list = append(list, resultItem{"function_call_output", r.Call, outcome(r)})
	}
	if said.Text != "" || len(said.Images) > 0 || len(said.Calls)+len(said.Results) == 0 {
		list = append(list, messageItem{string(said.Speaker), inputParts(said)})
	}
	for _, c := range said.Calls {
		var t thought
		if json.Unmarshal([]byte(c.Opaque), &t) == nil {
			for _, item := range t.Reasoning {
				list = append(list, item)
			}
		}
		list = append(list, callItem{"function_call", c.ID, c.Name, arguments(c.Arguments)})
	}
	return list
}

// inputParts returns the text of a message, or a list of parts if it has images.
func inputParts(said llm.Message) any {
	if len(said.Images) == 0 {
		return said.Text
	}
	var parts []map[string]string
	for _, img := range said.Images {
		parts = append(parts, map[string]string{"type": "input_image", "image_url": dataURL(img)})
	}
	if said.Text != "" {
		parts = append(parts, map[string]string{"type": "input_text", "text": said.Text})
	}
	return parts
}

// A response is a complete reply.
type response struct {
	Model      string         `json:"model"`
	Status     string         `json:"status"`
	Error      *apiError      `json:"error"`
	Incomplete *incomplete    `json:"incomplete_details"`
	Output     []outputItem   `json:"output"`
	Usage      *responseUsage `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// An outputItem is a message, a tool call, or another item of the output.
type outputItem struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	Content   []outputPart `json:"content"`
	CallID    string       `json:"call_id"`
	Name      string       `json:"name"`
	Arguments argument     `json:"arguments"`

	raw json.RawMessage
}

type outputPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// UnmarshalJSON implements json.Unmarshaler. It does not decode the content of items other than
// messages, which has other formats.
func (o *outputItem) UnmarshalJSON(data []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	type plain outputItem
	switch kind.Type {
	case "message", "function_call":
		if err := json.Unmarshal(data, (*plain)(o)); err != nil {
			return err
		}
	}
	o.Type = kind.Type
	o.raw = append(json.RawMessage(nil), data...)
	return nil
}

// A responseEvent is an event of a streamed response.
//
// Source: OpenAI, API reference, "Streaming events".
type responseEvent struct {
	Type     string      `json:"type"`
	Delta    string      `json:"delta"`
	Item     *outputItem `json:"item"`
	Response *response   `json:"response"`
	Error    *apiError   `json:"error"`
}

// responses makes a call in the responses format.
func (m *model) responses(ctx context.Context, req llm.Request, r *reply) error {
	c := responseCall{m: m, reply: r}
	body, err := m.responseRequest(req)
	if err != nil {
		return err
	}
	url := m.p.url("responses", "")
	if body.Stream {
		err = m.client.Stream(ctx, url, body, c.event)
	} else {
		var whole json.RawMessage
		if err = m.client.JSON(ctx, http.MethodPost, url, body, &whole); err == nil {
			err = c.event(wire.Whole, whole)
		}
	}
	if err == nil && !r.ended {
		return m.client.Fail(llm.BrokeOff, "the stream ended before the reply did")
	}
	return err
}

// A responseCall assembles a reply.
type responseCall struct {
	m     *model
	reply *reply
	done  []outputItem // the complete ones, until the final response contains all
}

// event handles one event of a stream, or a whole reply.
func (c *responseCall) event(name string, data []byte) error {
	if name == wire.Whole {
		var r response
		if err := c.m.client.Decode(data, &r); err != nil {
			return err
		}
		return c.end(&r)
	}
	if string(data) == "[DONE]" { // some servers end every stream with it
		return nil
	}
	// Ignored events may have any format.
	var kind struct {
		Type string `json:"type"`
	}
	if err := c.m.client.DecodeEvent(data, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "response.output_text.delta", "response.refusal.delta", "response.output_item.done", "response.completed",
		"response.incomplete", "response.failed", "response.cancelled", "error":
	default:
		if name != "error" {
			return nil
		}
	}
	var e responseEvent
	if err := c.m.client.DecodeEvent(data, &e); err != nil {
		return err
	}
	return c.take(e, data)
}

// take handles an event of a relevant type.
func (c *responseCall) take(e responseEvent, data []byte) error {
	switch e.Type {
	case "response.output_text.delta":
		c.reply.say(e.Delta)
	case "response.refusal.delta":
		c.reply.refused = true
		c.reply.say(e.Delta)
	case "response.output_item.done":
		if e.Item != nil {
			c.done = append(c.done, *e.Item)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if e.Response == nil {
			return c.m.client.Fail(llm.BadReply, "the event %s contains no response", e.Type)
		}
		if err := c.end(e.Response); err != nil {
			return err
		}
		return wire.Done
	default: // an error, in the event itself or in one of its fields
		failure := readError(data)
		return failure.fail(&c.m.client)
	}
	return nil
}

// end handles the complete response.
func (c *responseCall) end(r *response) error {
	c.reply.served = r.Model
	if u := r.Usage; u != nil {
		c.reply.count(tokens{u.Input, u.Output, u.Details.Cached})
	}
	if r.Error != nil {
		return r.Error.fail(&c.m.client)
	}
	switch r.Status {
	case "completed":
		c.reply.finish = llm.FinishStop
	case "incomplete":
		reason := ""
		if r.Incomplete != nil {
			reason = r.Incomplete.Reason
		}
		switch reason {
		case "max_output_tokens":
			c.reply.finish = llm.FinishLength
		case "content_filter":
			return c.m.client.Fail(llm.Filtered, "the provider's content filter stopped the reply")
		default:
			c.reply.finish = llm.FinishOther
		}
	case "failed", "cancelled":
		return c.m.client.Fail(llm.ServerError, "the response is %s without a reason", r.Status)
	default:
		return c.m.client.Fail(llm.BadReply, "the reply is not a finished response (status %q)", r.Status)
	}
	output := r.Output
	if len(output) == 0 {
		output = c.done
	}
	c.output(output)
	c.reply.ended = true
	return nil
}

// output handles the output of the model. It streams text that was not streamed before.
func (c *responseCall) output(output []outputItem) {
	streamed := c.reply.text.Len() > 0
	var thoughts []json.RawMessage
	for _, item := range output {
		switch item.Type {
		case "reasoning":
			thoughts = append(thoughts, item.raw)
		case "message":
			for _, part := range item.Content {
				c.reply.refused = c.reply.refused || part.Type == "refusal"
				if !streamed {
					c.reply.say(part.Text)
					c.reply.say(part.Refusal)
				}
			}
		case "function_call":
			call := llm.ToolCall{ID: item.CallID, Name: item.Name, Arguments: string(item.Arguments)}
			if len(thoughts) > 0 {
				opaque, err := json.Marshal(thought{thoughts})
				if err == nil { // re-encodes decoded JSON
					call.Opaque = string(opaque)
				}
				thoughts = nil
			}
			c.reply.calls = append(c.reply.calls, call)
		}
	}
	if c.reply.finish == llm.FinishStop && len(c.reply.calls) > 0 {
		c.reply.finish = llm.FinishTools
	}
}
