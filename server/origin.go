package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// hostNames returns the names that requests may be for, besides those of this machine; nil: any.
func hostNames(c Config) map[string]bool {
	if c.Authenticate != nil && c.Hosts == nil {
		return nil
	}
	names := map[string]bool{}
	for _, name := range c.Hosts {
		names[plainHost(name)] = true
	}
	return names
}

// plainHost returns a name of a host in small letters, without port, brackets and final dot.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// isLoopback reports whether a plain name is that of this machine.
func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// admits reports whether requests may be for a value of the header Host.
func (st *state) admits(host string) bool {
	if st.hosts == nil {
		return true
	}
	name := plainHost(host)
	return st.hosts[name] || st.Authenticate == nil && isLoopback(name)
}

// origins are the origins whose pages may send requests.
type origins struct {
	listed     map[string]bool
	protection *http.CrossOriginProtection
}

// newOrigins returns origins. One that is not a scheme and a host is assay.ErrInvalid, and so is a
// wildcard.
func newOrigins(list []string) (*origins, error) {
	o := &origins{listed: map[string]bool{}, protection: http.NewCrossOriginProtection()}
	for _, origin := range list {
		if err := CheckOrigin(origin); err != nil {
			return nil, err
		}
		if err := o.protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("origin %q: %w: %w", origin, err, assay.ErrInvalid)
		}
		o.listed[origin] = true
	}
	return o, nil
}

// CheckOrigin returns assay.ErrInvalid for a text that is not an origin as browsers send it, such as
// "https://chat.example.com" or "http://localhost:3000".
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	valid := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && origin == strings.ToLower(u.Scheme+"://"+u.Host)
	if !valid || strings.Contains(origin, "*") {
		return fmt.Errorf("origin %q: want a scheme and a host, in small letters, as in https://chat.example.com: %w", origin, assay.ErrInvalid)
	}
	return nil
}

// own reports whether a request comes from a page of this server.
func own(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// isEmbedded reports whether a page of another origin fetches a resource, such as an image or a script,
// without a header Origin. It could not read the response, but would spend what a search costs. Links
// are followed.
func isEmbedded(r *http.Request) bool {
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	return (site == "cross-site" || site == "same-site") && mode != "" && mode != "navigate"
}

// The headers that pages of listed origins may send and read.
const (
	requestHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
		"Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Traceparent, X-API-Key"
	responseHeaders = "ETag, Link, Location, Mcp-Protocol-Version, Mcp-Session-Id, Retry-After, WWW-Authenticate"
)

// allowed checks the headers Host, Origin and Sec-Fetch-Site, and answers the request if they are not
// allowed, or if it is a preflight request of a listed origin (CORS).
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, st *state) bool {
	if !isProbe(r) && !st.admits(r.Host) {
		s.forbid(w, r, "this server is not to be reached by that name; the setting server.hosts lists more names")
		return false
	}
	values := r.Header.Values("Origin")
	if len(values) > 1 {
		s.forbid(w, r, "there is more than one header Origin")
		return false
	}
	if len(values) == 1 && st.origins.listed[values[0]] {
		return st.origins.share(w, r, values[0])
	}
	foreign := len(values) == 1 && !own(r, values[0])
	if foreign || isEmbedded(r) || st.origins.protection.Check(r) != nil {
		s.forbid(w, r, "pages of another origin may not send requests; the setting server.origins lists origins that may")
		return false
	}
	return true
}

// share allows a page of a listed origin to read the response. It answers preflight requests.
func (o *origins) share(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", responseHeaders)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", requestHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// isProbe reports whether a request is a health check. Kubernetes sends these to an address instead of
// a name.
func isProbe(r *http.Request) bool {
	return r.Method == http.MethodGet && slices.Contains([]string{healthPath, readyPath}, r.URL.Path)
}

// forbid answers a request with the status 403.
func (s *Server) forbid(w http.ResponseWriter, r *http.Request, detail string) {
	x := &exchange{server: s, w: w, r: r}
	x.fail(fmt.Errorf("%s: %w", detail, assay.ErrForbidden))
}
