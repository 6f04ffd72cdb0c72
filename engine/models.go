package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
	"github.com/assay-rag/assay/role/prompted"
	"github.com/assay-rag/assay/strategy"
)

// Models are the language models at hand. The zero Models are none: every role is
// done locally.
type Models struct {
	// Roles says which model does which role, by the role's name (role.PlannerRole, …).
	// A role that is not here is done locally. The verifier's must not be the
	// generator's.
	Roles map[string]llm.Model

	// Small writes the first draft of the answer to a question that the router calls
	// simple; what of it does not stand goes to the generator, which writes all other
	// answers. It must not be the verifier's model; nil: the generator writes all.
	Small llm.Model

	// Verifier judges claims instead of the local verifier, where Roles names none: a
	// ground.Service, for example, that must not be the generator's model either.
	Verifier ground.Verifier

	// Domain adds a team's words and rules to the prompts, and other words for what is
	// searched; nil: there are none.
	Domain *prompted.Domain

	// Held says how likely passages hold the answer to a question, for the local grader;
	// nil: the model in the program.
	Held *local.HeldModel

	// Reranker orders the best hits of a search; nil: the learned one in the program,
	// which also stands in where this one fails.
	Reranker llm.Reranker
}

// roleNames are the roles that a model can do.
var roleNames = []string{
	role.PlannerRole, role.RewriterRole, role.RouterRole, role.GraderRole, role.QuerierRole, role.AnalystRole, role.ReflectorRole,
	role.JudgeRole, role.CriticRole, role.GeneratorRole, role.VerifierRole, role.ExtractorRole, role.SummariserRole, role.ComparerRole,
	role.ScorerRole, role.RetrievalGraderRole, role.SupportGraderRole, role.ClarifierRole, role.ActorRole, role.AnswerGraderRole,
}

// RoleNames lists the roles that a model can do.
func RoleNames() []string { return slices.Clone(roleNames) }

// check says what is wrong with m, as assay.ErrInvalid.
func (m Models) check() error {
	for _, name := range slices.Sorted(maps.Keys(m.Roles)) {
		if !slices.Contains(roleNames, name) {
			return fmt.Errorf("there is no role %q; the roles are %v: %w", name, roleNames, assay.ErrInvalid)
		}
		if m.Roles[name] == nil {
			return fmt.Errorf("the role %s has no model: %w", name, assay.ErrInvalid)
		}
	}
	if m.Held != nil {
		if err := m.Held.Check(); err != nil {
			return fmt.Errorf("the model that says how likely passages hold an answer: %w", err)
		}
	}
	verifier := ""
	if v := m.Roles[role.VerifierRole]; v != nil {
		if m.Verifier != nil {
			return fmt.Errorf("two verifiers are given: the model %s and a service: %w", v.Model(), assay.ErrInvalid)
		}
		verifier = v.Model()
	} else if s, ok := m.Verifier.(ground.Service); ok {
		verifier = s.Model()
	}
	if g := m.Roles[role.GeneratorRole]; g != nil && g.Model() == verifier {
		return fmt.Errorf("%s cannot verify what it has written itself: the verifier has to be another model, a service, or local: %w", verifier, assay.ErrInvalid)
	}
	switch {
	case m.Small == nil:
		return nil
	case m.Roles[role.GeneratorRole] == nil:
		return fmt.Errorf("%s is to write what is simple, and no model is the generator that writes the rest: %w", m.Small.Model(), assay.ErrInvalid)
	case m.Small.Model() == verifier:
		return fmt.Errorf("%s cannot verify what it has written itself: the verifier has to be another model than the small generator, a service, or local: %w", verifier, assay.ErrInvalid)
	}
	return nil
}

// none reports whether nothing is asked of a model.
func (m Models) none() bool { return len(m.Roles) == 0 && m.Verifier == nil && m.Reranker == nil }

// unless is m, or none where a question is to be answered without them.
func (m Models) unless(local bool) Models {
	if local {
		return Models{Held: m.Held}
	}
	return m
}

// named returns which model does which role; those that are not in it are done locally.
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

// A recipe is what decides who does the jobs of a run, beside the models.
type recipe struct {
	keys    []prompted.Key // of the metadata, that a plan may use
	proof   bool           // see strategy.Env
	encoder ground.Encoder // for what reads by vectors of tokens; nil: words alone
}

// verifier is who judges claims where no model does.
func (r recipe) verifier() ground.Verifier {
	if r.proof {
		return sure{ground.Learned{Encoder: r.encoder}}
	}
	return ground.Local{}
}

// leastShown is the least probability with which a claim is shown, whatever the verifier's
// own floor is: the least, in steps of 0.05, at which 99 of 100 changed answers for
// development are refused (docs/evaluation.md).
const leastShown = 0.7

// sure is the learned verifier where it is that sure of a claim.
type sure struct{ ground.Learned }

// Verify implements ground.Verifier.
func (v sure) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	j, err := v.Learned.Verify(ctx, claim, cited)
	if j.Verdict == assay.Supported && j.Score < leastShown {
		j.Verdict, j.Reason = assay.Unsupported, "the source may say it in other words, which is not sure enough"
	}
	return j, err
}

// roles are those that do the jobs: by a model where there is one, else locally.
func (m Models) roles(r recipe) strategy.Roles {
	roles := strategy.Roles{
		Planner:   local.Planner{},
		Grader:    local.Grader{Encoder: r.encoder, Held: m.Held},
		Generator: local.Generator{},
		Verifier:  role.ByClaim(r.verifier()),
		Quoter:    local.Generator{},
		Router:    local.Router{},
		Querier:   local.Querier{},
		Analyst:   local.Analyst{},
		Reflector: local.Reflector{},
		Judge:     local.Judge{},
		Critic:    local.Critic{},
		Clarifier: local.Clarifier{},
		Rewriter:  local.Rewriter{Words: m.Domain.Variants},

		RetrievalGrader: local.RetrievalGrader{},
		SupportGrader:   local.SupportGrader{},
		AnswerGrader:    local.AnswerGrader{},

		Actor:      local.Actor{},
		Extractor:  local.Extractor{},
		Comparer:   local.Comparer{},
		Summariser: local.Summariser{},
		Models:     m.named(),
	}
	roles.Scorer = local.Scorer{}
	if m.Verifier != nil {
		roles.Verifier = role.ByClaim(m.Verifier)
	}
	by := func(name string) (prompted.Config, bool) {
		model := m.Roles[name]
		return prompted.Config{Model: model, Domain: m.Domain}, model != nil
	}
	if c, ok := by(role.PlannerRole); ok {
		roles.Planner = prompted.Planner{Config: c, Local: local.Planner{}, Keys: r.keys}
	}
	if c, ok := by(role.GraderRole); ok {
		roles.Grader = prompted.Grader{Config: c, Local: local.Grader{Encoder: r.encoder, Held: m.Held}}
	}
	if c, ok := by(role.GeneratorRole); ok {
		roles.Generator = prompted.Generator{Config: c, Local: local.Generator{}}
	}
	if m.Small != nil { // where it fails the generator writes, and not the local one
		roles.Small = prompted.Generator{Config: prompted.Config{Model: m.Small, Domain: m.Domain}}
	}
	if c, ok := by(role.VerifierRole); ok {
		roles.Verifier = prompted.Verifier{Config: c}
	}
	if c, ok := by(role.RewriterRole); ok {
		roles.Rewriter = prompted.Rewriter{Config: c, Local: local.Rewriter{Words: m.Domain.Variants}}
	}
	if c, ok := by(role.ClarifierRole); ok {
		roles.Clarifier = prompted.Clarifier{Config: c, Local: local.Clarifier{}}
	}
	if c, ok := by(role.RouterRole); ok {
		roles.Router = prompted.Router{Config: c, Local: local.Router{}}
	}
	if c, ok := by(role.QuerierRole); ok {
		roles.Querier = prompted.Querier{Config: c, Local: local.Querier{}}
	}
	if c, ok := by(role.ScorerRole); ok {
		roles.Scorer = prompted.Scorer{Config: c, Local: local.Scorer{}}
	}
	if c, ok := by(role.RetrievalGraderRole); ok {
		roles.RetrievalGrader = prompted.RetrievalGrader{Config: c, Local: local.RetrievalGrader{}}
	}
	if c, ok := by(role.SupportGraderRole); ok {
		roles.SupportGrader = prompted.SupportGrader{Config: c, Local: local.SupportGrader{}}
	}
	if c, ok := by(role.AnswerGraderRole); ok {
		roles.AnswerGrader = prompted.AnswerGrader{Config: c, Local: local.AnswerGrader{}}
	}
	if c, ok := by(role.AnalystRole); ok {
		roles.Analyst = prompted.Analyst{Config: c, Local: local.Analyst{}}
	}
	if c, ok := by(role.ReflectorRole); ok {
		roles.Reflector = prompted.Reflector{Config: c, Local: local.Reflector{}}
	}
	if c, ok := by(role.JudgeRole); ok {
		roles.Judge = prompted.Judge{Config: c, Local: local.Judge{}}
	}
	if c, ok := by(role.CriticRole); ok {
		roles.Critic = prompted.Critic{Config: c, Local: local.Critic{}}
	}
	if c, ok := by(role.ExtractorRole); ok {
		roles.Extractor = prompted.Extractor{Config: c, Local: local.Extractor{}}
	}
	if c, ok := by(role.SummariserRole); ok {
		roles.Summariser = prompted.Summariser{Config: c, Local: local.Summariser{}}
	}
	if c, ok := by(role.ComparerRole); ok {
		roles.Comparer = prompted.Comparer{Config: c, Local: local.Comparer{}}
	}
	if c, ok := by(role.ActorRole); ok {
		roles.Actor = prompted.Actor{Config: c, Local: local.Actor{}}
	}
	return roles
}

// Equip fills in who does the jobs of a strategy that is driven without an engine, how
// much of the evidence they read, and that the run begins today.
func (m Models) Equip(env strategy.Env) strategy.Env {
	env.Roles, env.Sections, env.FloorFirst = m.roles(recipe{proof: true}), m.sections(), true
	env.Carriers, env.Siblings, env.Proof = true, true, true
	env.Outline, _ = m.outline(context.Background(), env.Question) // it asks nobody, so it does not fail
	env.Limits.ContextTokens, env.Limits.Keep = m.contextTokens(), m.keep()
	env.Began = m.named()
	env.Writer, env.SmallWriter = m.named()[role.GeneratorRole], m.named()[strategy.SmallGenerator]
	return env
}

// outline returns the plan that follows from a question alone, by its grammar; nil where a
// model plans. It returns an error only when ctx has ended.
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

// prompt returns which prompt a role is asked with today; empty: with none.
func (m Models) prompt(name string) string { return m.prompted(name, name) }

// prompted is that of a template of the role.
func (m Models) prompted(name, template string) string {
	model := m.Roles[name]
	if model == nil {
		return ""
	}
	return prompted.Config{Model: model, Domain: m.Domain}.Prompt(template)
}

// sections are the headings that an answer may have.
func (m Models) sections() []string {
	if m.Domain == nil || m.Roles[role.GeneratorRole] == nil {
		return nil
	}
	return m.Domain.Sections()
}

// How much of the evidence a generator is given to read follows its window: of what
// is left beside prompt and reply two thirds, since counts of tokens differ, and as
// much as all the evidence of a run at most.
const (
	promptAndReply = 3000
	mostContext    = 12000
	leastContext   = 300
)

// contextTokens returns that number of tokens; 0: the strategy's own.
func (m Models) contextTokens() int {
	model := m.Roles[role.GeneratorRole]
	if model == nil {
		return 0
	}
	window := llm.FactsOf(model).Window
	if m.Small != nil { // what both can read
		if small := llm.FactsOf(m.Small).Window; small > 0 && (window <= 0 || small < window) {
			window = small
		}
	}
	if window <= 0 {
		return 0
	}
	return min(max((window-promptAndReply)*2/3, leastContext), mostContext)
}

// readKeep is how many of the hits of a sub-question become evidence where a model says
// which are relevant and a model reads them: as many as a search brings.
const readKeep = 20

// keep returns that number; 0: the strategy's own.
func (m Models) keep() int {
	if m.Roles[role.GraderRole] == nil || m.Roles[role.GeneratorRole] == nil {
		return 0
	}
	return readKeep
}

// checkPriced refuses a limit to what a run may cost where something is asked whose
// price is not known: nobody could keep to it.
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
	// What is no service is in this program, and free.
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

// checkPriced is that of the models and of the encoder that serves now.
func (e *Engine) checkPriced(ctx context.Context, m Models) error {
	chosen, err := e.chooser.choose(ctx)
	if err != nil {
		return err
	}
	return m.checkPriced(chosen.embedder)
}
