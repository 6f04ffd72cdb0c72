// Package geminitest implements the server side of the Gemini API, for tests.
//
// It is written from the documentation at ai.google.dev/gemini-api/docs: "Generating content" and
// "Embeddings" in the API reference, "Function calling", "Structured outputs", "Troubleshooting
// guide".
package geminitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/gemini"
)

// Generate returns the wire of a current model: it accepts no temperature, its calls have IDs and
// its signatures must be sent back.
func Generate() llmtest.Wire {
	return wire("gemini-3.8-flash", true, llmtest.SchemaNames, llmtest.Temperature)
}

// Earlier returns the wire of a model of the previous generation, whose calls have no IDs.
func Earlier() llmtest.Wire {
	return wire("gemini-2.5-flash", false, llmtest.SchemaNames, llmtest.ToolIDs)
}

func wire(model string, ids bool, lacks ...llmtest.Feature) llmtest.Wire {
	return llmtest.Wire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Model { return provider(t, s).Model(model) },
		Streams: func(r *http.Request, _ []byte) bool {
			return strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") == "sse"
		},
		Request: func(t testing.TB, r *http.Request, body []byte) llm.Request { return request(t, r, body, model) },
		Reply: func(s llmtest.Script, stream bool) llmtest.Body {
			if !ids {
				s.Calls = append([]llm.ToolCall(nil), s.Calls...)
				for i := range s.Calls {
					s.Calls[i].ID = ""
				}
			}
			return reply(s, stream)
		},
		Fail:     fail,
		FailLate: failLate,
		Noise:    [][]byte{[]byte("event: later\ndata: not JSON\n\n"), sse(map[string]any{"candidates": []any{}, "somethingNew": 1})},
		Lacks:    lacks,
	}
}

func provider(t testing.TB, s llmtest.Setup) *gemini.Provider {
	p, err := gemini.New(gemini.Config{
		BaseURL: s.BaseURL, HTTP: s.HTTP, Stream: s.Stream, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
		Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkHeaders checks the headers of a request.
func checkHeaders(t testing.TB, r *http.Request) {
	if r.Header.Get("X-Goog-Api-Key") != llmtest.Canary || r.Header.Get("X-Gateway-Key") != llmtest.Canary || r.URL.Query().Has("key") {
		t.Errorf("%s %s with the headers %v", r.Method, r.URL, r.Header)
	}
}

type part struct {
	Text   string `json:"text"`
	Inline *struct {
		Type string `json:"mimeType"`
		Data []byte `json:"data"`
	} `json:"inlineData"`
	Signature    string `json:"thoughtSignature"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string         `json:"id"`
		Name     string         `json:"name"`
		Response map[string]any `json:"response"`
	} `json:"functionResponse"`
}

// request decodes a request.
func request(t testing.TB, r *http.Request, body []byte, model string) llm.Request {
	var in struct {
		System struct {
			Parts []part `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []part `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		ToolConfig struct {
			Calling struct {
				Mode string `json:"mode"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
		Generation struct {
			MaxTokens   int             `json:"maxOutputTokens"`
			Temperature float64         `json:"temperature"`
			MIMEType    string          `json:"responseMimeType"`
			Schema      json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatalf("the request is not of the format: %v", err)
	}
	checkHeaders(t, r)
	if path, _, _ := strings.Cut(r.URL.Path, ":"); path != "/v1beta/models/"+model {
		t.Errorf("the path is %s", r.URL.Path)
	}
	out := llm.Request{MaxTokens: in.Generation.MaxTokens, Temperature: in.Generation.Temperature}
	for _, p := range in.System.Parts {
		out.System += p.Text
	}
	for _, tools := range in.Tools {
		for _, f := range tools.Functions {
			out.Tools = append(out.Tools, llm.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
		}
	}
	switch in.ToolConfig.Calling.Mode {
	case "ANY":
		out.Choice = llm.ToolsRequired
	case "NONE":
		out.Choice = llm.ToolsNone
	}
	if len(in.Generation.Schema) > 0 {
		if in.Generation.MIMEType != "application/json" {
			t.Errorf("a schema with responseMimeType %q", in.Generation.MIMEType)
		}
		out.Schema = &llm.Schema{Schema: in.Generation.Schema}
	}
	for _, c := range in.Contents {
		out.Messages = append(out.Messages, message(t, c.Role, c.Parts, strings.HasPrefix(model, "gemini-3")))
	}
	return out
}

// message decodes a message.
func message(t testing.TB, role string, parts []part, signed bool) llm.Message {
	m := llm.Message{Speaker: map[string]llm.Speaker{"user": llm.User, "model": llm.Assistant}[role]}
	for _, p := range parts {
		switch {
		case p.FunctionCall != nil:
			if signed && len(m.Calls) == 0 && p.Signature == "" {
				t.Errorf("Function call is missing a thought_signature in functionCall parts.")
			}
			var object map[string]any
			if err := json.Unmarshal(p.FunctionCall.Args, &object); err != nil {
				t.Errorf("the API takes no args but objects, these are %s", p.FunctionCall.Args)
			}
			m.Calls = append(m.Calls, llm.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(p.FunctionCall.Args)})
		case p.FunctionResponse != nil:
			r := llm.ToolResult{Call: p.FunctionResponse.ID, Name: p.FunctionResponse.Name}
			if text, failed := p.FunctionResponse.Response["error"]; failed {
				r.Text, r.Error = fmt.Sprint(text), true
			} else {
				r.Text = fmt.Sprint(p.FunctionResponse.Response["output"])
			}
			m.Results = append(m.Results, r)
		case p.Inline != nil:
			m.Images = append(m.Images, llm.Image{Type: p.Inline.Type, Data: p.Inline.Data})
		default:
			m.Text += p.Text
		}
	}
	return m
}

// finishes maps to the API's finish reasons. It has none for calls.
var finishes = map[llm.Finish]string{llm.FinishStop: "STOP", llm.FinishLength: "MAX_TOKENS", llm.FinishTools: "STOP", llm.FinishRefused: "SAFETY"}

// usage returns the token counts. Thinking is counted separately from the rest of the output.
func usage(s llmtest.Script) map[string]any {
	thoughts := s.Usage.OutputTokens / 3
	return map[string]any{
		"promptTokenCount": s.Usage.InputTokens, "cachedContentTokenCount": s.Cached, "candidatesTokenCount": s.Usage.OutputTokens - thoughts,
		"thoughtsTokenCount": thoughts, "totalTokenCount": s.Usage.InputTokens + s.Usage.OutputTokens,
	}
}

// piece returns a reply with some parts; finish is empty except in the last piece.
func piece(s llmtest.Script, finish string, parts ...any) map[string]any {
	c := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	if finish != "" {
		c["finishReason"] = finish
	}
	m := map[string]any{"candidates": []any{c}, "modelVersion": s.Served, "responseId": "NpoGacKBM8-2xN8P1rSBgAk"}
	if s.Usage.InputTokens > 0 || s.Usage.OutputTokens > 0 {
		m["usageMetadata"] = usage(s)
	}
	return m
}

func textOf(s string) any { return map[string]any{"text": s} }

func callOf(c llm.ToolCall) any {
	call := map[string]any{"name": c.Name, "args": json.RawMessage(c.Arguments)}
	if c.ID != "" {
		call["id"] = c.ID
	}
	return map[string]any{"functionCall": call}
}

func reply(s llmtest.Script, stream bool) llmtest.Body {
	if stream {
		last := []any{}
		for _, c := range s.Calls {
			last = append(last, callOf(c))
		}
		return llmtest.Body{Type: "text/event-stream", Parts: append(pieces(s), sse(piece(s, finishes[s.Finish], last...)))}
	}
	parts := []any{map[string]any{"text": "I am thinking.", "thought": true}}
	if text := strings.Join(s.Pieces, ""); text != "" {
		parts = append(parts, textOf(text))
	}
	for _, c := range s.Calls {
		parts = append(parts, callOf(c))
	}
	return llmtest.Body{Type: "application/json; charset=UTF-8", Parts: [][]byte{llmtest.JSON(piece(s, finishes[s.Finish], parts...))}}
}

// pieces returns the events of a stream except the last.
func pieces(s llmtest.Script) [][]byte {
	parts := [][]byte{sse(piece(s, "", map[string]any{"text": "I am thinking.", "thought": true}))}
	for _, text := range s.Pieces {
		parts = append(parts, sse(piece(s, "", textOf(text))))
	}
	return parts
}

// errors maps kinds to the API's error statuses.
var errors = map[llm.ErrorKind]struct {
	code   int
	status string
	words  string // prefix of the message if the status is ambiguous
	reason string // of an ErrorInfo
	quota  string // of a QuotaFailure
}{
	llm.BadRequest:  {400, "INVALID_ARGUMENT", "", "", ""},
	llm.BadKey:      {400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key. ", "API_KEY_INVALID", ""},
	llm.TooLong:     {400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). ", "", ""},
	llm.NoModel:     {404, "NOT_FOUND", "", "", ""},
	llm.RateLimited: {429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details. ", "", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},
	llm.NoQuota:     {429, "RESOURCE_EXHAUSTED", "", "", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"},
	llm.ServerError: {500, "INTERNAL", "", "", ""},
	llm.Overloaded:  {503, "UNAVAILABLE", "The model is overloaded. ", "", ""},
	llm.TimedOut:    {504, "DEADLINE_EXCEEDED", "", "", ""},
}

func fail(f llmtest.Failure) (llmtest.Body, bool) {
	e, ok := errors[f.Kind]
	if !ok {
		return llmtest.Body{}, false
	}
	return llmtest.Body{Status: e.code, Type: "application/json; charset=UTF-8", Parts: [][]byte{llmtest.JSON(failure(f))}}, true
}

// failLate returns a stream that ends in an error.
func failLate(s llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
	if _, ok := errors[f.Kind]; !ok {
		return llmtest.Body{}, false
	}
	return llmtest.Body{Type: "text/event-stream", Parts: append(pieces(s), sse(failure(f)))}, true
}

func failure(f llmtest.Failure) any {
	e := errors[f.Kind]
	details := []any{map[string]any{"@type": "type.googleapis.com/google.rpc.Help", "links": []any{map[string]any{"description": "Learn more", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}}}}
	if e.reason != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.reason, "domain": "googleapis.com"})
	}
	if e.quota != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]any{"quotaId": e.quota, "quotaValue": "10"}}})
	}
	if f.RetryAfter > 0 {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%.0fs", f.RetryAfter.Seconds())})
	}
	return map[string]any{"error": map[string]any{"code": e.code, "message": e.words + f.Message, "status": e.status, "details": details}}
}

func sse(data any) []byte { return fmt.Appendf(nil, "data: %s\r\n\r\n", llmtest.JSON(data)) }
