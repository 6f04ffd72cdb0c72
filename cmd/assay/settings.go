package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/source/kinds"
	"github.com/assay-rag/assay/standalone"
)

// needs is the part of the configuration that a command uses. The rest is not read, so that an
// error in it does not affect the command.
type needs int

const (
	looking    needs = iota // only stored data: no server is called
	delivering              // webhooks
	searching               // vectors, the reranker and, if a question allows it, the web
	answering               // also language models
)

// settings returns the configuration. It is read once.
func (a *app) settings() (*config.Set, error) {
	if a.set == nil {
		c, err := config.Load(a.sources())
		if err != nil {
			return nil, err
		}
		a.set = c.Open()
		a.hide(&c.Secrets)
	}
	return a.set, nil
}

// sources returns the sources of the configuration.
func (a *app) sources() config.Sources {
	return config.Sources{File: a.config, Getenv: a.getenv, UserDir: a.configDir, Models: a.models, Offline: a.offline}
}

// hide removes credentials from all further output. No output should contain one, so this is only a
// safeguard.
func (a *app) hide(secrets *config.Secrets) {
	for _, out := range []*output{a.stdout, a.stderr} {
		scrub, before := secrets.Scrub, out.scrub
		if before != nil {
			scrub = func(text string) string { return secrets.Scrub(before(text)) }
		}
		out.scrub = scrub
	}
}

// engineConfig returns the engine configuration for a location. Vectors are made by ingest
// --wait and by the searches that need them, because a command ends too soon for background work.
func (a *app) engineConfig(ctx context.Context, at location, n needs) (_ engine.Config, err error) {
	c := standalone.Config(at.dir)
	at.use(&c)
	if c.Tenant, err = a.tenantName(); err != nil {
		return c, err
	}
	c.Encoders, c.NoBackground, c.Walk, c.OCR = a.installed, true, a.walk, a.ocr
	c.Sources, c.Getenv = kinds.All(), a.getenv
	if n == looking {
		c.Egress, err = engine.NewEgress(engine.EgressRules{Offline: true}) // nothing is called
		return c, err
	}
	set, err := a.settings()
	if err != nil {
		return c, err
	}
	configured := set.Config()
	c.Egress, c.Command = configured.Egress, configured.Command
	if n == delivering {
		c.Webhooks.Client = configured.WebhookClient()
		return c, nil
	}
	if err := a.observeRuns(ctx, set, &c); err != nil {
		return c, err
	}
	defer func() { a.telemetry.Know(c) }()
	if err := a.useRedis(configured, &c); err != nil {
		return c, err
	}
	c.NoCache = configured.NoCache
	c.Strategy, c.Settings = configured.Strategy, configured.Settings
	if !a.ownLimits {
		c.Limits = configured.Limits
	}
	if c.Encoders, err = a.encoders(); err != nil {
		return c, err
	}
	c.Web, c.Pages = set.Web(), a.pages
	if c.Services, err = set.Services(ctx); err != nil {
		return c, err
	}
	if err := useGraph(ctx, set, &c); err != nil {
		return c, err
	}
	if n == searching {
		c.Models.Reranker, err = set.Reranker()
		return c, err
	}
	if c.Managed, err = set.Managed(); err != nil {
		return c, err
	}
	c.Models, err = set.Models(ctx)
	return c, err
}

// encoders returns the installed encoders together with those of the configured providers, or nil
// if none is installed.
func (a *app) encoders() (engine.Encoders, error) {
	set, err := a.settings()
	if err != nil || a.installed == nil {
		return a.installed, err
	}
	return allEncoders{a.installed, set}, nil
}

// allEncoders are the installed encoders and those of providers.
type allEncoders struct {
	installed engine.Encoders
	set       *config.Set
}

func (e allEncoders) Default() string {
	if name := e.set.Config().DefaultEncoder(); name != "" {
		return name
	}
	return e.installed.Default()
}

func (e allEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	if name != e.installed.Default() && e.set.Config().HasProvider(name) {
		return e.set.Encoder(ctx, name)
	}
	return e.installed.Open(ctx, name)
}

// offlineEncoders are all encoders, but those of providers are not called.
type offlineEncoders struct{ allEncoders }

func (e offlineEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	if name != e.installed.Default() && e.set.Config().HasProvider(name) {
		return unasked(name), nil
	}
	return e.installed.Open(ctx, name)
}

// unasked is an encoder that must not be called.
type unasked string

func (u unasked) Model() string { return string(u) }

func (u unasked) Embed(context.Context, llm.Purpose, []string) ([]llm.Vector, error) {
	return nil, fmt.Errorf("%s is not called offline: %w", string(u), assay.ErrUnavailable)
}

// configHint returns the hint of a configuration error.
func configHint(err error) string {
	if e, ok := errors.AsType[*config.Error](err); ok && e.Hint != "" {
		return "; " + e.Hint
	}
	return ""
}

// warn prints the configuration's warnings on a terminal.
func (a *app) warn(shown *progress) {
	if a.set == nil {
		return
	}
	for _, w := range a.set.Config().Warnings {
		shown.note("%s", fmt.Sprintf("warning: %s", w))
	}
}
