package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/role"
)

// env is a set of environment variables.
type env map[string]string

func (e env) get(name string) string { return e[name] }

// load loads a configuration from the text of a file and from variables. If text is empty, there is
// no file.
func load(t *testing.T, text string, e env) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	if text != "" {
		path := filepath.Join(dir, "assay", "config.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(Sources{Getenv: e.get, UserDir: func() (string, error) { return dir, nil }})
}

func mustLoad(t *testing.T, text string, e env) *Config {
	t.Helper()
	c, err := load(t, text, e)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDefaults checks which models are used, by file and environment.
func TestDefaults(t *testing.T) {
	tests := []struct {
		name         string
		env          env
		file         string
		large, small string
	}{
		{"nothing", nil, "", "local", "local"},
		{"OpenAI", env{"OPENAI_API_KEY": "k"}, "", "openai/gpt-6.1-sol", "openai/gpt-6-luna"},
		{"Anthropic", env{"ANTHROPIC_API_KEY": "k"}, "", "anthropic/claude-sonnet-5-5", "anthropic/claude-haiku-5-5"},
		{"Gemini", env{"GEMINI_API_KEY": "k"}, "", "gemini/gemini-3.8-flash", "gemini/gemini-3.5-flash-lite"},
		{"Ollama", env{"OLLAMA_HOST": "localhost"}, "", "ollama", "ollama"},
		{"a compatible server", env{"OPENAI_BASE_URL": "http://localhost:8080/v1"}, "", "openai", "openai"},
		{"OpenAI's own URL", env{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.openai.com/v1/"}, "", "openai/gpt-6.1-sol", "openai/gpt-6-luna"},
		{"AWS alone", env{"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, "", "local", "local"},
		{"Bedrock", env{"ASSAY_MODEL": "bedrock"}, "", "bedrock/global.amazon.nova-2-lite-v1:0", "bedrock/global.amazon.nova-2-lite-v1:0"},
		{"the first of several", env{"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "", "anthropic/claude-sonnet-5-5", "anthropic/claude-haiku-5-5"},
		{"one that is named", env{"OPENAI_API_KEY": "k", "ASSAY_MODEL": "openai/gpt-5.6-sol"}, "", "openai/gpt-5.6-sol", "openai/gpt-5.6-sol"},
		{"a name with slashes", env{"ASSAY_MODEL": "ollama/hf.co/unsloth/x"}, "", "ollama/hf.co/unsloth/x", "ollama/hf.co/unsloth/x"},
		{"switched off", env{"OPENAI_API_KEY": "k", "ASSAY_MODEL": "local"}, "large: openai", "local", "local"},
		{"a file", env{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "large: openai", "openai/gpt-6.1-sol", "openai/gpt-6-luna"},
		{"a file with both", env{"OPENAI_API_KEY": "k"}, "large: anthropic\nsmall: openai/gpt-6-luna", "anthropic/claude-sonnet-5-5", "openai/gpt-6-luna"},
		{"a file's small provider", nil, "large: anthropic/claude-opus-5-5\nsmall: openai", "anthropic/claude-opus-5-5", "openai/gpt-6-luna"},
		{"the file's only provider", env{"OPENAI_API_KEY": "k"}, "providers: {lab: {type: openai, base_url: 'http://localhost:1/v1'}}", "lab", "lab"},
		{"a variable over the file", env{"ASSAY_MODEL": "gemini"}, "large: openai\nroles: {planner: local}", "gemini/gemini-3.8-flash", "gemini/gemini-3.5-flash-lite"},
		{"a file without settings", env{"OPENAI_API_KEY": "k"}, "# nothing yet\n", "openai/gpt-6.1-sol", "openai/gpt-6-luna"},
		{"a provider without settings", env{"OPENAI_API_KEY": "k"}, "providers:\n  openai:\n", "openai/gpt-6.1-sol", "openai/gpt-6-luna"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mustLoad(t, test.file, test.env)
			got := [2]string{c.Roles[role.GeneratorRole].Name(), c.Roles[role.GraderRole].Name()}
			if want := [2]string{test.large, test.small}; got != want {
				t.Errorf("large and small are %q, want %q", got, want)
			}
			for name, choice := range c.Roles {
				if choice.Why == "" {
					t.Errorf("the %s is %s, and nothing says why", name, choice.Name())
				}
			}
			if c.Verifier.Name() != test.small || c.Verifier.Why == "" {
				t.Errorf("the verifier is %s (%s), want the small model", c.Verifier.Name(), c.Verifier.Why)
			}
			if !c.Embedding.IsLocal() || !c.Rerank.IsLocal() {
				t.Errorf("embedding %s, rerank %s; want them local", c.Embedding.Name(), c.Rerank.Name())
			}
		})
	}
}

// TestLocal checks that ASSAY_MODEL=local disables the same models as ask --local.
func TestLocal(t *testing.T) {
	c := mustLoad(t, "large: openai\nverifier: gemini/x\nrerank: cohere/y\nembedding: openai/z", env{"ASSAY_MODEL": "local"})
	if !c.Verifier.IsLocal() || !c.Rerank.IsLocal() || c.Embedding.IsLocal() {
		t.Errorf("verifier %s, reranker %s, embedding %s", c.Verifier.Name(), c.Rerank.Name(), c.Embedding.Name())
	}
}

// TestUnusedModels checks that a model in the file that no role uses causes a warning.
func TestUnusedModels(t *testing.T) {
	c := mustLoad(t, "large: openai/gpt-6-luna\nmodels:\n  openai/gpt-6-luna: {window: 1}\n  openai/gpt-6-lunar: {window: 1}\n  openai/e: {dimensions: 3}\n", nil)
	if got := c.unused(); len(got) != 1 || !strings.HasSuffix(got[0], "config.yaml:4: models.openai/gpt-6-lunar is not used by any role") {
		t.Errorf("unused: %q", got)
	}
}

func TestRoles(t *testing.T) {
	c := mustLoad(t, "large: anthropic\nroles:\n  planner: local\n  judge: openai/gpt-6.1-sol\n  verifier: gemini/gemini-3.8-flash\n", nil)
	for name, want := range map[string]string{
		role.PlannerRole: "local", role.JudgeRole: "openai/gpt-6.1-sol", role.GeneratorRole: "anthropic/claude-sonnet-5-5", role.GraderRole: "anthropic/claude-haiku-5-5",
	} {
		if got := c.Roles[name].Name(); got != want {
			t.Errorf("the %s is %s, want %s", name, got, want)
		}
	}
	if got := c.Verifier.Name(); got != "gemini/gemini-3.8-flash" {
		t.Errorf("the verifier is %s", got)
	}
	if got := c.Roles[role.JudgeRole].Why; !strings.HasPrefix(got, "roles.judge in ") || !strings.HasSuffix(got, "config.yaml:4") {
		t.Errorf("the judge is what it is because %q", got)
	}
}

// TestVerifier checks that a model verifies if a model writes, unless the file overrides that.
func TestVerifier(t *testing.T) {
	for _, tt := range []struct{ name, file, verifier string }{
		{"by default", "large: openai/a\nsmall: openai/b\n", "openai/b"},
		{"one model for all", "large: openai/a\n", "openai/a"},
		{"local", "large: openai/a\nverifier: local\n", "local"},
		{"a local role", "large: openai/a\nroles: {verifier: local}\n", "local"},
		{"the writer, named", "large: openai/a\nverifier: openai/a\n", "openai/a"},
		{"another", "large: openai/a\nroles: {verifier: gemini/c}\n", "gemini/c"},
		{"a local writer", "large: openai/a\nroles: {generator: local}\n", "local"},
		{"a writer alone", "large: local\nroles: {generator: openai/a}\n", "openai/a"},
	} {
		c := mustLoad(t, tt.file, nil)
		if v := c.Verifier; v.Name() != tt.verifier || v.Why == "" {
			t.Errorf("%s: verifier %s (%s), want %s", tt.name, v.Name(), v.Why, tt.verifier)
		}
	}
}

// TestSwitchedOff checks that ASSAY_MODEL=local disables all models except the encoder of
// questions.
func TestSwitchedOff(t *testing.T) {
	c := mustLoad(t, "large: openai\nverifier: gemini/gemini-3.8-flash\nrerank: cohere/rerank-v3.5\nembedding: cohere/embed-v4.0\n", env{"ASSAY_MODEL": "local"})
	for name, choice := range c.Roles {
		if !choice.IsLocal() {
			t.Errorf("the %s is %s", name, choice.Name())
		}
	}
	if !c.Verifier.IsLocal() || !c.Rerank.IsLocal() || c.Embedding.Name() != "cohere/embed-v4.0" {
		t.Errorf("verifier %s, rerank %s, embedding %s", c.Verifier.Name(), c.Rerank.Name(), c.Embedding.Name())
	}
}

// aliasBomb returns YAML that expands to 9^9 words.
func aliasBomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		text += fmt.Sprintf("a%d: &a%d [%s%s]\n", i, i, strings.Repeat(alias+", ", 8), alias)
	}
	return text
}

// TestErrors checks that errors name their line and suggest a remedy.
func TestErrors(t *testing.T) {
	tests := []struct {
		name, file string
		env        env
		line       int
		want, hint string
	}{
		{"no YAML", "large: [openai\n", nil, 1, "invalid YAML", "indentation"},
		{"a tab", "large:\n\topenai\n", nil, 2, "tabs are not allowed here", ""},
		{"an open bracket", "large: [a\nb: c\n", nil, 2, "a comma or a closing bracket is missing", ""},
		{"an open brace", "roles: {a: b\n", nil, 1, "a { is not closed", ""},
		{"nested aliases", aliasBomb(), nil, 0, "more than 16 aliases", ""},
		{"an unknown key", "large: openai\nproviders:\n  openai:\n    base_ulr: x\n", nil, 4, `unknown key "base_ulr"`, "did you mean base_url?"},
		{"a wrong type", "providers:\n  openai:\n    limits: {concurrency: many}\n", nil, 3, "got text, want a whole number", ""},
		{"a list for keys", "roles: [grader]\n", nil, 1, "", ""},
		{"a key twice", "large: openai\nlarge: gemini\n", nil, 2, "duplicate key", "keep one"},
		{"two documents", "large: openai\n---\nlarge: gemini\n", nil, 3, "second YAML document", "keep one"},
		{"an unknown provider", "large: opnai/gpt\n", nil, 1, `large: "opnai/gpt" does not name a configured provider`, "did you mean openai?"},
		{"an unknown role", "large: openai\nroles:\n  graader: openai\n", nil, 3, "roles.graader: unknown role", "did you mean grader?"},
		{"an unknown type", "providers:\n  x:\n    type: opeanai\n", nil, 3, `unknown type "opeanai"`, "the types are openai"},
		{"no type", "providers:\n  lab:\n    base_url: http://localhost/v1\n", nil, 2, "the type is missing", "add type: openai"},
		{"no URL", "providers:\n  openai:\n    base_url: api.openai.com\n", nil, 3, "it is not an http or https URL", ""},
		{"a password in the URL", "providers:\n  openai:\n    base_url: https://user:hunter2hunter2@x.example\n", nil, 3, "it contains a user name or a password", "headers_env"},
		{"a password in a variable's URL", "", env{"OPENAI_BASE_URL": "https://user:hunter2hunter2@x.example"}, 0, "OPENAI_BASE_URL: it contains a user name or a password", ""},
		{"OLLAMA_HOST", "", env{"OLLAMA_HOST": "http://u:hunter2hunter2@x"}, 0, "OLLAMA_HOST: ", ""},
		{"ASSAY_MODEL", "", env{"ASSAY_MODEL": "gpt-4"}, 0, `ASSAY_MODEL: "gpt-4" does not name a configured provider`, "PROVIDER/MODEL"},
		{"two keys", "providers:\n  openai: {key_env: A, key_file: b}\n", nil, 2, "the key is given more than once", "keep one"},
		{"a key as a name", "providers:\n  openai:\n    key_env: sk-hunter2hunter2\n", nil, 3, "want the name of an environment variable", "key_env: OPENAI_API_KEY"},
		{"a key as a model", "large: sk-proj-hunter2hunter2hunter2\n", nil, 1, "may be a key", ""},
		{"no key file", "providers:\n  openai: {key_file: nowhere}\n", nil, 2, "nowhere\": no such file", ""},
		{"a short duration", "providers:\n  openai:\n    timeout: 5\n", nil, 3, "want a duration", ""},
		{"a negative limit", "providers:\n  openai:\n    limits:\n      concurrency: -1\n", nil, 4, "must not be negative", ""},
		{"one price", "models:\n  openai/gpt-6-luna:\n    input_price: 1\n", nil, 2, "one of input_price and output_price is missing", "set both"},
		{"a cached price alone", "models:\n  openai/x: {cached_price: 1}\n", nil, 2, "cached_price, for input", "input_price"},
		{"a cached price above", "models:\n  openai/x: {input_price: 1, output_price: 2, cached_price: 1.5}\n", nil, 2, "between 0 and input_price", ""},
		{"a price that is none", "models:\n  openai/x: {input_price: -1, output_price: 1}\n", nil, 2, "a price, in your currency", ""},
		{"a model without provider", "models:\n  gpt: {window: 1}\n", nil, 2, "want PROVIDER/MODEL", ""},
		{"small alone", "small: openai\n", nil, 1, "a small model needs a large one", "large: PROVIDER/MODEL"},
		{"a small writer alone", "roles: {generator_small: openai/b, generator: local}\n", nil, 1, "needs a generator model", "large:"},
		{"no guardrail", "verifier: bedrock/guardrail\n", nil, 1, "has no guardrail", "aws.guardrail"},
		{"two verifiers", "verifier: local\nroles: {verifier: openai/a}\n", nil, 2, "conflicts with the key verifier", "keep one"},
		{"an embedding without model", "embedding: openai\n", nil, 1, "without a model", "openai/MODEL"},
		{"a provider that writes nothing", "large: cohere\n", nil, 0, "cohere serves no language models", ""},
		{"responses of another", "providers:\n  anthropic: {api: responses}\n", nil, 2, "responses", "type openai"},
		{"an Azure deployment", "large: az\nproviders:\n  az: {type: openai, base_url: 'https://r.openai.azure.com', azure: {api_version: x}}\n", nil, 0, "deployment", "large: az/DEPLOYMENT"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(t, test.file, test.env)
			found, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, assay.ErrInvalid) {
				t.Fatalf("Load = %v, want an *Error", err)
			}
			if !strings.Contains(found.Error(), test.want) || !strings.Contains(found.Hint, test.hint) || found.Line != test.line {
				t.Errorf("it says %q, hint %q; want line %d, %q, hint %q", found, found.Hint, test.line, test.want, test.hint)
			}
			if strings.Contains(found.Error()+found.Hint, "hunter2") {
				t.Errorf("it shows a credential: %q, %q", found, found.Hint)
			}
		})
	}
}

// TestMissingFile checks that a named file must exist, while the user's own is optional.
func TestMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	for name, s := range map[string]Sources{
		"--config":      {File: missing, Getenv: env{}.get},
		"$ASSAY_CONFIG": {Getenv: env{"ASSAY_CONFIG": missing}.get},
	} {
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), missing+": cannot read it: no such file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	noHome := Sources{Getenv: env{}.get, UserDir: func() (string, error) { return "", errors.New("no home") }}
	if c, err := Load(noHome); err != nil || c.Path != "" {
		t.Errorf("without a home: %v", err)
	}
}

func TestOllamaURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "http://127.0.0.1:11434/v1",
		"localhost":                  "http://localhost:11434/v1",
		"0.0.0.0":                    "http://127.0.0.1:11434/v1",
		"0.0.0.0:1234":               "http://127.0.0.1:1234/v1",
		":1234":                      "http://127.0.0.1:1234/v1",
		"http://gpu:11434":           "http://gpu:11434/v1",
		"http://gpu:11434/":          "http://gpu:11434/v1",
		"http://gpu:11434/v1":        "http://gpu:11434/v1",
		"https://ollama.example":     "https://ollama.example:443/v1",
		"https://proxy.example/oll/": "https://proxy.example:443/oll/v1",
		"[::1]:11434":                "http://[::1]:11434/v1",
		"::1":                        "http://[::1]:11434/v1",
	} {
		if got := ollamaURL(in); got != want {
			t.Errorf("ollamaURL(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestKeys checks that a vendor's key is sent only to the vendor, unless the file configures
// another endpoint for it.
func TestKeys(t *testing.T) {
	e := env{"OPENAI_API_KEY": "k-openai", "LAB": "k-lab"}
	tests := []struct{ name, file, provider, key, from string }{
		{"the vendor's", "", "openai", "k-openai", "OPENAI_API_KEY"},
		{"another URL", "providers: {openai: {base_url: 'http://localhost/v1'}}", "openai", "", ""},
		{"another URL with the key", "providers: {openai: {base_url: 'https://x.example/v1', key_env: OPENAI_API_KEY}}", "openai", "k-openai", "OPENAI_API_KEY"},
		{"another provider", "providers: {lab: {type: openai, base_url: 'http://localhost/v1'}}", "lab", "", ""},
		{"another key", "providers: {openai: {key_env: LAB}}", "openai", "k-lab", "LAB"},
		{"a variable that is not set", "providers: {openai: {key_env: NOT_SET}}", "openai", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mustLoad(t, test.file, e).Providers[test.provider]
			if p.Key.Reveal() != test.key || p.Key.From != test.from {
				t.Errorf("its key is %q from %q, want %q from %q", p.Key.Reveal(), p.Key.From, test.key, test.from)
			}
		})
	}
}

func TestKeyFileAndWarnings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("key", "hunter2hunter2\n", 0o600)
	path := write("config.yaml", "providers:\n  a: {type: openai, base_url: 'http://model.example/v1', key_file: key}\n  b: {type: openai, key: !command 'echo plainhunter2'}\n  c: {type: openai, key: !env C_KEY}\n", 0o644)
	c, err := Load(Sources{File: path, Getenv: env{"C_KEY": "envhunter2"}.get})
	if err != nil {
		t.Fatal(err)
	}
	if k := c.Providers["c"].Key; k.Reveal() != "envhunter2" {
		t.Errorf("the key of c is %q from %q", k.Reveal(), k.From)
	}
	if _, err := c.Open().endpoint("b"); err != nil || c.Providers["b"].Key.Reveal() != "plainhunter2" {
		t.Errorf("the key of b is from %q, %v", c.Providers["b"].Key.From, err)
	}
	if k := c.Providers["a"].Key; k.Reveal() != "hunter2hunter2" || k.From != "key_file "+filepath.Join(dir, "key") {
		t.Errorf("the key of a is %q from %q", k.Reveal(), k.From)
	}
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"plain HTTP at model.example", "without choosing one"} {
		if !strings.Contains(all, want) {
			t.Errorf("the warnings are\n%s\nwant %q", all, want)
		}
	}
	if got := c.Secrets.Scrub("a hunter2hunter2 b plainhunter2 c"); got != "a [secret] b [secret] c" {
		t.Errorf("scrubbed: %q", got)
	}
}

// TestDocumentedExample checks that the documented example is complete and valid.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "models.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/models.md has no example")
	}
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "anthropic")
	if err := os.WriteFile(keyFile, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/run/secrets/anthropic", keyFile, "/run/secrets/assay-database", keyFile).Replace(string(m[1]))
	c := mustLoad(t, text, env{"LAB_GATEWAY_TOKEN": "t", "OPENAI_API_KEY": "k", "LAB_KEY": "k"})
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
	for _, key := range keys(reflect.TypeFor[file]()) {
		elsewhere := append(keys(reflect.TypeFor[fileStrategies]()), keys(reflect.TypeFor[fileRetrieval]())...)
		if key == strategiesKey || key == retrievalKey || slices.Contains(elsewhere, key) {
			continue // documented in docs/operations.md
		}
		if key == "identity" || slices.Contains(keys(reflect.TypeFor[fileIdentity]()), key) {
			continue // documented in docs/identity.md, see TestIdentityExample
		}
		if slices.Contains(keys(reflect.TypeFor[fileTelemetry]()), key) {
			continue // documented in docs/telemetry.md, see TestTelemetryExample
		}
		if key == "server" || slices.Contains(keys(reflect.TypeFor[fileServer]()), key) {
			continue // documented in docs/operations.md, see TestDocumentedServer
		}
		if key == "graph" || slices.Contains(keys(reflect.TypeFor[fileGraph]()), key) || slices.Contains(keys(reflect.TypeFor[fileIndex]()), key) {
			continue // documented in docs/scale.md, see TestScaleExamples
		}
		if key == "redis" || key == "services" || slices.Contains(keys(reflect.TypeFor[fileService]()), key) {
			continue // documented in docs/scale.md
		}
		if !regexp.MustCompile(`(?m)(^|[\s{#])` + key + `:`).MatchString(text) {
			t.Errorf("the example does not have %s", key)
		}
	}
	openai := c.Providers["openai"]
	if diff := cmp.Diff(Limits{4, 500, 200000}, openai.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if openai.Timeout != time.Minute || openai.API != "chat" || !openai.Stream {
		t.Errorf("openai: %+v", openai)
	}
	f := c.Facts("openai", "gpt-6-luna")
	if !f.Priced || f.Input != 100_000 || f.Output != 500_000 || f.Window != 1_050_000 {
		t.Errorf("facts of gpt-6-luna: %+v", f)
	}
	if a := c.Providers["bedrock"].AWS; a.GuardrailID != "gr1a2b3c4d5e" || a.Region != "eu-central-1" || len(a.Agents) != 1 {
		t.Errorf("bedrock: %+v", a)
	}
}

// TestDocumentedDefaults checks the documented table of default models.
func TestDocumentedDefaults(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "models.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range kinds {
		if k.large == "" {
			continue
		}
		small := k.small
		if small == k.large {
			small = "the same"
		}
		if row := "| " + name + " | " + k.large + " | " + small + " |"; !strings.Contains(string(data), row) {
			t.Errorf("docs/models.md does not have the row %q", row)
		}
		for _, m := range []string{k.large, k.small} {
			if facts[m].Window == 0 || facts[m].MaxOutput == 0 {
				t.Errorf("the sizes of %s are not known", m)
			}
		}
	}
}

// FuzzParse checks that any file is read or rejected with a line, and that its text is never shown.
func FuzzParse(f *testing.F) {
	f.Add([]byte("large: openai\nroles: {grader: local}\n"))
	f.Add([]byte("providers:\n  openai:\n    key: \"hunter2\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("models: {x/y: {window: 99999999999999999999}}"))
	f.Add([]byte("? {}\n: x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("f.yaml", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("parse = %v, %v", c, err)
		}
		if err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Fatalf("parse: %v", err)
		}
	})
}

// TestEveryRoleHasAModel checks that each role that a model can do has a default model and can be
// configured.
func TestEveryRoleHasAModel(t *testing.T) {
	chosen := slices.Concat(largeRoles, smallRoles, []string{role.VerifierRole, smallGenerator})
	for _, name := range slices.Concat(engine.RoleNames(), []string{smallGenerator}) {
		if !slices.Contains(chosen, name) {
			t.Errorf("no model does the role %s", name)
		}
		if !slices.Contains(roleOrder, name) {
			t.Errorf("doctor does not list the role %s", name)
		}
	}
}
