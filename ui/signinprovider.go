package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// A Provider is an OpenID provider at which users sign in, by the authorization code flow with PKCE. Its
// access tokens must be those that the server accepts from clients: they become the credential of the
// browser's session, and are checked with each request like any other.
type Provider struct {
	Name                   string            // shown to users
	Issuer                 string            // URL
	ClientID, ClientSecret string            // the secret may be empty
	Scopes                 []string          // besides openid
	Parameters             map[string]string // further parameters of requests, as resource or audience
	Base                   string            // URL of these pages without a path
	Client                 *http.Client      // connects to the provider; required
}

const (
	callbackPath = "/sign-in/callback"
	flowCookie   = "assay-sign-in"
	flowLife     = 10 * time.Minute
	maxFlows     = 10_000
	callLimit    = 10 * time.Second // of a request to the provider
	refreshAhead = 30 * time.Second // before a token expires
	refreshPause = 10 * time.Second // after a refresh that the provider did not answer
)

// A provider is a Provider with what is known of it. It is safe for concurrent use.
type provider struct {
	config Provider

	mu    sync.Mutex
	found *discovered     // nil: not yet
	flows map[string]flow // by state
}

// A discovered is what a provider says of itself.
type discovered struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	end      string // address that ends the provider's session; empty: it has none
}

// A flow is a sign-in that has begun.
type flow struct {
	browser  [sha256.Size]byte // hash of the cookie of the browser that began it
	nonce    string
	verifier string // of PKCE
	to       string // path of the page to return to
	begun    time.Time
}

// newProvider returns a provider. It connects to nothing yet.
func newProvider(c Provider) (*provider, error) {
	if c.Name == "" || c.ClientID == "" || c.Client == nil || !safeAddress(c.Issuer) || !safeAddress(c.Base) {
		return nil, fmt.Errorf("ui: the sign-in lacks a name, an issuer, a client or the URL of the pages, or one of them is not encrypted: %w", assay.ErrInvalid)
	}
	c.Base = strings.TrimRight(c.Base, "/")
	return &provider{config: c, flows: map[string]flow{}}, nil
}

// safeAddress reports whether an address is that of an encrypted page, or one of this machine.
func safeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1")
}

// call returns a context for a request to the provider. It ends with the request of a browser only if
// that is wanted: a refresh token that was used and whose successor is lost ends the session.
func (p *provider) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, p.config.Client), callLimit)
}

// discover returns what the provider says of itself. A failure is not remembered.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	ctx, cancel := p.call(ctx)
	defer cancel()
	said, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("sign-in at %s: %w: %w", p.config.Name, assay.ErrUnavailable, err)
	}
	var more struct {
		End string `json:"end_session_endpoint"`
	}
	if err := said.Claims(&more); err != nil {
		return nil, fmt.Errorf("sign-in at %s: %w: %w", p.config.Name, assay.ErrUnavailable, err)
	}
	endpoint := said.Endpoint()
	if p.config.ClientSecret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL} {
		if !safeAddress(address) {
			return nil, fmt.Errorf("sign-in at %s: an endpoint is not encrypted: %w", p.config.Name, assay.ErrUnavailable)
		}
	}
	if !safeAddress(more.End) {
		more.End = ""
	}
	found = &discovered{
		oauth: oauth2.Config{
			ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: endpoint,
			RedirectURL: p.config.Base + callbackPath, Scopes: append([]string{oidc.ScopeOpenID}, p.config.Scopes...),
		},
		verifier: said.Verifier(&oidc.Config{ClientID: p.config.ClientID}), end: more.End,
	}
	p.mu.Lock()
	p.found = found
	p.mu.Unlock()
	return found, nil
}

// parameters returns the further parameters of requests.
func (p *provider) parameters() []oauth2.AuthCodeOption {
	var options []oauth2.AuthCodeOption
	for name, value := range p.config.Parameters {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return options
}

// begin remembers a flow and returns its state.
func (p *provider) begin(f flow) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flows) >= maxFlows {
		p.makeRoom()
	}
	state := rand.Text()
	p.flows[state] = f
	return state
}

// makeRoom drops the flows that are over, and the oldest one.
func (p *provider) makeRoom() {
	oldest, first := "", time.Time{}
	for state, f := range p.flows {
		if now().Sub(f.begun) > flowLife {
			delete(p.flows, state)
		} else if first.IsZero() || f.begun.Before(first) {
			oldest, first = state, f.begun
		}
	}
	if len(p.flows) >= maxFlows {
		delete(p.flows, oldest)
	}
}

// take returns the flow of a state and forgets it. ok is false if there is none, or another browser began
// it.
func (p *provider) take(state, browser string) (f flow, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok = p.flows[state]
	hash := sha256.Sum256([]byte(browser))
	if !ok || subtle.ConstantTimeCompare(f.browser[:], hash[:]) != 1 {
		return flow{}, false
	}
	delete(p.flows, state)
	return f, now().Sub(f.begun) <= flowLife
}

// tokens are the tokens of a session. It is safe for concurrent use.
type tokens struct {
	provider *provider

	mu      sync.Mutex
	access  identity.Credential
	refresh string // empty: none
	id      string // ID token, for the end of the session
	expires time.Time
	tried   time.Time // when a refresh failed last
	over    bool
}

// tokensOf returns the tokens of a response.
func (p *provider) tokensOf(t *oauth2.Token) (*tokens, error) {
	c, err := identity.FromString(t.AccessToken)
	if err != nil {
		return nil, err
	}
	id, _ := t.Extra("id_token").(string)
	return &tokens{provider: p, access: c, refresh: t.RefreshToken, id: id, expires: t.Expiry}, nil
}

// credential returns the access token, which is refreshed before it expires. ok is false once the
// provider has refused that. While the provider cannot be reached the token is used until it expires.
func (t *tokens) credential(ctx context.Context) (c identity.Credential, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return identity.Credential{}, false
	}
	if t.refresh == "" || t.expires.IsZero() || now().Before(t.expires.Add(-refreshAhead)) || now().Sub(t.tried) < refreshPause {
		return t.access, true
	}
	if err := t.renew(context.WithoutCancel(ctx)); err != nil {
		t.tried = now()
		t.over = t.over || isRefusal(err)
	}
	return t.access, !t.over
}

// isRefusal reports whether an error is the provider's answer that a session is over. One that has too many
// requests says nothing of it.
func isRefusal(err error) bool {
	refused, is := errors.AsType[*oauth2.RetrieveError](err)
	if !is || refused.Response == nil {
		return false
	}
	status := refused.Response.StatusCode
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// renew replaces the tokens.
func (t *tokens) renew(ctx context.Context) error {
	found, err := t.provider.discover(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := t.provider.call(ctx)
	defer cancel()
	// Unlike a source of package oauth2 this sends the further parameters. An empty code counts as none.
	options := append(t.provider.parameters(), oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", t.refresh))
	next, err := found.oauth.Exchange(ctx, "", options...)
	if err != nil {
		return err
	}
	if t.access, err = identity.FromString(next.AccessToken); err != nil {
		t.over = true
		return err
	}
	t.expires = next.Expiry
	if next.RefreshToken != "" {
		t.refresh = next.RefreshToken
	}
	return nil
}

// beginAtProvider sends the browser to the provider.
func beginAtProvider(q *request) error {
	p := q.pages.provider
	if p == nil {
		return assay.ErrNotFound
	}
	found, err := p.discover(q.ctx())
	if err != nil {
		return err
	}
	browser, f := rand.Text()+rand.Text(), flow{nonce: rand.Text(), verifier: oauth2.GenerateVerifier(), to: ownPath(q.query("to")), begun: now()}
	f.browser = sha256.Sum256([]byte(browser))
	state := p.begin(f)
	http.SetCookie(q.w, p.cookie(browser, int(flowLife/time.Second)))
	options := append(p.parameters(), oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier))
	http.Redirect(q.w, q.r, found.oauth.AuthCodeURL(state, options...), http.StatusSeeOther)
	return nil
}

// encrypted reports whether browsers reach these pages by TLS.
func (p *provider) encrypted() bool { return strings.HasPrefix(p.config.Base, "https://") }

// cookie returns the cookie that ties a flow to its browser. It is sent with the redirect back from the
// provider, which that of a session is not.
func (p *provider) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: flowCookie, Value: value, Path: "/sign-in", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: p.encrypted(),
	}
}

// isErrorCode reports whether a text has the form of a code of OAuth for an error.
func isErrorCode(text string) bool {
	return text != "" && len(text) <= 40 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// endAtProvider takes the browser back from the provider and begins its session.
func endAtProvider(q *request) error {
	p := q.pages.provider
	if p == nil {
		return assay.ErrNotFound
	}
	http.SetCookie(q.w, p.cookie("", -1))
	c, err := q.r.Cookie(flowCookie)
	if err != nil {
		return q.notSignedIn(http.StatusBadRequest, "The sign-in was begun in another browser, or is too old. Begin again.")
	}
	f, ok := p.take(q.query("state"), c.Value)
	if !ok {
		return q.notSignedIn(http.StatusBadRequest, "The sign-in was begun in another browser, or is too old. Begin again.")
	}
	if code := q.query("error"); code != "" || q.query("code") == "" {
		if !isErrorCode(code) {
			code = "no code"
		}
		return q.notSignedIn(http.StatusUnauthorized, p.config.Name+" did not sign you in ("+code+").")
	}
	if iss := q.query("iss"); iss != "" && iss != p.config.Issuer {
		return q.notSignedIn(http.StatusUnauthorized, "The response is of another provider.")
	}
	t, err := p.exchange(q.ctx(), q.query("code"), f)
	if err != nil {
		q.pages.config.Log.InfoContext(q.ctx(), "sign-in refused", "provider", p.config.Name, "error", err)
		return q.notSignedIn(http.StatusUnauthorized, p.config.Name+" did not confirm the sign-in. Begin again.")
	}
	session, err := q.pages.config.Server.SessionOf(q.ctx(), t.access)
	if err != nil {
		problem := q.pages.config.Server.Problem(q.r, err)
		return q.notSignedIn(problem.Status, p.config.Name+" has signed you in, but you may not use this server: "+problem.Title+".")
	}
	q.pages.sessions.end(q.r)
	http.SetCookie(q.w, q.cookie(q.pages.sessions.begin(engine.SessionOwner(session), t.access, t), int(sessionLife/time.Second)))
	return q.hop(f.to, "You are signed in")
}

// notSignedIn renders the page that asks for a credential, with what went wrong.
func (q *request) notSignedIn(status int, text string) error {
	return q.renderStatus(status, "signin.html", q.view("", "Sign in", q.signInForm("", text)))
}

// exchange redeems a code and checks the ID token that comes with the access token.
func (p *provider) exchange(ctx context.Context, code string, f flow) (*tokens, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.call(ctx)
	defer cancel()
	got, err := found.oauth.Exchange(ctx, code, append(p.parameters(), oauth2.VerifierOption(f.verifier))...)
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			return nil, fmt.Errorf("the code is refused: %s", refused.ErrorCode) // its text has the response
		}
		return nil, err
	}
	raw, _ := got.Extra("id_token").(string)
	id, err := found.verifier.Verify(ctx, raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the ID token: %w", err)
	case id.Nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.nonce)) != 1:
		return nil, errors.New("the ID token has another nonce")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(got.AccessToken); err != nil {
			return nil, fmt.Errorf("the access token is not that of the ID token: %w", err)
		}
	}
	return p.tokensOf(got)
}

// A hopPage is the data of a page that leads on at once.
type hopPage struct{ To, Says string }

// hop renders a page that leads to an address. A redirect would not do: to a page of this server it would
// still count as one of the provider's, and browsers would keep the session's cookie back; to the
// provider the form that was sent may not lead.
func (q *request) hop(to, says string) error {
	q.w.Header().Set("Refresh", "0; url="+to)
	return q.render("signinhop.html", q.view("", says, hopPage{to, says}))
}

// ended returns the address that ends the provider's session; empty: there is none.
func (t *tokens) ended(ctx context.Context) string {
	found, err := t.provider.discover(ctx)
	if err != nil || found.end == "" {
		return ""
	}
	u, err := url.Parse(found.end)
	if err != nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	query := u.Query()
	query.Set("client_id", t.provider.config.ClientID)
	query.Set("post_logout_redirect_uri", t.provider.config.Base+"/sign-in")
	if t.id != "" {
		query.Set("id_token_hint", t.id)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
