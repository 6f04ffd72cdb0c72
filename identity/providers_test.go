package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// provider returns the address of a real identity provider. scripts/oidc starts them.
func provider(t *testing.T, variable string) string {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		t.Skip(variable + " is not set; to run this test: scripts/oidc run go test ./identity")
	}
	return address
}

// requestTokens makes a token request and returns the response.
func requestTokens(t *testing.T, endpoint string, form url.Values) (tokens struct {
	Access string `json:"access_token"`
	ID     string `json:"id_token"`
}) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("app", "secret")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body := send(t, http.DefaultClient, r)
	if err := json.Unmarshal(body, &tokens); err != nil || tokens.Access == "" {
		t.Fatalf("token request: %v: %s", err, body)
	}
	return tokens
}

func send(t *testing.T, client *http.Client, r *http.Request) []byte {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		t.Fatalf("%s: %s, %v: %s", r.URL, resp.Status, err, body)
	}
	return body
}

// authenticatorFor returns an Authenticator for an issuer. Its clock is ahead by *ahead.
func authenticatorFor(t *testing.T, issuer Issuer, ahead *time.Duration) *Authenticator {
	t.Helper()
	issuer.Name, issuer.Tenant = "corp", "acme"
	issuer.RolesClaim, issuer.Roles = "roles", map[string][]RoleIn{"assay-reader": {{Role: Reader}}}
	a, err := New(Options{
		Tokens: Tokens{Audience: testAudience, Issuers: []Issuer{issuer}}, Client: &http.Client{Transport: http.DefaultTransport},
		Now: func() time.Time { return time.Now().Add(*ahead) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOIDCProvider authenticates with tokens of oidc-provider: those of a user who has signed in, with the
// ID token beside the access token, and those of a client.
func TestOIDCProvider(t *testing.T) {
	issuer := provider(t, "ASSAY_TEST_OIDC_PROVIDER")
	var ahead time.Duration
	a := authenticatorFor(t, Issuer{
		URL: issuer, RequireJWT: true, GroupsClaim: "groups", Scopes: map[string]Scope{"assay.ask": ScopeAsk, "assay.search": ScopeSearch},
	}, &ahead)
	code := signIn(t, issuer, "ann")
	user := requestTokens(t, issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://app.example.com/callback"}, "resource": {testAudience},
	})
	client := func(resource, scope string) string {
		return requestTokens(t, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {scope}}).Access
	}
	tests := []struct {
		name, token, user string
		scopes            []Scope
		want              Reason
	}{
		{"a user", user.Access, "corp/ann", []Scope{ScopeAsk}, ""},
		{"the user's ID token", user.ID, "", nil, BadType},
		{"a client", client(testAudience, "assay.ask assay.search"), "corp/app", []Scope{ScopeAsk, ScopeSearch}, ""},
		{"a client without a scope of ours", client(testAudience, ""), "", nil, NoScope},
		{"a client of another resource", client("https://other.example.com", "assay.ask"), "", nil, ForeignAudience},
		{"a client of a path of ours", client(testAudience+"/mcp", "assay.ask"), "", nil, ForeignAudience},
	}
	for _, test := range tests {
		g, err := authenticate(t.Context(), a, test.token)
		if ReasonOf(err) != test.want || g.Principal.User != test.user {
			t.Errorf("%s: %+v, %v with the reason %q, want %q", test.name, g, err, ReasonOf(err), test.want)
			continue
		}
		var scopes []Scope
		for _, r := range g.Rights {
			scopes = append(scopes, r.Scope)
		}
		if diff := cmp.Diff(test.scopes, scopes); diff != "" || err == nil && !cmp.Equal(g.Principal.Groups, []string{"finance"}) {
			t.Errorf("%s: groups %q, scopes (-want +got):\n%s", test.name, g.Principal.Groups, diff)
		}
	}
	lax := authenticatorFor(t, Issuer{URL: issuer}, &ahead)
	if _, err := authenticate(t.Context(), lax, user.ID); ReasonOf(err) != IDToken && ReasonOf(err) != ForeignAudience {
		t.Errorf("the ID token without require_at_jwt: %v with the reason %q", err, ReasonOf(err))
	}
	ahead = 2 * time.Hour
	if _, err := authenticate(t.Context(), a, user.Access); ReasonOf(err) != Expired {
		t.Errorf("two hours later: %v with the reason %q", err, ReasonOf(err))
	}
}

// signIn signs a user in and returns the authorization code.
func signIn(t *testing.T, issuer, user string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var at *url.URL // where the last redirect leads
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if at = r.URL; at.Host == "app.example.com" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	query := url.Values{
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {"https://app.example.com/callback"},
		"scope": {"openid assay.ask"}, "resource": {testAudience}, "nonce": {"n"},
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+"/auth?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	send(t, client, get)
	for _, form := range []url.Values{{"prompt": {"login"}, "login": {user}, "password": {"x"}}, {"prompt": {"consent"}}} {
		post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.String(), strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		send(t, client, post)
	}
	code := at.Query().Get("code")
	if code == "" {
		t.Fatalf("no code in %s", at)
	}
	return code
}

// TestOAuth2Mock authenticates with tokens of oauth2-mock-server, whose claims and keys are changed.
func TestOAuth2Mock(t *testing.T) {
	issuer := provider(t, "ASSAY_TEST_OAUTH2_MOCK")
	control := provider(t, "ASSAY_TEST_OAUTH2_CONTROL")
	var ahead time.Duration
	a := authenticatorFor(t, Issuer{URL: issuer}, &ahead)
	token := func(claims string) string {
		return requestTokens(t, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "claims": {claims}}).Access
	}
	now := time.Now().Unix()
	for _, test := range []struct {
		claims string
		want   Reason
	}{
		{`{"sub":"u1"}`, ""},
		{`{"sub":"u1","aud":["x","https://assay.example.com"]}`, ""},
		{`{"sub":"u1","aud":"app"}`, ForeignAudience},
		{`{"sub":"u1","iss":"https://evil.example.com"}`, ForeignIssuer},
		{`{"sub":"u1","nonce":"n"}`, IDToken},
		{`{"sub":"u1","roles":[]}`, NoRole},
		{`{"sub":""}`, BadClaim},
		{fmt.Sprintf(`{"sub":"u1","exp":%d}`, now-60), Expired},
		{fmt.Sprintf(`{"sub":"u1","nbf":%d}`, now+600), NotYetValid},
	} {
		if _, err := authenticate(t.Context(), a, token(test.claims)); ReasonOf(err) != test.want {
			t.Errorf("%s: %v with the reason %q, want %q", test.claims, err, ReasonOf(err), test.want)
		}
	}

	first := token(`{"sub":"u1"}`)
	call := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, control+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(send(t, http.DefaultClient, r))
	}
	added := call("/add?alg=ES256")
	var second string
	for range 10 { // keys sign in turn
		if second = token(`{"sub":"u1"}`); keyOf(t, second) == added {
			break
		}
	}
	ahead += fetchEvery
	for _, text := range []string{first, second} {
		if _, err := authenticate(t.Context(), a, text); err != nil {
			t.Errorf("after a key was added: %v with the reason %q", err, ReasonOf(err))
		}
	}
	call("/withdraw?kid=" + url.QueryEscape(keyOf(t, first)))
	ahead += keysFresh
	for i, want := range []Reason{BadSignature, ""} {
		if _, err := authenticate(t.Context(), a, []string{first, second}[i]); ReasonOf(err) != want {
			t.Errorf("after the first key was withdrawn, token %d: %v with the reason %q, want %q", i, err, ReasonOf(err), want)
		}
	}
}

// keyOf returns the name of the key in a token's header.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	var header struct{ Kid string }
	if err := json.Unmarshal(data, &header); err != nil || slices.Contains([]string{"", "none"}, header.Kid) {
		t.Fatalf("header %s: %v", data, err)
	}
	return header.Kid
}
