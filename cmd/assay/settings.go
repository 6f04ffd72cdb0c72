package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// Needs say what of the configuration a command works with. What it does not need is
// not read, so that a slip there, or a key that is gone, is in nobody's way.
type needs int

const (
	looking   needs = iota // at what is stored: nobody is asked
	searching              // by vectors, with the reranker, and on the web where a question allows it
	answering              // with language models as well
)

// settings returns what is configured, read once.
func (a *app) settings() (*config.Set, error) {
	if a.set == nil {
		c, err := config.Load(a.sources())
		if err != nil {
			return nil, err
		}
		a.set = c.Open()
		a.hide(c.Secrets)
	}
	return a.set, nil
}

// sources are where the configuration comes from.
func (a *app) sources() config.Sources {
	return config.Sources{File: a.config, Getenv: a.getenv, UserDir: a.configDir}
}

// hide keeps credentials out of whatever is printed from now on: nothing should
// bring one there, and nothing is to be gained by finding out that something does.
func (a *app) hide(secrets config.Secrets) {
	a.stdout.scrub, a.stderr.scrub = secrets.Scrub, secrets.Scrub
}

// engineConfig is how a command opens a data directory. Vectors are made by ingest
// --wait and by the searches that need them: a command is over too soon for anything
// in the background.
func (a *app) engineConfig(ctx context.Context, dir string, n needs) (engine.Config, error) {
	c := engine.Config{Dir: dir, Encoders: a.installed, Reader: embedded.OpenReader, NoBackground: true}
	if n == looking {
		return c, nil
	}
	set, err := a.settings()
	if err != nil {
		return c, err
	}
	configured := set.Config()
	c.NoCache = configured.NoCache
	c.Strategy, c.Settings = configured.Strategy, configured.Settings
	if !a.ownLimits {
		c.Limits = configured.Limits
	}
	if c.Encoders, err = a.encoders(); err != nil {
		return c, err
	}
	c.Web, c.Pages = set.Web(), a.pages
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

// encoders are the sentence encoders at hand: those that are installed, and those of
// the providers that are configured; nil: none.
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

// offlineEncoders are all encoders, of which those of providers are not asked.
type offlineEncoders struct{ allEncoders }

func (e offlineEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	if name != e.installed.Default() && e.set.Config().HasProvider(name) {
		return unasked(name), nil
	}
	return e.installed.Open(ctx, name)
}

// unasked is the name of an encoder that is not to be asked.
type unasked string

func (u unasked) Model() string { return string(u) }

func (u unasked) Embed(context.Context, llm.Purpose, []string) ([]llm.Vector, error) {
	return nil, fmt.Errorf("%s is not asked: %w", string(u), assay.ErrUnavailable)
}

// configHint is what the configuration's own errors say to do.
func configHint(err error) string {
	if e, ok := errors.AsType[*config.Error](err); ok && e.Hint != "" {
		return "; " + e.Hint
	}
	return ""
}

// warn prints what of the configuration should be known, where a person watches.
func (a *app) warn(shown *progress) {
	if a.set == nil {
		return
	}
	for _, w := range a.set.Config().Warnings {
		shown.note("%s", fmt.Sprintf("warning: %s", w))
	}
}
