package ui

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/server"
)

const testResource = "https://assay.example.com"

// A fakeProvider is an OpenID provider, whose users need no password. Its fields change what it does.
type fakeProvider struct {
	t      *testing.T
	url    string
	signer jose.Signer

	mu        sync.Mutex
	codes     map[string]url.Values // requests by code
	audience  string                // of access tokens
	nonce     func(string) string   // of ID tokens
	client    string                // audience of ID tokens
	lives     time.Duration         // of access tokens
	refuse    bool                  // refreshes
	fails     int                   // status of refreshes that fail; 0: none
	refreshes int
	params    url.Values // of the last token request
}

func newFakeProvider(t *testing.T) *fakeProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeProvider{t: t, codes: map[string]url.Values{}, audience: testResource, client: "app", lives: time.Hour, nonce: func(n string) string { return n }}
	f.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, (&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", f.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		f.write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", f.token)
	mux.HandleFunc("GET /auth", func(w http.ResponseWriter, r *http.Request) { // a page, from which a user returns
		code, asked := f.grant(r.URL.String())
		back := asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
		_, _ = io.WriteString(w, `<!doctype html><title>Corp</title><p><a id="back" href="`+html.EscapeString(back)+`">Sign in</a></p>`)
	})
	mux.HandleFunc("GET /end", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("post_logout_redirect_uri"), http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

func (f *fakeProvider) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeProvider) discovery(w http.ResponseWriter, _ *http.Request) {
	f.write(w, map[string]any{
		"issuer": f.url, "authorization_endpoint": f.url + "/auth", "token_endpoint": f.url + "/token", "jwks_uri": f.url + "/keys",
		"end_session_endpoint": f.url + "/end", "id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

// grant signs a user in: it returns the code for the request that an address makes.
func (f *fakeProvider) grant(address string) (code string, request url.Values) {
	u, err := url.Parse(address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	code = rand.Text()
	f.codes[code] = u.Query()
	return code, u.Query()
}

// token answers a token request. A code counts once, and with the verifier of its challenge.
func (f *fakeProvider) token(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = r.ParseForm()
	f.params = r.PostForm
	nonce := ""
	if r.PostForm.Get("grant_type") == "refresh_token" {
		f.refreshes++
		if f.fails != 0 {
			w.WriteHeader(f.fails)
			return
		}
		if f.refuse {
			w.WriteHeader(http.StatusBadRequest)
			f.write(w, map[string]string{"error": "invalid_grant"})
			return
		}
	} else {
		asked, ok := f.codes[r.PostForm.Get("code")]
		delete(f.codes, r.PostForm.Get("code"))
		if !ok || asked.Get("code_challenge") != oauth2.S256ChallengeFromVerifier(r.PostForm.Get("code_verifier")) || asked.Get("code_challenge_method") != "S256" {
			w.WriteHeader(http.StatusBadRequest)
			f.write(w, map[string]string{"error": "invalid_grant"})
			return
		}
		nonce = f.nonce(asked.Get("nonce"))
	}
	ends := time.Now().Add(f.lives).Unix()
	access := f.sign(map[string]any{"iss": f.url, "aud": f.audience, "sub": "ann", "exp": ends, "iat": time.Now().Unix(), "client_id": "app", "jti": rand.Text(), "roles": []string{"assay-reader"}, "groups": []string{"staff"}})
	id := f.sign(map[string]any{"iss": f.url, "aud": f.client, "sub": "ann", "exp": ends, "iat": time.Now().Unix(), "nonce": nonce})
	f.write(w, map[string]any{"access_token": access, "id_token": id, "refresh_token": rand.Text(), "token_type": "Bearer", "expires_in": int(f.lives.Seconds())})
}

func (f *fakeProvider) sign(claims map[string]any) string {
	data, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := f.signer.Sign(data)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// set changes the provider.
func (f *fakeProvider) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// providerSite returns a site whose users may sign in at a provider with this issuer.
func providerSite(t *testing.T, issuer, base string) *site {
	t.Helper()
	tokens, err := identity.New(identity.Options{
		Tokens: identity.Tokens{Audience: testResource, Issuers: []identity.Issuer{{
			Name: "corp", URL: issuer, Tenant: "acme", GroupsClaim: "groups", RolesClaim: "roles",
			Roles: map[string][]identity.RoleIn{"assay-reader": {{Role: identity.Reader}}},
		}}},
		Client: &http.Client{Transport: http.DefaultTransport},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, func(_ *engine.HostConfig, c *server.Config) {
		keys := c.Authenticate
		c.Authenticate = func(ctx context.Context, credential identity.Credential) (identity.Grant, error) {
			if g, err := keys(ctx, credential); err == nil {
				return g, nil
			}
			return tokens.Authenticate(ctx, credential)
		}
	})
	if base == "" {
		base = x.url
	}
	x.pages.provider, err = newProvider(Provider{
		Name: "Corp <b>", Issuer: issuer, ClientID: "app", ClientSecret: "secret", Base: base, Scopes: []string{"assay.ask"},
		Parameters: map[string]string{"resource": testResource}, Client: &http.Client{Transport: http.DefaultTransport},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// beginSignIn begins a sign-in of a new browser and returns its name and the address at the provider.
func (x *site) beginSignIn(to string) (browser, address string) {
	x.t.Helper()
	browser = rand.Text()
	x.clients[browser] = newClient()
	r := x.get(browser, "/sign-in/provider?"+url.Values{"to": {to}}.Encode())
	if r.StatusCode != http.StatusSeeOther {
		x.t.Fatalf("begin: status %d: %s", r.StatusCode, r.body)
	}
	return browser, r.Header.Get("Location")
}

// back returns from the provider to the pages.
func (x *site) back(browser string, query url.Values) reply {
	x.t.Helper()
	return x.get(browser, callbackPath+"?"+query.Encode())
}

// TestSignInAtProvider signs in at a provider, uses the session beyond the life of its token, and signs
// out.
func TestSignInAtProvider(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	x := providerSite(t, f.url, "")
	if body := x.get("", "/sign-in?to=/runs").body; !strings.Contains(body, "Sign in with <bdi>Corp &lt;b&gt;</bdi>") || !strings.Contains(body, "/sign-in/provider?to=%2fruns") && !strings.Contains(body, "/sign-in/provider?to=%2Fruns") {
		t.Errorf("the page does not lead to the provider: %s", body)
	}
	browser, address := x.beginSignIn("/?q=1")
	code, asked := f.grant(address)
	for name, want := range map[string]string{"client_id": "app", "response_type": "code", "code_challenge_method": "S256", "resource": testResource, "scope": "openid assay.ask", "redirect_uri": x.url + callbackPath} {
		if asked.Get(name) != want {
			t.Errorf("the parameter %s is %q, want %q", name, asked.Get(name), want)
		}
	}
	r := x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}, "iss": {f.url}})
	if r.StatusCode != http.StatusOK || r.Header.Get("Refresh") != "0; url=/?q=1" {
		t.Fatalf("status %d, %v: %s", r.StatusCode, r.Header, r.body)
	}
	for _, c := range r.Cookies() {
		if c.Name == sessionCookie && (!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, ".")) {
			t.Errorf("the cookie: %+v", c)
		}
	}
	if body := x.page(browser, "/"); !strings.Contains(body, "<bdi>corp/ann</bdi>") {
		t.Errorf("signed in as another user: %s", body)
	}
	if again := x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}}); again.StatusCode != http.StatusBadRequest {
		t.Errorf("the same response again: status %d", again.StatusCode)
	}
	out := x.post(browser, "/sign-out", nil)
	if to := out.Header.Get("Refresh"); !strings.Contains(to, f.url+"/end?") || !strings.Contains(to, "id_token_hint=") || !strings.Contains(to, url.QueryEscape(x.url+"/sign-in")) {
		t.Errorf("the session of the provider stays: %q", to)
	}
	if r := x.get(browser, "/"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: status %d", r.StatusCode)
	}
}

// TestChromiumSignInAtProvider signs in at a provider of another site and signs out, which checks that the
// cookies are sent where they must be.
func TestChromiumSignInAtProvider(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	f.url = strings.Replace(f.url, "127.0.0.1", "localhost", 1) // another site than that of the pages
	x := providerSite(t, f.url, "")
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "", o)
		p.Expect("localhost")
		p.Expect("favicon")
		p.Go(x.url + "/?q=1")
		p.Wait(".wide-button")
		if !o.NoScript {
			p.Axe(t)
		}
		p.Click(".wide-button")
		p.Click("#back")
		p.WaitText(".user", "corp/ann")
		if got := p.URL(); got != x.url+"/?q=1" {
			t.Errorf("the browser is at %s", got)
		}
		p.Click(".who form button")
		p.Wait(".wide-button")
		p.Go(x.url + "/")
		if p.Has(".user") {
			t.Error("still signed in after signing out")
		}
	})
}

// TestSignInRefresh checks that a token is refreshed before it expires, and that the session ends once
// that is refused.
func TestSignInRefresh(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	f.lives = refreshAhead / 2 // so each request refreshes
	x := providerSite(t, f.url, "")
	browser, address := x.beginSignIn("/")
	code, asked := f.grant(address)
	x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}})
	x.page(browser, "/")
	f.set(func() {
		if f.refreshes == 0 || f.params.Get("resource") != testResource {
			t.Errorf("%d refreshes, with %v", f.refreshes, f.params)
		}
		f.refuse = true
	})
	for range 2 {
		if r := x.get(browser, "/"); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "/sign-in") {
			t.Errorf("after the refresh was refused: status %d", r.StatusCode)
		}
	}
}

// TestSignInRefreshFails checks that a provider that fails, or has too many requests, ends no session, and is
// not asked with each request.
func TestSignInRefreshFails(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
		f := newFakeProvider(t)
		f.lives, f.fails = refreshAhead-time.Second, status
		x := providerSite(t, f.url, "")
		begun := time.Now()
		browser, address := x.beginSignIn("/")
		code, asked := f.grant(address)
		x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}})
		for range 3 {
			x.page(browser, "/")
		}
		most := 1 + int(time.Since(begun)/refreshPause) // one, unless the machine is slow
		f.set(func() {
			if f.refreshes < 1 || f.refreshes > most {
				t.Errorf("status %d: %d refreshes, want %d", status, f.refreshes, most)
			}
		})
	}
}

// TestSignInHostile checks what must not begin a session.
func TestSignInHostile(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	x := providerSite(t, f.url, "")
	tests := []struct {
		name    string
		prepare func()
		change  func(url.Values)
		other   bool // another browser comes back
		want    int
	}{
		{"another state", nil, func(v url.Values) { v.Set("state", rand.Text()) }, false, 400},
		{"no state", nil, func(v url.Values) { v.Del("state") }, false, 400},
		{"another browser", nil, nil, true, 400},
		{"an unknown code", nil, func(v url.Values) { v.Set("code", rand.Text()) }, false, 401},
		{"no code", nil, func(v url.Values) { v.Del("code") }, false, 401},
		{"another issuer", nil, func(v url.Values) { v.Set("iss", "https://evil.example") }, false, 401},
		{"an error with markup", nil, func(v url.Values) { v.Set("error", "<script>alert(1)</script>") }, false, 401},
		{"no nonce", func() { f.nonce = func(string) string { return "" } }, nil, false, 401},
		{"another nonce", func() { f.nonce = func(n string) string { return n + "x" } }, nil, false, 401},
		{"an ID token of another client", func() { f.client = "other" }, nil, false, 401},
		{"an access token of another resource", func() { f.audience = "https://other.example.com" }, nil, false, 401},
	}
	for _, test := range tests {
		f.set(func() {
			f.nonce, f.client, f.audience = func(n string) string { return n }, "app", testResource
			if test.prepare != nil {
				test.prepare()
			}
		})
		browser, address := x.beginSignIn("/")
		code, asked := f.grant(address)
		query := url.Values{"state": {asked.Get("state")}, "code": {code}}
		if test.change != nil {
			test.change(query)
		}
		if test.other {
			browser, _ = x.beginSignIn("/")
		}
		r := x.back(browser, query)
		if r.StatusCode != test.want || strings.Contains(r.body, "<script>alert") {
			t.Errorf("%s: status %d, want %d: %s", test.name, r.StatusCode, test.want, r.body)
		}
		for _, c := range r.Cookies() {
			if c.Name == sessionCookie {
				t.Errorf("%s: a session begins", test.name)
			}
		}
	}
	if strings.Contains(x.log.String(), "eyJ") {
		t.Error("the log has a token")
	}
}

// TestSignInReturnsHere checks that a sign-in leads to pages of this server only.
func TestSignInReturnsHere(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	x := providerSite(t, f.url, "")
	for _, to := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"} {
		browser, address := x.beginSignIn(to)
		code, asked := f.grant(address)
		if r := x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}}); r.Header.Get("Refresh") != "0; url=/" {
			t.Errorf("to %s: %q", to, r.Header.Get("Refresh"))
		}
	}
}

// TestSignInFixation checks that a cookie that was there before a sign-in is not that of the session.
func TestSignInFixation(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	x := providerSite(t, f.url, "")
	browser, address := x.beginSignIn("/")
	u, _ := url.Parse(x.url)
	x.clients[browser].Jar.SetCookies(u, []*http.Cookie{{Name: sessionCookie, Value: "planted", Path: "/"}})
	code, asked := f.grant(address)
	x.back(browser, url.Values{"state": {asked.Get("state")}, "code": {code}})
	for _, c := range x.clients[browser].Jar.Cookies(u) {
		if c.Name == sessionCookie && c.Value == "planted" {
			t.Error("the planted cookie stays")
		}
	}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "planted"})
	if _, ok := x.pages.sessions.credential(r); ok {
		t.Error("the planted cookie is that of a session")
	}
}

// TestSignInBehindProxy checks that the cookie of a session is sent by TLS alone when a proxy in front of the
// server speaks it: the return from a provider has no header Origin that would tell.
func TestSignInBehindProxy(t *testing.T) {
	t.Parallel()
	f := newFakeProvider(t)
	x := providerSite(t, f.url, "https://assay.example.com")
	begun := x.get("", "/sign-in/provider?to=/")
	code, asked := f.grant(begun.Header.Get("Location"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+callbackPath+"?"+url.Values{"state": {asked.Get("state")}, "code": {code}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range begun.Cookies() {
		r.AddCookie(c)
	}
	res, err := newClient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	i := slices.IndexFunc(res.Cookies(), func(c *http.Cookie) bool { return c.Name == sessionCookie })
	if i < 0 || !res.Cookies()[i].Secure {
		t.Errorf("status %d, cookies %v, want a session's with Secure", res.StatusCode, res.Cookies())
	}
}

// TestSignInUnavailable checks that a provider that cannot be reached is told, and that keys work.
func TestSignInUnavailable(t *testing.T) {
	t.Parallel()
	x := providerSite(t, "http://127.0.0.1:9", "")
	if r := x.get("", "/sign-in/provider"); r.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d", r.StatusCode)
	}
	x.page("ann", "/")
	for _, bad := range []Provider{
		{}, {Name: "a", ClientID: "b", Client: &http.Client{}, Issuer: "http://idp.example.com", Base: "https://assay.example.com"},
		{Name: "a", ClientID: "b", Client: &http.Client{}, Issuer: "https://idp.example.com", Base: "http://assay.example.com"},
	} {
		if _, err := newProvider(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestManySessions checks that sessions and flows are bounded, and that the ones used last stay.
func TestManySessions(t *testing.T) {
	t.Parallel()
	s, p := newSessions(), &provider{flows: map[string]flow{}}
	var c identity.Credential
	request := func(word string) *http.Request {
		r, _ := http.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: word})
		return r
	}
	first := s.begin("first", c, nil)
	last := ""
	for i := range maxSessions {
		last = s.begin(strconv.Itoa(i/maxSessionsOfOne), c, nil)
	}
	if _, ok := s.credential(request(first)); ok || len(s.all) != maxSessions {
		t.Errorf("%d sessions, and the oldest one stays: %t", len(s.all), ok)
	}
	if _, ok := s.credential(request(last)); !ok {
		t.Error("the newest session is dropped")
	}
	state := p.begin(flow{begun: now().Add(-time.Second)})
	for i := range maxFlows {
		p.begin(flow{begun: now().Add(time.Duration(i))})
	}
	if _, ok := p.flows[state]; ok || len(p.flows) != maxFlows {
		t.Errorf("%d flows, and the oldest one stays: %t", len(p.flows), ok)
	}
}

// TestOIDCProvider signs in at oidc-provider, as a browser does.
func TestOIDCProvider(t *testing.T) {
	issuer := os.Getenv("ASSAY_TEST_OIDC_PROVIDER")
	if issuer == "" {
		t.Skip("ASSAY_TEST_OIDC_PROVIDER is not set; to run this test: scripts/oidc run go test -run OIDCProvider ./ui")
	}
	x := providerSite(t, issuer, "https://app.example.com") // the URL that the provider knows
	browser, address := x.beginSignIn("/")
	back := atOIDCProvider(t, address)
	if back.Host != "app.example.com" || back.Path != callbackPath {
		t.Fatalf("the provider leads to %s", back)
	}
	// The cookie of the flow is for encrypted pages, as those of app.example.com are.
	request := func(path string, cookie *http.Cookie) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			r.AddCookie(cookie)
		}
		res, err := newClient().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	if r := request(back.RequestURI(), &http.Cookie{Name: flowCookie, Value: browser}); r.StatusCode != http.StatusBadRequest {
		t.Errorf("another browser: status %d", r.StatusCode)
	}
	begun := request("/sign-in/provider", nil)
	back = atOIDCProvider(t, begun.Header.Get("Location"))
	r := request(back.RequestURI(), begun.Cookies()[0])
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", r.StatusCode, x.log.String())
	}
	for _, c := range r.Cookies() {
		if c.Name != sessionCookie {
			continue
		}
		page := request("/", &http.Cookie{Name: c.Name, Value: c.Value})
		body, err := io.ReadAll(page.Body)
		if err != nil || page.StatusCode != http.StatusOK || !strings.Contains(string(body), "<bdi>corp/ann</bdi>") {
			t.Errorf("the page: %v %d %s", err, page.StatusCode, body)
		}
		one := x.pages.sessions.find(sha256.Sum256([]byte(c.Value)))
		before := one.tokens.refresh
		one.tokens.expires = time.Now() // as if it were about to expire
		if page := request("/", &http.Cookie{Name: c.Name, Value: c.Value}); page.StatusCode != http.StatusOK || before == "" || !one.tokens.expires.After(time.Now().Add(time.Minute)) {
			t.Errorf("after a refresh: status %d, until %s", page.StatusCode, one.tokens.expires)
		}
		return
	}
	t.Error("no session begins")
}

// atOIDCProvider signs a user in at oidc-provider and returns the address to which it leads.
func atOIDCProvider(t *testing.T, address string) *url.URL {
	t.Helper()
	var at *url.URL
	client := &http.Client{Jar: newJar(), CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if at = r.URL; at.Host == "app.example.com" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	send := func(method, address string, form url.Values) {
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if data, err := io.ReadAll(res.Body); err != nil || res.StatusCode >= 400 {
			t.Fatalf("%s: %s, %v: %s", address, res.Status, err, data)
		}
	}
	send(http.MethodGet, address, nil)
	for _, form := range []url.Values{{"prompt": {"login"}, "login": {"ann"}, "password": {"x"}}, {"prompt": {"consent"}}} {
		send(http.MethodPost, at.String(), form)
	}
	return at
}
