package e2e

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/anthropic/anthropictest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
	"github.com/assay-rag/assay/provider/gemini/geminitest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// A format is a provider's wire format, with its server side.
type format struct {
	name string
	llmtest.Wire
}

// formats returns all wire formats.
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

// A reply returns a scripted model's text for its nth request, from 0.
type reply func(req llm.Request, n int) string

// A host is a loopback server that speaks a format.
type host struct {
	format
	server   *httptest.Server
	client   *http.Client
	requests atomic.Int64 // received

	attack attack // zero: none
}

// serve starts a server whose model replies with the results of say and which makes the attack a.
func (f format) serve(t *testing.T, say reply, a attack) *host {
	t.Helper()
	h := &host{format: f, attack: a}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has disconnected
		}
		n := int(h.requests.Add(1)) - 1
		req := f.Request(t, r, body)
		s := script(say(req, n), req)
		if h.attack.say != nil {
			s = h.attack.say(s)
		}
		good := f.Reply(s, f.Streams(r, body))
		if h.attack.do != nil {
			h.attack.do(h, w, r, good)
			return
		}
		send(w, r, good)
	}))
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if a.tls {
		h.server.StartTLS()
	} else {
		h.server.Start()
	}
	transport := &http.Transport{}
	h.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		h.server.Close()
	})
	return h
}

// script returns a text as a model sends it, in small pieces.
func script(text string, req llm.Request) llmtest.Script {
	s := llmtest.Script{
		Pieces: pieces(text, 9),
		Finish: llm.FinishStop,
		Usage:  assay.Usage{InputTokens: 40, OutputTokens: 20},
	}
	if req.Schema != nil {
		s.Schema, s.SchemaName = true, req.Schema.Name
	}
	return s
}

// pieces splits a text into pieces of the given number of letters.
func pieces(text string, letters int) []string {
	var out []string
	for rest := []rune(text); len(rest) > 0; rest = rest[min(letters, len(rest)):] {
		out = append(out, string(rest[:min(letters, len(rest))]))
	}
	return out
}

// send sends a body part by part.
func send(w http.ResponseWriter, _ *http.Request, b llmtest.Body) {
	head(w, b)
	for _, part := range b.Parts {
		w.Write(part)
		http.NewResponseController(w).Flush()
	}
}

// head sends the headers and the status of a body.
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

// open returns the host's model under the given name, with its calls guarded as in the program. The
// idle timeout is short only for an attack that delays its replies.
func (h *host) open(t *testing.T, name string, stream bool) llm.Model {
	t.Helper()
	patience := 20 * time.Second
	if h.attack.slow {
		patience = idle
	}
	m := h.Open(t, llmtest.Setup{BaseURL: h.server.URL, HTTP: h.client, Stream: stream, Idle: patience, MaxBytes: maxBytes})
	guard := resilient.New(resilient.Config{
		Timeout: 2 * patience, Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, MaxWait: time.Second,
		OpenAfter: 3, OpenFor: time.Hour, MaxText: maxBytes,
	})
	return guard.Model(named{m, name}, llm.Facts{})
}

const (
	idle     = 150 * time.Millisecond // without a byte
	maxBytes = 1 << 20                // of a reply
)

// named is a model under another name, so that each role can have its own.
type named struct {
	inner llm.Model
	name  string
}

func (n named) Model() string { return n.name }

func (n named) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	return n.inner.Generate(ctx, req, stream)
}
