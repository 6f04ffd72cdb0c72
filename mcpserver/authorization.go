package mcpserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// MetadataPaths are where Handler.Metadata is to be mounted (RFC 9728, section 3.1): that of challenges, and
// the one which clients try that know only the host.
var MetadataPaths = []string{metadataPath, "/.well-known/oauth-protected-resource"}

const metadataPath = "/.well-known/oauth-protected-resource/mcp"

// Authorization describes the access tokens that are accepted.
type Authorization struct {
	Resource string   // URI of this resource, which tokens name as their audience; empty: no token is accepted
	Issuers  []string // URLs of the authorization servers
	Scopes   []string // of tokens, that the tools need; empty: a token's scopes do not matter
}

// AuthorizationOf returns the Authorization for a configuration of tokens. Its scopes are those that
// give the right to ask and to search.
func AuthorizationOf(t identity.Tokens) Authorization {
	a := Authorization{Resource: t.Audience}
	for _, issuer := range t.Issuers {
		a.Issuers = append(a.Issuers, issuer.URL)
		for name, scope := range issuer.Scopes {
			if scope == identity.ScopeAsk || scope == identity.ScopeSearch {
				a.Scopes = append(a.Scopes, name)
			}
		}
	}
	slices.Sort(a.Scopes)
	a.Scopes = slices.Compact(a.Scopes)
	return a
}

// protectedResource is the metadata of a protected resource, RFC 9728, section 2.
type protectedResource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// publish answers a request for the metadata. Without a Resource it answers 404.
func (a Authorization) publish(w http.ResponseWriter, r *http.Request) {
	if a.Resource == "" {
		http.Error(w, "this server accepts no access tokens", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "MCP-Protocol-Version")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		data, err := json.Marshal(protectedResource{a.Resource, a.Issuers, a.Scopes, []string{"header"}, "assay"})
		if err != nil {
			panic(err) // strings can be encoded
		}
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "max-age=300")
		_, _ = w.Write(data) // the client may be gone
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
	}
}

// refuse answers a request whose credential does not suffice. The text names the kind of error only.
func (a Authorization) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := assay.StatusCode(err)
	text := http.StatusText(status)
	switch status {
	case http.StatusUnauthorized:
		failure := "invalid_token"
		if identity.ReasonOf(err) == identity.NoCredential {
			failure = "" // RFC 6750, section 3.1: a request without one is told no error
		}
		w.Header().Set("WWW-Authenticate", a.challenge(r, failure))
		text = assay.ErrUnauthenticated.Error()
	case http.StatusForbidden:
		w.Header().Set("WWW-Authenticate", a.challenge(r, "insufficient_scope"))
		text = assay.ErrForbidden.Error()
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway:
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, text, status)
}

// challenge returns the value of WWW-Authenticate.
func (a Authorization) challenge(r *http.Request, failure string) string {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+"="+strconv.Quote(value))
		}
	}
	add("error", failure)
	if a.Resource != "" {
		add("resource_metadata", a.metadataURL(r))
		add("scope", strings.Join(a.Scopes, " "))
	}
	return strings.TrimSpace("Bearer " + strings.Join(params, ", "))
}

// metadataURL returns the address of the metadata: on the host of the resource or, if its URI has
// none, that of the request.
func (a Authorization) metadataURL(r *http.Request) string {
	u, err := url.Parse(a.Resource)
	if err == nil && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: metadataPath}).String()
	}
	scheme := "https"
	if r.TLS == nil {
		scheme = "http"
	}
	return (&url.URL{Scheme: scheme, Host: r.Host, Path: metadataPath}).String()
}
