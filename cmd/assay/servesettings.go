package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/telemetry"
	"github.com/assay-rag/assay/ui"
	"github.com/assay-rag/assay/webhook"
)

// serveSettings are the configuration of serve.
type serveSettings struct {
	at         location
	tenant     string
	store      config.Store
	config     *config.Config
	server     config.Server // with the flags
	engine     engine.Config
	identified bool // requests need credentials
}

// load reads the configuration.
func (s *service) load(ctx context.Context) (serveSettings, error) {
	a := *s.app // with a configuration of its own
	a.set = nil
	a.stdout, a.stderr = &output{w: io.Discard}, &output{w: io.Discard}
	return a.serveSettings(ctx, s.options, s.out)
}

// serveSettings reads the configuration. Secrets in it are removed from what out writes.
func (a *app) serveSettings(ctx context.Context, o serveOptions, out *logWriter) (l serveSettings, err error) {
	if l.at, err = a.location(ctx); err != nil {
		return l, err
	}
	if l.store, err = a.storeSettings(); err != nil {
		return l, err
	}
	set, err := a.settings()
	if err != nil {
		return l, err
	}
	if l.config = set.Config(); out != nil {
		out.hide(&l.config.Secrets)
		out.hide(l.store.Secrets)
	}
	if l.server, err = l.config.Server.With(o.listen, o.certificate, o.key, o.metrics, o.keys); err != nil {
		return l, err
	}
	l.identified = l.server.Keys || len(l.config.Identity.Issuers) > 0
	if l.engine, err = a.engineConfig(ctx, l.at, answering); err != nil {
		return l, err
	}
	l.tenant, l.engine.Tenant = l.engine.Tenant, ""
	return l, nil
}

func (l serveSettings) limits() server.Limits {
	n := l.server.Limits
	return server.Limits{Connections: n.Connections, PerAddress: n.PerAddress, Requests: n.Requests, Streams: n.Streams}
}

// hostConfig returns the configuration of the host.
func (s *service) hostConfig(l serveSettings) engine.HostConfig {
	c := l.engine
	c.NoBackground = false
	c.Webhooks = engine.Webhooks{Client: l.config.WebhookClient(), Background: true, Report: s.delivered}
	c.Alarm = func(ctx context.Context, a engine.Alarm) { s.log.WarnContext(ctx, "alarm", "kind", a.Kind) }
	var uploads engine.UploadQueue
	if s.queue != nil {
		uploads, c.NoBackground = s.queue, true // workers make the vectors
	}
	return engine.HostConfig{
		Queue:  uploads,
		Config: c, AllowLocal: !l.identified, Recheck: s.recheck,
		Folders: l.server.Folders, AllowSource: engine.SourcesOf(l.server.Sources, l.server.Credentials, l.server.Folders),
		AllowCredential: func(_, reference string) bool { return slices.Contains(l.server.Credentials, reference) },
		MaxRuns:         l.server.Limits.Runs, MaxWaiting: l.server.Limits.Waiting,
		AllowURL: func(_, address string) bool {
			return !l.identified && len(l.server.URLs) == 0 || l.server.ReadsURL(address)
		},
	}
}

// recheck ends the sessions of an issuer that is not configured any more.
func (s *service) recheck(ctx context.Context, g identity.Grant) error {
	auth := s.auth.Load()
	if auth == nil {
		return assay.ErrUnauthenticated
	}
	return auth.Recheck(ctx, g)
}

func (s *service) delivered(r webhook.Report, err error) {
	if err != nil && !errors.Is(err, assay.ErrLocked) {
		s.log.Warn("webhooks", "error", err)
	} else if r.Failed+r.Dead > 0 {
		s.log.Warn("webhooks", "delivered", r.Delivered, "failed", r.Failed, "given_up", r.Dead)
	}
}

// authenticator returns what turns credentials into grants; nil: no credentials are needed.
func (s *service) authenticator(l serveSettings) (*identity.Authenticator, error) {
	if !l.identified {
		return nil, nil
	}
	o := identity.Options{Tokens: l.config.Identity, Client: l.config.IdentityClient(), Observe: s.authenticated}
	if l.server.Keys {
		o.Keys = s.host.Keys()
	}
	return identity.New(o)
}

// authenticated logs refused credentials. It has no part of a credential.
func (s *service) authenticated(ctx context.Context, g identity.Grant, r *identity.Refusal, err error) {
	if r != nil {
		s.log.InfoContext(ctx, "credential refused", "reason", r.Reason, "key", r.Key, "issuer", r.Issuer, "detail", r.Detail)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the use of a key is not recorded", "key", g.Principal.Key, "error", err)
	}
}

// serverConfig returns the configuration of the server.
func (s *service) serverConfig(l serveSettings, auth *identity.Authenticator) server.Config {
	c := server.Config{
		Host: s.host, Local: identity.Local(l.tenant), Hosts: l.hosts(), Origins: l.server.Origins, Limits: l.limits(),
		Version: version(), ShowVersion: l.server.Version, Log: s.log, Trace: telemetry.TraceID,
	}
	if auth != nil {
		c.Authenticate = auth.Authenticate
	}
	return c
}

// signIn returns the provider at which users of the pages sign in; nil: none.
func (l serveSettings) signIn() *ui.Provider {
	in := l.config.SignIn
	if in == nil {
		return nil
	}
	return &ui.Provider{
		Name: in.Name, Issuer: in.Issuer, ClientID: in.ClientID, ClientSecret: in.Secret.Reveal(), Scopes: in.Scopes, Parameters: in.Parameters,
		Base: l.server.URL, Client: l.config.IdentityClient(),
	}
}

// hosts returns the names that requests may be for; nil: not limited.
func (l serveSettings) hosts() []string {
	hosts := l.server.Hosts
	if u, err := url.Parse(l.server.URL); l.server.URL != "" && err == nil {
		hosts = append(slices.Clone(hosts), u.Host)
	}
	if l.identified && len(l.server.Hosts) > 0 { // and those of this machine, for its administrators
		hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	}
	if l.identified && len(l.server.Hosts) == 0 {
		return nil
	}
	return hosts
}

// reload reads the configuration and the certificate again. Requests and runs in progress go on. An
// invalid configuration or certificate changes nothing.
func (s *service) reload(ctx context.Context) {
	s.notifyReloading()
	defer s.notify("READY=1")
	if err := s.reloaded(ctx); err != nil {
		s.log.Error("the configuration is not reloaded", "error", message(err))
		return
	}
	s.log.Info("the configuration is reloaded", "file", s.settings.config.Path)
}

func (s *service) reloaded(ctx context.Context) error {
	l, err := s.load(ctx)
	if err != nil {
		return err
	}
	if !l.identified {
		for _, listener := range s.listeners {
			if err := checkExposure(listener.Addr()); err != nil {
				return err
			}
		}
	}
	if s.certificates != nil {
		if _, err := s.certificates.reload(); err != nil {
			return err
		}
	}
	auth, err := s.authenticator(l)
	if err != nil {
		return err
	}
	if err := s.host.Reload(s.hostConfig(l)); err != nil {
		return err
	}
	s.auth.Store(auth)
	if err := s.handler.Reload(s.serverConfig(l, auth)); err != nil {
		return err
	}
	s.reloadMCP(l)
	for _, name := range needRestart(s.settings, l) {
		s.log.Warn("the change needs a restart", "setting", name)
	}
	s.settings = l
	return nil
}

// needRestart returns the settings that a reload does not change.
func needRestart(old, now serveSettings) []string {
	var names []string
	for _, x := range []struct {
		name     string
		old, now any
	}{
		{"server.listen", old.server.Listen, now.server.Listen},
		{"server.tls", old.server.TLS, now.server.TLS},
		{"server.metrics", old.server.Metrics, now.server.Metrics},
		{"server.sign_in", old.config.SignIn, now.config.SignIn},
		{"store", old.at.String(), now.at.String()},
		{"queue", old.store.Queue, now.store.Queue},
		{"redis", old.config.Redis, now.config.Redis},
	} {
		if !reflect.DeepEqual(x.old, x.now) {
			names = append(names, x.name)
		}
	}
	return names
}

// A logWriter writes the log without control characters and without the secrets of every
// configuration that was loaded.
type logWriter struct {
	mu      sync.Mutex
	w       io.Writer
	secrets []*config.Secrets
}

func newLogWriter(w io.Writer) *logWriter { return &logWriter{w: w} }

func (l *logWriter) hide(s *config.Secrets) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets = append(l.secrets, s)
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(p)
	for _, s := range l.secrets {
		text = s.Scrub(text)
	}
	if _, err := io.WriteString(l.w, plain(strings.ToValidUTF8(text, "\uFFFD"))); err != nil {
		return 0, fmt.Errorf("write the log: %w", err)
	}
	return len(p), nil
}
