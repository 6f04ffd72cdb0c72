// Package openaitest implements the server side of the formats of package openai, as the servers
// document and send them, for tests.
package openaitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wire"
	"github.com/assay-rag/assay/provider/openai"
)

// A server is a variant of the chat completions format.
type server struct {
	config openai.Config // everything but the fields set from Setup
	path   string        // of the base URL
	model  string
	lacks  []llmtest.Feature

	wholeCalls bool                                // streams send each call in one piece
	uncached   bool                                // no count of cached tokens
	before     []object                            // chunks at the start of a stream
	choice     object                              // additional fields of a choice
	fail       func(f llmtest.Failure) (int, any)  // status and body; 0: no such error
	late       func(f llmtest.Failure) (any, bool) // a chunk
	noise      []string                            // stream parts without content
}

type object = map[string]any

// Chat returns the wire of OpenAI's own chat completions.
//
// Sources: OpenAI, API reference, "Create chat completion" and "Streaming events" of it; guide
// "Error codes"; OpenAI's OpenAPI file, which has the examples.
func Chat() llmtest.Wire {
	return server{
		path: "/v1", model: "gpt-4.1", fail: openaiError,
		late: func(f llmtest.Failure) (any, bool) {
			status, body := openaiError(f)
			return body, status == 429 || status >= 500
		},
	}.wire()
}

// Azure returns the wire of Azure OpenAI with deployment paths.
//
// Sources: Microsoft Learn, "Azure OpenAI REST API reference", "Content filtering"
// (prompt_filter_results in the first chunk, which has no choice; content_filter_results in each),
// and the errors of filtered requests.
func Azure() llmtest.Wire {
	severity := object{"filtered": false, "severity": "safe"}
	return server{
		config: openai.Config{APIVersion: "2024-10-21"}, model: "my-deployment",
		before: []object{{"choices": []any{}, "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []any{object{"prompt_index": 0, "content_filter_results": object{"hate": severity}}}}},
		choice: object{"content_filter_results": object{"hate": severity, "self_harm": severity}},
		fail: func(f llmtest.Failure) (int, any) {
			switch f.Kind {
			case llm.Filtered:
				return 400, object{"error": object{"message": f.Message, "type": nil, "param": "prompt", "code": "content_filter", "status": 400,
					"innererror": object{"code": "ResponsibleAIPolicyViolation", "content_filter_result": object{"violence": object{"filtered": true, "severity": "medium"}}}}}
			case llm.NoModel:
				return 404, object{"error": object{"code": "DeploymentNotFound", "message": f.Message}}
			case llm.BadKey:
				return 401, object{"error": object{"code": "401", "message": f.Message}}
			case llm.RateLimited:
				return 429, object{"error": object{"code": "429", "message": f.Message}}
			case llm.NoQuota:
				return 0, nil
			}
			return openaiError(f)
		},
	}.wire()
}

// Ollama returns the wire of Ollama's compatible endpoint. Streams have each tool call in one
// piece, and errors have no code.
//
// Sources: Ollama, openai/openai.go and middleware/openai.go (MIT), and its documentation "OpenAI
// compatibility".
func Ollama() llmtest.Wire {
	return server{
		config: openai.Config{Name: "ollama"}, path: "/v1", model: "llama3.2", wholeCalls: true, uncached: true,
		lacks: []llmtest.Feature{llmtest.CachedTokens, llmtest.Refusals},
		fail: func(f llmtest.Failure) (int, any) {
			status := map[llm.ErrorKind]int{llm.RateLimited: 429, llm.ServerError: 500, llm.Overloaded: 503, llm.BadKey: 401, llm.BadRequest: 400, llm.NoModel: 404}[f.Kind]
			kind := map[int]string{400: "invalid_request_error", 404: "not_found_error"}[status]
			if kind == "" {
				kind = "api_error"
			}
			message := f.Message
			if status == 404 {
				message = `model "llama3.2" not found, try pulling it first: ` + message
			}
			return status, object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}}
		},
	}.wire()
}

// LlamaCpp returns the wire of llama.cpp's llama-server.
//
// Sources: llama.cpp, tools/server/README.md and format_error_response; exchanges recorded from
// b9844.
func LlamaCpp() llmtest.Wire {
	return server{
		config: openai.Config{Name: "llamacpp"}, path: "/v1", model: "tinyllama",
		lacks: []llmtest.Feature{llmtest.Refusals},
		fail: func(f llmtest.Failure) (int, any) {
			type form struct {
				status int
				kind   string
			}
			e := map[llm.ErrorKind]form{
				llm.BadRequest: {400, "invalid_request_error"}, llm.TooLong: {400, "exceed_context_size_error"}, llm.BadKey: {401, "authentication_error"},
				llm.Overloaded: {503, "unavailable_error"}, llm.ServerError: {500, "server_error"}, llm.RateLimited: {429, "server_error"}, // 429: by a proxy
			}[f.Kind]
			if f.Kind == llm.RateLimited {
				return 429, object{"error": f.Message}
			}
			return e.status, object{"error": object{"code": e.status, "message": f.Message, "type": e.kind}}
		},
		late: func(f llmtest.Failure) (any, bool) {
			return object{"error": object{"code": 500, "message": f.Message, "type": "server_error"}}, f.Kind == llm.ServerError
		},
	}.wire()
}

// VLLM returns the wire of vLLM's server. Errors have their fields at the top level, as until
// version 0.10, or below "error", as since then.
//
// Sources: vLLM, vllm/entrypoints/openai, ErrorResponse and create_streaming_error_response;
// documentation "OpenAI-Compatible Server".
func VLLM() llmtest.Wire {
	form := func(f llmtest.Failure) (int, object) {
		type form struct {
			status int
			kind   string
		}
		e := map[llm.ErrorKind]form{
			llm.BadRequest: {400, "BadRequestError"}, llm.TooLong: {400, "BadRequestError"}, llm.NoModel: {404, "NotFoundError"}, llm.BadKey: {401, "Unauthorized"},
			llm.ServerError: {500, "InternalServerError"}, llm.Overloaded: {503, "ServiceUnavailable"}, llm.RateLimited: {429, "TooManyRequests"},
		}[f.Kind]
		message := f.Message
		switch f.Kind {
		case llm.TooLong:
			message = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens. " + message
		case llm.NoModel:
			message = "The model `x` does not exist. " + message
		}
		return e.status, object{"object": "error", "message": message, "type": e.kind, "param": nil, "code": e.status}
	}
	return server{
		config: openai.Config{Name: "vllm"}, path: "/v1", model: "meta-llama/Llama-3.1-8B-Instruct",
		lacks: []llmtest.Feature{llmtest.Refusals},
		fail: func(f llmtest.Failure) (int, any) {
			status, body := form(f)
			return status, body
		},
		late: func(f llmtest.Failure) (any, bool) {
			status, body := form(f)
			return object{"error": body}, status != 0
		},
	}.wire()
}

// OpenRouter returns the wire of OpenRouter. It reports errors within a reply, and keeps the
// connection alive with comments.
//
// Sources: OpenRouter, documentation "Streaming" ("Handling errors during streaming") and "Errors
// and Debugging".
func OpenRouter() llmtest.Wire {
	status := map[llm.ErrorKind]int{llm.BadRequest: 400, llm.BadKey: 401, llm.NoQuota: 402, llm.Filtered: 403, llm.TimedOut: 408, llm.RateLimited: 429, llm.ServerError: 502, llm.Overloaded: 503}
	form := func(f llmtest.Failure) object {
		e := object{"code": status[f.Kind], "message": f.Message}
		if f.Kind == llm.Filtered {
			e["metadata"] = object{"reasons": []string{"violence"}, "flagged_input": "…", "provider_name": "OpenAI"}
		}
		return e
	}
	return server{
		config: openai.Config{Name: "openrouter"}, path: "/api/v1", model: "meta-llama/llama-3.3-70b-instruct",
		noise: []string{": OPENROUTER PROCESSING\n\n"},
		fail: func(f llmtest.Failure) (int, any) {
			return status[f.Kind], object{"error": form(f), "user_id": "user_1"}
		},
		late: func(f llmtest.Failure) (any, bool) {
			return object{
				"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "provider": "p", "error": form(f),
				"choices": []any{object{"index": 0, "delta": object{"content": ""}, "finish_reason": "error"}},
			}, status[f.Kind] != 0
		},
	}.wire()
}

// openaiError returns one of OpenAI's own errors.
func openaiError(f llmtest.Failure) (int, any) {
	type form struct {
		status     int
		kind, code any
	}
	e := map[llm.ErrorKind]form{
		llm.RateLimited: {429, "requests", "rate_limit_exceeded"}, llm.NoQuota: {429, "insufficient_quota", "insufficient_quota"},
		llm.ServerError: {500, "server_error", nil}, llm.Overloaded: {503, "server_overloaded", "slow_down"},
		llm.BadKey: {401, "invalid_request_error", "invalid_api_key"}, llm.NoModel: {404, "invalid_request_error", "model_not_found"},
		llm.BadRequest: {400, "invalid_request_error", nil}, llm.TooLong: {400, "invalid_request_error", "context_length_exceeded"},
		llm.Filtered: {400, "invalid_request_error", "invalid_prompt"},
	}[f.Kind]
	return e.status, object{"error": object{"message": f.Message, "type": e.kind, "param": nil, "code": e.code}}
}

// wire returns the server as a Wire.
func (s server) wire() llmtest.Wire {
	w := llmtest.Wire{
		Open: func(t testing.TB, setup llmtest.Setup) llm.Model {
			return open(t, s.config, setup, s.path, s.model)
		},
		Streams: streams,
		Request: chatRequest,
		Reply:   s.reply,
		Fail:    failWith(s.fail),
		Noise: [][]byte{
			event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "served-model-1", "choices": []any{}}),
			event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "choices": []any{object{"index": 0, "delta": object{"reasoning_content": "hm"}, "finish_reason": nil}}}),
		},
		Lacks: append([]llmtest.Feature{llmtest.ResultErrors}, s.lacks...),
	}
	for _, n := range s.noise {
		w.Noise = append(w.Noise, []byte(n))
	}
	if s.late != nil {
		w.FailLate = func(script llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
			chunk, has := s.late(f)
			body := s.reply(script, true)
			n := len(s.before) + 1 + min(len(script.Pieces), 2) // the role and two pieces
			body.Parts = append(body.Parts[:n:n], event("", chunk))
			return body, has
		}
	}
	return w
}

// open opens a model of a server.
func open(t testing.TB, c openai.Config, s llmtest.Setup, path, model string) llm.Model {
	c.BaseURL, c.Key, c.HTTP = s.BaseURL+path, wire.NewSecret(llmtest.Canary), s.HTTP
	c.Stream, c.Idle, c.First, c.MaxBytes = s.Stream, s.Idle, s.Idle, s.MaxBytes
	p, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.Model(model)
}

func streams(_ *http.Request, body []byte) bool {
	var r struct{ Stream bool }
	return json.Unmarshal(body, &r) == nil && r.Stream
}

// failWith returns a Wire's Fail for a server's errors.
func failWith(fail func(llmtest.Failure) (int, any)) func(llmtest.Failure) (llmtest.Body, bool) {
	return func(f llmtest.Failure) (llmtest.Body, bool) {
		status, body := fail(f)
		if status == 0 {
			return llmtest.Body{}, false
		}
		b := llmtest.Body{Status: status, Type: "application/json", Parts: [][]byte{encode(body)}}
		if f.RetryAfter > 0 {
			b.Header = http.Header{"Retry-After": {strconv.Itoa(int(f.RetryAfter / time.Second))}}
		}
		return b, true
	}
}

// reply returns the server's reply to a chat request.
func (s server) reply(script llmtest.Script, stream bool) llmtest.Body {
	finish := map[llm.Finish]string{llm.FinishStop: "stop", llm.FinishLength: "length", llm.FinishTools: "tool_calls", llm.FinishRefused: "stop"}[script.Finish]
	usage := object{
		"prompt_tokens": script.Usage.InputTokens, "completion_tokens": script.Usage.OutputTokens, "total_tokens": script.Usage.InputTokens + script.Usage.OutputTokens,
	}
	if !s.uncached {
		usage["prompt_tokens_details"] = object{"cached_tokens": script.Cached, "audio_tokens": 0}
	}
	whole := func(kind string, more object) object {
		o := object{"id": "chatcmpl-1", "object": kind, "created": 1741569952, "model": script.Served, "system_fingerprint": "fp_1"}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	says := "content"
	if script.Finish == llm.FinishRefused {
		says = "refusal"
	}
	if !stream {
		message := object{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
		if text := strings.Join(script.Pieces, ""); text != "" || len(script.Calls) == 0 {
			message[says] = text
		}
		var calls []any
		for _, c := range script.Calls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		choice := object{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}
		for k, v := range s.choice {
			choice[k] = v
		}
		return llmtest.Body{Type: "application/json", Parts: [][]byte{encode(whole("chat.completion", object{"choices": []any{choice}, "usage": usage}))}}
	}
	body := llmtest.Body{Type: "text/event-stream"}
	chunk := func(delta object, finish any) {
		choice := object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}
		for k, v := range s.choice {
			choice[k] = v
		}
		body.Parts = append(body.Parts, event("", whole("chat.completion.chunk", object{"choices": []any{choice}, "usage": nil})))
	}
	for _, b := range s.before {
		body.Parts = append(body.Parts, event("", b))
	}
	chunk(object{"role": "assistant", "content": nil}, nil)
	for _, p := range script.Pieces {
		chunk(object{says: p}, nil)
	}
	for i, c := range script.Calls {
		if s.wholeCalls {
			chunk(object{"role": "assistant", "content": "", "tool_calls": []any{object{"id": c.ID, "index": i, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}}}}, nil)
			continue
		}
		chunk(object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, piece := range strings.SplitAfter(c.Arguments, ":") {
			chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	chunk(object{}, finish)
	body.Parts = append(body.Parts, event("", whole("chat.completion.chunk", object{"choices": []any{}, "usage": usage})), []byte("data: [DONE]\n\n"))
	return body
}

// event returns an event of a stream.
func event(name string, data any) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(encode(data))
	b.WriteString("\n\n")
	return b.Bytes()
}

// encode returns JSON without HTML escapes, as the servers do.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a bug in this package
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Content is the content of a message: a string, or a list of texts and images.
type Content struct {
	Text   string
	Images []llm.Image
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, &c.Text)
	}
	var parts []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Image json.RawMessage `json:"image_url"` // an object with the URL, or in the responses API the URL
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Image == nil {
			c.Text += p.Text
			continue
		}
		var url string
		var object struct{ URL string }
		if json.Unmarshal(p.Image, &url) != nil && json.Unmarshal(p.Image, &object) == nil {
			url = object.URL
		}
		head, encoded, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		image, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		c.Images = append(c.Images, llm.Image{Type: head, Data: image})
	}
	return nil
}

// chatRequest decodes a chat request.
func chatRequest(t testing.TB, r *http.Request, body []byte) llm.Request {
	checkRequest(t, r, "chat/completions")
	var in struct {
		Messages []struct {
			Role    string
			Content *Content
			Calls   []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
		Tools []struct {
			Type     string
			Function llm.Tool
		}
		Choice llm.ToolChoice `json:"tool_choice"`
		Format *struct {
			Type   string
			Schema llm.Schema `json:"json_schema"`
		} `json:"response_format"`
		MaxTokens     int `json:"max_tokens"`
		MaxCompletion int `json:"max_completion_tokens"`
		Temperature   float64
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Errorf("the request: %v", err)
	}
	out := llm.Request{Choice: in.Choice, MaxTokens: max(in.MaxTokens, in.MaxCompletion), Temperature: in.Temperature}
	for _, m := range in.Messages {
		text := ""
		if m.Content != nil {
			text = m.Content.Text
		} else if len(m.Calls) == 0 {
			t.Errorf("a message of %s has neither text nor calls", m.Role)
		}
		switch m.Role {
		case "system", "developer":
			out.System += text
		case "tool":
			out.Messages = append(out.Messages, llm.Message{Speaker: llm.User, Results: []llm.ToolResult{{Call: m.CallID, Text: text}}})
		default:
			message := llm.Message{Speaker: llm.Speaker(m.Role), Text: text}
			if m.Content != nil {
				message.Images = m.Content.Images
			}
			for _, c := range m.Calls {
				checkObject(t, c.Function.Arguments)
				message.Calls = append(message.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
			}
			out.Messages = append(out.Messages, message)
		}
	}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, tool.Function)
	}
	if in.Format != nil {
		out.Schema = &in.Format.Schema
	}
	return out
}

// checkRequest checks the method, the path and the key of a request.
func checkRequest(t testing.TB, r *http.Request, path string) {
	key := r.Header.Get("Authorization")
	if strings.Contains(r.URL.Path, "/deployments/") {
		key = "Bearer " + r.Header.Get("api-key")
		if r.URL.Query().Get("api-version") == "" {
			t.Error("a deployment's path without an API version")
		}
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/"+path) || key != "Bearer "+llmtest.Canary {
		t.Errorf("%s %s with the key %q", r.Method, r.URL.Path, key)
	}
}

// checkObject checks that arguments are a JSON object, since servers parse them.
func checkObject(t testing.TB, arguments string) {
	var v map[string]any
	if err := json.Unmarshal([]byte(arguments), &v); err != nil || v == nil {
		t.Errorf("the arguments %q are no JSON object", arguments)
	}
}
