package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A chatRequest is the body of a request for a chat completion.
//
// Source: OpenAI, API reference, "Create chat completion", and its OpenAPI file.
type chatRequest struct {
	Model          string          `json:"model"`
	Messages       []chatMessage   `json:"messages"`
	Tools          []chatTool      `json:"tools,omitempty"`
	Choice         llm.ToolChoice  `json:"tool_choice,omitempty"`
	ResponseFormat *responseFormat `json:"response_format,omitempty"`

	// MaxTokens is supported by every server. OpenAI's newer models require MaxCompletion instead.
	MaxTokens     int `json:"max_tokens,omitempty"`
	MaxCompletion int `json:"max_completion_tokens,omitempty"`

	Temperature   *float64       `json:"temperature,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type responseFormat struct {
	Type   string     `json:"type"` // "json_schema"
	Schema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

type chatMessage struct {
	Role    string         `json:"role"`
	Content *chatContent   `json:"content"` // null beside tool calls
	Calls   []chatToolCall `json:"tool_calls,omitempty"`
	CallID  string         `json:"tool_call_id,omitempty"`
}

// chatContent is the content of a message: a text, after its images if it has some.
type chatContent struct {
	text   string
	images []llm.Image
}

// MarshalJSON returns the text, or a list of parts if there are images.
func (c chatContent) MarshalJSON() ([]byte, error) {
	if len(c.images) == 0 {
		return json.Marshal(c.text)
	}
	var parts []map[string]any
	for _, img := range c.images {
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": dataURL(img)}})
	}
	if c.text != "" {
		parts = append(parts, map[string]any{"type": "text", "text": c.text})
	}
	return json.Marshal(parts)
}

// dataURL returns an image as a URL that contains it (RFC 2397).
func dataURL(img llm.Image) string {
	return "data:" + img.Type + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}

type chatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // "function"
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string          `json:"type"` // "function"
	Function toolDeclaration `json:"function"`
}

type toolDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// chatRequest returns the body of the request for req.
func (m *model) chatRequest(req llm.Request) chatRequest {
	body := chatRequest{Model: m.name, Messages: m.chatMessages(req)}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, chatTool{"function", toolDeclaration(t)})
	}
	if len(req.Tools) > 0 {
		body.Choice = req.Choice
	}
	if req.Schema != nil {
		schema, strict := strictSchema(req.Schema.Schema)
		body.ResponseFormat = &responseFormat{"json_schema", jsonSchema{req.Schema.Name, schema, strict}}
	}
	if (m.p.own || m.p.azure) && m.takes("max_completion_tokens") || !m.takes("max_tokens") {
		body.MaxCompletion = req.MaxTokens
	} else {
		body.MaxTokens = req.MaxTokens
	}
	if m.reasons() {
		if m.takes("reasoning_effort") {
			body.Effort = m.effort()
		}
	} else if m.takes("temperature") {
		body.Temperature = &req.Temperature
	}
	if m.p.c.Stream {
		body.Stream = true
		if m.takes("stream_options") {
			body.StreamOptions = &streamOptions{IncludeUsage: true}
		}
	}
	return body
}

func (m *model) chatMessages(req llm.Request) []chatMessage {
	var messages []chatMessage
	if req.System != "" {
		role := "system"
		if m.p.own && m.reasons() {
			role = "developer" // the name of the role for OpenAI's reasoning models
		}
		messages = append(messages, chatMessage{Role: role, Content: &chatContent{text: req.System}})
	}
	for _, said := range req.Messages {
		for _, r := range said.Results {
			messages = append(messages, chatMessage{Role: "tool", Content: &chatContent{text: outcome(r)}, CallID: r.Call})
		}
		message := chatMessage{Role: string(said.Speaker)}
		if said.Text != "" || len(said.Images) > 0 || len(said.Calls)+len(said.Results) == 0 {
			message.Content = &chatContent{said.Text, said.Images}
		}
		for _, c := range said.Calls {
			message.Calls = append(message.Calls, chatToolCall{c.ID, "function", chatFunction{c.Name, arguments(c.Arguments)}})
		}
		if message.Content != nil || message.Calls != nil {
			messages = append(messages, message)
		}
	}
	return messages
}

// A chatReply is a chat completion or a chunk of one.
type chatReply struct {
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage"`
	Error   *apiError    `json:"error"`

	// vLLM's older errors have these fields at the top level.
	Object  string `json:"object"`
	Message string `json:"message"`
}

type chatChoice struct {
	Index   int        `json:"index"`
	Delta   chatDelta  `json:"delta"`   // of a chunk
	Message *chatDelta `json:"message"` // of a complete reply
	Finish  string     `json:"finish_reason"`
	Error   *apiError  `json:"error"` // OpenRouter's
}

type chatDelta struct {
	Content content     `json:"content"`
	Refusal string      `json:"refusal"`
	Calls   []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string   `json:"name"`
		Arguments argument `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// content is a text, or for some servers a list of its parts.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(data, &parts)
	for _, p := range parts {
		*c += content(p.Text)
	}
	return err
}

// argument is JSON in a string, or for some servers the JSON itself.
type argument string

// UnmarshalJSON implements json.Unmarshaler.
func (a *argument) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*string)(a))
	}
	*a = argument(data)
	return nil
}

// chat makes a call in the chat completions format.
func (m *model) chat(ctx context.Context, req llm.Request, r *reply) error {
	c := chatCall{m: m, reply: r, at: map[int]int{}}
	defer c.join()
	body := m.chatRequest(req)
	url := m.p.url("chat/completions", m.name)
	var err error
	if body.Stream {
		err = m.client.Stream(ctx, url, body, c.event)
	} else {
		var whole json.RawMessage
		if err = m.client.JSON(ctx, http.MethodPost, url, body, &whole); err == nil {
			err = c.event(wire.Whole, whole)
		}
	}
	if e, ok := errors.AsType[*llm.Error](err); ok && r.ended && (e.Kind == llm.BrokeOff || e.Kind == llm.TimedOut) {
		return nil // only data after the reply's end is missing
	}
	if err == nil && !r.ended {
		return m.client.Fail(llm.BrokeOff, "the stream ended before the reply did")
	}
	return err
}

// A chatCall assembles a reply.
type chatCall struct {
	m     *model
	reply *reply
	at    map[int]int // maps a call's index in the stream to its index in reply.calls

	// arguments are those of reply.calls until join moves them there.
	arguments []*strings.Builder
}

// join stores the streamed arguments in their calls.
func (c *chatCall) join() {
	for i, pieces := range c.arguments {
		c.reply.calls[i].Arguments = pieces.String()
	}
}

// event handles one event of a stream, or a whole reply.
func (c *chatCall) event(name string, data []byte) error {
	if name != wire.Whole && bytes.HasPrefix(data, []byte("[DONE]")) {
		// Some servers have no other mark for the end of a reply.
		c.reply.ended = c.reply.ended || c.reply.text.Len()+len(c.reply.calls) > 0
		c.reply.finish = cmp.Or(c.reply.finish, llm.FinishStop)
		return wire.Done
	}
	var r chatReply
	decode := c.m.client.DecodeEvent
	if name == wire.Whole {
		decode = c.m.client.Decode
	}
	if err := decode(data, &r); err != nil {
		return err
	}
	if e := r.failure(name, data); e != nil {
		return e.fail(&c.m.client)
	}
	c.reply.served = cmp.Or(r.Model, c.reply.served)
	if u := r.Usage; u != nil {
		c.reply.count(tokens{u.Prompt, u.Completion, u.Details.Cached})
	}
	if name == wire.Whole {
		return c.whole(r)
	}
	for _, choice := range r.Choices {
		if choice.Index == 0 {
			c.say(choice.Delta)
			for _, call := range choice.Delta.Calls {
				c.call(call)
			}
			if err := c.end(choice.Finish); err != nil {
				return err
			}
		}
	}
	return nil
}

// failure returns the error in a reply or chunk, or nil.
func (r *chatReply) failure(name string, data []byte) *apiError {
	if r.Error != nil {
		return r.Error
	}
	if name == "error" || r.Object == "error" {
		var e apiError
		if json.Unmarshal(data, &e) != nil || e.Message == "" {
			e.Message = string(data)
		}
		return &e
	}
	for _, choice := range r.Choices {
		if choice.Error != nil {
			return choice.Error
		}
	}
	return nil
}

// whole handles a reply that is not a stream and is therefore complete.
func (c *chatCall) whole(r chatReply) error {
	if len(r.Choices) == 0 || r.Choices[0].Message == nil {
		return c.m.client.Fail(llm.BadReply, "the reply contains no message")
	}
	message := r.Choices[0].Message
	c.say(*message)
	for _, call := range message.Calls {
		c.reply.calls = append(c.reply.calls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: string(call.Function.Arguments)})
	}
	c.reply.ended = true
	c.reply.finish = llm.FinishStop
	return c.end(r.Choices[0].Finish)
}

// say handles the text of a reply or chunk.
func (c *chatCall) say(d chatDelta) {
	c.reply.say(string(d.Content))
	c.reply.say(d.Refusal)
	c.reply.refused = c.reply.refused || d.Refusal != ""
}

// call handles a piece of a tool call, which begins a call or adds arguments to it. Servers that
// send each call in one piece may omit the index, or set it to 0 for every call.
func (c *chatCall) call(d callDelta) {
	index := 0
	place, known := 0, false
	if d.Index != nil {
		index = *d.Index
		place, known = c.at[index]
	} else if place = len(c.reply.calls) - 1; place >= 0 {
		known = true
	}
	if known && begins(d, c.reply.calls[place], c.arguments[place].String()) {
		known = false
	}
	if !known {
		place = len(c.reply.calls)
		c.reply.calls = append(c.reply.calls, llm.ToolCall{ID: d.ID})
		c.arguments = append(c.arguments, new(strings.Builder))
		c.at[index] = place
	}
	call := &c.reply.calls[place]
	call.ID = cmp.Or(call.ID, d.ID)
	call.Name = cmp.Or(call.Name, d.Function.Name)
	c.arguments[place].WriteString(string(d.Function.Arguments))
}

// begins reports whether a piece begins a new call although its index is that of an existing one:
// it has another ID or, without IDs, follows complete arguments.
func begins(d callDelta, call llm.ToolCall, arguments string) bool {
	if d.ID != "" && call.ID != "" {
		return d.ID != call.ID
	}
	return d.ID == "" && d.Function.Name != "" && d.Function.Arguments != "" && call.Name != "" &&
		strings.HasSuffix(arguments, "}") && json.Valid([]byte(arguments))
}

// end handles the finish reason. An empty one is ignored.
func (c *chatCall) end(reason string) error {
	switch reason {
	case "":
		return nil
	case "stop":
		c.reply.finish = llm.FinishStop
	case "length":
		c.reply.finish = llm.FinishLength
	case "tool_calls", "function_call":
		c.reply.finish = llm.FinishTools
	case "content_filter":
		return c.m.client.Fail(llm.Filtered, "the provider's content filter stopped the reply")
	case "error": // OpenRouter's, without details
		return c.m.client.Fail(llm.ServerError, "the model's server failed during the reply")
	default:
		c.reply.finish = llm.FinishOther
	}
	c.reply.ended = true
	return nil
}
