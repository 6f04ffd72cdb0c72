package anthropic_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/anthropic"
	"github.com/assay-rag/assay/provider/anthropic/anthropictest"
)

func TestContract(t *testing.T) {
	t.Run("all", func(t *testing.T) { llmtest.TestModel(t, anthropictest.Messages()) })
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("what differs for other models is in TestRequests; ASSAY_LONG=1 runs the contract for them, too")
	}
	t.Run("current", func(t *testing.T) { llmtest.TestModel(t, anthropictest.Current()) })
	t.Run("compatible", func(t *testing.T) { llmtest.TestModel(t, anthropictest.Compatible()) })
}

func start(t *testing.T, c anthropic.Config, replies ...string) (*llmtest.Canned, *anthropic.Provider) {
	s := &llmtest.Canned{Type: "application/json", Replies: replies}
	if c.Stream {
		s.Type = "text/event-stream"
	}
	c.BaseURL, c.Key = s.Start(t), secret.New("sk-ant-key")
	p, err := anthropic.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// empty is a reply without content.
const empty = `{"id":"msg_01","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

// TestRequests checks that requests are adapted to the abilities of a model, which are documented
// in the migration guides of Claude Opus 5.5, Sonnet 5.5 and Haiku 5.5
// (platform.claude.com/docs/en/models/…).
func TestRequests(t *testing.T) {
	req := llm.Request{
		System: "Be brief.", Messages: []llm.Message{{Speaker: llm.User, Text: "Hello"}}, MaxTokens: 100, Temperature: 1.5, Attempts: 1,
		Tools: []llm.Tool{{Name: "a", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "b", Description: "B."}}, Choice: llm.ToolsRequired,
		Schema: &llm.Schema{Name: "s", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`)},
	}
	const (
		begin  = `,"max_tokens":100,"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"b","description":"B.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`
		system = `,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}`
		must   = `,{"type":"text","text":"Answer by calling one or more of the tools, not with text."}`
		turns  = `],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]`
		format = `"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer","description":"(minimum: 1)"}},"required":["n"],"additionalProperties":false}}`
		force  = `,"tool_choice":{"type":"any"}`
	)
	words := func(s string) string {
		quoted, _ := json.Marshal("Reply with JSON alone, with no other text before or after it. It has to follow this JSON schema:\n" + s)
		return `,{"type":"text","text":` + string(quoted) + `}`
	}
	tests := []struct{ model, effort, want string }{
		{"claude-sonnet-4-5", "", begin + force + system + turns + `,"output_config":{` + format + `},"temperature":1`},
		{"claude-opus-4-6", "", begin + force + system + turns + `,"output_config":{` + format + `},"temperature":1`},
		{"claude-opus-4-8", "", begin + force + system + turns + `,"output_config":{` + format + `}`},
		{"claude-opus-5", "", begin + force + system + turns + `,"output_config":{` + format + `},"thinking":{"type":"disabled"}`},
		{"claude-haiku-5-5", "none", begin + force + system + turns + `,"output_config":{` + format + `},"thinking":{"type":"disabled"}`},
		{"claude-sonnet-5-5", "", begin + system + must + turns + `,"output_config":{` + format + `},"thinking":{"type":"between_tools"}`},
		{"claude-sonnet-5-5", "medium", begin + system + must + turns + `,"output_config":{"effort":"medium",` + format + `}`},
		{"claude-opus-5-5", "", begin + system + must + turns + `,"output_config":{"effort":"low",` + format + `}`},
		{"claude-fable-5", "", begin + system + must + turns + `,"output_config":{"effort":"low",` + format + `}`},
		{"claude-next", "", begin + system + must + turns + `,"output_config":{` + format + `}`},
		{"claude-opus-6", "", begin + system + must + turns + `,"output_config":{` + format + `}`},
		{"claude-3-5-haiku-20241022", "", begin + force + system + words(string(req.Schema.Schema)) + turns + `,"temperature":1`},
		{"anthropic/claude-opus-4-20250514", "", begin + force + system + words(string(req.Schema.Schema)) + turns + `,"temperature":1`},
		{"glm-5", "", begin + force + system + words(string(req.Schema.Schema)) + turns + `,"temperature":1`},
	}
	for _, test := range tests {
		t.Run(test.model+" "+test.effort, func(t *testing.T) {
			s, p := start(t, anthropic.Config{Effort: test.effort}, empty)
			if _, err := p.Model(test.model).Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			want := `{"model":"` + test.model + `"` + test.want + "}\n"
			if diff := cmp.Diff(want, s.Bodies[0]); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSchemaThatIsNone checks that a request with an invalid schema is not sent and costs nothing.
func TestSchemaThatIsNone(t *testing.T) {
	_, p := start(t, anthropic.Config{})
	_, err := p.Model("claude-haiku-5-5").Generate(t.Context(), llm.Request{Schema: &llm.Schema{Schema: json.RawMessage(`{`)}}, nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BadRequest || e.Usage.Calls != 0 {
		t.Errorf("%v, want an error that nobody was asked for", err)
	}
}

// thinkingStream is a reply that thinks before it calls a tool, from "Streaming messages" and
// "Thinking" at platform.claude.com/docs. The signature follows the thinking, and a redacted block
// arrives whole.
const thinkingStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-opus-5-5","stop_sequence":null,"usage":{"input_tokens":72,"cache_creation_input_tokens":20,"cache_read_input_tokens":400,"output_tokens":2},"content":[],"stop_reason":null}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Paris, "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"then."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Let me look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"get_weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"location\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" \"Paris\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

`

// thinkingWhole is the same reply without streaming.
const thinkingWhole = `{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-opus-5-5","content":[
{"type":"thinking","thinking":"Paris, then.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"},{"type":"text","text":"Let me look."},
{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"get_weather","input":{"location": "Paris"}}],
"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":72,"cache_creation_input_tokens":20,"cache_read_input_tokens":400,"output_tokens":89}}`

// TestThinking checks that thinking is not part of the text, and that it is sent back with the call
// that it led to.
func TestThinking(t *testing.T) {
	for name, reply := range map[string]string{"stream": thinkingStream, "whole": thinkingWhole} {
		t.Run(name, func(t *testing.T) {
			s, p := start(t, anthropic.Config{Stream: name == "stream"}, reply, reply)
			m, req := p.Model("claude-opus-5-5"), llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "The weather?"}}, MaxTokens: 100}
			got, err := m.Generate(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Response{
				Text: "Let me look.", Finish: llm.FinishTools, Served: "claude-opus-5-5", Cached: 400, Usage: assay.Usage{Calls: 1, InputTokens: 492, OutputTokens: 89},
				Calls: []llm.ToolCall{{ID: "toolu_01T1x1fJ34qAmk2tNTrN7Up6", Name: "get_weather", Arguments: `{"location": "Paris"}`, Opaque: got.Calls[0].Opaque}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the response (-want +got):\n%s", diff)
			}
			req.Messages = append(req.Messages,
				llm.Message{Speaker: llm.Assistant, Text: got.Text, Calls: got.Calls},
				llm.Message{Speaker: llm.User, Results: []llm.ToolResult{{Call: got.Calls[0].ID, Text: "sunny"}}})
			if _, err := m.Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			var sent struct {
				Messages []struct{ Content []map[string]any }
			}
			if err := json.Unmarshal([]byte(s.Bodies[1]), &sent); err != nil {
				t.Fatal(err)
			}
			content := []map[string]any{
				{"type": "thinking", "thinking": "Paris, then.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
				{"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
				{"type": "text", "text": "Let me look."},
				{"type": "tool_use", "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": "get_weather", "input": map[string]any{"location": "Paris"}},
			}
			if diff := cmp.Diff(content, sent.Messages[1].Content); diff != "" {
				t.Errorf("what goes back (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignOpaque checks that opaque data of another provider is not sent.
func TestForeignOpaque(t *testing.T) {
	for _, opaque := range []string{"signature", `{"gemini":"c2ln"}`, `[]`, `{"anthropic_thinking":[]}`} {
		s, p := start(t, anthropic.Config{}, empty)
		req := llm.Request{Messages: []llm.Message{{Speaker: llm.Assistant, Calls: []llm.ToolCall{{ID: "a", Name: "n", Opaque: opaque}}}}}
		if _, err := p.Model("claude-haiku-5-5").Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Bodies[0], `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"arguments":""}}]}]`) {
			t.Errorf("with %q: %s", opaque, s.Bodies[0])
		}
	}
}

// TestFinish checks the mapping of stop reasons. Source: "Handling stop reasons" at
// platform.claude.com/docs.
func TestFinish(t *testing.T) {
	tests := []struct {
		stop string
		want llm.Finish
		text string
	}{
		{`"end_turn"`, llm.FinishStop, ""}, {`"stop_sequence"`, llm.FinishStop, ""}, {`"max_tokens"`, llm.FinishLength, ""},
		{`"model_context_window_exceeded"`, llm.FinishLength, ""}, {`"tool_use"`, llm.FinishTools, ""}, {`"pause_turn"`, llm.FinishOther, ""},
		{`"something new"`, llm.FinishOther, ""}, {`null`, llm.FinishOther, ""},
		{`"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"It may do harm."}`, llm.FinishRefused, "It may do harm."},
		{`"refusal","stop_details":null`, llm.FinishRefused, ""},
	}
	for _, test := range tests {
		_, p := start(t, anthropic.Config{}, strings.Replace(empty, `"end_turn"`, test.stop, 1))
		got, err := p.Model("claude-haiku-5-5").Generate(t.Context(), llm.Request{}, nil)
		if err != nil || got.Finish != test.want || got.Text != test.text {
			t.Errorf("stop_reason %s: finish %q, text %q, %v; want %q, %q", test.stop, got.Finish, got.Text, err, test.want, test.text)
		}
	}
}

// TestCredentialInReply checks that a credential in a reply is removed.
func TestCredentialInReply(t *testing.T) {
	_, p := start(t, anthropic.Config{Headers: map[string]string{"X-Gateway": "gateway-key-0123456789"}}, strings.NewReplacer(
		"Let me look.", "gateway-key-0123456789", `"Paris"`, `"gateway-key-0123456789"`, "Paris, then.", "gateway-key-0123456789").Replace(thinkingWhole))
	got, err := p.Model("claude-haiku-5-5").Generate(t.Context(), llm.Request{}, nil)
	if raw, _ := json.Marshal(got); err != nil || strings.Contains(string(raw), "gateway-key") || strings.Count(string(raw), "[secret]") != 3 {
		t.Errorf("%v: %s", err, raw)
	}
}

// TestBrokenStreamCosts checks that a stream that breaks off is charged for the part that arrived.
func TestBrokenStreamCosts(t *testing.T) {
	cut := strings.Index(thinkingStream, "event: message_delta")
	_, p := start(t, anthropic.Config{Stream: true}, thinkingStream[:cut])
	_, err := p.Model("claude-opus-5-5").Generate(t.Context(), llm.Request{MaxTokens: 11}, nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.BrokeOff || e.Usage != (assay.Usage{Calls: 1, InputTokens: 492, OutputTokens: 11}) {
		t.Errorf("%v with %+v, want an error that has cost 492 tokens of input and all of output", err, e)
	}
}

// TestModels checks the list of models. Source: "List Models" in the API reference.
func TestModels(t *testing.T) {
	s, p := start(t, anthropic.Config{},
		`{"data":[{"type":"model","id":"claude-sonnet-5-5","display_name":"Claude Sonnet 5.5","created_at":"2026-09-28T00:00:00Z","max_input_tokens":200000,"max_tokens":64000}],"has_more":true,"first_id":"claude-sonnet-5-5","last_id":"claude-sonnet-5-5"}`,
		`{"data":[{"type":"model","id":"claude-haiku-5-5","lifecycle":"active"},{"type":"model","id":"claude-2.1","lifecycle":"retired"}],"has_more":false,"first_id":"claude-haiku-5-5","last_id":"claude-haiku-5-5"}`)
	got, err := p.List(t.Context())
	if diff := cmp.Diff([]llm.Listed{{Name: "claude-sonnet-5-5", Facts: llm.Facts{Window: 200000, MaxOutput: 64000}}, {Name: "claude-haiku-5-5"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"/v1/models?limit=1000", "/v1/models?limit=1000&after_id=claude-sonnet-5-5"}, s.Paths); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{"localhost:8080", "ftp://example.org", "http://", ":"} {
		if _, err := anthropic.New(anthropic.Config{BaseURL: address}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("New with the address %q: %v, want assay.ErrInvalid", address, err)
		}
	}
	p, err := anthropic.New(anthropic.Config{Name: "claude", BaseURL: "https://example.org/v1/"})
	if err != nil || p.Model("m").Model() != "claude/m" {
		t.Errorf("New: %v", err)
	}
}
