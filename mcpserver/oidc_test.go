package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
)

// provider returns the address of a real identity provider. scripts/oidc starts them.
func provider(t *testing.T, variable string) string {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		t.Skip(variable + " is not set; to run this test: scripts/oidc run go test ./mcpserver")
	}
	return address
}

// protect serves the world to users of an issuer, by the same server as the program. ahead is how far
// the clock is ahead of the real one.
func (x *world) protect(t *testing.T, issuer string, ahead *atomic.Int64) {
	t.Helper()
	var handler http.Handler
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(front.Close)
	x.url = front.URL + "/mcp"
	tokens := identity.Tokens{Audience: x.url, Issuers: []identity.Issuer{{
		Name: "corp", URL: issuer, Tenant: "acme", GroupsClaim: "groups", DefaultRoles: []identity.RoleIn{{Role: identity.Reader}},
		Scopes: map[string]identity.Scope{"assay.ask": identity.ScopeAsk, "assay.search": identity.ScopeSearch},
	}}}
	a, err := identity.New(identity.Options{
		Tokens: tokens, Client: &http.Client{Transport: http.DefaultTransport},
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := server.New(server.Config{Host: x.host, Authenticate: a.Authenticate, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Session: s.Session, Log: log, Authorization: AuthorizationOf(tokens)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	s.Handle("/mcp", h)
	for _, path := range MetadataPaths {
		s.Handle(path, h.Metadata())
	}
	x.handler, handler = h, s
}

// browse signs a user in at oidc-provider, whose forms it fills in, and returns the address to which
// the provider sends the user back.
func browse(ctx context.Context, address, user string) (*url.URL, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var at *url.URL // of the last redirect
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if at = r.URL; at.Host == "app.example.com" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	send := func(method, address string, form url.Values) error {
		r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 400 {
			return fmt.Errorf("%s: %s, %v: %s", address, resp.Status, err, body)
		}
		return nil
	}
	if err := send(http.MethodGet, address, nil); err != nil {
		return nil, err
	}
	for _, form := range []url.Values{{"prompt": {"login"}, "login": {user}, "password": {"x"}}, {"prompt": {"consent"}}} {
		if err := send(http.MethodPost, at.String(), form); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// requestToken makes a token request and returns the access token and the refresh token.
func requestToken(t *testing.T, endpoint string, form url.Values) (access, refresh string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("app", "secret")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(body, &tokens) != nil || tokens.Access == "" {
		t.Fatalf("%s: %s, %v: %s", endpoint, resp.Status, err, body)
	}
	return tokens.Access, tokens.Refresh
}

// TestOIDCFlow lets the SDK's client find the provider, sign a user in and call tools, from nothing
// but the address. Tokens for another resource are refused, and a refreshed one continues the session.
func TestOIDCFlow(t *testing.T) {
	issuer := provider(t, "ASSAY_TEST_OIDC_PROVIDER")
	x := openWorld(t, nil)
	var ahead atomic.Int64
	x.protect(t, issuer, &ahead)
	for _, revision := range Revisions {
		signIns := 0
		oauth, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
			PreregisteredClient: &oauthex.ClientCredentials{ClientID: "app", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "secret"}},
			RedirectURL:         "https://app.example.com/callback",
			AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				signIns++
				back, err := browse(ctx, args.URL, "ann")
				if err != nil {
					return nil, err
				}
				q := back.Query()
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: x.url, OAuthHandler: oauth}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatalf("%s: %v", revision, err)
		}
		if a := call[askOut](t, cs, "ask", map[string]any{"question": "Who approves travel to a customer?"}); a.Status != "answered" || signIns != 1 {
			t.Errorf("%s: %+v after %d sign-ins", revision, a, signIns)
		}
		if err := cs.Close(); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	client := func(resource, scope string) string {
		access, _ := requestToken(t, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {scope}})
		return access
	}
	body, header := modern("tools/call", "ask", `"name":"ask","arguments":{"question":"Why?"}`)
	for _, test := range []struct {
		name, token string
		status      int
	}{
		{"all scopes", client(x.url, "assay.ask assay.search"), 200},
		{"another resource", client("https://other.example.com", "assay.ask"), 401},
		{"its host", client(strings.TrimSuffix(x.url, "/mcp"), "assay.ask"), 401},
		{"a scope too few", client(x.url, "assay.search"), 403},
		{"no scope", client(x.url, ""), 403},
	} {
		status, h, text := x.post(t, test.token, body, header)
		challenge := h.Get("WWW-Authenticate")
		if status != test.status || (status != 200) != strings.Contains(challenge, "resource_metadata=") || (status == 403) != strings.Contains(challenge, `error="insufficient_scope"`) {
			t.Errorf("%s: %d %q: %s", test.name, status, challenge, text)
		}
	}
	x.checkRefresh(t, issuer)
}

// checkRefresh continues a session with a refreshed token.
func (x *world) checkRefresh(t *testing.T, issuer string) {
	t.Helper()
	address := issuer + "/auth?" + url.Values{
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {"https://app.example.com/callback"}, "scope": {"openid assay.ask assay.search"}, "resource": {x.url},
	}.Encode()
	back, err := browse(t.Context(), address, "ann")
	if err != nil {
		t.Fatal(err)
	}
	first, refresh := requestToken(t, issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {"https://app.example.com/callback"}, "resource": {x.url},
	})
	id := x.initialize(t, first)
	second, _ := requestToken(t, issuer+"/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "resource": {x.url}})
	if first == second {
		t.Fatal("the token is the same after a refresh")
	}
	if status, _, text := x.post(t, second, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{sessionHeader: id}); status != http.StatusOK {
		t.Errorf("the session with the refreshed token: %d: %s", status, text)
	}
	other, _ := requestToken(t, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "resource": {x.url}, "scope": {"assay.ask"}})
	if status, _, _ := x.post(t, other, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{sessionHeader: id}); status != http.StatusNotFound {
		t.Errorf("the session with the token of another: %d", status)
	}
}

// TestOAuth2Claims changes the claims and the keys of tokens.
func TestOAuth2Claims(t *testing.T) {
	issuer := provider(t, "ASSAY_TEST_OAUTH2_MOCK")
	control := provider(t, "ASSAY_TEST_OAUTH2_CONTROL")
	x := openWorld(t, nil)
	var ahead atomic.Int64
	x.protect(t, issuer, &ahead)
	token := func(claims map[string]any) string {
		claims["aud"] = x.url
		access, _ := requestToken(t, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "claims": {string(encode(t, claims))}})
		return access
	}
	body, header := modern("tools/call", "search", `"name":"search","arguments":{"query":"secret project"}`)
	search := func(token string) (int, bool) {
		status, _, text := x.post(t, token, body, header)
		return status, strings.Contains(text, "Zanzibar")
	}
	for _, test := range []struct {
		name   string
		claims map[string]any
		status int
		sees   bool
	}{
		{"scope", map[string]any{"sub": "1", "scope": "assay.ask assay.search"}, 200, false},
		{"scp", map[string]any{"sub": "1", "scp": []string{"assay.search"}}, 200, false},
		{"a new group", map[string]any{"sub": "1", "scp": []string{"assay.search"}, "groups": []string{"board"}}, 200, true},
		{"the group is lost", map[string]any{"sub": "1", "scp": []string{"assay.search"}, "groups": []string{"staff"}}, 200, false},
		{"other scopes", map[string]any{"sub": "1", "scope": "email"}, 403, false},
		{"an expired token", map[string]any{"sub": "1", "scope": "assay.search", "exp": time.Now().Unix() - 90}, 401, false},
	} {
		if status, sees := search(token(test.claims)); status != test.status || sees != test.sees {
			t.Errorf("%s: %d, sees the board's plan %v", test.name, status, sees)
		}
	}
	claims := map[string]any{"sub": "1", "scope": "assay.search", "exp": time.Now().Add(24 * time.Hour).Unix()}
	before := token(claims)
	post := func(path string) {
		t.Helper()
		resp, err := http.Post(control+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	post("/add?alg=ES256")
	ahead.Store(int64(time.Hour))
	for range 4 { // the keys sign in turn
		if status, _ := search(token(claims)); status != http.StatusOK {
			t.Errorf("after a key was added: %d", status)
		}
	}
	post("/withdraw?kid=" + url.QueryEscape(keyOf(t, before)))
	ahead.Store(int64(3 * time.Hour))
	if status, _ := search(before); status != http.StatusUnauthorized {
		t.Errorf("a token of a withdrawn key: %d", status)
	}
}

// keyOf returns the ID of a token's key.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	var header struct{ Kid string }
	if err := json.Unmarshal(decodeBase64(t, head), &header); err != nil || header.Kid == "" {
		t.Fatalf("header %s: %v", head, err)
	}
	return header.Kid
}

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
