package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay/provider/bedrock"
)

// Policy returns the IAM policy that allows exactly the configured use of Bedrock, with notes on
// its gaps. It may ask Bedrock for the models of an inference profile.
func (s *Set) Policy(ctx context.Context) (bedrock.Policy, error) {
	name, err := s.c.policyProvider()
	if err != nil {
		return bedrock.Policy{}, err
	}
	e, err := s.endpoint(name)
	if err != nil {
		return bedrock.Policy{}, err
	}
	policy, err := e.policy(ctx, s.c.resources(name))
	return policy, s.c.Secrets.scrubError(err)
}

// policyProvider returns the only Bedrock provider in use.
func (c *Config) policyProvider() (string, error) {
	used := map[string]bool{}
	for _, choice := range append(slices.Collect(maps.Values(c.Roles)), c.Verifier, c.Embedding, c.Rerank) {
		if p := c.Providers[choice.Provider]; p != nil && p.Type == Bedrock {
			used[p.Name] = true
		}
	}
	for name := range c.file.Providers {
		if c.Providers[name].Type == Bedrock {
			used[name] = true
		}
	}
	if c.Managed != nil {
		used[c.Managed.Provider] = true
	}
	switch names := slices.Sorted(maps.Keys(used)); len(names) {
	case 0:
		return "", &Error{Where: c.where(), Detail: "no Bedrock resources are configured", Hint: "for example: ASSAY_MODEL=bedrock assay doctor --iam-policy"}
	case 1:
		return names[0], nil
	default:
		return "", &Error{Where: c.where(), Detail: "there are several providers of type bedrock: " + strings.Join(names, ", "), Hint: "use a separate --config file for each"}
	}
}

// resources returns the Bedrock resources that the configuration uses of a provider.
func (c *Config) resources(name string) bedrock.Resources {
	aws := c.Providers[name].AWS
	r := bedrock.Resources{Account: aws.AccountID, Profiles: aws.InferenceProfiles}
	add := func(to *[]string, model string) {
		if model != "" && !slices.Contains(*to, model) {
			*to = append(*to, model)
		}
	}
	choices := append(slices.Collect(maps.Values(c.Roles)), c.Embedding)
	if c.Verifier.Model != Guardrail {
		choices = append(choices, c.Verifier)
	}
	for _, choice := range choices {
		if choice.Provider == name {
			add(&r.Models, choice.Model)
		}
	}
	slices.Sort(r.Models) // equal configurations have equal policies
	if c.Rerank.Provider == name {
		add(&r.Rerankers, c.Rerank.Model)
	}
	if aws.GuardrailID != "" {
		r.Guardrails = []string{aws.GuardrailID}
	}
	for _, id := range aws.KnowledgeBases {
		r.KnowledgeBases = append(r.KnowledgeBases, bedrock.KnowledgeBase{ID: id})
	}
	for _, a := range aws.Agents {
		r.Agents = append(r.Agents, a.ID+"/"+a.Alias)
	}
	for _, s := range c.Services {
		k := s.in.KnowledgeBase
		if _, provider := s.in.aws(); k == nil || provider != name {
			continue
		}
		base := bedrock.KnowledgeBase{ID: k.ID, RerankModel: k.Rerank}
		if k.Implicit != nil {
			base.ImplicitModel = k.Implicit.Model
		}
		r.KnowledgeBases = append(slices.DeleteFunc(r.KnowledgeBases, func(other bedrock.KnowledgeBase) bool { return other.ID == k.ID }), base)
	}
	if m := c.Managed; m != nil && m.Provider == name && m.KnowledgeBase != "" {
		if !slices.ContainsFunc(r.KnowledgeBases, func(k bedrock.KnowledgeBase) bool { return k.ID == m.KnowledgeBase }) {
			r.KnowledgeBases = append(r.KnowledgeBases, bedrock.KnowledgeBase{ID: m.KnowledgeBase})
		}
		r.Answers = map[string]string{m.KnowledgeBase: m.Generation.Model}
	} else if m != nil && m.Provider == name {
		add(&r.Agents, m.Agent.ID+"/"+m.Agent.Alias)
	}
	return r
}
