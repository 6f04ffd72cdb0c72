package gemini_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/gemini"
	"github.com/assay-rag/assay/provider/gemini/geminitest"
)

func TestContract(t *testing.T) {
	t.Run("current", func(t *testing.T) { llmtest.TestModel(t, geminitest.Generate()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, geminitest.Embed()) })
	if os.Getenv("ASSAY_LONG") == "" {
		t.Skip("what differs for earlier models is in TestRequests; ASSAY_LONG=1 runs the contract for them, too")
	}
	t.Run("earlier", func(t *testing.T) { llmtest.TestModel(t, geminitest.Earlier()) })
}

func start(t *testing.T, c gemini.Config, replies ...string) (*llmtest.Canned, *gemini.Provider) {
	s := &llmtest.Canned{Type: "application/json; charset=UTF-8", Replies: replies}
	if c.Stream {
		s.Type = "text/event-stream"
	}
	c.BaseURL, c.Key = s.Start(t), secret.New("AIzaSyKeyOfATest")
	p, err := gemini.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

const empty = `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`

// TestRequests checks that requests are adapted to the abilities of a model. Sources: see
// abilities.
func TestRequests(t *testing.T) {
	req := llm.Request{
		System: "Be brief.", Messages: []llm.Message{{Speaker: llm.User, Text: "Hello"}}, MaxTokens: 100, Temperature: 0.5,
		Tools:  []llm.Tool{{Name: "a", Description: "A.", Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string","pattern":"x"}}}`)}, {Name: "b"}},
		Schema: &llm.Schema{Name: "s", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"const":"one"}},"required":["n"]}`)},
	}
	const (
		system = `{"systemInstruction":{"parts":[{"text":"Be brief."}`
		turns  = `]},"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"tools":[{"functionDeclarations":[{"name":"a","description":"A.","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string","description":"(pattern: \"x\")"}}}},{"name":"b","description":""}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"generationConfig":{"maxOutputTokens":100`
		format = `,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"n":{"enum":["one"]}},"required":["n"]}`
		words  = `,{"text":"Reply with JSON alone, with no other text before or after it. It has to follow this JSON schema:\n{\"type\":\"object\",\"properties\":{\"n\":{\"const\":\"one\"}},\"required\":[\"n\"]}"}`
	)
	tests := []struct{ model, effort, want string }{
		{"gemini-3.8-flash", "", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"LOW"}}}`},
		{"gemini-3.8-flash", "high", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"HIGH"}}}`},
		{"gemini-3.5-flash-lite", "none", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}`},
		{"gemini-3.1-pro-preview", "", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"LOW"}}}`},
		{"gemini-4-argon", "", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"LOW"}}}`},
		{"gemini-flash-lite-latest", "", system + turns + format + `,"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}`},
		{"gemini-2.5-flash", "", system + words + turns + `,"temperature":0.5,"thinkingConfig":{"thinkingBudget":0}}}`},
		{"gemini-2.5-pro", "", system + words + turns + `,"temperature":0.5,"thinkingConfig":{"thinkingBudget":128}}}`},
		{"gemini-2.5-pro", "medium", system + words + turns + `,"temperature":0.5,"thinkingConfig":{"thinkingBudget":8192}}}`},
		{"gemini-2.0-flash", "", system + words + turns + `,"temperature":0.5}}`},
		{"gemma-3-27b-it", "", system + words + turns + `,"temperature":0.5}}`},
	}
	for _, test := range tests {
		t.Run(test.model+" "+test.effort, func(t *testing.T) {
			s, p := start(t, gemini.Config{Effort: test.effort}, empty)
			if _, err := p.Model("models/"+test.model).Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want+"\n", s.Bodies[0]); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
			if want := "/v1beta/models/" + test.model + ":generateContent"; s.Paths[0] != want {
				t.Errorf("the path is %s, want %s", s.Paths[0], want)
			}
		})
	}
}

// TestSchemaThatIsNone checks that a request with an invalid schema is not sent and costs nothing.
func TestSchemaThatIsNone(t *testing.T) {
	_, p := start(t, gemini.Config{})
	for _, req := range []llm.Request{
		{Schema: &llm.Schema{Schema: json.RawMessage(`{`)}},
		{Tools: []llm.Tool{{Name: "a", Parameters: json.RawMessage(`}`)}}},
	} {
		_, err := p.Model("gemini-3.8-flash").Generate(t.Context(), req, nil)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BadRequest || e.Usage.Calls != 0 {
			t.Errorf("%v, want an error that nobody was asked for", err)
		}
	}
}

// signed is a reply with parallel calls, the first of which has a signature, from "Thought
// signatures" at ai.google.dev/gemini-api/docs.
const signed = `{"candidates":[{"content":{"role":"model","parts":[
{"text":"The user asks about two cities.","thought":true},
{"functionCall":{"id":"fc_1","name":"check_weather","args":{"city":"Paris"}},"thoughtSignature":"CpcBAdHtim9YbYwb"},
{"functionCall":{"id":"fc_2","name":"check_weather","args":{"city":"London"}}}]},"finishReason":"STOP","index":0}],
"usageMetadata":{"promptTokenCount":72,"candidatesTokenCount":18,"totalTokenCount":209,"thoughtsTokenCount":119,"cachedContentTokenCount":32},"modelVersion":"gemini-3.8-flash"}`

// TestSignatures checks that thoughts are not part of the text, that thinking is counted as output,
// and that signatures are sent back.
func TestSignatures(t *testing.T) {
	s, p := start(t, gemini.Config{}, signed, empty)
	m, req := p.Model("gemini-3.8-flash"), llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "The weather?"}}, MaxTokens: 100}
	got, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Response{
		Finish: llm.FinishTools, Served: "gemini-3.8-flash", Cached: 32, Usage: assay.Usage{Calls: 1, InputTokens: 72, OutputTokens: 137},
		Calls: []llm.ToolCall{
			{ID: "fc_1", Name: "check_weather", Arguments: `{"city":"Paris"}`, Opaque: `{"gemini_signature":"CpcBAdHtim9YbYwb"}`},
			{ID: "fc_2", Name: "check_weather", Arguments: `{"city":"London"}`},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the response (-want +got):\n%s", diff)
	}
	req.Messages = append(req.Messages, llm.Message{Speaker: llm.Assistant, Calls: got.Calls},
		llm.Message{Speaker: llm.User, Results: []llm.ToolResult{{Call: "fc_1", Name: "check_weather", Text: "15C"}, {Call: "fc_2", Name: "check_weather", Text: "no such city", Error: true}}},
		llm.Message{Speaker: llm.Assistant, Calls: []llm.ToolCall{{ID: "x", Name: "check_weather", Arguments: "?", Opaque: `{"anthropic_thinking":[]}`}}})
	if _, err := m.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	contents := `"contents":[{"role":"user","parts":[{"text":"The weather?"}]},` +
		`{"role":"model","parts":[{"thoughtSignature":"CpcBAdHtim9YbYwb","functionCall":{"id":"fc_1","name":"check_weather","args":{"city":"Paris"}}},{"functionCall":{"id":"fc_2","name":"check_weather","args":{"city":"London"}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"fc_1","name":"check_weather","response":{"output":"15C"}}},{"functionResponse":{"id":"fc_2","name":"check_weather","response":{"error":"no such city"}}}]},` +
		`{"role":"model","parts":[{"thoughtSignature":"skip_thought_signature_validator","functionCall":{"id":"x","name":"check_weather","args":{"arguments":"?"}}}]}]`
	if !strings.Contains(s.Bodies[1], contents) {
		t.Errorf("what goes back:\n%s\nwant in it\n%s", s.Bodies[1], contents)
	}
}

// TestFinish checks the mapping of finish reasons. Source: FinishReason in the API reference.
func TestFinish(t *testing.T) {
	tests := map[string]llm.Finish{
		"STOP": llm.FinishStop, "MAX_TOKENS": llm.FinishLength, "SAFETY": llm.FinishRefused, "RECITATION": llm.FinishRefused, "BLOCKLIST": llm.FinishRefused,
		"PROHIBITED_CONTENT": llm.FinishRefused, "SPII": llm.FinishRefused, "LANGUAGE": llm.FinishOther, "OTHER": llm.FinishOther,
		"MALFORMED_FUNCTION_CALL": llm.FinishOther, "UNEXPECTED_TOOL_CALL": llm.FinishOther, "SOMETHING_NEW": llm.FinishOther,
	}
	for reason, want := range tests {
		_, p := start(t, gemini.Config{}, strings.Replace(empty, "STOP", reason, 1))
		if got, err := p.Model("gemini-3.8-flash").Generate(t.Context(), llm.Request{}, nil); err != nil || got.Finish != want {
			t.Errorf("%s: finish %q, %v; want %q", reason, got.Finish, err, want)
		}
	}
}

// TestBlocked checks the reply to a blocked prompt, which has no candidate. Source: PromptFeedback
// in the API reference.
func TestBlocked(t *testing.T) {
	const blocked = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"gemini-3.8-flash"}`
	for _, stream := range []bool{false, true} {
		reply := blocked
		if stream {
			reply = "data: " + blocked + "\r\n\r\n"
		}
		_, p := start(t, gemini.Config{Stream: stream}, reply)
		_, err := p.Model("gemini-3.8-flash").Generate(t.Context(), llm.Request{}, nil)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.Filtered || !strings.Contains(e.Message, "PROHIBITED_CONTENT") || e.Usage.InputTokens != 7 {
			t.Errorf("stream %v: %v with %+v, want an error of the kind %q that has cost 7 tokens", stream, err, e, llm.Filtered)
		}
	}
}

// TestFaults checks the mapping of errors, as reported by users.
func TestFaults(t *testing.T) {
	tests := []struct {
		status int
		body   string
		want   llm.ErrorKind
		wait   time.Duration
	}{
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, llm.BadKey, 0},
		{400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, llm.BadKey, 0},
		{400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, llm.BadRequest, 0},
		{400, `{"error":{"code":400,"message":"The free tier is not available in your country. Please enable billing.","status":"FAILED_PRECONDITION"}}`, llm.NoQuota, 0},
		{403, `{"error":{"code":403,"message":"Generative Language API has not been used in project 1 before","status":"PERMISSION_DENIED"}}`, llm.BadKey, 0},
		{429, `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, llm.NoQuota, 0},
		{429, `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36.5s"}]}}`, llm.RateLimited, 36500 * time.Millisecond},
		{503, `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`, llm.Overloaded, 0},
		{404, `{"error":{"code":404,"message":"models/gemini-0 is not found for API version v1beta","status":"NOT_FOUND"}}`, llm.NoModel, 0},
	}
	for _, test := range tests {
		s, p := start(t, gemini.Config{}, test.body)
		s.Status = test.status
		_, err := p.Model("gemini-3.8-flash").Generate(t.Context(), llm.Request{}, nil)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != test.want || e.RetryAfter != test.wait || e.Status != test.status {
			t.Errorf("%s: %v with %+v, want the kind %q and a wait of %v", test.body, err, e, test.want, test.wait)
		}
	}
}

// TestModels checks the list of models. Source: "models.list" in the API reference.
func TestModels(t *testing.T) {
	s, p := start(t, gemini.Config{},
		`{"models":[{"name":"models/gemini-3.8-flash","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/gemini-embedding-001","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a b"}`,
		`{"models":[{"name":"models/gemini-3.5-flash-lite","supportedGenerationMethods":["generateContent"]}]}`)
	got, err := p.List(t.Context())
	if diff := cmp.Diff([]llm.Listed{{Name: "gemini-3.8-flash", Facts: llm.Facts{Window: 1048576, MaxOutput: 65536}}, {Name: "gemini-3.5-flash-lite"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"/v1beta/models?pageSize=1000", "/v1beta/models?pageSize=1000&pageToken=a+b"}, s.Paths); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

func TestEmbedders(t *testing.T) {
	s, p := start(t, gemini.Config{}, `{"embeddings":[{"values":[3,4]}]}`, `{"embeddings":[{"values":[3,4]}]}`)
	e, err := p.Embedder("gemini-embedding-2", gemini.EmbedConfig{})
	if err != nil || e.Model() != "gemini/gemini-embedding-2" {
		t.Fatalf("%v, %v", e, err)
	}
	v, err := llm.EmbedQuery(t.Context(), e, "days of leave")
	if diff := cmp.Diff(llm.Vector{0.6, 0.8}, v); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := llm.Embed(t.Context(), e, llm.Passage, []string{"Five days."}); err != nil {
		t.Error(err)
	}
	want := []string{
		`{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"task: search result | query: days of leave"}]}}]}` + "\n",
		`{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"title: none | text: Five days."}]}}]}` + "\n",
	}
	if diff := cmp.Diff(want, s.Bodies); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
	// The API would truncate it.
	if _, err := e.Embed(t.Context(), llm.Passage, []string{strings.Repeat("word ", 6000)}); !isTooLong(err) {
		t.Errorf("a text of 6,000 words: %v, want a *TooLongError", err)
	}
	if _, err := p.Embedder("gemini-embedding-2", gemini.EmbedConfig{Dimensions: -1}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("vectors of -1 dimensions: %v, want assay.ErrInvalid", err)
	}
}

func isTooLong(err error) bool {
	_, ok := errors.AsType[*llm.TooLongError](err)
	return ok
}

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{"localhost:8080", "ftp://example.org", "http://", ":"} {
		if _, err := gemini.New(gemini.Config{BaseURL: address}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("New with the address %q: %v, want assay.ErrInvalid", address, err)
		}
	}
}
