package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// maxBody is the most bytes of a message.
const maxBody = 1 << 20

// The headers of the protocol.
const (
	revisionHeader = "Mcp-Protocol-Version"
	sessionHeader  = "Mcp-Session-Id"
)

// The entries of auth.TokenInfo.Extra: the session of a request's credential, and the request's
// context.
const (
	sessionEntry = "session"
	contextEntry = "context"
)

// A Handler serves the protocol over HTTP, for Config.Session's callers. It is safe for concurrent
// use.
type Handler struct {
	config    Config
	stateless *mcp.Server
	stateful  *mcp.Server
	policy    atomic.Pointer[policy]
	sessions  *sessions
	calls     *calls
	inner     http.Handler
}

// A policy holds the settings that Reload replaces.
type policy struct {
	authorization Authorization
	origins       []string
}

// New returns a handler. An incomplete configuration is assay.ErrInvalid. The handler must be closed.
func New(c Config) (*Handler, error) {
	if c.Session == nil {
		return nil, fmt.Errorf("mcpserver: no sessions: %w", assay.ErrInvalid)
	}
	s, err := newService(c, nil)
	if err != nil {
		return nil, err
	}
	h := &Handler{config: s.config, stateless: s.server(Revisions...), stateful: s.server(Revisions[1:]...), calls: s.calls}
	h.Reload(s.config.Authorization, s.config.Origins)
	h.sessions = newSessions(s.config, h.stateful, s.calls)
	options := mcp.StreamableHTTPOptions{
		SessionTimeout: s.config.Idle, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: !s.config.Local, PropagateRequestCancellation: true,
	}
	stateful := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.stateful }, &options)
	options.Stateless = true
	stateless := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.stateless }, &options)
	dispatch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sessionless(r.Header.Get(revisionHeader)) {
			stateless.ServeHTTP(w, r)
			return
		}
		h.sessions.serve(w, r, stateful)
	})
	h.inner = auth.RequireBearerToken(tokenInfo, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(dispatch)
	return h, nil
}

// Reload replaces Config.Authorization and Config.Origins for the requests that follow.
func (h *Handler) Reload(a Authorization, origins []string) { h.policy.Store(&policy{a, origins}) }

// Metadata returns the handler of MetadataPaths, see Authorization. It is public, for clients in
// browsers too.
func (h *Handler) Metadata() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.policy.Load().authorization.publish(w, r) })
}

// Close ends all sessions and streams. Requests in progress are cancelled.
func (h *Handler) Close() {
	h.calls.cancel(nil)
	for _, m := range []*mcp.Server{h.stateful, h.stateless} {
		for s := range m.Sessions() {
			_ = s.Close() // its client may be gone
		}
	}
}

// A caller is the sender of a request.
type caller struct {
	session *engine.Session
	owner   string // engine.SessionOwner
}

type callerKey struct{}

// tokenInfo passes the caller of a request to the SDK, which gives it to the handlers of messages.
// They cannot use the context, which is that of the request that began the protocol's session.
func tokenInfo(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: c.owner, Extra: map[string]any{sessionEntry: c.session, contextEntry: ctx}}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.allowedOrigin(r) {
		http.Error(w, "this origin is not allowed", http.StatusForbidden)
		return
	}
	session, err := h.config.Session(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	c := caller{session, engine.SessionOwner(session)}
	if !h.sessions.begin(c.owner) {
		h.refuse(w, r, fmt.Errorf("too many requests at a time: %w", assay.ErrQuota))
		return
	}
	defer h.sessions.end(c.owner)
	if r.Method == http.MethodPost {
		m, ok := h.peek(w, r)
		if !ok {
			return
		}
		if err := m.check(r.Context(), session); err != nil {
			h.refuse(w, r, err)
			return
		}
	}
	ctx := context.WithValue(r.Context(), callerKey{}, c)
	r = r.Clone(ctx)
	for _, name := range []string{"X-Api-Key", "Cookie"} {
		r.Header.Del(name)
	}
	r.Header.Set("Authorization", "Bearer checked") // the SDK keeps the header; the credential stays out
	h.inner.ServeHTTP(w, r)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if assay.StatusCode(err) == http.StatusInternalServerError {
		h.config.Log.ErrorContext(r.Context(), "MCP request failed", "error", err)
	}
	h.policy.Load().authorization.refuse(w, r, err)
}

// allowedOrigin reports whether a request comes from no web page, or from one of an origin that is
// allowed.
func (h *Handler) allowedOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(h.policy.Load().origins, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// A message is the part of a JSON-RPC message that decides which right it needs.
type message struct {
	Method string `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

// peek reads the message of a request and puts it back. If ok is false, it has answered.
func (h *Handler) peek(w http.ResponseWriter, r *http.Request) (m message, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, fmt.Sprintf("the message is longer than %d bytes", maxBody), http.StatusRequestEntityTooLarge)
		return m, false
	}
	if err != nil {
		http.Error(w, "the message cannot be read", http.StatusBadRequest)
		return m, false
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		writeError(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "batches of messages are not supported")
		return m, false
	}
	if !json.Valid(body) {
		writeError(w, http.StatusBadRequest, jsonrpc.CodeParseError, "the message is not valid JSON")
		return m, false
	}
	_ = json.Unmarshal(body, &m) // one without these fields needs no right
	r.Body = io.NopCloser(bytes.NewReader(body))
	return m, true
}

// writeError answers with an error of JSON-RPC for a message without a known ID.
func writeError(w http.ResponseWriter, status int, code int64, text string) {
	data, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text},
	})
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may be gone
}

// check returns the error of the method of engine.Session that a message leads to, so that a refusal
// is the status of the response. The method itself checks again.
func (m message) check(ctx context.Context, s *engine.Session) error {
	method := ""
	switch m.Method {
	case "tools/call":
		for _, t := range tools {
			if t.name == m.Params.Name {
				method = t.needs
			}
		}
	case "resources/list", "resources/read", "completion/complete":
		method = "Documents"
	}
	if method == "" {
		return nil
	}
	return engine.CheckMethod(ctx, s, method)
}
