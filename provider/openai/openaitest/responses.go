package openaitest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/openai"
)

// Responses returns the wire of OpenAI's responses.
//
// Sources: OpenAI, API reference, "Create a model response" and "Streaming events"; openai-python,
// src/openai/types/responses (Apache-2.0), generated from OpenAI's OpenAPI file.
func Responses() llmtest.Wire {
	return llmtest.Wire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Model {
			return open(t, openai.Config{API: openai.Responses}, s, "/v1", "gpt-4.1")
		},
		Streams: streams,
		Request: responseRequest,
		Reply:   responseReply,
		Fail:    failWith(openaiError),
		FailLate: func(s llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
			code, ok := map[llm.ErrorKind]string{llm.ServerError: "server_error", llm.RateLimited: "rate_limit_exceeded", llm.Filtered: "invalid_prompt"}[f.Kind]
			body := responseReply(s, true)
			const begun = 6 // four events and two pieces
			body.Parts = body.Parts[:begun:begun]
			if f.Kind == llm.RateLimited {
				body.Parts = append(body.Parts, event("error", object{"type": "error", "code": code, "message": f.Message, "param": nil, "sequence_number": begun}))
				return body, true
			}
			failed := envelope(s, "failed")
			failed["error"] = object{"code": code, "message": f.Message}
			body.Parts = append(body.Parts, event("response.failed", object{"type": "response.failed", "sequence_number": begun, "response": failed}))
			return body, ok
		},
		Noise: [][]byte{
			event("keepalive", object{"type": "keepalive", "sequence_number": 3}),
			event("response.something_new", object{"type": "response.something_new", "sequence_number": 3, "delta": object{"a": 1}, "item": []any{}}),
			event("response.reasoning_summary_text.delta", object{"type": "response.reasoning_summary_text.delta", "delta": "hm", "sequence_number": 4}),
		},
		Lacks: []llmtest.Feature{llmtest.ResultErrors},
	}
}

// envelope returns a response without its output.
func envelope(s llmtest.Script, status string) object {
	return object{
		"id": "resp_1", "object": "response", "created_at": 1741476542, "status": status, "error": nil, "incomplete_details": nil, "model": s.Served, "output": []any{},
		"parallel_tool_calls": true, "store": false, "tool_choice": "auto", "tools": []any{}, "usage": nil, "metadata": object{},
	}
}

// responseReply returns the reply to a request for a response.
func responseReply(s llmtest.Script, stream bool) llmtest.Body {
	whole := envelope(s, "completed")
	whole["usage"] = object{
		"input_tokens": s.Usage.InputTokens, "input_tokens_details": object{"cached_tokens": s.Cached},
		"output_tokens": s.Usage.OutputTokens, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": s.Usage.InputTokens + s.Usage.OutputTokens,
	}
	last := "response.completed"
	if s.Finish == llm.FinishLength {
		whole["status"], whole["incomplete_details"], last = "incomplete", object{"reason": "max_output_tokens"}, "response.incomplete"
	}
	e := &events{}
	begun := envelope(s, "in_progress")
	e.add("response.created", object{"response": begun})
	e.add("response.in_progress", object{"response": begun})
	var output []any
	if len(s.Pieces) > 0 {
		output = append(output, e.message(s))
	}
	for i, c := range s.Calls {
		output = append(output, e.call(len(output)+i, c))
	}
	whole["output"] = append([]any{}, output...)
	e.add(last, object{"response": whole})
	if stream {
		return llmtest.Body{Type: "text/event-stream; charset=utf-8", Parts: e.parts}
	}
	return llmtest.Body{Type: "application/json", Parts: [][]byte{encode(whole)}}
}

// events builds the events of a stream.
type events struct{ parts [][]byte }

func (e *events) add(kind string, fields object) {
	fields["type"], fields["sequence_number"] = kind, len(e.parts)
	e.parts = append(e.parts, event(kind, fields))
}

// message adds the events of a message and returns its item.
func (e *events) message(s llmtest.Script) object {
	text := strings.Join(s.Pieces, "")
	kind, field := "output_text", "text"
	if s.Finish == llm.FinishRefused {
		kind, field = "refusal", "refusal"
	}
	at := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = "msg_1", 0, 0
		return more
	}
	part := object{"type": kind, field: text}
	e.add("response.output_item.added", object{"output_index": 0, "item": object{"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}})
	e.add("response.content_part.added", at(object{"part": object{"type": kind, field: ""}}))
	for _, p := range s.Pieces {
		e.add("response."+kind+".delta", at(object{"delta": p}))
	}
	e.add("response."+kind+".done", at(object{field: text}))
	e.add("response.content_part.done", at(object{"part": part}))
	item := object{"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": []any{part}}
	e.add("response.output_item.done", object{"output_index": 0, "item": item})
	return item
}

// call adds the events of a tool call and returns its item.
func (e *events) call(index int, c llm.ToolCall) object {
	item := func(status, arguments string) object {
		return object{"id": "fc_" + c.ID, "type": "function_call", "status": status, "call_id": c.ID, "name": c.Name, "arguments": arguments}
	}
	e.add("response.output_item.added", object{"output_index": index, "item": item("in_progress", "")})
	e.add("response.function_call_arguments.delta", object{"item_id": "fc_" + c.ID, "output_index": index, "delta": c.Arguments})
	e.add("response.function_call_arguments.done", object{"item_id": "fc_" + c.ID, "output_index": index, "arguments": c.Arguments})
	done := item("completed", c.Arguments)
	e.add("response.output_item.done", object{"output_index": index, "item": done})
	return done
}

// responseRequest decodes a request for a response.
func responseRequest(t testing.TB, r *http.Request, body []byte) llm.Request {
	checkRequest(t, r, "responses")
	var in struct {
		Instructions string
		Input        []struct {
			Type, Role              string
			Content                 Content
			CallID                  string `json:"call_id"`
			Name, Arguments, Output string
		}
		Tools []struct {
			Type        string
			Name        string
			Description string
			Parameters  json.RawMessage
		}
		Choice llm.ToolChoice `json:"tool_choice"`
		Text   *struct {
			Format struct {
				Type string
				llm.Schema
			}
		}
		MaxTokens   int `json:"max_output_tokens"`
		Temperature float64
		Store       *bool
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Errorf("the request: %v", err)
	}
	if in.Store == nil || *in.Store {
		t.Error("the request is to be stored")
	}
	out := llm.Request{System: in.Instructions, Choice: in.Choice, MaxTokens: in.MaxTokens, Temperature: in.Temperature}
	for _, item := range in.Input {
		switch item.Type {
		case "function_call":
			checkObject(t, item.Arguments)
			out.Messages = append(out.Messages, llm.Message{Speaker: llm.Assistant, Calls: []llm.ToolCall{{ID: item.CallID, Name: item.Name, Arguments: item.Arguments}}})
		case "function_call_output":
			out.Messages = append(out.Messages, llm.Message{Speaker: llm.User, Results: []llm.ToolResult{{Call: item.CallID, Text: item.Output}}})
		default:
			out.Messages = append(out.Messages, llm.Message{Speaker: llm.Speaker(item.Role), Text: item.Content.Text, Images: item.Content.Images})
		}
	}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, llm.Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	if in.Text != nil {
		out.Schema = &in.Text.Format.Schema
	}
	return out
}
