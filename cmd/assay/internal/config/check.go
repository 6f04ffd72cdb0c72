package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A Check is the result of one check.
type Check struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Detail string   `json:"detail"`          // finding, for people
	Hint   string   `json:"hint,omitempty"`  // remedy if OK is false
	Model  string   `json:"model,omitempty"` // model that was tried, or "local"
	Roles  []string `json:"roles,omitempty"` // roles of the model
	Err    error    `json:"-"`
}

// tryTimeout bounds the trial of a model. slowTimeout bounds that of a model on this machine, which
// may have to be loaded first.
const (
	tryTimeout  = 20 * time.Second
	slowTimeout = time.Minute
)

// MaxTrial is about the longest time that Check takes. All trials run concurrently.
const MaxTrial = slowTimeout

// patience returns the time limit for trying a provider.
func (p *Provider) patience() time.Duration {
	if p.onThisMachine() {
		return slowTimeout
	}
	return tryTimeout
}

// Check reports which model serves each role. Unless offline is set, it tries each model once, with
// a very small call.
func (s *Set) Check(ctx context.Context, offline bool) []Check {
	x := &examination{s: s, ctx: ctx, offline: offline}
	x.configuration()
	x.models()
	x.add(x.verifier)
	x.add(x.embedding)
	x.add(x.reranker)
	x.add(x.web)
	x.add(x.managed)
	x.add(x.services)
	return x.wait()
}

type examination struct {
	s       *Set
	ctx     context.Context
	offline bool
	checks  []func() Check // each waits for its own result
}

// add starts a check, concurrently with the others.
func (x *examination) add(check func() Check) {
	done := make(chan Check, 1)
	go func() { done <- check() }() // ends at the trial's time limit
	x.checks = append(x.checks, func() Check { return <-done })
}

// wait waits for all checks and returns them in the order in which they were added.
func (x *examination) wait() []Check {
	var out []Check
	for _, check := range x.checks {
		c := check()
		c.Detail, c.Hint = x.s.c.Secrets.Scrub(c.Detail), x.s.c.Secrets.Scrub(c.Hint)
		out = append(out, c)
	}
	return out
}

// say adds a finished check.
func (x *examination) say(c Check) { x.checks = append(x.checks, func() Check { return c }) }

// configuration reports which file was read, and warnings about it.
func (x *examination) configuration() {
	detail := "no file; environment variables only"
	if x.s.c.Path != "" {
		detail = x.s.c.Path
	}
	x.say(Check{Name: "configuration", OK: true, Detail: detail})
	for _, w := range append(slices.Clone(x.s.c.Warnings), x.s.c.unused()...) {
		x.say(Check{Name: "configuration", OK: true, Detail: "warning: " + w})
	}
}

// unused returns warnings about models in the file that no role uses, which may be typing errors.
// Embedding models are left out, because a data directory may use them.
func (c *Config) unused() []string {
	if c.getenv("ASSAY_MODEL") != "" {
		return nil // the variable overrides the file
	}
	asked := map[string]bool{}
	for _, choice := range append(slices.Collect(maps.Values(c.Roles)), c.Verifier, c.Embedding, c.Rerank) {
		asked[choice.Name()] = true // a bare provider name covers all its models
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(c.file.Models)) {
		m := c.file.Models[name]
		provider, _, _ := strings.Cut(name, "/")
		vectors := m.Dimensions > 0 || m.MaxTokens > 0 || m.QueryPrefix+m.PassagePrefix != ""
		if !asked[name] && !asked[provider] && !vectors {
			warnings = append(warnings, fmt.Sprintf("%s:%d: models.%s is not used by any role", c.Path, c.file.line("models", name), name))
		}
	}
	return warnings
}

// models tries each language model once, regardless of how many roles it serves.
func (x *examination) models() {
	byModel := map[string][]string{}
	choices := map[string]Choice{}
	for name, choice := range x.s.c.Roles {
		byModel[choice.Name()] = append(byModel[choice.Name()], name)
		choices[choice.Name()] = choice
	}
	for _, name := range slices.Sorted(maps.Keys(byModel)) {
		roles := byModel[name]
		slices.SortFunc(roles, func(a, b string) int { return slices.Index(roleOrder, a) - slices.Index(roleOrder, b) })
		c := Check{Name: "model", Model: name, Roles: roles}
		if choice := choices[name]; choice.IsLocal() {
			c.OK, c.Detail = true, "local; no model is called ("+choice.Why+")"
		} else {
			x.add(func() Check {
				x.model(&c, choice)
				return c
			})
			continue
		}
		x.say(c)
	}
}

// roleOrder is the order in which roles are listed. It follows the steps of answering a question.
var roleOrder = []string{
	role.PlannerRole, role.RewriterRole, role.GraderRole, role.GeneratorRole, smallGenerator, role.VerifierRole, role.JudgeRole, role.ActorRole,
}

// model tries a language model.
func (x *examination) model(c *Check, choice Choice) {
	if x.offline {
		_, err := x.s.endpoint(choice.Provider)
		x.outcome(c, choice, err, "not tried")
		return
	}
	m, err := x.s.Model(x.ctx, choice)
	if err != nil {
		x.outcome(c, choice, err, "")
		return
	}
	c.Model = m.Model()
	ctx, cancel := x.trial(choice)
	defer cancel()
	began := time.Now()
	r, err := m.Generate(ctx, llm.Request{
		System:   "This is a test of the connection.",
		Messages: []llm.Message{{Speaker: llm.User, Text: "Reply with the word: ok"}}, MaxTokens: 64, Attempts: 1,
	}, nil)
	detail := fmt.Sprintf("replied in %.1f s", time.Since(began).Seconds())
	if r.Served != "" && r.Served != strings.TrimPrefix(m.Model(), choice.Provider+"/") {
		detail += ", as " + r.Served
	}
	if f := llm.FactsOf(m); f.Window > 0 {
		detail += fmt.Sprintf("; context window %d tokens", f.Window)
	} else {
		detail += fmt.Sprintf("; unknown context window, assumed to be 8192 tokens (to set it: models: {%s: {window: N}})", m.Model())
	}
	if choice.Model == "" {
		if d := x.discovered(choice); d.others > 0 {
			detail += fmt.Sprintf("; the first of %d models on its server (to choose another: ASSAY_MODEL=%s/NAME)", d.others+1, choice.Provider)
		}
	}
	x.outcome(c, choice, x.timedOut(ctx, err), detail)
}

// discovered returns the model that a provider serves if none is named.
func (x *examination) discovered(choice Choice) discovery {
	e, err := x.s.endpoint(choice.Provider)
	if err != nil {
		return discovery{err: err}
	}
	return x.s.discover(x.ctx, choice.Provider, e)
}

// trial returns a context with the time limit for trying a provider.
func (x *examination) trial(choice Choice) (context.Context, context.CancelFunc) {
	d := x.s.c.Providers[choice.Provider].patience()
	return context.WithTimeoutCause(x.ctx, d, &llm.Error{Kind: llm.TimedOut, Message: "no reply within " + d.String()})
}

// timedOut returns the cause if err is due to the trial's own time limit, and err otherwise.
func (x *examination) timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && x.ctx.Err() == nil {
		return context.Cause(ctx)
	}
	return err
}

// outcome completes a check with the result of a trial.
func (x *examination) outcome(c *Check, choice Choice, err error, fine string) {
	p := x.s.c.Providers[choice.Provider]
	if err == nil {
		c.OK = true
		c.Detail = fmt.Sprintf("%s (%s; %s)", fine, choice.Why, p.keyWords())
		return
	}
	c.Err = err
	c.Detail, c.Hint = x.advice(p, choice, err)
	if c.Name == "verifier" { // it has no local fallback
		c.Hint = strings.Replace(c.Hint, "the local roles stand in", "claims of models are not shown", 1)
	}
	c.Detail += fmt.Sprintf(" (%s; %s)", choice.Why, p.keyWords())
}

// keyWords returns where a provider's key was read. It never contains the key.
func (p *Provider) keyWords() string {
	switch {
	case p.Type == Bedrock:
		return "credentials from the AWS default chain"
	case p.Key.Empty():
		return "without a key"
	}
	return "key from " + p.Key.From
}

// advice describes an error for people and returns a remedy, if it knows one.
func (x *examination) advice(p *Provider, choice Choice, err error) (detail, hint string) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Error(), e.Hint
	}
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err.Error(), ""
	}
	said := ""
	if failed.Message != "" {
		said = ": " + failed.Message
	}
	if failed.RetryAfter >= time.Second {
		said += "; it asks to retry after " + failed.RetryAfter.Round(time.Second).String()
	}
	at := p.address()
	switch failed.Kind {
	case llm.BadKey:
		if p.Key.Empty() && p.Type != Bedrock {
			return at + " needs a key, and none is configured" + said, "set key_env or key_file under providers." + p.Name
		}
		if p.Type == Bedrock && failed.Status == 0 {
			return "AWS was not called" + said, "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in with the AWS CLI"
		}
		if p.Type == Bedrock {
			return "AWS rejects these credentials, or they lack a permission" + said, "to see the permissions they need, run: assay doctor --iam-policy"
		}
		return at + " rejects the key from " + p.Key.From + said, "check that the key is complete, valid and of this provider"
	case llm.NoModel:
		return fmt.Sprintf("%s has no model %s%s", at, shown(choice.Model), said), x.offer(p, choice)
	case llm.Unreachable:
		if strings.Contains(failed.Message, "does not look like a TLS handshake") {
			return at + " does not speak HTTPS" + said, "if it is your own server, use http:// in base_url"
		}
		return "cannot connect to " + at + said, p.startHint()
	case llm.BadRequest:
		if p.Type == Bedrock && strings.Contains(failed.Message, "region") {
			return string(failed.Kind) + said, "set AWS_REGION, or region under providers." + p.Name + ".aws"
		}
	case llm.NoQuota:
		return "the account has no quota or credit left" + said, "check the provider's billing page"
	case llm.RateLimited:
		return "rate limit exceeded" + said, "wait and try again, or set limits under providers." + p.Name
	case llm.TimedOut:
		if p.onThisMachine() {
			return cmp.Or(failed.Message, "no reply in time"), "the model may still be loading; try again"
		}
		return cmp.Or(failed.Message, "no reply in time"), "try again, or check the network and the provider's status page"
	case llm.Overloaded, llm.ServerError, llm.BrokeOff, llm.Open:
		return "the provider failed (" + string(failed.Kind) + ")" + said, "try again later; until then the local roles stand in"
	case llm.BadReply, llm.TooLarge:
		return at + " does not reply in the format of " + p.Type + said, "check base_url; most end in /v1"
	}
	return string(failed.Kind) + said, ""
}

// address returns where a provider is reached, for people.
func (p *Provider) address() string {
	base := p.BaseURL
	if base == "" {
		base = kinds[p.Type].url
	}
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	if p.AWS.Region != "" {
		return "Bedrock in " + p.AWS.Region
	}
	return p.Name
}

// startHint returns advice for an endpoint that cannot be reached.
func (p *Provider) startHint() string {
	switch {
	case !p.onThisMachine():
		return "check the network, HTTPS_PROXY, and base_url under providers." + p.Name
	case p.Name == ollama || strings.Contains(p.BaseURL, ":11434"):
		return "if Ollama is not running, start it with: ollama serve"
	}
	return "check that the server is running"
}

// offer lists models that the server has, as alternatives to the missing one.
func (x *examination) offer(p *Provider, choice Choice) string {
	e, err := x.s.endpoint(p.Name)
	if err != nil || e.list == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(x.ctx, listTimeout)
	defer cancel()
	all, err := e.list(ctx)
	if err != nil || len(all) == 0 {
		if p.Name == ollama {
			return "install one with: ollama pull NAME"
		}
		return ""
	}
	var offered []string
	for _, m := range all {
		offered = append(offered, m.Name)
	}
	if near := Similar(choice.Model, offered); len(near) > 0 {
		return "available: " + strings.Join(near, ", ")
	}
	return "available: " + someOf(all)
}

// verifier tries the verifier, unless it is local.
func (x *examination) verifier() Check {
	v := x.s.c.Verifier
	c := Check{Name: "verifier", Model: v.Name(), Roles: []string{role.VerifierRole}}
	switch {
	case v.IsLocal():
		c.OK, c.Detail = true, "local; no model is called ("+v.Why+")"
	case v.Model == Guardrail:
		x.guardrail(&c, v)
	default:
		x.model(&c, v)
	}
	return c
}

func (x *examination) guardrail(c *Check, choice Choice) {
	service, err := x.s.Guardrail(choice.Provider)
	if err != nil || x.offline {
		x.outcome(c, choice, err, "not tried")
		return
	}
	c.Model = service.Model()
	ctx, cancel := x.trial(choice)
	defer cancel()
	passage := ground.Passage{Quote: "The office is in Bern.", Context: "The office is in Bern."}
	_, err = service.Verify(ctx, "The office is in Bern.", []ground.Passage{passage})
	x.outcome(c, choice, x.timedOut(ctx, err), "judges claims")
}

// embedding tries the configured encoder.
func (x *examination) embedding() Check {
	choice := x.s.c.Embedding
	c := Check{Name: "embedding", Model: choice.Name()}
	if choice.IsLocal() {
		c.OK, c.Detail = true, "local, unless assay models use selected another for a data directory"
		return c
	}
	if x.offline {
		_, err := x.s.endpoint(choice.Provider)
		x.outcome(&c, choice, err, "not tried")
		return c
	}
	ctx, cancel := x.trial(choice)
	defer cancel()
	e, err := x.s.Encoder(ctx, x.s.c.DefaultEncoder())
	fine := ""
	if err == nil {
		var v llm.Vector
		if v, err = llm.EmbedQuery(ctx, e, "test"); err == nil {
			fine = fmt.Sprintf("makes vectors of %d dimensions", len(v))
		}
	}
	x.outcome(&c, choice, x.timedOut(ctx, err), fine)
	return c
}

// reranker tries the configured reranker.
func (x *examination) reranker() Check {
	choice := x.s.c.Rerank
	c := Check{Name: "reranker", Model: choice.Name()}
	if choice.IsLocal() {
		c.OK, c.Detail = true, "local"
		return c
	}
	r, err := x.s.Reranker()
	if err != nil || x.offline {
		x.outcome(&c, choice, err, "not tried")
		return c
	}
	ctx, cancel := x.trial(choice)
	defer cancel()
	scores, err := r.Rerank(ctx, "test", []string{"a test", "something else"})
	if err == nil && len(scores) != 2 {
		err = fmt.Errorf("%s returned %d scores for 2 texts: %w", r.Model(), len(scores), assay.ErrUnavailable)
	}
	x.outcome(&c, choice, x.timedOut(ctx, err), "orders passages")
	return c
}
