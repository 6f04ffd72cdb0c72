package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/queue"
	"github.com/assay-rag/assay/mcpserver"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/ui"
)

// A serveOptions holds the flags of serve.
type serveOptions struct {
	listen      string
	certificate string
	key         string
	metrics     string
	keys        bool
	print       bool
	json        bool
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the web page, HTTP, OpenAI's interface and MCP",
		Long: `Serve answers over HTTP: pages at /, /api/v1 for programs, /v1 for OpenAI's clients, /mcp for
assistants. By default it listens on http://127.0.0.1:8484 only and needs no credential: its users
act as you. Every other address needs API keys (--keys, assay key create) or the section identity of
the configuration; a browser then signs in with such a key.

Flags take precedence over variables such as ASSAY_LISTEN, and those over the section server of the
configuration file. SIGHUP reads the file and the certificate again and drops no request. SIGTERM
and Ctrl-C let requests end, and a second one ends at once; runs go on at the next start. Sockets
and notifications of systemd are supported.

/healthz says whether the process is alive, /readyz whether it can answer. More: docs/serve.md,
docs/ui.md.`,
		Example: `  assay serve
  curl -s localhost:8484/api/v1/ask --json '{"question": "How many days may I carry over?"}'
  assay key create --user ann --role reader > key.txt
  assay serve --listen 0.0.0.0:8443 --keys --tls-cert cert.pem --tls-key key.pem
  assay serve --print-config --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "", "`address` to listen on, or unix:PATH (default 127.0.0.1:8484)")
	flags.BoolVar(&o.keys, "keys", false, "accept API keys, and nothing without a credential")
	a.queueFlag(cmd)
	flags.StringVar(&o.certificate, "tls-cert", "", "`file` of the TLS certificate")
	flags.StringVar(&o.key, "tls-key", "", "`file` of its private key")
	flags.StringVar(&o.metrics, "metrics", "", "`address` that serves metrics for Prometheus (default none)")
	flags.BoolVar(&o.print, "print-config", false, "print the configuration without secrets, and exit")
	flags.BoolVar(&o.json, "json", false, "print the configuration as a JSON object")
	return cmd
}

func (a *app) serve(ctx context.Context, o serveOptions) error {
	if o.json && !o.print {
		return hinted{usagef("--json is for --print-config"), "see: assay serve --help"}
	}
	if o.print {
		return a.printServeConfig(ctx, o)
	}
	s, err := a.openService(ctx, o)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// A service is one assay serve.
type service struct {
	app     *app
	options serveOptions
	out     *logWriter
	log     *slog.Logger

	settings serveSettings // as last loaded; only run changes them
	auth     atomic.Pointer[identity.Authenticator]

	host         *engine.Host
	queue        *queue.Queue // nil: uploads are stored at once
	handler      *server.Server
	mcp          *mcpserver.Handler
	certificates *certificates // nil: no TLS
	listeners    []net.Listener
	metrics      []net.Listener

	http    *http.Server // of listeners
	scrapes *http.Server // of metrics
	work    sync.WaitGroup
}

// openService opens the data directory and the listeners.
func (a *app) openService(ctx context.Context, o serveOptions) (_ *service, err error) {
	s := &service{app: a, options: o, out: newLogWriter(a.stderr.w)}
	if s.log, err = a.serveTelemetry(ctx, s.out); err != nil {
		return nil, err
	}
	a.redis.report = s.logRedis
	if s.settings, err = s.load(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	if s.certificates, err = openCertificates(s.settings.server.TLS); err != nil {
		return nil, err
	}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	if s.settings.store.Queue != "" {
		if s.queue, err = a.openQueue(ctx, s.settings.store, 0); err != nil {
			return nil, err
		}
	}
	if s.host, err = engine.OpenHost(ctx, s.hostConfig(s.settings)); err != nil {
		return nil, a.hintTenant(err, s.settings.tenant)
	}
	auth, err := s.authenticator(s.settings)
	if err != nil {
		return nil, err
	}
	s.auth.Store(auth)
	if s.handler, err = server.New(s.serverConfig(s.settings, auth)); err != nil {
		return nil, err
	}
	if err := s.mountMCP(); err != nil {
		return nil, err
	}
	if err := s.mountPages(); err != nil {
		return nil, err
	}
	s.mount()
	return s, nil
}

// mountPages adds the web pages.
func (s *service) mountPages() error {
	_, err := ui.Mount(ui.Config{Server: s.handler, Log: s.log, Version: version(), Provider: s.settings.signIn()})
	return err
}

// mount adds the handlers of other protocols.
func (s *service) mount() {
	s.http = server.NewHTTP(s.app.telemetry.Middleware(s.handler), s.settings.limits(), s.log)
	s.http.RegisterOnShutdown(s.mcp.Close)
	if s.certificates != nil {
		s.http.TLSConfig = s.certificates.config()
	}
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", s.app.telemetry.MetricsHandler())
	s.scrapes = server.NewHTTP(metrics, s.settings.limits(), s.log)
}

// closeAll closes the listeners and the host, without waiting for requests.
func (s *service) closeAll() error {
	var errs []error
	for _, l := range append(s.listeners, s.metrics...) {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	if s.queue != nil {
		errs = append(errs, s.queue.Close())
	}
	return errors.Join(errs...)
}

// run serves until ctx ends.
func (s *service) run(ctx context.Context) error {
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	s.http.BaseContext = func(net.Listener) context.Context { return requests }
	failed := make(chan error, len(s.listeners)+len(s.metrics))
	for _, l := range s.listeners {
		l := s.handler.LimitListener(l, s.certificates == nil || l.Addr().Network() == "unix")
		s.work.Go(func() { failed <- s.serveOn(l) })
	}
	for _, l := range s.metrics {
		s.work.Go(func() { failed <- s.scrapes.Serve(l) })
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	s.startBackground(background)
	s.announce()
	var err error
	for serving := true; serving; {
		select {
		case <-reload:
			s.reload(background)
		case err = <-failed:
			serving = false
		case <-ctx.Done():
			serving = false
		}
	}
	return errors.Join(err, s.stop(cancelRequests, stopBackground))
}

// serveOn serves the connections of a listener.
func (s *service) serveOn(l net.Listener) error {
	if s.certificates != nil && l.Addr().Network() != "unix" {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

// announce says that the server accepts connections.
func (s *service) announce() {
	for _, l := range s.listeners {
		s.log.Info("assay serves", "url", s.url(l), "version", version(), "credentials", s.settings.identified)
	}
	for _, l := range s.metrics {
		s.log.Info("assay serves metrics", "url", "http://"+l.Addr().String()+"/metrics")
	}
	if s.settings.identified && s.certificates == nil && s.exposed() {
		s.log.Warn("credentials and answers are not encrypted; use --tls-cert and --tls-key, or a proxy with TLS in front")
	}
	s.notify("READY=1\nSTATUS=Serving " + s.url(s.listeners[0]))
}

// shutdown calls fn with a time limit.
func shutdown(fn func(context.Context) error, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return fn(ctx)
}

// closeTime is how long each step of a shutdown may take after the grace period.
const closeTime = 5 * time.Second

// stop ends the service. Streams are told to reconnect, other requests may end within the grace
// period, and runs in progress are interrupted at their last step.
func (s *service) stop(cancelRequests, stopBackground context.CancelFunc) error {
	s.notify("STOPPING=1")
	s.log.Info("shutting down", "grace", s.settings.server.Grace)
	s.handler.Drain()
	if shutdown(s.http.Shutdown, s.settings.server.Grace) != nil {
		s.log.Info("the grace period is over; runs are interrupted, and go on at the next start")
		_ = shutdown(s.host.Drain, closeTime) // requests that wait for runs are told
		if err := shutdown(s.http.Shutdown, closeTime); err != nil {
			s.log.Warn("requests are cut off", "error", err)
			cancelRequests()
			_ = s.http.Close()
		}
	}
	_ = s.scrapes.Close()
	stopBackground()
	ended := make(chan struct{})
	go func() {
		s.handler.Wait()
		s.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTime):
		return errors.New("requests did not end; everything stored so far is kept")
	}
	if err := s.host.Close(); err != nil {
		return fmt.Errorf("close the data: %w", err)
	}
	if s.queue != nil {
		if err := s.queue.Close(); err != nil {
			return err
		}
	}
	s.log.Info("shut down")
	return nil
}
