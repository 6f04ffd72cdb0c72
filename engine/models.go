package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// Models are the configured language models. With the zero Models every role is done locally.
type Models struct {
	// Roles maps the name of a role (role.PlannerRole, …) to its model. A role without a model is
	// done locally, except the verifier: if a model is the generator and no verifier is named,
	// the generator's model also verifies. It does so in separate conversations, each of which
	// holds one claim's sources and no part of the generator's conversation. The local verifier
	// rechecks claims that a model has verified.
	Roles map[string]llm.Model

	// Small writes the first draft of the answer to a question that the router calls simple. If
	// its claims fail verification, the generator writes the answer, as it does for all other
	// questions. nil: the generator writes all answers.
	Small llm.Model

	// Verifier judges claims if Roles names no verifier; nil: the generator's model, or the local
	// verifier if no model is the generator. The local verifier rechecks claims that a
	// ground.Service has verified. Answers are not cached if it is neither a ground.Service, whose
	// Model must name its thresholds, nor ground.Local.
	Verifier ground.Verifier

	// LocalVerifier makes the local verifier the only one, even for claims that a model wrote.
	LocalVerifier bool

	// Domain adds a team's vocabulary and rules to the prompts, and synonyms to the searches;
	// nil: none.
	Domain *Domain

	// Reranker orders the best hits of a search; nil: the built-in learned ranker, which is also
	// the fallback if Reranker fails.
	Reranker llm.Reranker
}

// roleNames are the roles that a model can do.
var roleNames = role.Names()

// RoleNames returns the names of the roles that a model can do.
func RoleNames() []string { return role.Names() }

// check returns assay.ErrInvalid if m is inconsistent.
func (m Models) check() error {
	for _, name := range slices.Sorted(maps.Keys(m.Roles)) {
		if !slices.Contains(roleNames, name) {
			return fmt.Errorf("there is no role %q; the roles are %v: %w", name, roleNames, assay.ErrInvalid)
		}
		if m.Roles[name] == nil {
			return fmt.Errorf("the role %s has no model: %w", name, assay.ErrInvalid)
		}
	}
	named := m.Roles[role.VerifierRole]
	switch {
	case named != nil && m.Verifier != nil:
		return fmt.Errorf("two verifiers are given: the model %s and a service: %w", named.Model(), assay.ErrInvalid)
	case m.LocalVerifier && (named != nil || m.Verifier != nil):
		return fmt.Errorf("two verifiers are given: the local one, and another: %w", assay.ErrInvalid)
	case m.Small != nil && m.Roles[role.GeneratorRole] == nil:
		return fmt.Errorf("%s is the small generator, and no model is the generator: %w", m.Small.Model(), assay.ErrInvalid)
	}
	return nil
}

// withVerifier returns m with the default verifier model among its Roles.
func (m Models) withVerifier() Models {
	generator := m.Roles[role.GeneratorRole]
	if generator == nil || m.Roles[role.VerifierRole] != nil || m.Verifier != nil || m.LocalVerifier {
		return m
	}
	m.Roles = maps.Clone(m.Roles)
	m.Roles[role.VerifierRole] = generator
	return m
}

// none reports whether m has no model for any role, no verifier and no reranker.
func (m Models) none() bool { return len(m.Roles) == 0 && m.Verifier == nil && m.Reranker == nil }

// unless returns m with its default verifier, or the zero Models if local is true.
func (m Models) unless(local bool) Models {
	if local {
		return Models{}
	}
	return m.withVerifier()
}

// named returns the names of the models by role. Roles without an entry are done locally.
func (m Models) named() map[string]string {
	names := map[string]string{}
	for _, name := range roleNames {
		if model := m.Roles[name]; model != nil {
			names[name] = model.Model()
		}
	}
	if s, ok := m.Verifier.(ground.Service); ok {
		names[role.VerifierRole] = s.Model()
	}
	if m.Small != nil {
		names[strategy.SmallGenerator] = m.Small.Model()
	}
	return names
}

// verifierNamed reports whether the verifier's name and type distinguish it from all others.
func (m Models) verifierNamed() bool {
	switch m.Verifier.(type) {
	case nil, ground.Service, ground.Local:
		return true
	}
	return false
}

// roleOptions are what the roles of a run need besides the models.
type roleOptions struct {
	keys   []prompted.Key // metadata keys that a plan may use
	reader llm.Reader     // nil: none; also nil in a replay, whose journal holds the readings
}

// verifier returns the verifier for claims that no model judges.
func (r roleOptions) verifier() ground.Verifier {
	return LocalVerifier(r.reader)
}

// LocalVerifier returns the verifier that judges claims without a language model. reader may be
// nil.
func LocalVerifier(reader llm.Reader) ground.Local { return ground.Local{Reader: reader} }

// roles returns an implementation of each role: by its model if it has one, otherwise local.
func (m Models) roles(r roleOptions) strategy.Roles {
	verifier := r.verifier()
	rewriter, judge := local.Rewriter{Words: m.Domain.Variants}, local.Judge{Reader: r.reader, Verifier: verifier}
	roles := strategy.Roles{
		Planner:   local.Planner{},
		Rewriter:  rewriter,
		Grader:    local.Grader{Reader: r.reader},
		Generator: local.Generator{Reader: r.reader},
		Verifier:  role.ByClaim(verifier),
		Judge:     judge,
		Actor:     local.Actor{Reader: r.reader},

		Reader:        r.reader,
		Quoter:        local.Generator{Reader: r.reader},
		QuoteVerifier: role.ByClaim(verifier),
		Relevance:     judge,
		Models:        m.named(),
	}
	if m.Verifier != nil {
		roles.Verifier = role.ByClaim(m.Verifier)
	}
	if service, ok := m.Verifier.(ground.Service); ok {
		roles.Verifier = role.Guarded(roles.Verifier, r.verifier())
		roles.Relevance = role.LowerOf(role.RelevanceBy(service), judge)
	}
	if m.Small != nil { // without a local fallback: the generator is the fallback
		roles.Small = prompted.Generator{Config: prompted.Config{Model: m.Small, Domain: m.Domain}}
	}
	for name, model := range m.Roles {
		c := prompted.Config{Model: model, Domain: m.Domain}
		switch name {
		case role.PlannerRole:
			roles.Planner = prompted.Planner{Config: c, Local: local.Planner{}, Keys: r.keys}
		case role.RewriterRole:
			roles.Rewriter = prompted.Rewriter{Config: c, Local: rewriter}
		case role.GraderRole:
			roles.Grader = prompted.Grader{Config: c, Local: local.Grader{Reader: r.reader}}
		case role.GeneratorRole:
			roles.Generator = prompted.Generator{Config: c, Local: local.Generator{Reader: r.reader}}
		case role.VerifierRole:
			roles.Verifier = role.Guarded(prompted.Verifier{Config: c}, r.verifier())
		case role.JudgeRole:
			roles.Judge = prompted.Judge{Config: c, Local: judge}
		case role.ActorRole:
			roles.Actor = prompted.Actor{Config: c, Local: local.Actor{Reader: r.reader}}
		}
	}
	return roles
}

// Equip sets the roles of a strategy that runs without an engine, and the limits of the evidence
// that they read. It uses the reader in env.Roles.Reader.
func (m Models) Equip(env strategy.Env) strategy.Env {
	m = m.withVerifier()
	env.Roles, env.Sections = m.roles(roleOptions{reader: env.Roles.Reader}), m.sections()
	if env.Roles.Reader != nil {
		env.ReaderModel = env.Roles.Reader.Model()
	}
	env.Outline, _ = m.outline(context.Background(), env.Question) // the local planner fails only if its context ends
	env.Limits.ContextTokens, env.Limits.Keep = m.contextTokens(), m.keep()
	env.Began = m.named()
	return env
}

// unavailableReader is the reader of a resumed run whose reader is no longer configured. Its
// methods fail.
type unavailableReader string

// Model implements llm.Reader.
func (r unavailableReader) Model() string { return string(r) }

// Read implements llm.Reader.
func (r unavailableReader) Read(context.Context, string, []llm.Excerpt) ([]llm.Reading, error) {
	return nil, r.failure()
}

// Entail implements llm.Reader.
func (r unavailableReader) Entail(context.Context, []llm.ClaimPair) ([]llm.Entailment, error) {
	return nil, r.failure()
}

func (r unavailableReader) failure() error {
	return fmt.Errorf("the reader %s is not available: %w", string(r), assay.ErrUnavailable)
}

// outline returns the plan that the local planner derives from the grammar of the question. It
// returns nil if a model is the planner. The only error is that ctx has ended.
func (m Models) outline(ctx context.Context, question string) (*role.Plan, error) {
	if m.Roles[role.PlannerRole] != nil {
		return nil, nil
	}
	plan, err := local.Planner{}.Plan(ctx, nil, question)
	if err != nil {
		return nil, err
	}
	return &plan, nil
}

// prompt returns the ID of the prompt that a task's model gets now; empty: the role has no model.
func (m Models) prompt(task string) string {
	return m.prompted(role.Of(task), task)
}

// prompted returns the ID of the prompt made from one of the role's templates.
func (m Models) prompted(name, template string) string {
	model := m.Roles[name]
	if model == nil {
		return ""
	}
	return prompted.Config{Model: model, Domain: m.Domain}.Prompt(template)
}

// sections returns the headings that an answer may have.
func (m Models) sections() []string {
	if m.Domain == nil || m.Roles[role.GeneratorRole] == nil {
		return nil
	}
	return m.Domain.Sections()
}

// The evidence that a generator reads is limited by its context window. It gets two thirds of the
// window that prompt and reply leave, because token counts differ between models, and at most the
// total evidence of a run.
const (
	promptAndReply = 3000
	mostContext    = 12000
	leastContext   = 300
)

// contextTokens returns that limit in tokens; 0: the strategy's default.
func (m Models) contextTokens() int {
	model := m.Roles[role.GeneratorRole]
	if model == nil {
		return 0
	}
	window := llm.FactsOf(model).Window
	if m.Small != nil { // the smaller of both windows
		if small := llm.FactsOf(m.Small).Window; small > 0 && (window <= 0 || small < window) {
			window = small
		}
	}
	if window <= 0 {
		return 0
	}
	return min(max((window-promptAndReply)*2/3, leastContext), mostContext)
}

// readKeep is how many hits of a sub-question become evidence if models are both grader and
// generator. It is as many as a search returns.
const readKeep = 20

// keep returns readKeep if it applies; 0: the strategy's default.
func (m Models) keep() int {
	if m.Roles[role.GraderRole] == nil || m.Roles[role.GeneratorRole] == nil {
		return 0
	}
	return readKeep
}

// checkPriced rejects a cost limit if the price of a configured model or service is unknown,
// because such a limit cannot be enforced.
func (m Models) checkPriced(encoder llm.Embedder) error {
	unpriced := func(what string, v any) error {
		if llm.FactsOf(v).Priced {
			return nil
		}
		return fmt.Errorf("the price of %s is not known, so the cost of a run cannot be limited: configure its price, or limit calls or tokens: %w", what, assay.ErrInvalid)
	}
	for _, name := range roleNames {
		if model := m.Roles[name]; model != nil {
			if err := unpriced(model.Model(), model); err != nil {
				return err
			}
		}
	}
	if m.Small != nil {
		if err := unpriced(m.Small.Model(), m.Small); err != nil {
			return err
		}
	}
	if s, ok := m.Verifier.(ground.Service); ok {
		if err := unpriced(s.Model(), s); err != nil {
			return err
		}
	}
	// Rerankers and encoders that are not services run in this process and cost nothing.
	if isService(m.Reranker) {
		if err := unpriced(m.Reranker.Model(), m.Reranker); err != nil {
			return err
		}
	}
	if isService(encoder) {
		return unpriced(encoder.Model(), encoder)
	}
	return nil
}

// checkPriced checks the models and the serving encoder.
func (e *Engine) checkPriced(ctx context.Context, m Models) error {
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil {
		return err
	}
	return m.checkPriced(chosen.embedder)
}
