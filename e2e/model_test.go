package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/openai"
)

// modes are the ways to request a reply.
var modes = map[string]bool{"whole": false, "stream": true}

// open returns a provider configured like any OpenAI-compatible server.
func (l *llama) open(t *testing.T, stream bool) *openai.Provider {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	p, err := openai.New(openai.Config{Name: "llama", BaseURL: l.base, Stream: stream, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask returns a request with one message.
func ask(text string, maxTokens int) llm.Request {
	return llm.Request{
		System:    "Answer in one short sentence.",
		Messages:  []llm.Message{{Speaker: llm.User, Text: text}},
		MaxTokens: maxTokens,
		Attempts:  1,
	}
}

// TestLlamaModel runs each case against the real server in both modes.
func TestLlamaModel(t *testing.T) {
	l := startLlama(t)
	for name, stream := range modes {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			p := l.open(t, stream)
			m := p.Model("tiny")
			t.Run("models", func(t *testing.T) { testModels(t, p) })
			t.Run("text", func(t *testing.T) { testText(t, m, stream) })
			t.Run("limit", func(t *testing.T) { testLimit(t, m) })
			t.Run("schema", func(t *testing.T) { testSchema(t, m) })
			t.Run("too long", func(t *testing.T) { testTooLong(t, m) })
		})
	}
}

func testModels(t *testing.T, p *openai.Provider) {
	models, err := p.List(t.Context())
	if err != nil || !slices.ContainsFunc(models, func(m llm.Listed) bool { return m.Name == "tiny" }) {
		t.Errorf("List() = %+v, %v; want tiny among them", models, err)
	}
}

// testText checks that text arrives in pieces that make up the reply, with its usage.
func testText(t *testing.T, m llm.Model, stream bool) {
	var pieces []string
	got, err := m.Generate(t.Context(), ask("Is Paris in France?", 12), func(d llm.Delta) { pieces = append(pieces, d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	if got.Text == "" || strings.Join(pieces, "") != got.Text {
		t.Errorf("the reply is %q, streamed were %q", got.Text, pieces)
	}
	if stream && len(pieces) < 3 {
		t.Errorf("%d pieces of %q were streamed, want one for each token or so", len(pieces), got.Text)
	}
	u := got.Usage
	if u.Calls != 1 || u.InputTokens < 10 || u.OutputTokens < 3 || u.OutputTokens > 12 || got.Estimated {
		t.Errorf("usage %+v, estimated %v; want one call, and the tokens that the server has counted", u, got.Estimated)
	}
	if got.Served != "tiny" {
		t.Errorf("Served = %q, want what the server calls its model", got.Served)
	}
}

// testLimit checks that a reply ends at its token limit and reports it.
func testLimit(t *testing.T, m llm.Model) {
	got, err := m.Generate(t.Context(), ask("Count from one to one hundred.", 5), nil)
	if err != nil || got.Finish != llm.FinishLength || got.Usage.OutputTokens != 5 {
		t.Errorf("Generate of 5 tokens = %+v, %v; want 5 and %q", got, err, llm.FinishLength)
	}
}

// verdictSchema is like the schema of a role.
const verdictSchema = `{
	"type": "object",
	"properties": {
		"answer": {"type": "string", "enum": ["yes", "no"]},
		"reasons": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 2}
	},
	"required": ["answer", "reasons"],
	"additionalProperties": false
}`

// testSchema checks that the server's grammar binds even a random model to a schema.
func testSchema(t *testing.T, m llm.Model) {
	req := ask("Is Paris in France? Answer with JSON: answer, and at most two short reasons.", 120)
	req.Schema = &llm.Schema{Name: "verdict", Schema: json.RawMessage(verdictSchema)}
	got, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(verdictSchema), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal([]byte(got.Text), &v); err != nil {
		t.Fatalf("the reply %q is no JSON: %v", got.Text, err)
	}
	if err := resolved.Validate(v); err != nil {
		t.Errorf("the reply %s does not follow the schema: %v", got.Text, err)
	}
}

// lookup is a tool. A conversation in which it was called twice follows.
var lookup = llm.Tool{
	Name: "lookup", Description: "Looks a word up",
	Parameters: json.RawMessage(`{"type": "object", "properties": {"word": {"type": "string", "maxLength": 20}}, "required": ["word"]}`),
}

func lookedUp(word, meaning string) []llm.Message {
	id := "call-" + word
	return []llm.Message{
		{Speaker: llm.User, Text: "Look up the word " + word + "."},
		{Speaker: llm.Assistant, Calls: []llm.ToolCall{{ID: id, Name: "lookup", Arguments: `{"word":"` + word + `"}`}}},
		{Speaker: llm.User, Results: []llm.ToolResult{{Call: id, Name: "lookup", Text: meaning}}},
		{Speaker: llm.Assistant, Text: meaning},
	}
}

// TestLlamaCallsTools checks that the server accepts calls with their results and that the model's
// own call is returned.
func TestLlamaCallsTools(t *testing.T) {
	const call = "3" // the token that begins a call
	l := startLlama(t, "--logit-bias", call+"+22")
	for name, stream := range modes {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			testTools(t, l.open(t, stream).Model("tiny"))
		})
	}
}

func testTools(t *testing.T, m llm.Model) {
	req := llm.Request{Tools: []llm.Tool{lookup}, MaxTokens: 120, Attempts: 1}
	req.Messages = slices.Concat(lookedUp("home", "place"), lookedUp("red", "colour"),
		[]llm.Message{{Speaker: llm.User, Text: "Look up the word tree."}})
	got, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Finish != llm.FinishTools || len(got.Calls) != 1 || got.Calls[0].Name != "lookup" || got.Calls[0].ID == "" {
		t.Fatalf("Generate = %+v, want one call of lookup", got)
	}
	var args struct{ Word string }
	if err := json.Unmarshal([]byte(got.Calls[0].Arguments), &args); err != nil || args.Word == "" {
		t.Errorf("arguments %s: %v, want a word", got.Calls[0].Arguments, err)
	}
}

// testTooLong checks that a request over the model's window has its own error kind.
func testTooLong(t *testing.T, m llm.Model) {
	_, err := m.Generate(t.Context(), ask(strings.Repeat("word ", 10_000), 5), nil)
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok || failed.Kind != llm.TooLong || failed.Kind.Temporary() {
		t.Errorf("50,000 bytes, a token each, for a window of 32,768 tokens: %v, want an error of kind %q", err, llm.TooLong)
	}
}

// TestLlamaNoticesCancellation checks that the server stops generating when the client cancels.
func TestLlamaNoticesCancellation(t *testing.T) {
	l := startLlama(t)
	for name, stream := range modes {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			const want = 20_000 // tokens, which take the server minutes
			req := ask("Tell a very long story about a dragon.", want)
			req.System = ""
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := l.open(t, stream).Model("tiny")
			ended := make(chan error, 1)
			go func() {
				_, err := m.Generate(ctx, req, nil)
				ended <- err
			}()
			until(t, "the server has begun", 100*time.Millisecond, func() bool { s := l.slot(t); return s.Busy && s.decoded() > 2 })
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatalf("Generate, cancelled: %v", err)
			}
			// The server checks for its client after a second without requests, and each poll is a
			// request.
			until(t, "the server has stopped", 2*time.Second, func() bool { return !l.slot(t).Busy })
			if n := l.slot(t).decoded(); n >= want/2 {
				t.Errorf("the server wrote on: %d of %d tokens", n, want)
			}
		})
	}
}

// TestLlamaRefusesSchema checks the error of a server that cannot bind the model to a schema, as
// this llama.cpp with the ChatML template. Other servers refuse in the same way. The error must
// name the reason and must not be temporary.
func TestLlamaRefusesSchema(t *testing.T) {
	l := startLlama(t, "--chat-template", "chatml")
	req := ask("Is Paris in France? Answer with JSON.", 40)
	req.Schema = &llm.Schema{Name: "verdict", Schema: json.RawMessage(verdictSchema)}
	for name, stream := range modes {
		t.Run(name, func(t *testing.T) {
			_, err := l.open(t, stream).Model("tiny").Generate(t.Context(), req, nil)
			failed, ok := errors.AsType[*llm.Error](err)
			if !ok || failed.Kind != llm.BadRequest || failed.Status != 400 {
				t.Errorf("Generate with a schema = %v, want an error of kind %q with the server's words", err, llm.BadRequest)
			}
		})
	}
}
