package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/anthropic/anthropictest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
	"github.com/assay-rag/assay/provider/gemini/geminitest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// A format is a wire format that a provider speaks, with the server side of it.
type format struct {
	name string
	llmtest.Wire
}

// formats are all that there are.
func formats() []format {
	return []format{
		{"openai-chat", openaitest.Chat()},
		{"openai-responses", openaitest.Responses()},
		{"azure", openaitest.Azure()},
		{"ollama", openaitest.Ollama()},
		{"llama-cpp", openaitest.LlamaCpp()},
		{"vllm", openaitest.VLLM()},
		{"openrouter", openaitest.OpenRouter()},
		{"anthropic", anthropictest.Messages()},
		{"anthropic-current", anthropictest.Current()},
		{"anthropic-compatible", anthropictest.Compatible()},
		{"gemini", geminitest.Generate()},
		{"gemini-earlier", geminitest.Earlier()},
		{"bedrock", bedrocktest.Converse()},
		{"bedrock-tools", bedrocktest.ConverseTools()},
	}
}

// A reply is what a scripted model says to a request, the nth that it gets, from 0.
type reply func(req llm.Request, n int) string

// A host is a server on loopback that speaks a format.
type host struct {
	format
	server   *httptest.Server
	client   *http.Client
	requests atomic.Int64 // that it has got

	// answer sends what makes up an answer. It may do worse.
	answer func(w http.ResponseWriter, r *http.Request, good llmtest.Body)
}

// serve starts a server whose model says what say returns.
func (f format) serve(t *testing.T, say reply) *host {
	t.Helper()
	h := &host{format: f, answer: send}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		n := int(h.requests.Add(1)) - 1
		req := f.Request(t, r, body)
		h.answer(w, r, f.Reply(f.script(say(req, n), req), f.Streams(r, body)))
	}))
	h.server.Start()
	transport := &http.Transport{}
	h.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		h.server.Close()
	})
	return h
}

// script is a text as a model sends it: in small pieces.
func (f format) script(text string, req llm.Request) llmtest.Script {
	s := llmtest.Script{
		Finish: llm.FinishStop,
		Usage:  assay.Usage{InputTokens: 40, OutputTokens: 20},
	}
	if req.Schema != nil {
		s.Schema, s.SchemaName = true, req.Schema.Name
	}
	const piece = 9 // letters
	for letters := []rune(text); len(letters) > 0; letters = letters[min(piece, len(letters)):] {
		s.Pieces = append(s.Pieces, string(letters[:min(piece, len(letters))]))
	}
	return s
}

// send sends a body, each part by itself.
func send(w http.ResponseWriter, _ *http.Request, b llmtest.Body) {
	head(w, b)
	for _, part := range b.Parts {
		w.Write(part)
		http.NewResponseController(w).Flush()
	}
}

// head sends what stands before a body.
func head(w http.ResponseWriter, b llmtest.Body) {
	for name, values := range b.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if b.Type != "" {
		w.Header().Set("Content-Type", b.Type)
	}
	if b.Status != 0 {
		w.WriteHeader(b.Status)
	}
}

// open returns the host's model, under a name of its own.
func (h *host) open(t *testing.T, name string, stream bool) llm.Model {
	t.Helper()
	m := h.Open(t, llmtest.Setup{BaseURL: h.server.URL, HTTP: h.client, Stream: stream, Idle: idle, MaxBytes: maxBytes})
	return named{m, name}
}

// What the providers under test wait for a server that has fallen silent, and read
// of a reply.
const (
	idle     = 500 * time.Millisecond
	maxBytes = 1 << 20
)

// named is a model under another name, so that each role can have one of its own.
type named struct {
	inner llm.Model
	name  string
}

func (n named) Model() string { return n.name }

func (n named) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	return n.inner.Generate(ctx, req, stream)
}
