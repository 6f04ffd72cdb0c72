// Package server serves an engine over HTTP: the native interface under /api/v1 and OpenAI's under
// /v1. A Server is an http.Handler; Handle adds other protocols, such as MCP.
//
// The table of routes (Routes) yields the handlers, the authorisation, the OpenAPI document, the
// methods of package client and the tests of isolation. Handlers have no logic: each calls one method
// of engine.Session, which checks the rights.
package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/gate"
)

// A Config configures a Server.
type Config struct {
	Host *engine.Host // required

	// Authenticate returns the grant of a credential. nil: every request has Local, and one with a
	// credential is refused. OpenAI's clients always send one: under /v1 a bearer token that has neither
	// the form of an API key nor that of a JSON web token has no effect.
	Authenticate func(context.Context, identity.Credential) (identity.Grant, error)
	Local        identity.Grant // see identity.Local

	// Hosts are the names, without a port, that requests may be for, by their header Host. Without
	// Authenticate, the names of this machine (localhost, 127.0.0.1, ::1) are accepted as well and all
	// others are refused, so that no page of the web reaches the server under a name of its own (DNS
	// rebinding). With Authenticate, nil accepts every name.
	Hosts []string

	// Origins are the origins, as in "https://chat.example.com", whose pages may send requests. A
	// request of any other origin than the server's own is refused. There is no wildcard.
	Origins []string

	Limits Limits // zero fields: the defaults

	Version     string       // of the program
	ShowVersion bool         // adds a header Server with the version to responses
	Log         *slog.Logger // required; no text of a question, document or answer is logged

	// Trace returns the ID of a request's trace for the log; empty: none. nil: no request has one.
	Trace func(context.Context) string
}

// A Server is the handler of all routes. It is safe for concurrent use.
type Server struct {
	config Config // the fields that Reload does not change
	state  atomic.Pointer[state]
	routes []Route
	mux    *http.ServeMux

	browser     func(*http.Request) (identity.Credential, bool) // see UseBrowser
	unknownPage http.Handler                                    // see HandleUnknown

	document          func() (json.RawMessage, error) // of OpenAPI
	firstTime         time.Duration                   // see firstTime
	requests, streams gate.Gate

	drain     context.Context // ends when the server shuts down
	beginStop context.CancelFunc
	handlers  sync.WaitGroup
	readiness readiness
}

// A state is the part of a Server that Reload replaces.
type state struct {
	Config
	hosts   map[string]bool // nil: every name
	origins *origins
}

// New returns a server. An invalid configuration is assay.ErrInvalid.
func New(c Config) (*Server, error) {
	if c.Host == nil || c.Log == nil {
		return nil, fmt.Errorf("server: no host or no log: %w", assay.ErrInvalid)
	}
	s := &Server{config: c, routes: Routes(), mux: http.NewServeMux(), firstTime: firstTime}
	if err := s.Reload(c); err != nil {
		return nil, err
	}
	s.drain, s.beginStop = context.WithCancel(context.Background())
	s.document = sync.OnceValues(func() (json.RawMessage, error) { return encodeDocument(s.routes) })
	for _, r := range s.routes {
		s.mux.Handle(r.Method+" "+r.Path, s.handler(r))
	}
	return s, nil
}

// Reload replaces the configuration for the requests that follow. Host, Log and Version stay as they
// are. An invalid configuration is assay.ErrInvalid and changes nothing.
func (s *Server) Reload(c Config) error {
	st := &state{Config: c, hosts: hostNames(c)}
	st.Limits = c.Limits.withDefaults()
	var err error
	if st.origins, err = newOrigins(c.Origins); err != nil {
		return err
	}
	s.requests.SetLimit(gate.Limit{Most: st.Limits.Requests, Waiting: st.Limits.Requests, Patience: requestPatience})
	s.streams.SetLimit(gate.Limit{Most: st.Limits.Streams})
	s.state.Store(st)
	return nil
}

// Drain begins the shutdown: the server is not ready any more, and streams end with an event that
// tells their clients to reconnect. Other requests are still answered.
func (s *Server) Drain() { s.beginStop() }

// Wait waits until no handler is running.
func (s *Server) Wait() { s.handlers.Wait() }

// draining reports whether Drain was called.
func (s *Server) draining() bool { return s.drain.Err() != nil }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	st := s.state.Load()
	received := r
	a, r := s.access(w, r, st)
	defer a.end()
	a.secure(st)
	if !s.allowed(a, r, st) {
		return
	}
	_, pattern := s.mux.Handler(r)
	if pattern == "" {
		s.unknown(a, r)
		return
	}
	received.Pattern = pattern // for a handler around this one, which does not see the mux's copy
	s.mux.ServeHTTP(a, r)
}

// Handle adds a handler that is not in the table of routes, for another protocol. It must take its
// sessions from Session. Its requests count as streams.
func (s *Server) Handle(pattern string, h http.Handler) {
	s.add(pattern, Route{Name: pattern, Stream: true}, h)
}

// add adds a handler whose requests count as those of a route.
func (s *Server) add(pattern string, route Route, h http.Handler) {
	s.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{server: s, route: route, w: w, r: r}
		s.admitted(x, func() error {
			h.ServeHTTP(w, r)
			return nil
		})
	}))
}

// Session returns the session of a request's credential.
func (s *Server) Session(r *http.Request) (*engine.Session, error) {
	grant, err := s.grant(r)
	if err != nil {
		return nil, err
	}
	return s.config.Host.Session(r.Context(), grant)
}

// SessionOf returns the session of a credential that is not in the header of a request.
func (s *Server) SessionOf(ctx context.Context, c identity.Credential) (*engine.Session, error) {
	st := s.state.Load()
	if st.Authenticate == nil {
		return nil, fmt.Errorf("this server has no identities and takes no credential: %w", assay.ErrUnauthenticated)
	}
	grant, err := st.Authenticate(ctx, c)
	if err != nil {
		return nil, err
	}
	noteGrant(ctx, grant)
	return s.config.Host.Session(ctx, grant)
}

// grant returns the grant of a request's credential.
func (s *Server) grant(r *http.Request) (identity.Grant, error) {
	g, err := s.authenticate(r)
	if err == nil {
		noteGrant(r.Context(), g)
	}
	return g, err
}

func (s *Server) authenticate(r *http.Request) (identity.Grant, error) {
	st := s.state.Load()
	credential, err := identity.FromRequest(r)
	if st.Authenticate != nil {
		if identity.ReasonOf(err) == identity.NoCredential {
			if of, ok := s.browserCredential(r); ok {
				credential, err = of, nil
			}
		}
		if err != nil {
			return identity.Grant{}, err
		}
		return st.Authenticate(r.Context(), credential)
	}
	placeholder := isOpenAI(r) && err == nil && credential.Opaque()
	if placeholder || identity.ReasonOf(err) == identity.NoCredential {
		return st.Local, nil
	}
	return identity.Grant{}, fmt.Errorf("this server has no identities and takes no credential: %w", assay.ErrUnauthenticated)
}

// handler returns the handler of a route.
func (s *Server) handler(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{server: s, route: route, w: w, r: r}
		if strings.HasPrefix(route.Path, runsPath+"{id}") {
			noteAsked(r.Context(), r.PathValue("id"))
		}
		s.admitted(x, x.serve)
	})
}

// admitted calls serve when there is room for another request.
func (s *Server) admitted(x *exchange, serve func() error) {
	noteRoute(x.r.Context(), x.route.Name)
	leave, err := s.enter(x.r.Context(), x.route)
	if err != nil {
		x.fail(err)
		return
	}
	defer leave()
	if err := serve(); err != nil {
		x.fail(err)
	}
}

// enter waits for room for a request. Those that tell how the server is doing need none.
func (s *Server) enter(ctx context.Context, route Route) (leave func(), err error) {
	switch {
	case strings.HasPrefix(route.Name, servicePrefix):
		return func() {}, nil
	case route.Stream:
		return s.streams.Enter(ctx)
	}
	return s.requests.Enter(ctx)
}
