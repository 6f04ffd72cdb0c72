package bedrock_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

// reply returns a service with a reply of Converse.
//
// Source: AWS, Amazon Bedrock API Reference, Converse, response syntax.
func reply(stop string, usage object, content ...any) *service {
	return &service{kind: "application/json", parts: [][]byte{llmtest.JSON(object{
		"output": object{"message": object{"role": "assistant", "content": content}}, "stopReason": stop, "usage": usage, "metrics": object{"latencyMs": 1},
	})}}
}

var few = object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}

// generate makes a model's call to the service.
func (s *service) generate(t *testing.T, change func(*bedrock.Config), model string, req llm.Request) (llm.Response, map[string]any, error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	c := bedrocktest.Config(llmtest.Setup{BaseURL: server.URL})
	if change != nil {
		change(&c)
	}
	p, err := bedrock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if req.Messages == nil {
		req.Messages = []llm.Message{{Speaker: llm.User, Text: "How many days?"}}
	}
	req.MaxTokens = max(req.MaxTokens, 10)
	r, err := p.Model(model).Generate(t.Context(), req, nil)
	var asked map[string]any
	if s.body != nil {
		if err := json.Unmarshal(s.body, &asked); err != nil {
			t.Fatalf("asked %s: %v", s.body, err)
		}
	}
	return r, asked, err
}

var verdict = &llm.Schema{Name: "verdict", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"integer","minimum":1},"a":{"type":"string"}},"required":["z"],"additionalProperties":false}`)}

// TestSchemas checks how schemas are sent to each model.
func TestSchemas(t *testing.T) {
	ok := func() *service { return reply("end_turn", few, object{"text": `{"z":1}`}) }
	tests := []struct{ model, want string }{
		{"anthropic.claude-sonnet-4-5-20250929-v1:0", "format"}, {"global.anthropic.claude-opus-4-6-v1", "format"}, {"eu.anthropic.claude-sonnet-5-5-20261001-v1:0", "format"},
		{"anthropic.claude-opus-4-1-20250805-v1:0", "tool"}, {"anthropic.claude-sonnet-4-20250514-v1:0", "tool"}, {"us.anthropic.claude-3-7-sonnet-20250219-v1:0", "tool"}, {"anthropic.claude-3-haiku-20240307-v1:0", "tool"},
		{"anthropic.claude-v2:1", "words"}, {"anthropic.claude-instant-v1", "words"}, {"anthropic.claude-next", "format"}, {"anthropic.claude-3-5-haiku-20241022-v1:0", "tool"}, {"amazon.nova-lite-v1:0", "tool"}, {"global.amazon.nova-2-lite-v1:0", "tool"}, {"qwen.qwen3-32b-v1:0", "format"}, {"openai.gpt-oss-120b-1:0", "format"},
		{"mistral.mistral-large-2407-v1:0", "tool"}, {"mistral.mistral-large-3-675b-instruct", "format"}, {"meta.llama3-3-70b-instruct-v1:0", "words"}, {"us.meta.llama4-scout-17b-instruct-v1:0", "words"},
		{"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "format"},
		{"arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc", "words"}, {"arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/known", "format"},
	}
	for _, test := range tests {
		r, asked, err := ok().generate(t, func(c *bedrock.Config) {
			c.Models = map[string]string{"arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/known": "anthropic.claude-haiku-4-5-20251001-v1:0"}
		}, test.model, llm.Request{Schema: verdict, System: "Judge."})
		if err != nil {
			t.Fatalf("%s: %v", test.model, err)
		}
		got := "words"
		if asked["outputConfig"] != nil {
			got = "format"
		} else if asked["toolConfig"] != nil {
			got = "tool"
		}
		inWords := strings.Contains(string(llmtest.JSON(asked["system"])), "follow this JSON schema")
		if got != test.want || inWords != (got == "words") || r.Text != `{"z":1}` {
			t.Errorf("%s: asked as %s, want %s: %s", test.model, got, test.want, llmtest.JSON(asked))
		}
	}
	t.Run("configured", func(t *testing.T) {
		_, asked, err := ok().generate(t, func(c *bedrock.Config) { c.Schemas = bedrock.SchemaWords }, "amazon.nova-lite-v1:0", llm.Request{Schema: verdict})
		if err != nil || asked["toolConfig"] != nil || asked["system"] == nil {
			t.Errorf("%v, %v", asked, err)
		}
	})
	t.Run("order and limits", func(t *testing.T) {
		s := ok()
		if _, _, err := s.generate(t, nil, haiku, llm.Request{Schema: verdict}); err != nil {
			t.Fatal(err)
		}
		if body := string(s.body); strings.Index(body, `\"z\"`) > strings.Index(body, `\"a\"`) || strings.Contains(body, `\"minimum\"`) {
			t.Errorf("the schema is sent as %s", body)
		}
	})
	t.Run("beside tools", func(t *testing.T) {
		_, asked, err := ok().generate(t, nil, "amazon.nova-lite-v1:0", llm.Request{Schema: verdict, Tools: []llm.Tool{{Name: "search", Parameters: json.RawMessage(`{"type":"object"}`)}}})
		if tools := string(llmtest.JSON(asked["toolConfig"])); err != nil || !strings.Contains(tools, "search") || strings.Contains(tools, "verdict") || asked["system"] == nil {
			t.Errorf("%v, %v", asked, err)
		}
	})
	t.Run("the tool's arguments", func(t *testing.T) {
		s := reply("tool_use", few, object{"text": ""}, object{"toolUse": object{"toolUseId": "1", "name": "verdict", "input": object{"z": 12345678901234567, "a": "x"}}})
		r, asked, err := s.generate(t, nil, "amazon.nova-lite-v1:0", llm.Request{Schema: verdict})
		if err != nil || compact(t, r.Text) != `{"a":"x","z":12345678901234567}` || len(r.Calls) > 0 || r.Finish != llm.FinishStop || compact(t, string(llmtest.JSON(asked["toolConfig"].(map[string]any)["toolChoice"]))) != `{"tool":{"name":"verdict"}}` {
			t.Errorf("%+v, %v, asked %v", r, err, asked)
		}
	})
}

// TestRequest checks parts of requests that the contract tests do not cover.
func TestRequest(t *testing.T) {
	ok := func() *service { return reply("end_turn", few, object{"text": "Five."}) }
	tool := []llm.Tool{{Name: "search", Description: "Searches.", Parameters: json.RawMessage(`{"type":"object"}`)}}
	long := strings.Repeat("Answer from the sources. ", 400)
	calls := []llm.Message{
		{Speaker: llm.User, Text: "a"}, {Speaker: llm.User, Text: "b"},
		{Speaker: llm.Assistant, Calls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: "no JSON"}}},
		{Speaker: llm.User, Results: []llm.ToolResult{{Call: "1", Name: "search", Text: " "}}},
	}
	tests := []struct {
		name, model string
		config      func(*bedrock.Config)
		req         llm.Request
		field, want string
	}{
		{"required", haiku, nil, llm.Request{Tools: tool, Choice: llm.ToolsRequired}, "toolConfig", `{"toolChoice":{"any":{}},"tools":[{"toolSpec":{"description":"Searches.","inputSchema":{"json":{"type":"object"}},"name":"search"}}]}`},
		{"required, of one that cannot be", "meta.llama3-3-70b-instruct-v1:0", nil, llm.Request{Tools: tool, Choice: llm.ToolsRequired}, "toolConfig", `{"tools":[{"toolSpec":{"description":"Searches.","inputSchema":{"json":{"type":"object"}},"name":"search"}}]}`},
		{"none", haiku, nil, llm.Request{Tools: tool, Choice: llm.ToolsNone}, "toolConfig", `null`},
		{"calls without tools", haiku, nil, llm.Request{Messages: calls}, "toolConfig", `{"tools":[{"toolSpec":{"inputSchema":{"json":{"type":"object"}},"name":"search"}}]}`},
		{"messages", haiku, nil, llm.Request{Messages: calls}, "messages", `[{"content":[{"text":"a"},{"text":"b"}],"role":"user"},{"content":[{"toolUse":{"input":{"arguments":"no JSON"},"name":"search","toolUseId":"1"}}],"role":"assistant"},` +
			`{"content":[{"toolResult":{"content":[{"text":"(no text)"}],"status":"success","toolUseId":"1"}}],"role":"user"}]`},
		{"no status", "meta.llama3-3-70b-instruct-v1:0", nil, llm.Request{Messages: calls}, "messages", `[{"content":[{"text":"a"},{"text":"b"}],"role":"user"},{"content":[{"toolUse":{"input":{"arguments":"no JSON"},"name":"search","toolUseId":"1"}}],"role":"assistant"},` +
			`{"content":[{"toolResult":{"content":[{"text":"(no text)"}],"toolUseId":"1"}}],"role":"user"}]`},
		{"a blank message", haiku, nil, llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: " "}}}, "messages", `[{"content":[{"text":"(no text)"}],"role":"user"}]`},
		{"a short system text", haiku, nil, llm.Request{System: "Answer."}, "system", `[{"text":"Answer."}]`},
		{"a long one", haiku, nil, llm.Request{System: long}, "system", `[{"text":"` + long + `"},{"cachePoint":{"type":"default"}}]`},
		{"a long one, of one without a cache", "meta.llama3-3-70b-instruct-v1:0", nil, llm.Request{System: long}, "system", `[{"text":"` + long + `"}]`},
		{"temperature", haiku, nil, llm.Request{Temperature: 1.7}, "inferenceConfig", `{"maxTokens":10,"temperature":1}`},
		{"no temperature", "anthropic.claude-sonnet-5-5-20261001-v1:0", nil, llm.Request{Temperature: 0.7}, "inferenceConfig", `{"maxTokens":10}`},
		{"required, in words", "anthropic.claude-sonnet-5-5-20261001-v1:0", nil, llm.Request{Tools: tool, Choice: llm.ToolsRequired}, "system", `[{"text":"Call at least one of the tools."}]`},
		{"thinking off", "anthropic.claude-haiku-5-5-20261001-v1:0", nil, llm.Request{}, "additionalModelRequestFields", `{"thinking":{"type":"disabled"}}`},
		{"little thinking", "anthropic.claude-opus-5-5-20261001-v1:0", nil, llm.Request{}, "outputConfig", `{"effort":"low"}`},
		{"nothing said of thinking", haiku, nil, llm.Request{}, "additionalModelRequestFields", `null`},
		{"effort, of one that could not think", "anthropic.claude-haiku-5-5-20261001-v1:0", func(c *bedrock.Config) { c.Effort = "high" }, llm.Request{}, "additionalModelRequestFields", `null`},
		{"effort", haiku, func(c *bedrock.Config) { c.Effort = "low" }, llm.Request{}, "outputConfig", `{"effort":"low"}`},
		{"no effort", haiku, func(c *bedrock.Config) { c.Effort = "none" }, llm.Request{}, "outputConfig", `null`},
		{"effort of Nova", "global.amazon.nova-2-lite-v1:0", func(c *bedrock.Config) { c.Effort = "low" }, llm.Request{}, "additionalModelRequestFields", `{"reasoningConfig":{"maxReasoningEffort":"low","type":"enabled"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, asked, err := ok().generate(t, test.config, test.model, test.req)
			if got := compact(t, string(llmtest.JSON(asked[test.field]))); err != nil || got != test.want {
				t.Errorf("%s is %s, %v; want %s", test.field, got, err, test.want)
			}
		})
	}
	t.Run("paths", func(t *testing.T) {
		for model, want := range map[string]string{haiku: "/model/" + haiku + "/converse", "arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc": "/model/arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc/converse"} {
			s := ok()
			if _, _, err := s.generate(t, nil, model, llm.Request{}); err != nil || s.path != want {
				t.Errorf("%s: asked %s, %v", model, s.path, err)
			}
		}
	})
	t.Run("wrong tools", func(t *testing.T) {
		for _, parameters := range []string{"", "null", "[]", "{} {}", "{"} {
			s := ok()
			_, _, err := s.generate(t, nil, haiku, llm.Request{Tools: []llm.Tool{{Name: "x", Parameters: json.RawMessage(parameters)}}})
			if e, is := errors.AsType[*llm.Error](err); !is || e.Kind != llm.BadRequest || s.body != nil {
				t.Errorf("parameters %q: %v", parameters, err)
			}
		}
	})
}

// TestUsage checks the usage of replies.
func TestUsage(t *testing.T) {
	tests := []struct {
		usage       object
		in, out     int
		cached      int
		isEstimated bool
	}{
		{object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, 10, 5, 0, false},
		{object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 1315, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 300}, 1310, 5, 1000, false},
		{object{"inputTokens": 1310, "outputTokens": 5, "totalTokens": 1315, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 300}, 1310, 5, 1000, false},
		{object{"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 300}, 1310, 5, 1000, false},
		{object{"inputTokens": -10, "outputTokens": -5, "totalTokens": -15, "cacheReadInputTokens": -3}, 0, 0, 0, true},
		{object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 99}, 10, 5, 10, false},
		{nil, 0, 0, 0, true},
	}
	for _, test := range tests {
		r, _, err := reply("end_turn", test.usage, object{"text": "Five."}).generate(t, nil, haiku, llm.Request{})
		if err != nil || r.Estimated != test.isEstimated || r.Usage.Calls != 1 {
			t.Errorf("%v: %+v, %v", test.usage, r, err)
		}
		if want := (assay.Usage{Calls: 1, InputTokens: test.in, OutputTokens: test.out}); !test.isEstimated && (r.Usage != want || r.Cached != test.cached) {
			t.Errorf("%v: %+v with %d cached, want %+v with %d", test.usage, r.Usage, r.Cached, want, test.cached)
		}
	}
}

func TestStops(t *testing.T) {
	for stop, want := range map[string]llm.Finish{
		"end_turn": llm.FinishStop, "stop_sequence": llm.FinishStop, "tool_use": llm.FinishTools, "max_tokens": llm.FinishLength, "model_context_window_exceeded": llm.FinishLength,
		"guardrail_intervened": llm.FinishRefused, "content_filtered": llm.FinishRefused, "refusal": llm.FinishRefused, "malformed_model_output": llm.FinishOther, "malformed_tool_use": llm.FinishOther, "something": llm.FinishOther,
	} {
		r, _, err := reply(stop, few, object{"text": "x"}).generate(t, nil, haiku, llm.Request{})
		if err != nil || r.Finish != want {
			t.Errorf("%s: %q, %v, want %q", stop, r.Finish, err, want)
		}
	}
}

// TestReasoning checks that the reasoning before calls is sent back to the same model and to no
// other.
func TestReasoning(t *testing.T) {
	blocks := []any{
		object{"reasoningContent": object{"reasoningText": object{"text": "hm", "signature": "sig"}}}, object{"reasoningContent": object{"redactedContent": "AAEC"}},
		object{"text": "I look."}, object{"toolUse": object{"toolUseId": "1", "name": "search", "input": object{}}},
	}
	r, _, err := reply("tool_use", few, blocks...).generate(t, nil, haiku, llm.Request{})
	if err != nil || r.Text != "I look." || len(r.Calls) != 1 || r.Calls[0].Opaque == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	back := func(opaque string) string {
		c := r.Calls[0]
		c.Opaque = opaque
		_, asked, err := reply("end_turn", few, object{"text": "x"}).generate(t, nil, haiku, llm.Request{Messages: []llm.Message{
			{Speaker: llm.User, Text: "a"}, {Speaker: llm.Assistant, Text: r.Text, Calls: []llm.ToolCall{c}}, {Speaker: llm.User, Results: []llm.ToolResult{{Call: "1", Text: "r"}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return string(llmtest.JSON(asked["messages"].([]any)[1].(map[string]any)["content"]))
	}
	if diff := cmp.Diff(compact(t, string(llmtest.JSON(blocks))), back(r.Calls[0].Opaque)); diff != "" {
		t.Errorf("what comes back (-want +got):\n%s", diff)
	}
	if got := back("gemini: something"); strings.Contains(got, "reasoning") {
		t.Errorf("another provider's word came back: %s", got)
	}
}

// TestMissing checks that an error names what is missing: the model in the region, or the profile
// that serves it.
func TestMissing(t *testing.T) {
	tests := []struct {
		status        int
		code, message string
		kind          llm.ErrorKind
		words         []string
	}{
		{400, "ValidationException", "Invocation of model ID " + haiku + " with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.", llm.NoModel, []string{haiku, "region eu-west-1", `"eu.` + haiku + `"`, "inference profile"}},
		{400, "ValidationException", "The provided model identifier is invalid.", llm.NoModel, []string{haiku, "region eu-west-1"}},
		{404, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier.", llm.NoModel, []string{haiku, "region eu-west-1"}},
		{404, "ResourceNotFoundException", "This model version has reached the end of its life.", llm.NoModel, []string{haiku, "end of its life"}},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", llm.NoModel, []string{haiku, "region eu-west-1", "no access"}},
		{403, "AccessDeniedException", "User: arn:aws:iam::123456789012:user/x is not authorized to perform: bedrock:InvokeModel", llm.BadKey, []string{haiku, "eu-west-1", "not authorized"}},
		{403, "ExpiredTokenException", "The security token included in the request is expired", llm.BadKey, []string{"expired"}},
		{400, "ValidationException", "max_tokens: must be positive", llm.BadRequest, []string{"must be positive"}},
		{400, "ValidationException", "Input is too long for requested model.", llm.TooLong, []string{"too long"}},
		{424, "ModelErrorException", "the model failed", llm.ServerError, []string{"the model failed"}},
		{429, "ModelNotReadyException", "warming up", llm.Overloaded, []string{"warming up"}},
	}
	for _, stream := range []bool{false, true} {
		for _, test := range tests {
			s := &service{status: test.status, kind: "application/json", header: http.Header{"X-Amzn-Errortype": {test.code + ":http://internal.amazon.com/coral/"}}, parts: [][]byte{llmtest.JSON(object{"message": test.message})}}
			_, _, err := s.generate(t, func(c *bedrock.Config) { c.Stream = stream }, haiku, llm.Request{})
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != test.kind || e.Status != test.status || e.Model != "bedrock/"+haiku {
				t.Errorf("%s: %v, want the kind %q", test.message, err, test.kind)
				continue
			}
			for _, w := range test.words {
				if !strings.Contains(e.Message, w) {
					t.Errorf("%q is not in %q", w, e.Message)
				}
			}
		}
	}
}

// TestCredentials checks the SDK's configuration of region and credentials.
func TestCredentials(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	ok := func() *service { return reply("end_turn", few, object{"text": "Five."}) }
	bare := func(c *bedrock.Config) {
		*c = bedrock.Config{BaseURL: c.BaseURL, Region: c.Region}
	}
	t.Run("none", func(t *testing.T) {
		s := ok()
		_, _, err := s.generate(t, bare, haiku, llm.Request{})
		if e, is := errors.AsType[*llm.Error](err); !is || e.Kind != llm.BadKey || !strings.Contains(e.Message, "no AWS credentials") || s.body != nil {
			t.Errorf("%v", err)
		}
	})
	t.Run("no region", func(t *testing.T) {
		s := ok()
		_, _, err := s.generate(t, func(c *bedrock.Config) { bare(c); c.Region = "" }, haiku, llm.Request{})
		if e, is := errors.AsType[*llm.Error](err); !is || e.Kind != llm.BadRequest || !strings.Contains(e.Message, "AWS_REGION") || s.body != nil {
			t.Errorf("%v", err)
		}
		p, err := bedrock.New(bedrock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Region(t.Context()); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
	t.Run("of the environment", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
		t.Setenv("AWS_SECRET_ACCESS_KEY", llmtest.Canary)
		t.Setenv("AWS_REGION", "eu-central-1")
		s := ok()
		if _, _, err := s.generate(t, func(c *bedrock.Config) { bare(c); c.Region = "" }, haiku, llm.Request{}); err != nil {
			t.Error(err)
		}
		echo := &service{status: 403, kind: "application/json", header: http.Header{"X-Amzn-Errortype": {"SignatureDoesNotMatch"}}, parts: [][]byte{llmtest.JSON(object{"message": "Canonical string: x-amz-security-token:" + llmtest.Canary + " AKIAIOSFODNN7EXAMPLE " + llmtest.Canary})}}
		_, _, err := echo.generate(t, func(c *bedrock.Config) { bare(c); c.Region = "" }, haiku, llm.Request{})
		if err == nil || strings.Contains(err.Error(), llmtest.Canary) || strings.Contains(err.Error(), "AKIAIOSFODNN7EXAMPLE") {
			t.Errorf("%v", err)
		}
		in, _, err := reply("end_turn", few, object{"text": "your key is " + llmtest.Canary}).generate(t, func(c *bedrock.Config) { bare(c); c.Region = "" }, haiku, llm.Request{})
		if err != nil || strings.Contains(in.Text, llmtest.Canary) {
			t.Errorf("%+v, %v", in, err)
		}
	})
	t.Run("an API key", func(t *testing.T) {
		for name, set := range map[string]func(*bedrock.Config){
			"configured":         func(c *bedrock.Config) { bare(c); c.Key = secret.New(llmtest.Canary) },
			"of the environment": func(c *bedrock.Config) { bare(c); t.Setenv("AWS_BEARER_TOKEN_BEDROCK", llmtest.Canary) },
		} {
			s := &service{status: 403, kind: "application/json", parts: [][]byte{llmtest.JSON(object{"message": "the key " + llmtest.Canary + " is not valid"})}}
			var auth string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				auth = r.Header.Get("Authorization")
				s.ServeHTTP(w, r)
			}))
			c := bedrock.Config{BaseURL: server.URL, Region: "eu-west-1"}
			set(&c)
			c.BaseURL, c.HTTP = server.URL, server.Client()
			p, err := bedrock.New(c)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Model(haiku).Generate(t.Context(), llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "x"}}, MaxTokens: 1}, nil)
			server.Close()
			if auth != "Bearer "+llmtest.Canary || err == nil || strings.Contains(err.Error(), llmtest.Canary) {
				t.Errorf("%s: authorised with %q, %v", name, auth, err)
			}
		}
	})
	t.Run("not before it is used", func(t *testing.T) {
		t.Setenv("AWS_PROFILE", "there-is-none")
		p, err := bedrock.New(bedrock.Config{Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Model(haiku).Generate(t.Context(), llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "x"}}, MaxTokens: 1}, nil)
		if e, is := errors.AsType[*llm.Error](err); !is || !strings.Contains(e.Message, "there-is-none") {
			t.Errorf("%v", err)
		}
	})
	t.Run("configs", func(t *testing.T) {
		for _, c := range []bedrock.Config{{Name: "a/b"}, {AccessKeyID: "x"}, {SecretAccessKey: secret.New("x")}, {Schemas: "maybe"}} {
			if _, err := bedrock.New(c); !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
