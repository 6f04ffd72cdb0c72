package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/openai"
)

// A to is a transport without a server: it records the request and replies.
type to struct {
	t     *testing.T
	reply string
	url   string
	head  http.Header
	body  map[string]any
}

// RoundTrip implements http.RoundTripper.
func (c *to) RoundTrip(r *http.Request) (*http.Response, error) {
	c.url, c.head, c.body = r.URL.String(), r.Header, map[string]any{}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&c.body); err != nil {
			c.t.Error(err)
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: &body{strings.NewReader(c.reply)}, Request: r}, nil
}

type body struct{ *strings.Reader }

func (body) Close() error { return nil }

const (
	chatReply     = `{"choices":[{"message":{"content":"Paris"},"finish_reason":"stop"}]}`
	responseReply = `{"status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"Paris"}]}]}`
)

// asked makes a call and returns the request.
func asked(t *testing.T, c openai.Config, model string, req llm.Request) *to {
	t.Helper()
	server := &to{t: t, reply: chatReply}
	c.HTTP = &http.Client{Transport: server}
	for _, server.reply = range []string{chatReply, responseReply} {
		if r, err := provider(t, c).Model(model).Generate(t.Context(), req, nil); err == nil && r.Text == "Paris" {
			return server
		}
	}
	t.Fatal("neither a chat nor a response")
	return nil
}

// TestAddresses checks the URLs and credentials of requests.
func TestAddresses(t *testing.T) {
	key := secret.New("sk-0123456789abcdef")
	tests := []struct {
		name   string
		config openai.Config
		url    string
		header string // contains the key
	}{
		{"OpenAI", openai.Config{Key: key}, "https://api.openai.com/v1/responses", "Authorization"},
		{"OpenAI, chat", openai.Config{Key: key, API: openai.Chat}, "https://api.openai.com/v1/chat/completions", "Authorization"},
		{"OpenAI in Europe", openai.Config{BaseURL: "https://eu.api.openai.com/v1/", Key: key}, "https://eu.api.openai.com/v1/responses", "Authorization"},
		{"Ollama", openai.Config{BaseURL: "http://localhost:11434/v1"}, "http://localhost:11434/v1/chat/completions", ""},
		{"OpenRouter", openai.Config{BaseURL: "https://openrouter.ai/api/v1", Key: key}, "https://openrouter.ai/api/v1/chat/completions", "Authorization"},
		{"Azure", openai.Config{BaseURL: "https://r.openai.azure.com", Key: key}, "https://r.openai.azure.com/openai/v1/chat/completions", "Api-Key"},
		{"Azure, responses", openai.Config{BaseURL: "https://r.openai.azure.com/openai/v1/", Key: key, API: openai.Responses}, "https://r.openai.azure.com/openai/v1/responses", "Api-Key"},
		{"Azure, Entra ID", openai.Config{BaseURL: "https://r.services.ai.azure.com/openai/v1", Key: secret.New("eyJhbGciOiJI.e30.c2ln")}, "https://r.services.ai.azure.com/openai/v1/chat/completions", "Authorization"},
		{"Azure, a deployment", openai.Config{BaseURL: "https://r.openai.azure.com/", APIVersion: "2024-10-21", Key: key}, "https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21", "Api-Key"},
		{"Azure, a deployment behind a gateway", openai.Config{BaseURL: "https://gateway.example/team", APIVersion: "2024-10-21", Key: key}, "https://gateway.example/team/openai/deployments/m/chat/completions?api-version=2024-10-21", "Api-Key"},
		{"a gateway's header", openai.Config{BaseURL: "https://gateway.example/v1", Header: map[string]openai.Secret{"X-Gateway": key}}, "https://gateway.example/v1/chat/completions", "X-Gateway"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := asked(t, test.config, "m", request())
			if got.url != test.url {
				t.Errorf("asked at %s, want %s", got.url, test.url)
			}
			for name, values := range got.head {
				if has := len(strings.Join(values, "")) >= 19 && name != "User-Agent"; has != (name == test.header) && name != "Content-Type" && name != "Accept" {
					t.Errorf("the header %s is %q", name, values)
				}
			}
			if strings.Contains(got.url, "0123") {
				t.Error("the key is in the address")
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	for _, c := range []openai.Config{
		{BaseURL: "localhost:11434"}, {BaseURL: "ftp://x/v1"}, {BaseURL: "/v1"}, {BaseURL: "https://user:word@host/v1"}, {BaseURL: "http://[::1"}, {API: "completions"},
	} {
		if _, err := openai.New(c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "word") {
			t.Errorf("%+v: %v, want that it is invalid", c, err)
		}
	}
	p := provider(t, openai.Config{Key: secret.New("sk-0123456789abcdef")})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, p); strings.Contains(text, "0123456789") {
			t.Errorf("%s prints the key: %s", verb, text)
		}
	}
}

// TestParameters checks the parameters for OpenAI's own models, including reasoning models.
func TestParameters(t *testing.T) {
	req := request()
	req.System = "Be short."
	elsewhere := openai.Config{BaseURL: "http://localhost/v1"}
	tests := []struct {
		model  string
		config openai.Config
		want   map[string]any // nil values must be absent
		role   string         // of the system text, in chat completions
	}{
		{"llama3.2", elsewhere, map[string]any{"max_tokens": 100., "temperature": 0., "max_completion_tokens": nil, "reasoning_effort": nil, "stream": nil}, "system"},
		{"gpt-4.1", openai.Config{API: openai.Chat}, map[string]any{"max_completion_tokens": 100., "max_tokens": nil, "temperature": 0.}, "system"},
		{"o3-mini", openai.Config{API: openai.Chat}, map[string]any{"max_completion_tokens": 100., "temperature": nil, "reasoning_effort": "low"}, "developer"},
		{"gpt-5-mini", openai.Config{API: openai.Chat}, map[string]any{"temperature": nil, "reasoning_effort": "minimal"}, "developer"},
		{"gpt-6-luna", openai.Config{API: openai.Chat}, map[string]any{"temperature": nil, "reasoning_effort": "none"}, "developer"},
		{"gpt-6.1-sol", openai.Config{API: openai.Chat}, map[string]any{"temperature": nil, "reasoning_effort": "low"}, "developer"},
		{"gpt-35-turbo", openai.Config{API: openai.Chat}, map[string]any{"temperature": 0., "reasoning_effort": nil}, "system"},
		{"gpt-oss-20b", elsewhere, map[string]any{"temperature": 0., "reasoning_effort": nil}, "system"},
		{"gpt-5-pro", openai.Config{API: openai.Chat}, map[string]any{"temperature": nil, "reasoning_effort": nil}, "developer"},
		{"gpt-5-chat-latest", openai.Config{API: openai.Chat}, map[string]any{"temperature": 0., "reasoning_effort": nil}, "system"},
		{"openai/gpt-5.1", openai.Config{BaseURL: "https://openrouter.ai/api/v1", Effort: "high"}, map[string]any{"temperature": nil, "reasoning_effort": "high", "max_tokens": 100.}, "system"},
		{"gpt-4.1", openai.Config{}, map[string]any{"max_output_tokens": 100., "temperature": 0., "reasoning": nil, "store": false, "instructions": "Be short.", "include": nil}, ""},
		{"gpt-6-luna", openai.Config{}, map[string]any{"max_output_tokens": 100., "temperature": nil, "reasoning": map[string]any{"effort": "none"}, "store": false}, ""},
	}
	for _, test := range tests {
		t.Run(test.model+" "+string(test.config.API), func(t *testing.T) {
			got := asked(t, test.config, test.model, req)
			for name, want := range test.want {
				value, has := got.body[name]
				if diff := cmp.Diff(want, value); diff != "" || has != (want != nil) {
					t.Errorf("%s is %v, want %v", name, value, want)
				}
			}
			if test.role != "" {
				if role := got.body["messages"].([]any)[0].(map[string]any)["role"]; role != test.role {
					t.Errorf("the system text is of %v, want %s", role, test.role)
				}
			}
		})
	}
	req.MaxTokens = 1
	if got := asked(t, openai.Config{}, "gpt-4.1", req).body["max_output_tokens"]; got != 16. {
		t.Errorf("max_output_tokens is %v, want the 16 that OpenAI takes at least", got)
	}
}

// TestReasoningGoesBack checks that the reasoning before a call is sent back with it, only in the
// same format.
func TestReasoningGoesBack(t *testing.T) {
	const reply = `{"status":"completed","model":"m","output":[
		{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"gAAA"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"lookup","arguments":"{\"word\":\"tree\"}"},
		{"type":"function_call","id":"fc_2","call_id":"call_2","name":"lookup","arguments":"{}"}]}`
	server := &to{t: t, reply: reply}
	c := openai.Config{HTTP: &http.Client{Transport: server}}
	req := request()
	req.Tools = []llm.Tool{{Name: "lookup", Parameters: json.RawMessage(`{"type":"object"}`)}}
	r, err := provider(t, c).Model("gpt-6-luna").Generate(t.Context(), req, nil)
	if err != nil || len(r.Calls) != 2 || r.Calls[0].Opaque == "" || r.Calls[1].Opaque != "" || r.Finish != llm.FinishTools {
		t.Fatalf("%+v, %v", r, err)
	}
	if include := server.body["include"]; !cmp.Equal(include, []any{"reasoning.encrypted_content"}) {
		t.Errorf("include is %v", include)
	}
	strict, has := server.body["tools"].([]any)[0].(map[string]any)["strict"]
	if !has || strict != false {
		t.Error("a tool of which the default, strict, is taken")
	}
	req.Messages = append(req.Messages, llm.Message{Speaker: llm.Assistant, Calls: r.Calls}, llm.Message{Speaker: llm.User, Results: []llm.ToolResult{{Call: "call_1", Text: "wood"}, {Call: "call_2", Text: "?"}}})
	server.reply = responseReply
	if _, err := provider(t, c).Model("gpt-6-luna").Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, item := range server.body["input"].([]any) {
		kind, _ := item.(map[string]any)["type"].(string)
		kinds = append(kinds, kind)
	}
	if want := []string{"", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output"}; !slices.Equal(kinds, want) {
		t.Errorf("the items are %q, want %q", kinds, want)
	}
	for _, opaque := range []string{`{"thinking":"of another provider"}`, "no JSON", "null", "[]"} {
		req.Messages[1].Calls[0].Opaque = opaque
		if _, err := provider(t, c).Model("gpt-6-luna").Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(server.body["input"].([]any)); n != 5 {
			t.Errorf("with %s: %d items, want 5", opaque, n)
		}
	}
}

// TestList checks lists of models and their windows for each server.
func TestList(t *testing.T) {
	tests := []struct {
		name, body string
		want       []llm.Listed
	}{
		{"OpenAI", `{"object":"list","data":[{"id":"gpt-4.1","object":"model","created":1,"owned_by":"openai"},{"id":"o3"}]}`, []llm.Listed{{Name: "gpt-4.1"}, {Name: "o3"}}},
		{"vLLM", `{"data":[{"id":"m","object":"model","max_model_len":4096,"root":"m","permission":[]}]}`, []llm.Listed{{Name: "m", Facts: llm.Facts{Window: 4096}}}},
		{"OpenRouter", `{"data":[{"id":"a/b","context_length":131072,"top_provider":{"context_length":131072,"max_completion_tokens":8192},"pricing":{"prompt":"0.0000001"}},{"id":"c/d","context_length":null,"top_provider":{"max_completion_tokens":null}}]}`, []llm.Listed{{Name: "a/b", Facts: llm.Facts{Window: 131072, MaxOutput: 8192}}, {Name: "c/d"}}},
		{"LM Studio", `{"data":[{"id":"q","type":"llm","state":"loaded","max_context_length":32768,"loaded_context_length":4096}]}`, []llm.Listed{{Name: "q", Facts: llm.Facts{Window: 4096}}}},
		{"wrong numbers", `{"data":[{"id":"q","max_model_len":-1,"context_length":"many"}]}`, []llm.Listed{{Name: "q"}}},
		{"none", `{"data":[]}`, []llm.Listed{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkList(t, always(200, "application/json", test.body), test.want)
		})
	}
	t.Run("llama.cpp", func(t *testing.T) {
		checkList(t, recorded(t, "llamacpp/models.http"), []llm.Listed{{Name: "tinyllama", Facts: llm.Facts{Window: 2048}}})
	})
	for body, kind := range map[string]llm.ErrorKind{`{"error":{"message":"no"}}`: llm.ServerError, `{"models":[]}`: llm.BadReply, `<html>`: llm.BadReply} {
		_, err := provider(t, openai.Config{BaseURL: serve(t, always(200, "application/json", body))}).List(t.Context())
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != kind {
			t.Errorf("%s: %v, want the kind %q", body, err, kind)
		}
	}
}

func checkList(t *testing.T, reply func(*http.Request, []byte) (int, string, string), want []llm.Listed) {
	t.Helper()
	p := provider(t, openai.Config{BaseURL: serve(t, func(r *http.Request, body []byte) (int, string, string) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		return reply(r, body)
	})})
	got, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
}

// TestWindow checks which window a server has for a model that it lists without one.
func TestWindow(t *testing.T) {
	const loaded = `{"models":[{"name":"qwen3:4b","context_length":8192},{"name":"llama3.2:latest","context_length":16384}]}`
	tests := []struct {
		name    string
		replies map[string]string // by path; others are not found
		want    int
	}{
		{"llama.cpp", map[string]string{"/props": `{"default_generation_settings":{"n_ctx":2048},"total_slots":4}`}, 2048},
		{"Ollama, loaded", map[string]string{"/api/ps": loaded, "/api/show": `{"parameters":"num_ctx 100"}`}, 16384},
		{"Ollama, with a parameter", map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"parameters":"stop                           \"</s>\"\nnum_ctx                        32768","model_info":{"llama.context_length":131072}}`}, 32768},
		{"Ollama, with none", map[string]string{"/api/ps": `{"models":[]}`, "/api/show": `{"details":{"family":"llama"},"model_info":{"llama.context_length":131072}}`}, openai.OllamaWindow},
		{"another", nil, 0},
		{"a server that answers everything", map[string]string{"/props": `{}`, "/api/ps": `{}`, "/api/show": `{}`}, 0},
		{"nonsense", map[string]string{"/props": `{"default_generation_settings":{"n_ctx":-1}}`, "/api/ps": `[]`, "/api/show": `<html>`}, 0},
	}
	for _, test := range tests {
		for _, path := range []string{"/v1", ""} {
			p := provider(t, openai.Config{BaseURL: strings.TrimSuffix(serve(t, func(r *http.Request, body []byte) (int, string, string) {
				if reply := test.replies[r.URL.Path]; reply != "" {
					return 200, "application/json", reply
				}
				return 404, "text/plain", "not found"
			}), "/v1") + path})
			if got := p.Window(t.Context(), "llama3.2"); got != test.want {
				t.Errorf("%s: %d, want %d", test.name, got, test.want)
			}
		}
	}
}

// spy returns a client that passes the bodies of its requests to see.
func spy(see func([]byte)) *http.Client {
	return &http.Client{Transport: spying(see)}
}

type spying func([]byte)

// RoundTrip implements http.RoundTripper.
func (s spying) RoundTrip(r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s(data)
	r.Body = io.NopCloser(bytes.NewReader(data))
	return http.DefaultTransport.RoundTrip(r)
}
