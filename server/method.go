package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// unknown answers requests that no route takes: those with a method that the path does not have, and
// those for a path that does not exist.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	x := &exchange{server: s, w: w, r: r}
	if isOpenAI(r) {
		x.route.fail = failOpenAI
	}
	allowed := s.methods(r)
	if len(allowed) == 0 && s.unknownPage != nil && wantsPage(r) {
		s.unknownPage.ServeHTTP(w, r)
		return
	}
	if len(allowed) == 0 {
		x.fail(fmt.Errorf("no route %s %s: %w", r.Method, r.URL.Path, assay.ErrNotFound))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	x.fail(fmt.Errorf("%s %s, only %s: %w", r.Method, r.URL.Path, strings.Join(allowed, ", "), errMethod))
}

// methods returns the methods that the routes for the path of a request have, sorted; none: there is
// no such path.
func (s *Server) methods(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
		slices.Sort(allowed)
	}
	return allowed
}

// wantsPage reports whether a client wants HTML, as browsers do.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/") && !isOpenAI(r)
}
