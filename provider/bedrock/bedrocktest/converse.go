package bedrocktest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
)

// StreamType is the media type of an event stream.
const StreamType = "application/vnd.amazon.eventstream"

// Converse returns the wire of a model with structured output.
func Converse() llmtest.Wire {
	return wireOf("anthropic.claude-sonnet-4-5-20250929-v1:0", false)
}

// ConverseTools returns the wire of a model that gets a schema as a forced tool call.
func ConverseTools() llmtest.Wire { return wireOf("eu.amazon.nova-lite-v1:0", true) }

func wireOf(model string, tools bool) llmtest.Wire {
	return llmtest.Wire{
		Open: func(t testing.TB, s llmtest.Setup) llm.Model {
			p, err := bedrock.New(Config(s))
			if err != nil {
				t.Fatal(err)
			}
			return p.Model(model)
		},
		Streams:  func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/converse-stream") },
		Request:  request,
		Reply:    func(s llmtest.Script, stream bool) llmtest.Body { return Reply(s, stream, tools) },
		Fail:     Fail,
		FailLate: failLate,
		Noise: [][]byte{
			Event("contentBlockCheer", map[string]string{"text": "an event of a kind that nobody knows"}),
			Event("contentBlockDelta", map[string]any{"contentBlockIndex": 90, "delta": map[string]any{"sparkle": map[string]string{"text": "x"}}}),
		},
		// The format has no tool choice "none", and a reply does not name the serving model.
		Lacks: []llmtest.Feature{llmtest.Choices, llmtest.Served},
	}
}

// Config returns the configuration of a provider for a suite's server, with the canary as each of
// its credentials.
func Config(s llmtest.Setup) bedrock.Config {
	return bedrock.Config{
		Region: "eu-west-1", BaseURL: s.BaseURL, HTTP: s.HTTP, Stream: s.Stream, Idle: s.Idle, First: s.Idle, MaxBytes: s.MaxBytes,
		AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: secret.New(llmtest.Canary), SessionToken: secret.New(llmtest.Canary),
	}
}

// stops maps to Bedrock's stop reasons.
var stops = map[llm.Finish]string{
	llm.FinishStop: "end_turn", llm.FinishLength: "max_tokens", llm.FinishTools: "tool_use", llm.FinishRefused: "guardrail_intervened", llm.FinishOther: "malformed_model_output",
}

type object = map[string]any

// Reply returns the reply of Converse or ConverseStream for a script. If tools is set, a reply that
// follows a schema is a tool call.
//
// Source: AWS, Amazon Bedrock API Reference, Converse, response syntax; ConverseStream,
// ConverseStreamOutput; User Guide, "Using the Converse API", the order of a stream's events.
func Reply(s llmtest.Script, stream, tools bool) llmtest.Body {
	stop := stops[s.Finish]
	if s.Schema && tools {
		s.Calls = []llm.ToolCall{{ID: "tooluse_schema", Name: cmp.Or(s.SchemaName, "verdict"), Arguments: strings.Join(s.Pieces, "")}}
		stop = "tool_use"
	}
	fresh := s.Usage.InputTokens - s.Cached
	usage := object{"inputTokens": fresh, "outputTokens": s.Usage.OutputTokens, "totalTokens": s.Usage.InputTokens + s.Usage.OutputTokens, "cacheReadInputTokens": s.Cached, "cacheWriteInputTokens": 0}
	metrics := object{"latencyMs": 275}
	if stream {
		return replyStream(s, stop, tools, usage, metrics)
	}
	content := []any{}
	if text := strings.Join(s.Pieces, ""); text != "" && !(s.Schema && tools) {
		content = append(content, object{"text": text})
	}
	for _, c := range s.Calls {
		content = append(content, object{"toolUse": object{"toolUseId": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)}})
	}
	return llmtest.Document(0, object{
		"output":     object{"message": object{"role": "assistant", "content": content}},
		"stopReason": stop, "usage": usage, "metrics": metrics,
	})
}

func replyStream(s llmtest.Script, stop string, tools bool, usage, metrics object) llmtest.Body {
	b := llmtest.Body{Type: StreamType}
	send := func(kind string, payload object) { b.Parts = append(b.Parts, Event(kind, payload)) }
	send("messageStart", object{"role": "assistant"})
	block := 0
	if len(s.Pieces) > 0 && !(s.Schema && tools) {
		for _, piece := range s.Pieces {
			send("contentBlockDelta", object{"contentBlockIndex": block, "delta": object{"text": piece}})
		}
		send("contentBlockStop", object{"contentBlockIndex": block})
		block++
	}
	for _, c := range s.Calls {
		send("contentBlockStart", object{"contentBlockIndex": block, "start": object{"toolUse": object{"toolUseId": c.ID, "name": c.Name}}})
		pieces := halves(c.Arguments)
		if s.Schema {
			pieces = s.Pieces
		}
		for _, piece := range pieces {
			send("contentBlockDelta", object{"contentBlockIndex": block, "delta": object{"toolUse": object{"input": piece}}})
		}
		send("contentBlockStop", object{"contentBlockIndex": block})
		block++
	}
	send("messageStop", object{"stopReason": stop})
	send("metadata", object{"usage": usage, "metrics": metrics})
	return b
}

// halves splits a text into two parts between runes.
func halves(s string) []string {
	for i := range s {
		if i >= len(s)/2 {
			return []string{s[:i], s[i:]}
		}
	}
	return []string{s}
}

// Fail returns Bedrock's reply for a failure.
//
// Source: AWS, Amazon Bedrock API Reference, Converse, Errors; User Guide, "Troubleshooting Amazon
// Bedrock API Error Codes".
func Fail(f llmtest.Failure) (llmtest.Body, bool) {
	known := map[llm.ErrorKind]struct {
		status int
		code   string
		words  string
	}{
		llm.RateLimited: {429, "ThrottlingException", ""},
		llm.Overloaded:  {503, "ServiceUnavailableException", ""},
		llm.ServerError: {500, "InternalServerException", ""},
		llm.TimedOut:    {408, "ModelTimeoutException", ""},
		llm.BadKey:      {403, "UnrecognizedClientException", ""},
		llm.NoModel:     {404, "ResourceNotFoundException", ""},
		llm.BadRequest:  {400, "ValidationException", ""},
		llm.TooLong:     {400, "ValidationException", "Input is too long for requested model. "},
		llm.NoQuota:     {400, "ServiceQuotaExceededException", ""},
	}
	k, ok := known[f.Kind]
	if !ok {
		return llmtest.Body{}, false
	}
	header := http.Header{"X-Amzn-Errortype": {k.code + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}, "X-Amzn-Requestid": {"0fb1a4e4-1a3c-4b7b-8a52-d3b0b4f3a1c2"}}
	if f.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
	}
	b := llmtest.Document(k.status, object{"message": k.words + f.Message})
	b.Header = header
	return b, true
}

// failLate returns a stream that ends in one of the errors of ConverseStreamOutput.
func failLate(s llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
	exception := map[llm.ErrorKind]string{
		llm.RateLimited: "throttlingException", llm.Overloaded: "serviceUnavailableException", llm.BadRequest: "validationException",
		llm.ServerError: "modelStreamErrorException",
	}[f.Kind]
	if exception == "" {
		return llmtest.Body{}, false
	}
	b := Reply(s, true, false)
	b.Parts = append(b.Parts[:3:3], Exception(exception, f.Message))
	return b, true
}

// request decodes a request.
//
// Source: AWS, Amazon Bedrock API Reference, Converse, request syntax.
func request(t testing.TB, r *http.Request, body []byte) llm.Request {
	var in struct {
		System          []block   `json:"system"`
		Messages        []message `json:"messages"`
		InferenceConfig struct {
			MaxTokens   int     `json:"maxTokens"`
			Temperature float64 `json:"temperature"`
		} `json:"inferenceConfig"`
		ToolConfig   toolConfig `json:"toolConfig"`
		OutputConfig struct {
			TextFormat struct {
				Type      string `json:"type"`
				Structure struct {
					JSONSchema struct {
						Name   string `json:"name"`
						Schema string `json:"schema"`
					} `json:"jsonSchema"`
				} `json:"structure"`
			} `json:"textFormat"`
		} `json:"outputConfig"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Errorf("the request is no JSON: %v: %s", err, body)
	}
	if !strings.HasPrefix(r.URL.Path, "/model/") || r.Header.Get("Authorization") == "" {
		t.Errorf("the request goes to %s, signed: %v", r.URL.Path, r.Header.Get("Authorization") != "")
	}
	out := llm.Request{MaxTokens: in.InferenceConfig.MaxTokens, Temperature: in.InferenceConfig.Temperature}
	for _, b := range in.System {
		out.System += b.Text
	}
	names := map[string]string{}
	for _, m := range in.Messages {
		out.Messages = append(out.Messages, m.read(names))
	}
	for _, tool := range in.ToolConfig.Tools {
		if tool.ToolSpec != nil {
			out.Tools = append(out.Tools, llm.Tool{Name: tool.ToolSpec.Name, Description: tool.ToolSpec.Description, Parameters: tool.ToolSpec.InputSchema.JSON})
		}
	}
	choice := in.ToolConfig.ToolChoice
	if choice.Any != nil {
		out.Choice = llm.ToolsRequired
	}
	if choice.Tool != nil {
		out.Schema, out.Tools = &llm.Schema{Name: choice.Tool.Name, Schema: out.Tools[0].Parameters}, nil
	}
	if f := in.OutputConfig.TextFormat; f.Type == "json_schema" {
		out.Schema = &llm.Schema{Name: f.Structure.JSONSchema.Name, Schema: json.RawMessage(f.Structure.JSONSchema.Schema)}
	}
	return out
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Text  string `json:"text"`
	Image *struct {
		Format string `json:"format"`
		Source struct {
			Bytes []byte `json:"bytes"`
		} `json:"source"`
	} `json:"image"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	ToolResult *struct {
		ID      string  `json:"toolUseId"`
		Content []block `json:"content"`
		Status  string  `json:"status"`
	} `json:"toolResult"`
}

type toolConfig struct {
	Tools []struct {
		ToolSpec *struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema struct {
				JSON json.RawMessage `json:"json"`
			} `json:"inputSchema"`
		} `json:"toolSpec"`
	} `json:"tools"`
	ToolChoice struct {
		Any  *struct{} `json:"any"`
		Tool *struct {
			Name string `json:"name"`
		} `json:"tool"`
	} `json:"toolChoice"`
}

// read decodes a message; names maps calls to their tools.
func (m message) read(names map[string]string) llm.Message {
	out := llm.Message{Speaker: llm.User}
	if m.Role == "assistant" {
		out.Speaker = llm.Assistant
	}
	for _, b := range m.Content {
		out.Text += b.Text
		if img := b.Image; img != nil {
			out.Images = append(out.Images, llm.Image{Type: "image/" + img.Format, Data: img.Source.Bytes})
		}
		if u := b.ToolUse; u != nil {
			names[u.ID] = u.Name
			out.Calls = append(out.Calls, llm.ToolCall{ID: u.ID, Name: u.Name, Arguments: cmp.Or(string(u.Input), "{}")})
		}
		if res := b.ToolResult; res != nil {
			text := ""
			for _, c := range res.Content {
				text += c.Text
			}
			out.Results = append(out.Results, llm.ToolResult{Call: res.ID, Name: names[res.ID], Text: text, Error: res.Status == "error"})
		}
	}
	return out
}
