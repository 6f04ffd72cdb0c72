// Package anthropictest implements the server side of the Messages API, for tests.
//
// It is written from the documentation at platform.claude.com/docs: "Messages" and "Errors" in the
// API reference, "Streaming messages", "Tool use", "Structured outputs".
package anthropictest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/anthropic"
)

// Messages returns the wire of a model that supports all features of the API.
func Messages() llmtest.Wire { return wire("claude-sonnet-4-5", llmtest.SchemaNames) }

// Current returns the wire of a current model, which rejects a temperature and a forced tool call.
func Current() llmtest.Wire {
	return wire("claude-sonnet-5-5", llmtest.SchemaNames, llmtest.Temperature, llmtest.Choices)
}

// Compatible returns the wire of another vendor's model behind the API, for which schemas are
// described in words.
func Compatible() llmtest.Wire {
	return wire("other-model-1", llmtest.SchemaNames, llmtest.Schemas)
}

func wire(model string, lacks ...llmtest.Feature) llmtest.Wire {
	return llmtest.Wire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Model {
			p, err := anthropic.New(anthropic.Config{
				BaseURL: s.BaseURL, HTTP: s.HTTP, Stream: s.Stream, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
				Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
			})
			if err != nil {
				t.Fatal(err)
			}
			return p.Model(model)
		},
		Streams: func(_ *http.Request, body []byte) bool {
			var in struct{ Stream bool }
			return json.Unmarshal(body, &in) == nil && in.Stream
		},
		Request:  request,
		Reply:    reply,
		Fail:     fail,
		FailLate: failLate,
		Noise: [][]byte{
			sse("ping", map[string]any{"type": "ping"}),
			sse("content_block_sparkle", map[string]any{"type": "content_block_sparkle", "index": 0}),
			[]byte("event: later\ndata: not JSON\n\n"),
		},
		Lacks: lacks,
	}
}

// request decodes a request.
func request(t testing.TB, r *http.Request, body []byte) llm.Request {
	var in struct {
		MaxTokens   int     `json:"max_tokens"`
		Temperature float64 `json:"temperature"`
		System      []struct {
			Text  string `json:"text"`
			Cache any    `json:"cache_control"`
		} `json:"system"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		ToolChoice struct {
			Type string `json:"type"`
		} `json:"tool_choice"`
		OutputConfig struct {
			Format *struct {
				Type   string          `json:"type"`
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatalf("the request is not of the format: %v", err)
	}
	if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != llmtest.Canary || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("X-Gateway-Key") != llmtest.Canary {
		t.Errorf("%s %s with the headers %v", r.Method, r.URL.Path, r.Header)
	}
	out := llm.Request{MaxTokens: in.MaxTokens, Temperature: in.Temperature}
	for _, s := range in.System {
		if s.Cache == nil {
			s.Text = "" // instructions that replace unsupported features
			for _, s := range in.System {
				if strings.Contains(s.Text, "JSON schema") {
					out.System += s.Text
				}
			}
		}
		out.System += s.Text
	}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, llm.Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.InputSchema})
	}
	switch in.ToolChoice.Type {
	case "any":
		out.Choice = llm.ToolsRequired
	case "none":
		out.Choice = llm.ToolsNone
	}
	if f := in.OutputConfig.Format; f != nil {
		if f.Type != "json_schema" {
			t.Errorf("output_config.format is of the type %q", f.Type)
		}
		out.Schema = &llm.Schema{Schema: f.Schema}
	}
	for _, m := range in.Messages {
		out.Messages = append(out.Messages, message(t, m.Role, m.Content))
	}
	return out
}

// message decodes a message.
func message(t testing.TB, role string, blocks []json.RawMessage) llm.Message {
	m := llm.Message{Speaker: llm.Speaker(role)}
	for _, raw := range blocks {
		var b struct {
			Type      string          `json:"type"`
			Text      string          `json:"text"`
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Input     json.RawMessage `json:"input"`
			ToolUseID string          `json:"tool_use_id"`
			Content   string          `json:"content"`
			IsError   bool            `json:"is_error"`
			Source    struct {
				Type      string `json:"type"`
				MediaType string `json:"media_type"`
				Data      []byte `json:"data"`
			} `json:"source"`
		}
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("a block of content is not of the format: %v", err)
		}
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "image":
			if b.Source.Type != "base64" || m.Text != "" {
				t.Errorf("an image with the source %q, after the text %q", b.Source.Type, m.Text)
			}
			m.Images = append(m.Images, llm.Image{Type: b.Source.MediaType, Data: b.Source.Data})
		case "tool_use":
			var object map[string]any
			if err := json.Unmarshal(b.Input, &object); err != nil {
				t.Errorf("the API takes no input but objects, this is %s", b.Input)
			}
			m.Calls = append(m.Calls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "tool_result":
			if m.Text != "" {
				t.Error("the API wants results before text")
			}
			m.Results = append(m.Results, llm.ToolResult{Call: b.ToolUseID, Text: b.Content, Error: b.IsError})
		default:
			t.Errorf("a block of the type %q", b.Type)
		}
	}
	return m
}

// finishes maps to the API's stop reasons.
var finishes = map[llm.Finish]string{llm.FinishStop: "end_turn", llm.FinishLength: "max_tokens", llm.FinishTools: "tool_use", llm.FinishRefused: "refusal"}

// usage returns the token counts. Input read from the cache is counted separately from the rest, a
// part of which was written to it.
func usage(s llmtest.Script) map[string]any {
	if s.Usage.InputTokens == 0 && s.Usage.OutputTokens == 0 {
		return nil
	}
	created := (s.Usage.InputTokens - s.Cached) / 3
	return map[string]any{
		"input_tokens": s.Usage.InputTokens - s.Cached - created, "cache_read_input_tokens": s.Cached, "cache_creation_input_tokens": created,
		"output_tokens": s.Usage.OutputTokens, "service_tier": "standard",
	}
}

func reply(s llmtest.Script, stream bool) llmtest.Body {
	if stream {
		return llmtest.Body{Type: "text/event-stream; charset=utf-8", Parts: append(pieces(s), ending(s)...)}
	}
	content := []any{}
	if text := strings.Join(s.Pieces, ""); text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for _, c := range s.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	m := map[string]any{
		"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": s.Served, "content": content,
		"stop_reason": finishes[s.Finish], "stop_sequence": nil,
	}
	if u := usage(s); u != nil {
		m["usage"] = u
	}
	return llmtest.Document(0, m)
}

// pieces returns the events of a stream up to the end of its content.
func pieces(s llmtest.Script) [][]byte {
	start := map[string]any{"id": "msg_01", "type": "message", "role": "assistant", "model": s.Served, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
	if u := usage(s); u != nil {
		u["output_tokens"] = 1
		start["usage"] = u
	}
	parts := [][]byte{sse("message_start", map[string]any{"type": "message_start", "message": start})}
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		parts = append(parts, sse("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": start}))
		for _, d := range deltas {
			parts = append(parts, sse("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": d}))
		}
		parts = append(parts, sse("content_block_stop", map[string]any{"type": "content_block_stop", "index": index}))
		index++
	}
	if len(s.Pieces) > 0 {
		var deltas []map[string]any
		for _, p := range s.Pieces {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": p})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range s.Calls {
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for rest := c.Arguments; rest != "" && c.Arguments != "{}"; {
			n := min(len(rest), max(9, len(c.Arguments)/64))
			for n < len(rest) && rest[n]&0xC0 == 0x80 {
				n++
			}
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": rest[:n]})
			rest = rest[n:]
		}
		block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, deltas...)
	}
	return parts
}

// ending returns the last events of a stream.
func ending(s llmtest.Script) [][]byte {
	last := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": finishes[s.Finish], "stop_sequence": nil}}
	if usage(s) != nil {
		last["usage"] = map[string]any{"output_tokens": s.Usage.OutputTokens}
	}
	return [][]byte{sse("message_delta", last), sse("message_stop", map[string]any{"type": "message_stop"})}
}

// errors maps kinds to error types and statuses.
var errors = map[llm.ErrorKind]struct {
	status int
	name   string
	words  string // prefix of the message if the type is ambiguous
}{
	llm.BadRequest:  {400, "invalid_request_error", ""},
	llm.TooLong:     {400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum: "},
	llm.NoQuota:     {402, "billing_error", ""},
	llm.BadKey:      {401, "authentication_error", ""},
	llm.NoModel:     {404, "not_found_error", "model: "},
	llm.RateLimited: {429, "rate_limit_error", ""},
	llm.ServerError: {500, "api_error", ""},
	llm.TimedOut:    {504, "timeout_error", ""},
	llm.Overloaded:  {529, "overloaded_error", ""},
}

func fail(f llmtest.Failure) (llmtest.Body, bool) {
	e, ok := errors[f.Kind]
	if !ok {
		return llmtest.Body{}, false
	}
	b := llmtest.Document(e.status, failure(f))
	b.Header = http.Header{"Request-Id": {"req_011CSHoEeqs5C35K2UUqR7Fy"}}
	if f.RetryAfter > 0 {
		b.Header.Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	return b, true
}

// failLate returns a stream that ends in an error event, see "Errors in streaming".
func failLate(s llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
	if _, ok := errors[f.Kind]; !ok {
		return llmtest.Body{}, false
	}
	return llmtest.Body{Type: "text/event-stream; charset=utf-8", Parts: append(pieces(s), sse("error", failure(f)))}, true
}

func failure(f llmtest.Failure) any {
	e := errors[f.Kind]
	return map[string]any{"type": "error", "error": map[string]any{"type": e.name, "message": e.words + f.Message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
}

func sse(name string, data any) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, llmtest.JSON(data))
}
