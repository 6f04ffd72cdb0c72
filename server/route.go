package server

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"reflect"
	"slices"

	"github.com/assay-rag/assay/engine"
)

// A Route is one operation of the HTTP interface.
type Route struct {
	Method, Path string // as in a pattern of http.ServeMux; a route for GET also takes HEAD
	Name         string // identifies the operation, as in "runs.show"
	Call         string // the method of engine.Session that it needs, which gives its scope; empty: no credential is needed
	Summary      string

	// In is a struct. Its fields have one of the tags path:"NAME", query:"NAME", header:"NAME" and
	// body:"MEDIA TYPE". The field of a JSON body has any type that encodes as JSON, and may have the
	// tag optional:"true"; that of another media type ("*/*": any) is an io.Reader. Parameters are
	// strings, integers, booleans, RFC 3339 times, pointers to these, or lists of strings.
	In  reflect.Type
	Out reflect.Type // of the body, encoded as JSON; nil: none, or it has only other media types

	Status   int            // of success
	Statuses []int          // other statuses of success
	Media    []string       // media types of the body besides JSON and server-sent events
	MaxBody  int64          // bytes; 0: DefaultMaxBody
	Stream   bool           // it can answer with server-sent events
	Events   []reflect.Type // of the data of events, if Stream; none: engine.Event

	handle func(*exchange) error
	fail   func(*exchange, error) // nil: problem details
}

// DefaultMaxBody is the most bytes of a request's body, unless its route has another limit.
const DefaultMaxBody = 2 << 20

// Routes returns the table of routes. Each call returns the same routes in the same order.
func Routes() []Route {
	return slices.Concat(
		serviceRoutes(), problemRoutes(), askRoutes(), runRoutes(), shareRoutes(), feedbackRoutes(), searchRoutes(), documentRoutes(), documentPageRoutes(),
		collectionRoutes(), adminRoutes(), openaiRoutes(),
	)
}

// Types of bodies.
const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeEvents  = "text/event-stream"
	typePNG     = "image/png"
)

// Produces returns the media types of the bodies of success, the default first.
func (r Route) Produces() []string {
	var types []string
	if r.Out != nil {
		types = append(types, typeJSON)
	}
	types = append(types, r.Media...)
	if r.Stream {
		types = append(types, typeEvents)
	}
	return types
}

// BodyLimit returns the most bytes of a request's body.
func (r Route) BodyLimit() int64 { return cmp.Or(r.MaxBody, DefaultMaxBody) }

// none is the input or output of a route that has none.
type none = struct{}

// route returns a route whose handler decodes In, calls fn with the session of the credential, and
// encodes Out.
func route[In, Out any](method, path, name, call, summary string, fn func(context.Context, *engine.Session, In) (Out, error)) Route {
	r := newRoute[In](method, path, name, call, summary)
	if t := reflect.TypeFor[Out](); t != reflect.TypeFor[none]() {
		r.Out = t
	} else {
		r.Status = http.StatusNoContent
	}
	r.handle = func(x *exchange) error {
		var in In
		if err := x.decode(&in); err != nil {
			return err
		}
		out, err := fn(x.r.Context(), x.session, in)
		if err != nil {
			return err
		}
		return x.reply(out)
	}
	return r
}

// raw returns a route whose handler writes its own response.
func raw[In any](method, path, name, call, summary string, fn func(*exchange, In) error) Route {
	r := newRoute[In](method, path, name, call, summary)
	r.handle = func(x *exchange) error {
		var in In
		if err := x.decode(&in); err != nil {
			return err
		}
		return fn(x, in)
	}
	return r
}

func newRoute[In any](method, path, name, call, summary string) Route {
	return Route{Method: method, Path: path, Name: name, Call: call, Summary: summary, In: reflect.TypeFor[In](), Status: http.StatusOK}
}

// with returns r after change.
func (r Route) with(change func(*Route)) Route {
	change(&r)
	return r
}

// returning returns r with a body of type Out, and other statuses of success.
func returning[Out any](r Route, statuses ...int) Route {
	r.Out, r.Statuses = reflect.TypeFor[Out](), statuses
	return r
}

// A message is one server-sent event.
type message struct {
	id    string // empty: none
	event string
	data  any // encoded as JSON
}

// messages are what a stream sends; an error ends it.
type messages = iter.Seq2[message, error]
