// Package openai implements language models with OpenAI's two formats, chat completions and
// responses, and embedders with its embeddings format. It supports OpenAI itself and every
// compatible server, among them Ollama, llama.cpp's llama-server, vLLM, LM Studio, OpenRouter and
// Azure OpenAI.
//
// Servers omit and add different parts. This package relies on what they have in common, and
// handles their known differences: tool calls without IDs or in one piece, no usage, errors within
// a reply that began well, and JSON instead of a requested stream. An incomplete reply is an error.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultBaseURL is the base URL of OpenAI's own service.
const DefaultBaseURL = "https://api.openai.com/v1"

// An API is one of the two formats for language models.
type API string

// The formats.
const (
	Chat      API = "chat"      // /chat/completions, supported by every compatible server
	Responses API = "responses" // /responses
)

// A Secret is a credential that is hidden when printed.
type Secret = wire.Secret

// A Config configures a server. The zero Config is OpenAI's own, without a key.
type Config struct {
	Name    string // provider name, prefix of its models' names; "": "openai"
	BaseURL string // prefix of the format's paths, usually "…/v1"; "": DefaultBaseURL
	Key     Secret // none: no Authorization header, as for local servers

	// API is the format; "": Responses for OpenAI itself, Chat for other servers.
	API API

	// Stream requests replies as streams. Without it replies arrive whole, and the stream callback
	// of Generate receives one piece.
	Stream bool

	// APIVersion is the version for Azure OpenAI's deployment paths, for example "2024-10-21".
	// Without it Azure is accessed by its v1 paths, which need none.
	APIVersion string

	// Effort is the effort of reasoning models ("none", "minimal", "low", "medium", "high", as
	// supported by the model). "" selects the least that the model supports, since reasoning counts
	// as output and most requested replies are short.
	Effort string

	Header map[string]Secret // additional headers for a gateway

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	Idle     time.Duration // as in wire.Client
	First    time.Duration // as in wire.Client
	MaxBytes int64         // as in wire.Client
}

// A Provider is one server. It is safe for concurrent use.
type Provider struct {
	c      Config
	base   *url.URL
	own    bool // the server is OpenAI's own
	azure  bool
	client wire.Client

	mu      sync.Mutex
	without map[string]map[string]bool // parameters that a model has rejected
}

// New returns a provider with the configuration c. An invalid configuration is assay.ErrInvalid.
// New does not contact the server.
func New(c Config) (*Provider, error) {
	c.Name = cmp.Or(c.Name, "openai")
	base, err := url.Parse(strings.TrimRight(cmp.Or(c.BaseURL, DefaultBaseURL), "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		return nil, fmt.Errorf("the base URL of %s is not of the form http(s)://host/path: %w", c.Name, assay.ErrInvalid)
	}
	host := strings.ToLower(base.Hostname())
	p := &Provider{
		c: c, base: base, without: map[string]map[string]bool{},
		own:   host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com"),
		azure: c.APIVersion != "" || isAzure(host),
	}
	if p.azure {
		p.base = azureBase(base, c.APIVersion)
	}
	switch c.API {
	case "":
		p.c.API = Chat
		if p.own {
			p.c.API = Responses
		}
	case Chat, Responses:
	default:
		return nil, fmt.Errorf("%s does not support API %q, only %q and %q: %w", c.Name, c.API, Chat, Responses, assay.ErrInvalid)
	}
	if c.HTTP == nil {
		c.HTTP = wire.HTTP(base.String())
	}
	p.client = wire.Client{
		Name: c.Name, HTTP: c.HTTP, Header: p.header, Secrets: []Secret{c.Key},
		Idle: c.Idle, First: c.First, MaxBytes: c.MaxBytes, Explain: explain,
	}
	for _, value := range c.Header {
		p.client.Secrets = append(p.client.Secrets, value)
	}
	return p, nil
}

// isAzure reports whether a host belongs to Azure OpenAI.
//
// Source: Microsoft Learn, "Azure OpenAI in Microsoft Foundry Models REST API reference" and "API
// version lifecycle".
func isAzure(host string) bool {
	for _, domain := range []string{".openai.azure.com", ".openai.azure.us", ".cognitiveservices.azure.com", ".services.ai.azure.com"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// azureBase completes the URL of an Azure resource. Its paths are below /openai/v1 or, with an API
// version, below /openai.
func azureBase(base *url.URL, version string) *url.URL {
	u := *base
	if version != "" {
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/openai/v1"), "/openai") + "/openai"
	} else if u.Path == "" || u.Path == "/openai" {
		u.Path = "/openai/v1"
	}
	return &u
}

// header sets the credentials of a request.
func (p *Provider) header(r *http.Request) {
	for name, value := range p.c.Header {
		r.Header.Set(name, value.Reveal())
	}
	key := p.c.Key.Reveal()
	switch {
	case key == "":
	case p.azure && !strings.HasPrefix(key, "eyJ"): // the prefix of an Entra ID token
		r.Header.Set("api-key", key)
	default:
		r.Header.Set("Authorization", "Bearer "+key)
	}
}

// url returns the URL of a path of the format. With an API version, Azure's path contains the model
// (its deployment).
func (p *Provider) url(path, model string) string {
	u := *p.base
	if p.c.APIVersion != "" {
		if model != "" {
			path = "deployments/" + url.PathEscape(model) + "/" + path
		}
		u.RawQuery = url.Values{"api-version": {p.c.APIVersion}}.Encode()
	}
	return u.JoinPath(path).String()
}

// Model returns the model that the server knows by name, without asking the server whether it
// exists.
func (p *Provider) Model(name string) llm.Model {
	m := &model{p: p, name: name, client: p.client}
	m.client.Name = m.Model()
	return m
}

// A model is one model of a provider.
type model struct {
	p      *Provider
	name   string
	client wire.Client
}

// Model implements llm.Model.
func (m *model) Model() string { return m.p.c.Name + "/" + m.name }

// Generate implements llm.Model.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if stream == nil {
		stream = func(llm.Delta) {}
	}
	r := &reply{stream: stream, scrub: m.client.Scrubber()}
	call := m.chat
	if m.p.c.API == Responses {
		call = m.responses
	}
	if err := call(ctx, req, r); err != nil {
		return llm.Response{}, spent(m.learn(err), req, r)
	}
	return m.response(req, r), nil
}

// reasons reports whether the model is one of OpenAI's reasoning models. They do not accept a
// temperature.
//
// Source: OpenAI, "Reasoning models" and the API reference on temperature.
func (m *model) reasons() bool {
	name := m.bare()
	switch {
	case strings.Contains(name, "chat"): // gpt-5-chat-latest does not reason
		return false
	case generation(name) >= 5:
		return true
	}
	for _, prefix := range []string{"o1", "o3", "o4", "codex-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// bare returns the model's name without the vendor prefix of OpenRouter's names.
func (m *model) bare() string { return m.name[strings.LastIndex(m.name, "/")+1:] }

// generation returns the 4 of gpt-4.1, or 0 if the name has no generation.
func generation(name string) int {
	rest, ok := strings.CutPrefix(name, "gpt-")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' || len(rest) > 1 && rest[1] != '.' && rest[1] != '-' { // gpt-4o, Azure's gpt-35-turbo
		return 0
	}
	return int(rest[0] - '0')
}

// effort returns the reasoning effort to request, or "" for the model's default.
//
// Sources: OpenAI, API reference on reasoning.effort: "none" since gpt-5.1, "minimal" for gpt-5
// before it, and the pro models accept only their own; "Using GPT-6": in that family only Sol 6 and
// Luna 6 support "none", the others start at "low".
func (m *model) effort() string {
	name := m.bare()
	switch {
	case m.p.c.Effort != "":
		return m.p.c.Effort
	case strings.Contains(name, "-pro"):
		return ""
	case strings.HasPrefix(name, "gpt-5."), strings.HasPrefix(name, "gpt-6-luna"), strings.HasPrefix(name, "gpt-6-sol"):
		return "none"
	case generation(name) == 5:
		return "minimal"
	}
	return "low"
}
