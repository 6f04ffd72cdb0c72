package server

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// HandlePage adds a page that is not in the table of routes. It must take its session from Session.
// name is that of its requests in the log. stream says that its requests count as streams.
func (s *Server) HandlePage(pattern, name string, stream bool, h http.Handler) {
	s.add(pattern, Route{Name: name, Stream: stream}, h)
}

// HandleUnknown has h answer requests for paths that do not exist if their client wants HTML.
func (s *Server) HandleUnknown(h http.Handler) { s.unknownPage = h }

// UseBrowser sets a function that returns the credential of a browser's session, and false for a
// request without one. It is called for requests without another credential that no page of another
// origin has sent. It must be set before the first request.
func (s *Server) UseBrowser(session func(*http.Request) (identity.Credential, bool)) {
	s.browser = session
}

// browserCredential returns the credential of the browser's session of a request.
func (s *Server) browserCredential(r *http.Request) (identity.Credential, bool) {
	if s.browser == nil || !FromOwnPage(r) {
		return identity.Credential{}, false
	}
	return s.browser(r)
}

// FromOwnPage reports whether no page of another origin has sent a request. One of a listed origin may use
// the interfaces with a credential of its own; with a form it could sign a browser in as somebody else.
func FromOwnPage(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || own(r, origin)
}

// Identified reports whether requests need a credential.
func (s *Server) Identified() bool { return s.state.Load().Authenticate != nil }

// Problem returns the problem details of an error of a request. Those of the server's own failures have
// no detail, which is logged.
func (s *Server) Problem(r *http.Request, err error) Problem {
	x := &exchange{server: s, route: Route{Name: routeOf(r.Context())}, r: r}
	return x.problem(err)
}

// A Message is one server-sent event.
type Message struct {
	ID    string // empty: none
	Event string
	Data  any // encoded as JSON
}

// Stream writes server-sent events until they end, the client is gone or the server shuts down. An
// error that comes at once is returned, and nothing is written; a later one is sent as an event "error"
// with problem details.
func (s *Server) Stream(w http.ResponseWriter, r *http.Request, events func(context.Context) iter.Seq2[Message, error]) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &exchange{server: s, route: Route{Name: routeOf(ctx), Stream: true}, w: w, r: r.WithContext(ctx), cancel: cancel}
	err := x.stream(func(yield func(message, error) bool) {
		for m, err := range events(ctx) {
			if !yield(message{m.ID, m.Event, m.Data}, err) {
				return
			}
		}
	})
	if x.sent {
		return nil // the stream has told its client
	}
	return err
}

// LastEvent returns the ordinal of the last step of a run that the client of a stream has received, from
// its header Last-Event-ID; -1: none. ended is set if it has received the answer.
func LastEvent(r *http.Request) (after int, ended bool, err error) {
	return lastEventOf("Last-Event-ID", r.Header.Get("Last-Event-ID"))
}

// IsUnauthenticated reports whether a request failed because its credential is missing or not valid.
func IsUnauthenticated(err error) bool { return errors.Is(err, assay.ErrUnauthenticated) }

// RunMessages returns the events of a run as messages whose data render makes. A render that returns nil
// leaves an event out. Their IDs are those that LastEvent reads.
func RunMessages(events iter.Seq2[engine.Event, error], render func(engine.Event) (any, error)) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for ev, err := range events {
			if err != nil {
				yield(Message{}, err)
				return
			}
			data, err := render(ev)
			if err == nil && data == nil {
				continue
			}
			if !yield(Message{ID: messageID(ev), Event: string(ev.Kind), Data: data}, err) || err != nil {
				return
			}
		}
	}
}
