//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestServeKeycloak signs a user in at a real Keycloak and searches over HTTP with the tokens: after
// the login, a refresh, a rotation of the issuer's keys, a change of groups and a logout.
func TestServeKeycloak(t *testing.T) {
	address := os.Getenv("ASSAY_TEST_KEYCLOAK")
	if address == "" {
		t.Skip("ASSAY_TEST_KEYCLOAK is not set; to run this test: scripts/keycloak run go test -run TestServeKeycloak ./cmd/assay")
	}
	realm := address + "/realms/corp"
	s := newSandbox(t)
	s.write("handbook/budget.md", "# Budget\n\nThe budget of the observatory is nine million crowns.\n")
	s.write("handbook/budget.md.metadata.json", `{"acl": ["group:finance"]}`)
	s.write("handbook/all.md", "# Garden\n\nThe garden of the observatory is open on Sundays.\n")
	s.write("assay.yaml", fmt.Sprintf(`identity:
  audience: https://assay.example.com
  issuers:
    corp:
      issuer: %s
      tenant: default
      groups_claim: groups
      roles_claim: realm_access.roles
      roles: {assay-reader: reader}
`, realm))
	s.want(exitAnswered, "added", "ingest", "handbook")
	server := s.serve(nil, "--config", "assay.yaml")

	k := keycloak{t, address}
	tokens := k.signIn("ann", "password")
	both, garden := []string{"budget.md", "all.md"}, []string{"all.md"}
	server.finds(tokens.Access, both...)
	server.refuses(tokens.ID)
	server.refuses("")

	old := tokens
	tokens = k.refresh(tokens)
	server.finds(tokens.Access, both...)

	k.administer(http.MethodPost, "/components", map[string]any{
		"name": "rotated", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
		"config": map[string][]string{"priority": {"200"}, "enabled": {"true"}, "active": {"true"}, "keySize": {"2048"}, "algorithm": {"RS256"}},
	})
	if tokens = k.refresh(tokens); keyID(t, tokens.Access) == keyID(t, old.Access) {
		t.Fatal("Keycloak did not rotate its key")
	}
	s.await(func() bool { return server.search(tokens.Access).StatusCode == http.StatusOK }) // keys are fetched every ten seconds at most
	server.finds(tokens.Access, both...)

	user := k.find("/users?username=ann")
	k.administer(http.MethodDelete, "/users/"+user+"/groups/"+k.find("/groups?search=finance"), nil)
	tokens = k.refresh(tokens)
	server.finds(tokens.Access, garden...)

	k.administer(http.MethodPost, "/users/"+user+"/logout", nil)
	if status, body := k.tokenRequest(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}}); status != http.StatusBadRequest {
		t.Errorf("a refresh after the logout: %d %s", status, body)
	}
}

// A keycloak is a running Keycloak with the realm of scripts/keycloak-realm.
type keycloak struct {
	t       *testing.T
	address string
}

type keycloakTokens struct {
	Access  string `json:"access_token"`
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
}

var loginForm = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// signIn signs a user in with the form of a browser.
func (k keycloak) signIn(user, password string) keycloakTokens {
	jar, err := cookiejar.New(nil)
	if err != nil {
		k.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	query := url.Values{"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {"https://app.example.com/callback"}, "scope": {"openid"}}
	resp, err := client.Get(k.address + "/realms/corp/protocol/openid-connect/auth?" + query.Encode())
	if err != nil {
		k.t.Fatal(err)
	}
	form := loginForm.FindSubmatch(k.body(resp))
	if form == nil {
		k.t.Fatalf("%s: no form", resp.Status)
	}
	resp, err = client.PostForm(html.UnescapeString(string(form[1])), url.Values{"username": {user}, "password": {password}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.body(resp)
	at, err := resp.Location()
	if err != nil {
		k.t.Fatalf("after the login: %s, %v", resp.Status, err)
	}
	return k.tokens(url.Values{"grant_type": {"authorization_code"}, "code": {at.Query().Get("code")}, "redirect_uri": {"https://app.example.com/callback"}})
}

func (k keycloak) refresh(tokens keycloakTokens) keycloakTokens {
	return k.tokens(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}})
}

func (k keycloak) tokens(form url.Values) (tokens keycloakTokens) {
	k.t.Helper()
	status, body := k.tokenRequest(form)
	if err := json.Unmarshal(body, &tokens); err != nil || status != http.StatusOK {
		k.t.Fatalf("token request: %d %s", status, body)
	}
	return tokens
}

func (k keycloak) tokenRequest(form url.Values) (status int, body []byte) {
	form.Set("client_id", "app")
	form.Set("client_secret", "secret")
	resp, err := http.PostForm(k.address+"/realms/corp/protocol/openid-connect/token", form)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp.StatusCode, k.body(resp)
}

// administer changes the realm as its administrator and returns the response.
func (k keycloak) administer(method, path string, in any) []byte {
	k.t.Helper()
	resp, err := http.PostForm(k.address+"/realms/master/protocol/openid-connect/token",
		url.Values{"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {"admin"}})
	if err != nil {
		k.t.Fatal(err)
	}
	var admin keycloakTokens
	if err := json.Unmarshal(k.body(resp), &admin); err != nil {
		k.t.Fatal(err)
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			k.t.Fatal(err)
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(k.t.Context(), method, k.address+"/admin/realms/corp"+path, body)
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+admin.Access)
	r.Header.Set("Content-Type", "application/json")
	if resp, err = http.DefaultClient.Do(r); err != nil {
		k.t.Fatal(err)
	}
	data := k.body(resp)
	if resp.StatusCode >= 300 {
		k.t.Fatalf("%s %s: %s %s", method, path, resp.Status, data)
	}
	return data
}

// find returns the ID of the one object of a list.
func (k keycloak) find(path string) string {
	k.t.Helper()
	var list []struct{ ID string }
	if err := json.Unmarshal(k.administer(http.MethodGet, path, nil), &list); err != nil || len(list) != 1 {
		k.t.Fatalf("%s: %v, %d objects", path, err, len(list))
	}
	return list[0].ID
}

func (k keycloak) body(resp *http.Response) []byte {
	k.t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return data
}

// search searches for both documents with a token.
func (p *served) search(token string) *http.Response {
	p.s.t.Helper()
	r, err := http.NewRequestWithContext(p.s.t.Context(), http.MethodGet, p.url+"/api/v1/search?q=observatory", nil)
	if err != nil {
		p.s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Timeout: time.Minute}
	resp, err := client.Do(r)
	if err != nil {
		p.s.t.Fatal(err)
	}
	p.s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// finds checks which documents a token finds.
func (p *served) finds(token string, names ...string) {
	p.s.t.Helper()
	resp := p.search(token)
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.s.t.Fatalf("search: %s %v %s", resp.Status, err, data)
	}
	for _, name := range []string{"budget.md", "all.md"} {
		if want := strings.Contains(strings.Join(names, " "), name); strings.Contains(string(data), name) != want {
			p.s.t.Errorf("%s is found: %t, want %t", name, !want, want)
		}
	}
}

// refuses checks that a token is not accepted.
func (p *served) refuses(token string) {
	p.s.t.Helper()
	if resp := p.search(token); resp.StatusCode != http.StatusUnauthorized {
		p.s.t.Errorf("search: %s, want 401", resp.Status)
	}
}

// keyID returns the ID of the key that signed a token.
func keyID(t *testing.T, token string) string {
	t.Helper()
	encoded, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		ID string `json:"kid"`
	}
	if err := json.Unmarshal(data, &header); err != nil || header.ID == "" {
		t.Fatalf("the head of the token has no key: %s, %v", data, err)
	}
	return header.ID
}
