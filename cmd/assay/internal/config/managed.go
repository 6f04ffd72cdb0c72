package config

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/strategy"
)

// fileManaged is the section managed, a service that answers questions itself.
type fileManaged struct {
	Provider      string     `yaml:"provider"`
	KnowledgeBase string     `yaml:"knowledge_base"`
	Model         string     `yaml:"model"`
	Decompose     *bool      `yaml:"decompose"`
	MaxTokens     int        `yaml:"max_tokens"`
	Passages      int        `yaml:"passages"`
	Agent         *fileAgent `yaml:"agent"`
	Collection    string     `yaml:"collection"`
	OpenTo        []string   `yaml:"open_to"`
	UsersKey      string     `yaml:"users_key"`
	GroupsKey     string     `yaml:"groups_key"`
}

// A Managed is a Bedrock service that answers questions itself: a knowledge base or an agent.
type Managed struct {
	Provider      string // of the type bedrock
	KnowledgeBase string // ID or ARN; empty: Agent is used
	Agent         Agent
	Generation    bedrock.Generation
	Passages      int // number of passages to answer from; 0: the service's default
	Collection    string
	Sharing       bedrock.Sharing
	Line          int
}

// managed reads the section managed.
func (c *Config) managed() error {
	in := c.file.Managed
	if in == nil {
		return nil
	}
	at := func(key string) []string { return []string{"managed", key} }
	name := in.Provider
	if name == "" {
		name = Bedrock
	}
	p := c.Providers[name]
	if p == nil || p.Type != Bedrock {
		return c.file.wrong(at("provider"), "name a provider of type bedrock", "%s is not a provider of type bedrock", shown(name))
	}
	m := &Managed{
		Provider: name, KnowledgeBase: in.KnowledgeBase, Passages: in.Passages, Collection: in.Collection, Line: c.file.line("managed"),
		Generation: bedrock.Generation{Model: in.Model, Decompose: in.Decompose == nil || *in.Decompose, MaxTokens: in.MaxTokens},
		Sharing:    bedrock.Sharing{OpenTo: in.OpenTo, UsersKey: in.UsersKey, GroupsKey: in.GroupsKey},
	}
	if in.Agent != nil {
		m.Agent = Agent(*in.Agent)
	}
	switch isAgent := in.Agent != nil; {
	case isAgent == (in.KnowledgeBase != ""):
		return c.file.wrong([]string{"managed"}, "as in knowledge_base: ABCDEFGHIJ", "want either a knowledge_base or an agent")
	case isAgent && (in.Agent.ID == "" || in.Agent.Alias == ""):
		return c.file.wrong(at("agent"), "as in agent: {id: AGENT1, alias: ALIAS1}", "needs an id and an alias")
	case isAgent && in.UsersKey+in.GroupsKey != "":
		return c.file.wrong([]string{"managed"}, "use open_to", "access to an agent cannot be limited per document")
	case !isAgent && in.Model == "":
		return c.file.wrong(at("model"), "as in model: arn:aws:bedrock:REGION::foundation-model/NAME", "a knowledge base needs the ARN of the model that writes its answers")
	case len(in.OpenTo) == 0 && in.UsersKey+in.GroupsKey == "":
		return c.file.wrong([]string{"managed"}, `as in open_to: ["*"], or users_key and groups_key`, "does not say which users may see its documents")
	case in.MaxTokens < 0 || in.Passages < 0:
		return c.file.wrong([]string{"managed"}, "", "max_tokens and passages must not be negative")
	}
	c.Managed = m
	return nil
}

// Managed opens the configured managed service, or returns nil if there is none. It does not call
// AWS.
func (s *Set) Managed() (strategy.Managed, error) {
	m := s.c.Managed
	if m == nil {
		return nil, nil
	}
	e, err := s.endpoint(m.Provider)
	if err != nil {
		return nil, err
	}
	service := managedService{config: *m, guard: e.guard, secrets: &s.c.Secrets}
	if m.KnowledgeBase != "" {
		service.base, err = e.bedrock.KnowledgeBase(bedrock.KnowledgeBase{ID: m.KnowledgeBase, Collection: m.Collection, Sharing: m.Sharing})
	} else {
		service.agent, err = e.bedrock.Agent(bedrock.Agent{ID: m.Agent.ID, Alias: m.Agent.Alias, OpenTo: m.Sharing.OpenTo, Collection: m.Collection})
	}
	if err != nil {
		return nil, &Error{Where: s.c.where(), Line: m.Line, Detail: s.c.Secrets.Scrub(strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))}
	}
	return service, nil
}

// A managedService sends questions to a Bedrock knowledge base or, if base is nil, to an agent.
type managedService struct {
	config  Managed
	base    *bedrock.Retriever
	agent   *bedrock.AgentClient
	guard   *resilient.Guard
	secrets *Secrets
}

// Name implements strategy.Managed.
func (m managedService) Name() string {
	if m.base != nil {
		return m.base.Model()
	}
	return m.agent.Model()
}

// Most implements strategy.Managed. It covers only the usage that is known in advance, because
// Bedrock does not report how much it reads or how often it calls its models.
func (m managedService) Most(question string) assay.Usage {
	return strategy.MostOfManaged(question, m.config.Generation.MaxTokens)
}

// collection returns the collection name of the service's documents.
func (m managedService) collection() string {
	switch {
	case m.config.Collection != "":
		return m.config.Collection
	case m.base != nil:
		return m.config.KnowledgeBase
	}
	return m.config.Agent.ID
}

// Ask implements strategy.Managed. It makes the call only once, because each call is paid for.
func (m managedService) Ask(ctx context.Context, access assay.Access, q strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	if len(q.Collections) > 0 && !slices.Contains(q.Collections, m.collection()) {
		return strategy.ManagedAnswer{}, assay.Usage{}, fmt.Errorf("%s: its collection %s is not among the requested ones: %w", m.Name(), m.collection(), assay.ErrNotFound)
	}
	asked := bedrock.Question{Text: q.Text, Filter: q.Filter, Limit: m.config.Passages}
	said, spent, err := resilient.Do(ctx, m.guard, resilient.Read{Name: m.Name(), Once: true}, func(ctx context.Context) (bedrock.Answer, error) {
		if m.base != nil {
			return m.base.Answer(ctx, access, m.config.Generation, asked, nil)
		}
		asked.Session = rand.Text() // each question is a conversation of its own
		return m.agent.Answer(ctx, access, asked, nil)
	})
	if err != nil {
		return strategy.ManagedAnswer{}, spent.Usage, m.secrets.scrubError(err)
	}
	answer := strategy.ManagedAnswer{Text: said.Text, Notes: said.Notes}
	for _, c := range said.Citations {
		answer.Parts = append(answer.Parts, strategy.ManagedPart{Start: c.Start, End: c.End, Hits: c.Hits})
	}
	usage := spent.Usage // Bedrock reports no token counts: estimate from the visible text
	usage.Calls = max(usage.Calls, said.Usage.Calls)
	usage.InputTokens, usage.OutputTokens = llm.EstimateTokens(q.Text), llm.EstimateTokens(said.Text)
	return answer, usage, nil
}

// managed reports the configured service. It is not tried, because every question is paid for.
func (x *examination) managed() Check {
	c := Check{Name: "managed", OK: true, Detail: "no managed service is configured (strategy managed)"}
	m, err := x.s.Managed()
	switch {
	case err != nil:
		c.OK, c.Err, c.Detail = false, err, err.Error()
	case m != nil:
		c.Model = m.Name()
		c.Detail = fmt.Sprintf("used by --strategy managed; not tried, because each question costs money (managed in %s:%d)", x.s.c.Path, x.s.c.Managed.Line)
	}
	return c
}
