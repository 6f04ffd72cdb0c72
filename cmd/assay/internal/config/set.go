package config

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/openai"
	"github.com/assay-rag/assay/role"
)

// A Set opens the models, encoders and rerankers of a configuration, each with its guard. A
// provider is opened once, on first use. A Set is safe for concurrent use.
type Set struct {
	c *Config

	mu       sync.Mutex
	opened   map[string]*endpoint
	listings map[string]listing   // by provider
	reported map[string]llm.Facts // by provider/model
}

// Open returns a Set for the configuration. It calls no server.
func (c *Config) Open() *Set {
	return &Set{c: c, opened: map[string]*endpoint{}, listings: map[string]listing{}, reported: map[string]llm.Facts{}}
}

// Config returns the configuration.
func (s *Set) Config() *Config { return s.c }

// endpoint returns the opened provider. It opens the provider on first use.
func (s *Set) endpoint(name string) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.opened[name]; e != nil {
		return e, nil
	}
	p := s.c.Providers[name]
	if p == nil {
		return nil, &Error{Where: s.c.where(), Detail: "unknown provider " + shown(name), Hint: "the providers are " + strings.Join(slices.Sorted(maps.Keys(s.c.Providers)), ", ")}
	}
	if p.command != "" {
		var err error
		if p.Key, err = s.c.runCommand(p.command, "providers", name, "key"); err != nil {
			return nil, err
		}
		p.command = ""
	}
	if err := s.c.checkKey(p); err != nil {
		return nil, err
	}
	p.outgoing = s.c.Outgoing
	e, err := p.open(s.c.Egress)
	if err != nil {
		return nil, &Error{Where: s.c.where(), Line: s.c.file.line("providers", name), Detail: s.c.Secrets.Scrub(strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))}
	}
	s.opened[name] = e
	return e, nil
}

// where returns the source of the configuration, for errors without a line.
func (c *Config) where() string {
	if c.Path != "" {
		return c.Path
	}
	return "the environment"
}

// Models opens the models that the engine calls. It asks a server which model it has, if none is
// configured. A server that cannot be reached fails again on every call, so that the answer reports
// the fallback.
func (s *Set) Models(ctx context.Context) (engine.Models, error) {
	m := engine.Models{Roles: map[string]llm.Model{}}
	for _, name := range slices.Sorted(maps.Keys(s.c.Roles)) {
		choice := s.c.Roles[name]
		if choice.IsLocal() {
			continue
		}
		model, err := s.Model(ctx, choice)
		if err != nil {
			return engine.Models{}, err
		}
		if name == smallGenerator {
			m.Small = model
			continue
		}
		m.Roles[name] = model
	}
	if err := s.verifier(ctx, &m); err != nil {
		return engine.Models{}, err
	}
	var err error
	if m.Domain, err = s.c.domain(); err != nil {
		return engine.Models{}, err
	}
	if m.Reranker, err = s.Reranker(); err != nil {
		return engine.Models{}, err
	}
	return m, ctx.Err()
}

// verifier opens the verifier, unless it is local.
func (s *Set) verifier(ctx context.Context, m *engine.Models) error {
	v := s.c.Verifier
	switch {
	case v.IsLocal():
		m.LocalVerifier = true
		return nil
	case v.Model == Guardrail:
		service, err := s.Guardrail(v.Provider)
		m.Verifier = service
		return err
	}
	model, err := s.Model(ctx, v)
	if err != nil {
		return err
	}
	m.Roles[role.VerifierRole] = model
	return nil
}

// Model opens the model of a choice that is not local. If the server does not list its models, the
// returned model fails every call with that reason.
func (s *Set) Model(ctx context.Context, choice Choice) (llm.Model, error) {
	e, err := s.endpoint(choice.Provider)
	if err != nil {
		return nil, err
	}
	if e.chat == nil {
		return nil, &Error{Where: s.c.where(), Line: choice.Line, Detail: choice.Provider + " serves no language models", Hint: "name another provider"}
	}
	name, f := choice.Model, s.c.Facts(choice.Provider, choice.Model)
	if name == "" {
		d := s.discover(ctx, choice.Provider, e)
		if many, ok := errors.AsType[*Error](d.err); ok {
			return nil, many
		}
		if d.err != nil {
			return scrubModel(silent{choice.Provider, d.err}, &s.c.Secrets), ctx.Err()
		}
		name, f = d.model.Name, s.c.Facts(choice.Provider, d.model.Name)
	}
	if f.Window == 0 && s.c.Providers[choice.Provider].tellsSizes() {
		said := s.sizes(ctx, choice.Provider, name, e)
		f.Window, f.MaxOutput = said.Window, cmp.Or(f.MaxOutput, said.MaxOutput)
	}
	if f.Window == 0 && choice.Provider == ollama {
		f.Window = openai.OllamaWindow // it truncates longer input silently
	}
	return scrubModel(e.guard.Model(e.chat(name), f), &s.c.Secrets), nil
}

// Guardrail opens a provider's guardrail as a verifier.
func (s *Set) Guardrail(provider string) (ground.Service, error) {
	e, err := s.endpoint(provider)
	if err != nil {
		return nil, err
	}
	v, err := e.verify()
	if err != nil {
		return nil, &Error{Where: s.c.where(), Detail: s.c.Secrets.Scrub(err.Error())}
	}
	return scrubVerifier(guardedVerifier{v, e.guard}, &s.c.Secrets), nil
}

// A guardedVerifier makes its calls through a guard, without retries, because a judgement is
// reserved as one call.
type guardedVerifier struct {
	ground.Service
	guard *resilient.Guard
}

func (v guardedVerifier) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return v.once(ctx, func(ctx context.Context) (ground.Judgement, error) { return v.Service.Verify(ctx, claim, cited) })
}

func (v guardedVerifier) VerifyFor(ctx context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	return v.once(ctx, func(ctx context.Context) (ground.Judgement, error) {
		return v.Service.VerifyFor(ctx, question, text, cited)
	})
}

func (v guardedVerifier) once(ctx context.Context, judge func(context.Context) (ground.Judgement, error)) (ground.Judgement, error) {
	j, _, err := resilient.Do(ctx, v.guard, resilient.Read{Name: v.Model(), Once: true}, judge)
	return j, err
}

// Facts implements llm.Described.
func (v guardedVerifier) Facts() llm.Facts { return llm.FactsOf(v.Service) }

// Reranker opens the configured reranker, or returns nil for the local one.
func (s *Set) Reranker() (llm.Reranker, error) {
	choice := s.c.Rerank
	if choice.IsLocal() {
		return nil, nil
	}
	e, err := s.endpoint(choice.Provider)
	if err != nil {
		return nil, err
	}
	if e.rerank == nil {
		return nil, &Error{Where: s.c.where(), Line: choice.Line, Detail: "rerank: " + choice.Provider + " does not offer rerankers", Hint: "use a provider of type cohere, jina or bedrock"}
	}
	r := e.rerank(choice.Model, s.c.factsOf(choice.Provider, choice.Model))
	return scrubReranker(e.guard.Reranker(r), &s.c.Secrets), nil
}

// domain reads the domain file, or returns nil if there is none.
func (c *Config) domain() (*prompted.Domain, error) {
	if c.Domain == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Domain)
	if err != nil {
		return nil, c.file.wrong([]string{"domain"}, "", "cannot read %s: %s", shown(c.Domain), reason(err))
	}
	return prompted.ParseDomain(c.Domain, text)
}
