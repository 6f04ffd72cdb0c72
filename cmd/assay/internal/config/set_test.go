package config

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/openai"
	"github.com/assay-rag/assay/role"
)

// lists starts a server that only lists models, and returns its URL.
func lists(t *testing.T, reply string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, reply)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestModels(t *testing.T) {
	c := mustLoad(t, `
large: openai/gpt-6.1-sol
small: anthropic/claude-haiku-5-5
verifier: gemini/gemini-3.8-flash
rerank: cohere/rerank-v4.0-fast
roles: {planner: local, generator_small: openai/gpt-6-luna, judge: openai/gpt-6-luna}
models: {openai/gpt-6.1-sol: {input_price: 2, output_price: 10, cached_price: 0.2}}
`, env{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "COHERE_API_KEY": "k"})
	m, err := c.Open().Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{role.GeneratorRole: "openai/gpt-6.1-sol", role.GraderRole: "anthropic/claude-haiku-5-5", role.VerifierRole: "gemini/gemini-3.8-flash", role.JudgeRole: "openai/gpt-6-luna"} {
		if got := m.Roles[name].Model(); got != want {
			t.Errorf("the %s is %s, want %s", name, got, want)
		}
	}
	if m.Small == nil || m.Small.Model() != "openai/gpt-6-luna" || m.Roles[smallGenerator] != nil {
		t.Errorf("what is simple is written by %v", m.Small)
	}
	if _, ok := m.Roles[role.PlannerRole]; ok || m.Verifier != nil || m.Reranker == nil {
		t.Errorf("the planner has a model, or the verifier is a service, or there is no reranker: %+v", m)
	}
	if f := llm.FactsOf(m.Roles[role.GeneratorRole]); !f.Priced || f.Output != 10_000_000 || f.Cached != 200_000 || f.Window != 1_050_000 {
		t.Errorf("facts of the generator: %+v", f)
	}
	if _, ok := m.Reranker.(llm.Described); !ok {
		t.Error("the reranker is not taken for a service")
	}
}

// TestModelsVerifier checks that the small model verifies by default and that verifier: local uses
// no model.
func TestModelsVerifier(t *testing.T) {
	for file, want := range map[string]string{
		"large: openai/a\nsmall: openai/b\n":                     "openai/b",
		"large: openai/a\n":                                      "openai/a",
		"large: openai/a\nsmall: openai/b\nverifier: local\n":    "",
		"large: openai/a\nroles: {generator: local}\n":           "",
		"large: openai/a\nsmall: openai/b\nverifier: openai/a\n": "openai/a",
	} {
		m, err := mustLoad(t, file, env{"OPENAI_API_KEY": "k"}).Open().Models(t.Context())
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		got := ""
		if v := m.Roles[role.VerifierRole]; v != nil {
			got = v.Model()
		}
		if got != want || m.LocalVerifier != (want == "") {
			t.Errorf("%q: the verifier is %q, local %v; want %q", file, got, m.LocalVerifier, want)
		}
	}
}

func TestGuardrailVerifies(t *testing.T) {
	c := mustLoad(t, "verifier: bedrock/guardrail\nproviders: {bedrock: {aws: {region: eu-central-1, guardrail: {id: gr1a2b3c4d5e, version: '3'}}}}\n", nil)
	m, err := c.Open().Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := m.Verifier.(ground.Service); !ok || s.Model() != "bedrock/guardrail/gr1a2b3c4d5e:3" {
		t.Errorf("the verifier is %+v", m.Verifier)
	}
}

// TestDiscovery checks the choice of a model from those that a server lists. Models that do not
// write text are skipped.
func TestDiscovery(t *testing.T) {
	tests := []struct {
		name, reply, model string
		window             int
		kind               llm.ErrorKind
	}{
		{"the only one", `{"data":[{"id":"tinyllama","meta":{"n_ctx":2048}}]}`, "openai/tinyllama", 2048, ""},
		{"the first that writes", `{"data":[{"id":"nomic-embed-text"},{"id":"bge-reranker"},{"id":"qwen3:4b"},{"id":"llama3.2"}]}`, "openai/qwen3:4b", 0, ""},
		{"none", `{"data":[]}`, "openai", 0, llm.NoModel},
		{"none that writes", `{"data":[{"id":"nomic-embed-text"}]}`, "openai", 0, llm.NoModel},
		{"no list", `{`, "openai", 0, llm.BrokeOff},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mustLoad(t, "", env{"OPENAI_BASE_URL": lists(t, test.reply)})
			m, err := c.Open().Models(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			model := m.Roles[role.GeneratorRole]
			if model.Model() != test.model || llm.FactsOf(model).Window != test.window {
				t.Errorf("the generator is %s with a window of %d, want %s with %d", model.Model(), llm.FactsOf(model).Window, test.model, test.window)
			}
			if test.kind == "" {
				return
			}
			// Each call returns the error, so that the answer reports it.
			_, err = model.Generate(t.Context(), llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "x"}}, MaxTokens: 1, Attempts: 1}, nil)
			if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Kind != test.kind || failed.Model != "openai" {
				t.Errorf("Generate = %v, want a failure of the kind %q", err, test.kind)
			}
		})
	}
}

// TestWindowOfANamedModel checks that the window that a server lists also applies to a model that
// is named.
func TestWindowOfANamedModel(t *testing.T) {
	url := lists(t, `{"data":[{"id":"a","meta":{"n_ctx":2048}},{"id":"b","meta":{"n_ctx":4096}}]}`)
	for file, want := range map[string]int{"": 4096, "models: {openai/b: {window: 100}}": 100} {
		m, err := mustLoad(t, file, env{"OPENAI_BASE_URL": url, "ASSAY_MODEL": "openai/b"}).Open().Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := llm.FactsOf(m.Roles[role.GeneratorRole]).Window; got != want {
			t.Errorf("with %q its window is %d, want %d", file, got, want)
		}
	}
}

// TestTooManyModels checks that no model is chosen from a server that lists hundreds.
func TestTooManyModels(t *testing.T) {
	var models []string
	for i := range 300 {
		models = append(models, fmt.Sprintf(`{"id":"vendor/model-%d"}`, i))
	}
	c := mustLoad(t, "", env{"OPENAI_BASE_URL": lists(t, `{"data":[`+strings.Join(models, ",")+`]}`)})
	_, err := c.Open().Models(t.Context())
	if found, ok := errors.AsType[*Error](err); !ok || !strings.Contains(found.Detail, "has 300 models") || !strings.Contains(found.Hint, "ASSAY_MODEL=openai/vendor/model-0") {
		t.Errorf("Models = %v", err)
	}
}

// TestUnlistedWindow checks that a server is asked once for the window of a model that it lists
// without one, and that a server that stalls or fails does not prevent an answer.
func TestUnlistedWindow(t *testing.T) {
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"q"},{"id":"r","max_model_len":4096}]}`)
		case "/props":
			fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":2048}}`)
		case "/v1beta/models", "/v1beta/v1/models":
			fmt.Fprint(w, `{"models":[{"name":"models/gemini-9","inputTokenLimit":5000,"supportedGenerationMethods":["generateContent"]}]}`)
		default:
			w.WriteHeader(500)
		}
	}))
	defer server.Close()
	set := mustLoad(t, "providers: {gemini: {base_url: '"+server.URL+"'}, anthropic: {base_url: '"+server.URL+"/failing'}}", env{"OPENAI_BASE_URL": server.URL + "/v1"}).Open()
	tests := []struct {
		provider, model string
		want            int
	}{
		{"openai", "q", 2048}, {"openai", "q", 2048}, {"openai", "r", 4096}, {"gemini", "gemini-9", 5000}, {"anthropic", "claude-9", 0},
	}
	for _, test := range tests {
		m, err := set.Model(t.Context(), Choice{Provider: test.provider, Model: test.model})
		if err != nil {
			t.Fatal(err)
		}
		if got := llm.FactsOf(m).Window; got != test.want {
			t.Errorf("the window of %s/%s is %d, want %d", test.provider, test.model, got, test.want)
		}
	}
	if asked["/v1/models"] != 1 || asked["/props"] != 1 {
		t.Errorf("requests: %v, want one for the list and one for the window", asked)
	}
}

// TestOllamaWindow checks that Ollama models have its default window, since Ollama truncates
// silently.
func TestOllamaWindow(t *testing.T) {
	url := lists(t, `{"data":[{"id":"llama3.2"}]}`)
	for text, want := range map[string]int{"": openai.OllamaWindow, "models: {ollama/llama3.2: {window: 32768}}": 32768} {
		m, err := mustLoad(t, text, env{"OLLAMA_HOST": url}).Open().Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := llm.FactsOf(m.Roles[role.GeneratorRole]).Window; got != want {
			t.Errorf("with %q its window is %d, want %d", text, got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	tests := []struct {
		name, file string
		env        env
		want, hint string
	}{
		{"no key", "", env{"ASSAY_MODEL": "anthropic"}, "the environment: anthropic has no key", "set ANTHROPIC_API_KEY"},
		{"no key of a role", "large: openai\nroles: {judge: gemini/gemini-3.8-flash}", env{"OPENAI_API_KEY": "k"}, "gemini has no key", "GEMINI_API_KEY"},
		{"a variable that is not set", "large: openai\nproviders: {openai: {key_env: MINE}}", nil, "config.yaml:2: providers.openai.key_env: the variable \"MINE\" is not set", "set it"},
		{"a variable that is not set, for a server of one's own", "providers: {lab: {type: openai, base_url: 'http://localhost:1/v1', key_env: MINE}}\nlarge: lab/x", nil, "config.yaml:1: providers.lab.key_env", "set it"},
		{"a header's variable", "large: openai/x\nproviders:\n  openai:\n    headers_env: {X-A: NOT_SET}\n", env{"OPENAI_API_KEY": "k"}, "\"NOT_SET\" is not set", "remove the header"},
		{"a key of two lines", "large: openai", env{"OPENAI_API_KEY": "a\nb"}, "OPENAI_API_KEY: the key contains a line break", "one line"},
		{"no rerankers", "rerank: openai/x", env{"OPENAI_API_KEY": "k"}, "rerank: openai does not offer rerankers", "cohere"},
		{"no chat", "large: cohere/command", env{"COHERE_API_KEY": "k"}, "cohere serves no language models", "another"},
		{"no domain file", "domain: nowhere.md", nil, "nowhere.md\": no such file", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := load(t, test.file, test.env)
			if err == nil {
				_, err = c.Open().Models(t.Context())
			}
			found, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(found.Error(), test.want) || !strings.Contains(found.Hint, test.hint) {
				t.Errorf("Models = %v (%+v), want %q and the hint %q", err, found, test.want, test.hint)
			}
		})
	}
	// A self-hosted server needs no key, and neither does one with an authorization header.
	for _, text := range []string{"large: openai/x\nproviders: {openai: {base_url: 'http://localhost:1/v1'}}", "large: anthropic\nproviders: {anthropic: {headers_env: {Authorization: AUTH}}}"} {
		if _, err := mustLoad(t, text, env{"AUTH": "Bearer x"}).Open().Models(t.Context()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestEncoders checks that an encoder's name contains the settings that its vectors depend on.
func TestEncoders(t *testing.T) {
	c := mustLoad(t, `
embedding: openai/text-embedding-3-small
models:
  openai/text-embedding-3-large: {dimensions: 256}
  ollama/nomic-embed-text: {query_prefix: "search_query: ", passage_prefix: "search_document: "}
`, env{"OPENAI_API_KEY": "k"})
	for model, want := range map[string]string{
		"openai/text-embedding-3-small": "openai/text-embedding-3-small",
		"openai/text-embedding-3-large": "openai/text-embedding-3-large/256",
		"ollama/nomic-embed-text":       "ollama/nomic-embed-text@e4c6b6ce",
	} {
		got := c.EncoderName(model)
		if strings.Contains(want, "@") {
			got, want = got[:strings.Index(got, "@")+1], want[:strings.Index(want, "@")+1]
		}
		if got != want {
			t.Errorf("EncoderName(%s) = %s, want %s", model, got, want)
		}
	}
	if got := c.DefaultEncoder(); got != "openai/text-embedding-3-small" {
		t.Errorf("the default encoder is %s", got)
	}
	set := c.Open()
	for _, name := range []string{"openai/text-embedding-3-small", "openai/text-embedding-3-large/256", "openai/text-embedding-3-large/512"} {
		e, err := set.Encoder(t.Context(), name)
		if err != nil || e.Model() != name {
			t.Errorf("Encoder(%s) = %v, %v", name, e, err)
			continue
		}
		if _, ok := e.(llm.TokenCounter); !ok {
			t.Errorf("the encoder %s does not count tokens, and cannot divide what is too long", name)
		}
		if _, ok := e.(llm.Described); !ok {
			t.Errorf("the encoder %s is not taken for a service", name)
		}
	}
	if _, err := set.Encoder(t.Context(), "ollama/nomic-embed-text@00000000"); err == nil || !strings.Contains(err.Error(), "other prefixes") {
		t.Errorf("with other prefixes: %v", err)
	}
	if _, err := set.Encoder(t.Context(), "nobody/x"); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("of nobody: %v", err)
	}
}

// TestAdvice checks that the advice of a check matches the error.
func TestAdvice(t *testing.T) {
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"data":[{"id":"gpt-6-luna"},{"id":"gpt-6.1-sol"}]}`)
			return
		}
		w.WriteHeader(status)
		switch status {
		case 200:
			fmt.Fprint(w, "<html>a page</html>")
		case 404:
			fmt.Fprint(w, `{"error":{"message":"so it is","code":"model_not_found"}}`)
		default:
			fmt.Fprint(w, `{"error":{"message":"so it is"}}`)
		}
	}))
	defer server.Close()
	tests := []struct {
		status       int
		detail, hint string
	}{
		{401, "rejects the key from OPENAI_API_KEY: so it is", "valid and of this provider"},
		{404, `has no model "gpt-6-lunar"`, "available: gpt-6-luna"},
		{429, "rate limit exceeded", "limits under providers.openai"},
		{500, "the provider failed", "try again later"},
		{200, "does not reply in the format of openai", "base_url"},
	}
	for _, test := range tests {
		status = test.status
		c := mustLoad(t, "", env{"OPENAI_BASE_URL": server.URL + "/v1", "OPENAI_API_KEY": canary, "ASSAY_MODEL": "openai/gpt-6-lunar"})
		for _, check := range c.Open().Check(t.Context(), false) {
			if check.Name != "model" {
				continue
			}
			if check.OK || !strings.Contains(check.Detail, test.detail) || !strings.Contains(check.Hint, test.hint) || strings.Contains(check.Detail+check.Hint, canary) {
				t.Errorf("HTTP %d: %+v, want %q and the hint %q", test.status, check, test.detail, test.hint)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := mustLoad(t, "", env{"OPENAI_BASE_URL": server.URL + "/v1"})
	for _, check := range c.Open().Check(ctx, false) {
		if check.Name == "model" && check.OK {
			t.Errorf("after the end of the context: %+v", check)
		}
	}
}
