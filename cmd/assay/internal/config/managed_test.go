package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
	"github.com/assay-rag/assay/strategy"
)

// awsOfThisTest isolates the SDK from the developer's own AWS configuration.
func awsOfThisTest(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDOFTHISTEST", "AWS_SECRET_ACCESS_KEY": "secret-of-this-test", "AWS_SESSION_TOKEN": "", "AWS_REGION": "eu-west-1", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true", "AWS_BEARER_TOKEN_BEDROCK": "",
	} {
		t.Setenv(name, value)
	}
}

const managedFile = `
providers:
  bedrock:
    base_url: URL
managed:
  knowledge_base: ABCDEFGHIJ
  model: arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0
  collection: handbook
  max_tokens: 300
  passages: 7
  open_to: ["user:ann"]
`

// TestManagedAnswer checks an answer of a knowledge base.
func TestManagedAnswer(t *testing.T) {
	awsOfThisTest(t)
	const text = "Everybody has thirty days of leave. More is not said."
	words := text[:strings.Index(text, " More")]
	h := &llmtest.Canned{Type: "application/json", Repeat: true, Replies: []string{string(llmtest.JSON(map[string]any{
		"sessionId": "s", "output": map[string]any{"text": text},
		"citations": []any{map[string]any{
			"generatedResponsePart": map[string]any{"textResponsePart": map[string]any{"text": words, "span": map[string]any{"start": 0, "end": len(words) - 1}}},
			"retrievedReferences":   []any{map[string]any{"content": map[string]any{"text": "Everybody has thirty days of leave.", "type": "TEXT"}, "location": bedrocktest.S3("s3://handbook/leave.md"), "metadata": map[string]any{}}},
		}},
	}))}}
	c := mustLoad(t, strings.Replace(managedFile, "URL", h.Start(t), 1), nil)
	m, err := c.Open().Managed()
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "bedrock/knowledge-base/ABCDEFGHIJ" || m.Most("how much leave?").OutputTokens != 300 || m.Most("").Calls != 1 {
		t.Errorf("%s may spend %+v", m.Name(), m.Most("how much leave?"))
	}
	ann := assay.Principal{User: "ann"}.Access()
	got, usage, err := m.Ask(t.Context(), ann, strategy.ManagedQuestion{Text: "How much leave?", Collections: []string{"handbook"}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != text || len(got.Parts) != 1 || got.Text[got.Parts[0].Start:got.Parts[0].End] != words || len(got.Parts[0].Hits) != 1 || got.Parts[0].Hits[0].URI != "s3://handbook/leave.md" {
		t.Errorf("%+v", got)
	}
	if usage.Calls != 1 || usage.OutputTokens == 0 {
		t.Errorf("it took %+v", usage)
	}
	for _, want := range []string{`"numberOfResults":7`, "QUERY_DECOMPOSITION", `"maxTokens":300`} {
		if !strings.Contains(h.Bodies[0], want) {
			t.Errorf("asked %s, want %s in it", h.Bodies[0], want)
		}
	}
	for name, ask := range map[string]func() error{
		"nobody": func() error {
			_, _, err := m.Ask(t.Context(), assay.Access{}, strategy.ManagedQuestion{Text: "q"})
			return err
		},
		"somebody else": func() error {
			_, _, err := m.Ask(t.Context(), assay.Local().Access(), strategy.ManagedQuestion{Text: "q"})
			return err
		},
		"another collection": func() error {
			_, _, err := m.Ask(t.Context(), ann, strategy.ManagedQuestion{Text: "q", Collections: []string{"other"}})
			return err
		},
	} {
		if err := ask(); !errors.Is(err, assay.ErrNotFound) || len(h.Bodies) != 1 {
			t.Errorf("%s: %v after %d requests, want none and ErrNotFound", name, err, len(h.Bodies))
		}
	}
	checks := (&examination{s: c.Open(), ctx: t.Context()}).managed()
	if !checks.OK || checks.Model != m.Name() || len(h.Bodies) != 1 {
		t.Errorf("doctor: %+v", checks)
	}
	if r := c.resources("bedrock"); len(r.KnowledgeBases) != 1 || r.Answers["ABCDEFGHIJ"] == "" {
		t.Errorf("the policy is for %+v", r)
	}
}

func TestManagedErrors(t *testing.T) {
	model := "  model: arn:aws:bedrock:eu-west-1::foundation-model/a.b\n"
	for file, want := range map[string]string{
		"managed: {}\n": "want either a knowledge_base or an agent",
		"managed:\n  knowledge_base: K\n  agent: {id: A, alias: B}\n":               "want either a knowledge_base or an agent",
		"managed:\n  provider: openai\n  knowledge_base: K\n" + model:               "not a provider of type bedrock",
		"managed:\n  provider: nobody\n  knowledge_base: K\n" + model:               "not a provider of type bedrock",
		"managed:\n  knowledge_base: K\n  open_to: ['*']\n":                         "needs the ARN of the model",
		"managed:\n  knowledge_base: K\n" + model:                                   "does not say which users",
		"managed:\n  agent: {id: A}\n":                                              "needs an id and an alias",
		"managed:\n  agent: {id: A, alias: B}\n  users_key: users\n":                "cannot be limited per document",
		"managed:\n  agent: {id: A, alias: B}\n":                                    "does not say which users",
		"managed:\n  knowledge_base: K\n  open_to: ['*']\n  passages: -1\n" + model: "must not be negative",
	} {
		if _, err := load(t, file, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
	for _, file := range []string{
		"managed:\n  knowledge_base: 'no id'\n  open_to: ['*']\n" + model,
		"managed:\n  knowledge_base: ABCDEFGHIJ\n  open_to: [everybody]\n" + model,
		"managed:\n  agent: {id: 'no id', alias: B}\n  open_to: ['*']\n",
	} {
		if m, err := mustLoad(t, file, nil).Open().Managed(); err == nil {
			t.Errorf("%q is opened as %s", file, m.Name())
		}
	}
}
