package config

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/anthropic"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/cohere"
	"github.com/assay-rag/assay/provider/gemini"
	"github.com/assay-rag/assay/provider/jina"
	"github.com/assay-rag/assay/provider/openai"
)

// An endpoint is an opened provider. Fields that its type does not support are nil.
type endpoint struct {
	guard *resilient.Guard // for all calls to it

	chat   func(model string) llm.Model
	embed  func(ctx context.Context, model string, f modelFacts) (llm.Embedder, error)
	rerank func(model string, f modelFacts) llm.Reranker
	verify func() (ground.Service, error)
	list   func(ctx context.Context) ([]llm.Listed, error)
	window func(ctx context.Context, model string) int // of a model that is listed without; 0: unknown
	policy func(ctx context.Context, r bedrock.Resources) (bedrock.Policy, error)

	bedrock *bedrock.Provider // for services that answer questions themselves
}

// open opens a provider without calling it.
func (p *Provider) open(guard *egress.Guard) (*endpoint, error) {
	opens := map[string]func(*egress.Guard) (*endpoint, error){
		OpenAI: p.openOpenAI, Anthropic: p.openAnthropic, Gemini: p.openGemini, Bedrock: p.openBedrock, Cohere: p.openCohere, Jina: p.openJina,
	}
	e, err := opens[p.Type](guard)
	if err != nil {
		return nil, err
	}
	e.guard = resilient.New(resilient.Config{
		Timeout: p.Timeout, ReadTimeout: p.Timeout, HedgeAfter: p.hedgeAfter(),
		Concurrency: p.Limits.Concurrency, Requests: p.Limits.RequestsPerMinute, Tokens: p.Limits.TokensPerMinute,
	})
	return e, nil
}

// hedgeAfter returns the delay after which a request for vectors or scores is sent a second time.
// It is 0 for a server on this machine, which a second request would only slow down.
func (p *Provider) hedgeAfter() time.Duration {
	if p.onThisMachine() {
		return 0
	}
	return 5 * time.Second
}

// onThisMachine reports whether a provider's server has a loopback address.
func (p *Provider) onThisMachine() bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && isLoopback(u.Hostname())
}

func (p *Provider) headers() map[string]secret.Secret {
	headers := map[string]secret.Secret{}
	for name, value := range p.Headers {
		headers[name] = value.Secret
	}
	return headers
}

// plainHeaders returns the headers for adapters that hide all header values themselves.
func (p *Provider) plainHeaders() map[string]string {
	headers := map[string]string{}
	for name, value := range p.Headers {
		headers[name] = value.Reveal()
	}
	return headers
}

func (p *Provider) openOpenAI(guard *egress.Guard) (*endpoint, error) {
	c := openai.Config{
		Name: p.Name, BaseURL: p.BaseURL, Key: p.Key.Secret, API: openai.API(p.API), Stream: p.Stream,
		Effort: p.Effort, Header: p.headers(), Idle: p.Idle, HTTP: p.client(guard),
	}
	if p.Azure != nil {
		c.APIVersion = p.Azure.APIVersion
	}
	o, err := openai.New(c)
	if err != nil {
		return nil, err
	}
	return &endpoint{
		chat: o.Model,
		embed: func(ctx context.Context, model string, f modelFacts) (llm.Embedder, error) {
			return o.Embedder(ctx, model, openai.EmbedConfig{
				Dimensions: f.Dimensions, Shorten: f.Dimensions > 0, MaxTokens: f.MaxTokens,
				QueryPrefix: f.QueryPrefix, PassagePrefix: f.PassagePrefix,
			})
		},
		list: o.List, window: o.Window,
	}, nil
}

func (p *Provider) openAnthropic(guard *egress.Guard) (*endpoint, error) {
	a, err := anthropic.New(anthropic.Config{
		Name: p.Name, BaseURL: p.BaseURL, Key: p.Key.Secret, Headers: p.plainHeaders(), Stream: p.Stream, Effort: p.Effort, Idle: p.Idle,
		HTTP: p.client(guard),
	})
	if err != nil {
		return nil, err
	}
	return &endpoint{chat: a.Model, list: a.List}, nil
}

func (p *Provider) openGemini(guard *egress.Guard) (*endpoint, error) {
	g, err := gemini.New(gemini.Config{
		Name: p.Name, BaseURL: p.BaseURL, Key: p.Key.Secret, Headers: p.plainHeaders(), Stream: p.Stream, Effort: p.Effort, Idle: p.Idle,
		HTTP: p.client(guard),
	})
	if err != nil {
		return nil, err
	}
	return &endpoint{
		chat: g.Model,
		embed: func(_ context.Context, model string, f modelFacts) (llm.Embedder, error) {
			return g.Embedder(model, gemini.EmbedConfig{Dimensions: f.Dimensions, MaxTokens: f.MaxTokens})
		},
		list: g.List,
	}, nil
}

func (p *Provider) openCohere(guard *egress.Guard) (*endpoint, error) {
	c, err := cohere.New(cohere.Config{Name: p.Name, BaseURL: p.BaseURL, Key: p.Key.Secret, Headers: p.plainHeaders(), Idle: p.Idle, HTTP: p.client(guard)})
	if err != nil {
		return nil, err
	}
	return &endpoint{
		embed: func(_ context.Context, model string, f modelFacts) (llm.Embedder, error) {
			return c.Embedder(model, cohere.EmbedConfig{Dimensions: f.Dimensions})
		},
		rerank: func(model string, f modelFacts) llm.Reranker {
			return c.Reranker(model, cohere.RerankConfig{MaxTokens: f.MaxTokens})
		},
	}, nil
}

func (p *Provider) openJina(guard *egress.Guard) (*endpoint, error) {
	j, err := jina.New(jina.Config{Name: p.Name, BaseURL: p.BaseURL, Key: p.Key.Secret, Headers: p.plainHeaders(), Idle: p.Idle, HTTP: p.client(guard)})
	if err != nil {
		return nil, err
	}
	return &endpoint{
		embed: func(_ context.Context, model string, f modelFacts) (llm.Embedder, error) {
			return j.Embedder(model, jina.EmbedConfig{Dimensions: f.Dimensions})
		},
		rerank: func(model string, f modelFacts) llm.Reranker {
			return j.Reranker(model, jina.RerankConfig{Format: jina.Format(p.API), MaxTokens: f.MaxTokens})
		},
	}, nil
}

func (p *Provider) openBedrock(guard *egress.Guard) (*endpoint, error) {
	b, err := bedrock.New(bedrock.Config{
		Name: p.Name, Region: p.AWS.Region, Profile: p.AWS.Profile, BaseURL: p.BaseURL, Key: p.Key.Secret, Stream: p.Stream, Effort: p.Effort, Idle: p.Idle,
		Egress: guard,
	})
	if err != nil {
		return nil, err
	}
	return &endpoint{
		chat: b.Model,
		embed: func(_ context.Context, model string, f modelFacts) (llm.Embedder, error) {
			return b.Embedder(model, f.Dimensions)
		},
		rerank: func(model string, _ modelFacts) llm.Reranker { return b.Reranker(model) },
		verify: func() (ground.Service, error) {
			guardrail := bedrock.Guardrail{ID: p.AWS.GuardrailID, Version: p.AWS.GuardrailVersion}
			return b.Verifier(bedrock.Grounding{Guardrail: guardrail, Threshold: p.AWS.Threshold})
		},
		list:   names(b.Models),
		policy: b.IAMPolicy, bedrock: b,
	}, nil
}

// tellsSizes reports whether the provider's server may know the sizes of its models. OpenAI's own
// and Bedrock list only names.
func (p *Provider) tellsSizes() bool { return p.listed || p.Type == Anthropic || p.Type == Gemini }

// names adapts a function that lists names to one that lists models.
func names(list func(context.Context) ([]string, error)) func(context.Context) ([]llm.Listed, error) {
	return func(ctx context.Context) ([]llm.Listed, error) {
		all, err := list(ctx)
		var out []llm.Listed
		for _, name := range all {
			out = append(out, llm.Listed{Name: name})
		}
		return out, err
	}
}

// checkKey returns an error with a hint if a provider lacks a key that it needs.
func (c *Config) checkKey(p *Provider) error {
	k := kinds[p.Type]
	if p.unset != nil {
		return p.unset
	}
	if strings.ContainsFunc(p.Key.Reveal(), unicode.IsControl) {
		return &Error{Where: p.Key.From, Detail: "the key contains a line break or another control character", Hint: "a key is one line without surrounding spaces"}
	}
	if variable := c.file.Providers[p.Name].KeyEnv; variable != "" && p.Key.Empty() {
		return c.file.wrong([]string{"providers", p.Name, "key_env"}, "set it, or ask without models: assay ask --local", "the variable %s is not set", shown(variable))
	}
	if !p.Key.Empty() || k.keyEnv == "" || p.BaseURL != "" && p.BaseURL != k.url && p.Azure == nil || p.sendsKey() {
		return nil
	}
	hint := fmt.Sprintf("set %s, or key_env or key_file under providers.%s, or ask without models: assay ask --local", k.keyEnv, p.Name)
	if c.file.Providers[p.Name].BaseURL != "" {
		hint = fmt.Sprintf("set key_env or key_file under providers.%s", p.Name)
	}
	where := "the environment"
	if c.Path != "" {
		where = c.Path
	}
	return &Error{Where: where, Detail: p.Name + " has no key", Hint: hint}
}

// sendsKey reports whether a provider's configured headers contain a credential.
func (p *Provider) sendsKey() bool {
	for name := range p.Headers {
		if sendsCredential(name) {
			return true
		}
	}
	return false
}

// sendsCredential reports whether a header of this name carries a credential.
func sendsCredential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie":
		return true
	}
	return false
}
