package ui

import (
	"net/http"
	"slices"
)

// A Route is one page, or the target of one form.
type Route struct {
	Method, Path string // as in a pattern of http.ServeMux
	Name         string // identifies it, as in "run.trace"
	Call         string // the method of engine.Session that it needs most, which decides who sees links to it; empty: none
	Stream       bool   // it sends server-sent events
	MaxBody      int64  // bytes of a form; 0: DefaultMaxBody

	handle func(*request) error
}

// DefaultMaxBody is the most bytes of a form, unless its route has another limit.
const DefaultMaxBody = 1 << 20

// Routes returns the table of routes. Each call returns the same routes in the same order.
func Routes() []Route {
	return slices.Concat(
		signInRoutes(), askRoutes(), runRoutes(), shareRoutes(), feedbackRoutes(), labelRoutes(), traceRoutes(), documentRoutes(),
		documentPageRoutes(), sourceRoutes(), reviewRoutes(),
		evaluationRoutes(), governanceRoutes(), adminRoutes(),
	)
}

// page returns the route of a page.
func page(path, name, call string, handle func(*request) error) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Call: call, handle: handle}
}

// action returns the route of a form, which changes something and redirects to a page.
func action(path, name, call string, handle func(*request) error) Route {
	return Route{Method: http.MethodPost, Path: path, Name: name, Call: call, handle: handle}
}

// live returns the route of a stream of events.
func live(path, name, call string, handle func(*request) error) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Call: call, Stream: true, handle: handle}
}
