package openai_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/openai"
)

// serve starts a server whose replies are those of the function reply, and returns its base URL.
func serve(t *testing.T, reply func(r *http.Request, body []byte) (status int, kind, text string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		status, kind, text := reply(r, body)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func always(status int, kind, text string) func(*http.Request, []byte) (int, string, string) {
	return func(*http.Request, []byte) (int, string, string) { return status, kind, text }
}

func provider(t testing.TB, c openai.Config) *openai.Provider {
	t.Helper()
	p, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request() llm.Request {
	return llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "What is the capital of France?"}}, MaxTokens: 100, Attempts: 1}
}

// stream returns a text/event-stream with the given data of events.
func stream(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// TestExchanges checks replies of compatible servers that differ from OpenAI's, each from the
// source given.
func TestExchanges(t *testing.T) {
	twoCalls := []llm.ToolCall{{ID: "call_a", Name: "write", Arguments: `{"path":"a"}`}, {ID: "call_b", Name: "write", Arguments: `{"path":"b"}`}}
	made := []llm.ToolCall{{ID: "call_1", Name: "write", Arguments: `{"path":"a"}`}, {ID: "call_2", Name: "write", Arguments: `{"path":"b"}`}}
	tests := []struct {
		name, kind, body string
		want             llm.Response
		estimated        bool
	}{
		{
			// ollama/ollama issue 7881, "OpenAI-compatible API tool calls have no index".
			name: "Ollama, calls without an index",
			body: stream(
				`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"llama3.1","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","type":"function","function":{"name":"write","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":null}]}`,
				`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"llama3.1","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","type":"function","function":{"name":"write","arguments":"{\"path\":\"b\"}"}}]},"finish_reason":null}]}`,
				`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"llama3.1","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
				`[DONE]`),
			want: llm.Response{Calls: twoCalls, Finish: llm.FinishTools, Served: "llama3.1"}, estimated: true,
		},
		{
			// ollama/ollama issues 15457 and 16212: all calls have the index 0, and the finish
			// reason is that of a reply without calls.
			name: "Ollama, all calls with the index 0",
			body: stream(
				`{"model":"qwen2.5-coder:7b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","index":0,"type":"function","function":{"name":"write","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":null}]}`,
				`{"model":"qwen2.5-coder:7b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","index":0,"type":"function","function":{"name":"write","arguments":"{\"path\":\"b\"}"}}]},"finish_reason":null}]}`,
				`{"model":"qwen2.5-coder:7b","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
				`{"model":"qwen2.5-coder:7b","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":40,"total_tokens":240}}`,
				`[DONE]`),
			want: llm.Response{Calls: twoCalls, Finish: llm.FinishTools, Served: "qwen2.5-coder:7b", Usage: assay.Usage{Calls: 1, InputTokens: 200, OutputTokens: 40}},
		},
		{
			// The same without IDs, as sent by older servers.
			name: "calls without ids, in one piece",
			body: stream(
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"write","arguments":"{\"path\":\"a\"}"}},{"function":{"name":"write","arguments":"{\"path\":\"b\"}"}}]},"finish_reason":"tool_calls"}]}`,
				`[DONE]`),
			want: llm.Response{Calls: made, Finish: llm.FinishTools}, estimated: true,
		},
		{
			// BerriAI/litellm pull request 37792: arguments as JSON instead of a string.
			name: "arguments that are no text", kind: "application/json",
			body: `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"write","arguments":{"path":"a"}}},{"id":"","function":{"name":"write","arguments":{"path":"b"}}}]},"finish_reason":"tool_calls"}]}`,
			want: llm.Response{Calls: made, Finish: llm.FinishTools}, estimated: true,
		},
		{
			// Mistral, API documentation, "Chat completion": content may be chunks.
			name: "content in parts", kind: "application/json",
			body: `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"Pa"},{"type":"reference","reference_ids":[1]},{"type":"text","text":"ris"}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "m", Usage: assay.Usage{Calls: 1, InputTokens: 5, OutputTokens: 1}},
		},
		{
			// vLLM, documentation "OpenAI-Compatible Server": the last chunk, with the usage, has
			// no choices; in some versions they are null.
			name: "vLLM, no choices beside the usage",
			body: stream(
				`{"id":"cmpl-1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
				`{"id":"cmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"Paris"},"logprobs":null,"finish_reason":"stop","stop_reason":null}]}`,
				`{"id":"cmpl-1","model":"m","choices":null,"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3}}`,
				`[DONE]`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "m", Usage: assay.Usage{Calls: 1, InputTokens: 9, OutputTokens: 3}},
		},
		{
			// OpenRouter, documentation "Streaming".
			name: "OpenRouter, comments",
			body: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + stream(
				`{"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4o","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Paris"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}`,
				`{"id":"gen-1","provider":"OpenAI","model":"openai/gpt-4o","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop","native_finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":14,"completion_tokens":1,"total_tokens":15,"cost":0.0001,"prompt_tokens_details":{"cached_tokens":2}}}`,
				`[DONE]`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "openai/gpt-4o", Cached: 2, Usage: assay.Usage{Calls: 1, InputTokens: 14, OutputTokens: 1}},
		},
		{
			// Microsoft Learn, "Content filtering": the asynchronous filter's results are separate
			// chunks, without delta or finish reason, also after the last one.
			name: "Azure, filter results on their own",
			body: stream(
				`{"id":"","object":"","created":0,"model":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}],"choices":[]}`,
				`{"id":"chatcmpl-1","model":"gpt-4.1","choices":[{"index":0,"delta":{"content":"Paris","role":"assistant"},"finish_reason":null}]}`,
				`{"id":"","object":"","created":0,"model":"","choices":[{"index":0,"finish_reason":null,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":198}}]}`,
				`{"id":"chatcmpl-1","model":"gpt-4.1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
				`[DONE]`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "gpt-4.1"}, estimated: true,
		},
		{
			name: "JSON where a stream was asked for", kind: "text/plain",
			body: ` {"model":"m","choices":[{"message":{"content":"Paris"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "m", Usage: assay.Usage{Calls: 1, InputTokens: 5, OutputTokens: 1}},
		},
		{
			name: "no end but [DONE]",
			body: stream(`{"model":"m","choices":[{"index":0,"delta":{"content":"Paris"}}]}`, `[DONE]`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishStop, Served: "m"}, estimated: true,
		},
		{
			name: "no [DONE] but an end",
			body: stream(`{"model":"m","choices":[{"index":0,"delta":{"content":"Paris"},"finish_reason":"eos"}]}`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishOther, Served: "m"}, estimated: true,
		},
		{
			name: "usage that cannot be",
			body: stream(`{"choices":[{"index":0,"delta":{"content":"Paris"},"finish_reason":"length"}],"usage":{"prompt_tokens":-5,"completion_tokens":1}}`, `[DONE]`),
			want: llm.Response{Text: "Paris", Finish: llm.FinishLength}, estimated: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind := test.kind
			if kind == "" {
				kind = "text/event-stream"
			}
			p := provider(t, openai.Config{BaseURL: serve(t, always(200, kind, test.body)), Stream: true})
			check(t, p.Model("m"), test.want, test.estimated)
		})
	}
}

// check compares a model's reply and its stream with the wanted reply.
func check(t *testing.T, m llm.Model, want llm.Response, estimated bool) {
	t.Helper()
	var told strings.Builder
	got, err := m.Generate(t.Context(), request(), func(d llm.Delta) { told.WriteString(d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	if estimated {
		if got.Usage.Calls != 1 || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
			t.Errorf("usage %+v, want an estimate", got.Usage)
		}
		want.Usage, want.Estimated = got.Usage, true
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the response (-want +got):\n%s", diff)
	}
	if told.String() != got.Text {
		t.Errorf("the stream was told %q, the text is %q", told.String(), got.Text)
	}
}

// recorded returns a handler that replays a recorded reply.
func recorded(t *testing.T, file string) func(*http.Request, []byte) (int, string, string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := bytes.Cut(data, []byte("\r\n\r\n"))
	status, err := strconv.Atoi(strings.Fields(string(head))[1])
	if err != nil {
		t.Fatal(err)
	}
	_, kind, _ := strings.Cut(string(head), "Content-Type: ")
	kind, _, _ = strings.Cut(kind, "\r\n")
	return always(status, kind, string(body))
}

// TestRecorded checks replies recorded from llama-server b9844 with a TinyLlama, which are in
// testdata/llamacpp.
func TestRecorded(t *testing.T) {
	usage := func(in, out int) assay.Usage { return assay.Usage{Calls: 1, InputTokens: in, OutputTokens: out} }
	tests := []struct {
		file string
		api  openai.API
		want llm.Response
	}{
		{"chat-stream", openai.Chat, llm.Response{Finish: llm.FinishLength, Usage: usage(37, 24), Cached: 36}},
		{"tools-call", openai.Chat, llm.Response{Calls: []llm.ToolCall{{ID: "2xhFUqbXHW4NI9s5VMzp9MO0HoqHmmAI", Name: "lookup", Arguments: `{"word": "tree"}`}}, Finish: llm.FinishTools, Usage: usage(321, 29)}},
		{"tools-call-stream", openai.Chat, llm.Response{Calls: []llm.ToolCall{{ID: "XuPW0c6NC0aOIdgHy6uDa1vkI5HCxJOW", Name: "lookup", Arguments: `{"word": "tree"}`}}, Finish: llm.FinishTools, Usage: usage(321, 29), Cached: 320}},
		{"schema", openai.Chat, llm.Response{Text: `{"answer": "yes", "reason": "paris"}`, Finish: llm.FinishStop, Usage: usage(26, 18), Cached: 25}},
		{"length", openai.Chat, llm.Response{Text: "To one hundred.", Finish: llm.FinishLength, Usage: usage(22, 4), Cached: 3}},
		{"responses-stream", openai.Responses, llm.Response{Text: "The capital of France is Paris.", Finish: llm.FinishStop, Usage: usage(23, 8), Cached: 22}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			p := provider(t, openai.Config{
				BaseURL: serve(t, recorded(t, "llamacpp/"+test.file+".http")), API: test.api, Stream: strings.HasSuffix(test.file, "-stream"),
			})
			test.want.Served = "tinyllama"
			if test.file == "chat-stream" {
				r, err := p.Model("m").Generate(t.Context(), request(), nil)
				if err != nil || !strings.HasPrefix(r.Text, "Yes, Paris is a city in France that") {
					t.Fatalf("%q, %v", r.Text, err)
				}
				test.want.Text = r.Text
			}
			check(t, p.Model("m"), test.want, false)
		})
	}
}

// TestBrokenReplies checks errors within a reply whose status is that of success, and replies in
// another format.
func TestBrokenReplies(t *testing.T) {
	const begun = `{"model":"m","choices":[{"index":0,"delta":{"content":"Par"}}]}`
	tests := []struct {
		name, body string
		kind       llm.ErrorKind
		words      string
	}{
		{"ends early", stream(begun), llm.BrokeOff, ""},
		{"ends in the middle of an event", stream(begun) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, llm.BrokeOff, ""},
		{"nothing", "", llm.BrokeOff, ""},
		// OpenRouter, documentation "Streaming", "Mid-stream errors".
		{"OpenRouter", stream(begun, `{"id":"cmpl-abc123","object":"chat.completion.chunk","created":1234567890,"model":"gpt-3.5-turbo","provider":"openai","error":{"code":"server_error","message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), llm.ServerError, "Provider disconnected unexpectedly"},
		{"OpenRouter, by status", stream(begun, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"too many tokens","provider_name":"x"}},"choices":[]}`), llm.RateLimited, "Provider returned error: too many tokens"},
		{"OpenRouter, in the choice", stream(begun, `{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}`), llm.ServerError, "upstream"},
		{"OpenRouter, not saying", stream(begun, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), llm.ServerError, "failed during the reply"},
		// OpenRouter, documentation "Errors and Debugging": the status is 200 if the model had
		// begun.
		{"OpenRouter, whole", `{"error":{"code":402,"message":"Insufficient credits"},"user_id":"u"}`, llm.NoQuota, "Insufficient credits"},
		// vLLM, create_streaming_error_response, before and since version 0.10.
		{"vLLM", stream(begun, `{"object":"error","message":"the engine died","type":"InternalServerError","param":null,"code":500}`, `[DONE]`), llm.ServerError, "the engine died"},
		{"vLLM, since 0.10", stream(begun, `{"error":{"message":"the engine died","type":"InternalServerError","param":null,"code":500}}`, `[DONE]`), llm.ServerError, "the engine died"},
		// lmstudio-ai/lmstudio-bug-tracker issue 2322: an error event reports a prompt that does
		// not fit, in a reply whose status is 200.
		{"LM Studio", "event: error\n" + stream(`{"error":{"message":"Trying to keep the first 6547 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}}`), llm.TooLong, "6547"},
		{"LM Studio, a text", "event: error\n" + stream(`{"error":"The model has crashed"}`), llm.ServerError, "crashed"},
		{"an error event in other words", "event: error\n" + stream(`{"code":null,"reason":"out of luck"}`), llm.ServerError, "out of luck"},
		// llama.cpp, tools/server: an error during a stream.
		{"llama.cpp", stream(begun, `{"error":{"code":500,"message":"slot unavailable","type":"server_error"}}`), llm.ServerError, "slot"},
		// Microsoft Learn, "Content filtering": the filter ends a stream.
		{"Azure", stream(begun, `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter","content_filter_results":{"violence":{"filtered":true,"severity":"high"}}}]}`, `[DONE]`), llm.Filtered, "filter"},
		{"no JSON", stream(begun, `Internal Server Error`), llm.BadReply, ""},
		{"no choices", `{"object":"chat.completion","choices":[]}`, llm.BadReply, ""},
		{"JSON that is cut", `{"object":"chat.completion","choi`, llm.BrokeOff, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind := "text/event-stream"
			if strings.HasPrefix(test.body, "{") {
				kind = "application/json"
			}
			p := provider(t, openai.Config{BaseURL: serve(t, always(200, kind, test.body)), Stream: true})
			_, err := p.Model("m").Generate(t.Context(), request(), nil)
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != test.kind || !strings.Contains(e.Message, test.words) || e.Usage.Calls != 1 {
				t.Fatalf("%v (%+v), want the kind %q and the words %q", err, e, test.kind, test.words)
			}
			if strings.Contains(test.body, "Par\"") && (e.Usage.InputTokens == 0 || e.Usage.OutputTokens == 0) {
				t.Errorf("usage %+v, want that of what was said", e.Usage)
			}
			if e.Model != "openai/m" || !errors.Is(err, assay.ErrUnavailable) {
				t.Errorf("%v is of %q", err, e.Model)
			}
		})
	}
}

// TestFailures checks the statuses and bodies with which servers reject a request.
func TestFailures(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		kind   llm.ErrorKind
		words  string
	}{
		// OpenAI, guide "Error codes".
		{"quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, llm.NoQuota, "quota"},
		{"rate", 429, `{"error":{"message":"Rate limit reached for gpt-4.1 in organization org-x on tokens per min (TPM)","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, llm.RateLimited, "TPM"},
		{"length", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, llm.TooLong, "8192"},
		{"model", 404, `{"error":{"message":"The model 'gpt-9' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, llm.NoModel, "gpt-9"},
		{"key", 401, `{"error":{"message":"Incorrect API key provided: sk-proj-********************abcd.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, llm.BadKey, "Incorrect API key"},
		{"usage policy", 400, `{"error":{"message":"Invalid prompt: your prompt was flagged","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}`, llm.Filtered, "flagged"},
		{"region", 403, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`, llm.BadKey, "Country"},
		// Microsoft Learn and openai/openai-dotnet issue 55.
		{"Azure, filter", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"jailbreak":{"filtered":true,"detected":true}}}}}`, llm.Filtered, "policy"},
		{"Azure, deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, llm.NoModel, "deployment"},
		{"Azure, path", 404, `{"error":{"code":"404","message":"Resource not found"}}`, llm.BadRequest, "base URL"},
		// Ollama, openai/openai.go, NewError.
		{"Ollama, model", 404, `{"error":{"message":"model \"llama9\" not found, try pulling it first","type":"not_found_error","param":null,"code":null}}`, llm.NoModel, "pulling"},
		{"Ollama, path", 404, `404 page not found`, llm.BadRequest, "base URL"},
		{"Ollama, native", 500, `{"error":"llama runner process has terminated"}`, llm.ServerError, "terminated"},
		{"Ollama, embeddings", 400, `{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}`, llm.TooLong, "length"},
		// vLLM, ErrorResponse.
		{"vLLM, length", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}`, llm.TooLong, "4096"},
		{"vLLM, model", 404, `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`, llm.NoModel, "exist"},
		{"vLLM, key", 401, `{"error":"Unauthorized"}`, llm.BadKey, "Unauthorized"},
		{"FastAPI", 422, `{"detail":[{"loc":["body","model"],"msg":"Field required","type":"missing"}]}`, llm.BadRequest, "Field required"},
		// OpenRouter, "Errors and Debugging".
		{"OpenRouter, credits", 402, `{"error":{"message":"Insufficient credits","code":402}}`, llm.NoQuota, "credits"},
		{"OpenRouter, moderation", 403, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x","provider_name":"OpenAI"}}}`, llm.Filtered, "flagged"},
		{"OpenRouter, no provider", 503, `{"error":{"code":503,"message":"No provider available"}}`, llm.Overloaded, "No provider"},
		{"a proxy", 502, `<html><body>Bad Gateway</body></html>`, llm.ServerError, "Bad Gateway"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkRefused(t, always(test.status, "application/json", test.body), test.kind, test.status, test.words)
		})
	}
	t.Run("llama.cpp, length", func(t *testing.T) {
		checkRefused(t, recorded(t, "llamacpp/overflow.http"), llm.TooLong, 400, "3018")
	})
	t.Run("llama.cpp, path", func(t *testing.T) {
		checkRefused(t, recorded(t, "llamacpp/notfound.http"), llm.BadRequest, 404, "base URL")
	})
}

func checkRefused(t *testing.T, reply func(*http.Request, []byte) (int, string, string), kind llm.ErrorKind, status int, words string) {
	t.Helper()
	p := provider(t, openai.Config{BaseURL: serve(t, reply)})
	_, err := p.Model("m").Generate(t.Context(), request(), nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != kind || e.Status != status || !strings.Contains(e.Message, words) {
		t.Fatalf("%v, want the kind %q, the status %d and the words %q", err, kind, status, words)
	}
	if strings.Contains(e.Message, "abcd") {
		t.Errorf("the message holds a part of a key: %s", e.Message)
	}
}

// TestLearnsWhatAModelRefuses checks that a parameter that a model rejects is omitted from the next
// request, and that the error is temporary, so that the request is retried.
func TestLearnsWhatAModelRefuses(t *testing.T) {
	var bodies []string
	base := serve(t, func(_ *http.Request, body []byte) (int, string, string) {
		bodies = append(bodies, string(body))
		// Both in OpenAI's wording.
		for parameter, words := range map[string]string{
			"temperature": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
			"max_tokens":  "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		} {
			if bytes.Contains(body, []byte(`"`+parameter+`"`)) {
				return 400, "application/json", `{"error":{"message":"` + words + `","type":"invalid_request_error","param":"` + parameter + `","code":"unsupported_value"}}`
			}
		}
		return 200, "application/json", `{"choices":[{"message":{"content":"Paris"},"finish_reason":"stop"}]}`
	})
	m := provider(t, openai.Config{BaseURL: base}).Model("my-deployment")
	for range 2 {
		_, err := m.Generate(t.Context(), request(), nil)
		if e, ok := errors.AsType[*llm.Error](err); !ok || !e.Kind.Temporary() || e.Status != 400 {
			t.Fatalf("%v, want a temporary error", err)
		}
	}
	if r, err := m.Generate(t.Context(), request(), nil); err != nil || r.Text != "Paris" {
		t.Fatalf("%q, %v", r.Text, err)
	}
	if last := bodies[2]; len(bodies) != 3 || strings.Contains(last, "temperature") || !strings.Contains(last, `"max_completion_tokens":100`) {
		t.Errorf("%d requests, the last %s", len(bodies), last)
	}
}

// TestCancelled checks that a reply is not read after its context ended.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := provider(t, openai.Config{BaseURL: serve(t, always(200, "text/event-stream", stream(
		`{"choices":[{"index":0,"delta":{"content":"Pa"}}]}`, `{"choices":[{"index":0,"delta":{"content":"ris"},"finish_reason":"stop"}]}`, `[DONE]`))), Stream: true})
	_, err := p.Model("m").Generate(ctx, request(), func(llm.Delta) { cancel() })
	if _, ok := errors.AsType[*llm.Error](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
