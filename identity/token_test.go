package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// forge returns a token with these parts. The signature is that of sign, or any bytes.
func forge(header, payload string, sign func(signed string) []byte) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(signed))
}

func anySignature(string) []byte { return []byte("signature") }

// publicSecret signs by HMAC with the issuer's public key, in the form of a PEM file.
func publicSecret(t *testing.T) func(string) []byte {
	der, err := x509.MarshalPKIXPublicKey(testKeys()["rsa"].Public())
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return func(signed string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	}
}

// A hostileToken is a token that must be refused.
type hostileToken struct {
	name, token string
	want        Reason
}

// forgedTokens returns tokens with a wrong form, header or signature.
func forgedTokens(t *testing.T, i *testIssuer) []hostileToken {
	good, err := json.Marshal(i.claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change map[string]any) string { return i.token(t, "rsa", i.claims(change), nil) }
	header := func(change map[jose.HeaderKey]any) string { return i.token(t, "rsa", i.claims(nil), change) }
	valid := claims(nil)
	parts := strings.Split(valid, ".")
	embedded := jose.JSONWebKey{Key: testKeys()["rsa2"].Public(), KeyID: "mine"}
	mine := map[jose.HeaderKey]any{"kid": "mine", "jwk": embedded, "jku": "https://evil.example.com/keys", "x5u": "https://evil.example.com/cert"}
	return []hostileToken{
		{"alg none", forge(`{"alg":"none","typ":"at+jwt"}`, string(good), anySignature), BadAlgorithm},
		{"alg None without signature", forge(`{"alg":"None"}`, string(good), func(string) []byte { return nil }), BadAlgorithm},
		{"HS256 with the public key", forge(`{"alg":"HS256","kid":"rsa"}`, string(good), publicSecret(t)), BadAlgorithm},
		{"alg missing", forge(`{"kid":"rsa"}`, string(good), anySignature), BadAlgorithm},
		{"alg a number", forge(`{"alg":256}`, string(good), anySignature), BadAlgorithm},
		{"alg rs256 in lower case", forge(`{"alg":"rs256","kid":"rsa"}`, string(good), anySignature), BadAlgorithm},
		{"alg twice", forge(`{"alg":"RS256","alg":"none"}`, string(good), anySignature), Malformed},
		{"alg of another key", forge(`{"alg":"ES256","kid":"rsa"}`, string(good), anySignature), BadSignature},
		{"key of another issuer", i.token(t, "rsa2", i.claims(nil), map[jose.HeaderKey]any{"kid": "rsa"}), BadSignature},
		{"unknown key", i.token(t, "rsa2", i.claims(nil), nil), BadSignature},
		{"embedded key", i.token(t, "rsa2", i.claims(nil), mine), BadSignature},
		{"kid a path", i.token(t, "rsa2", i.claims(nil), map[jose.HeaderKey]any{"kid": "../../dev/null"}), BadSignature},
		{"signature cut", valid[:len(valid)-20], BadSignature},
		{"signature empty", parts[0] + "." + parts[1] + ".", BadSignature},
		{"payload changed", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(good), "u1", "u2", 1))) + "." + parts[2], BadSignature},
		{"header changed", forge(`{"alg":"RS256","kid":"rsa","typ":"JWT"}`, string(good), anySignature), BadSignature},

		{"crit", header(map[jose.HeaderKey]any{"crit": []string{"exp"}, "exp": 1}), Critical},
		{"crit empty", header(map[jose.HeaderKey]any{"crit": []string{}}), Critical},
		{"b64", header(map[jose.HeaderKey]any{"b64": true}), Critical},
		{"typ of a logout token", header(map[jose.HeaderKey]any{"typ": "logout+jwt"}), BadType},
		{"typ of a DPoP proof", header(map[jose.HeaderKey]any{"typ": "dpop+jwt"}), BadType},
		{"typ a number", forge(`{"alg":"RS256","kid":"rsa","typ":7}`, string(good), anySignature), BadType},
		{"bound to a key", claims(map[string]any{"cnf": map[string]any{"jkt": "x"}}), BadType},

		{"two parts", parts[0] + "." + parts[1], Malformed},
		{"five parts, encrypted", strings.Repeat("e30.", 4) + "e30", Malformed},
		{"one word", "letmein", Malformed},
		{"two dots", "..", Malformed},
		{"padding", parts[0] + "=." + parts[1] + "." + parts[2], Malformed},
		{"header not JSON", forge(`alg`, string(good), anySignature), Malformed},
		{"claims a list", forge(`{"alg":"RS256"}`, `[1]`, anySignature), Malformed},
		{"claims null", forge(`{"alg":"RS256"}`, `null`, anySignature), Malformed},
		{"claims with a second value", forge(`{"alg":"RS256"}`, string(good)+`{}`, anySignature), Malformed},
		{"aud twice", i.token(t, "rsa", strings.Replace(string(good), `{`, `{"aud":"https://other.example.com",`, 1), nil), Malformed},
		{"17 KiB", claims(map[string]any{"x": strings.Repeat("x", 17<<10)}), TooLong},
	}
}

// misusedTokens returns tokens that the issuer has signed and that give no access here.
func misusedTokens(t *testing.T, i *testIssuer) []hostileToken {
	good, err := json.Marshal(i.claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	now := i.clock.Unix()
	claims := func(change map[string]any) string { return i.token(t, "rsa", i.claims(change), nil) }
	return []hostileToken{
		{"issuer missing", claims(map[string]any{"iss": nil}), ForeignIssuer},
		{"issuer foreign", claims(map[string]any{"iss": "https://evil.example.com"}), ForeignIssuer},
		{"issuer with a slash more", claims(map[string]any{"iss": i.server.URL + "/"}), ForeignIssuer},
		{"issuer in other case", i.token(t, "rsa", strings.Replace(string(good), `"iss"`, `"ISS"`, 1), nil), ForeignIssuer},
		{"issuer a list", claims(map[string]any{"iss": []string{i.server.URL}}), BadClaim},

		{"audience missing", claims(map[string]any{"aud": nil}), ForeignAudience},
		{"audience foreign", claims(map[string]any{"aud": "https://other.example.com"}), ForeignAudience},
		{"audience a client", claims(map[string]any{"aud": "app", "azp": "app"}), ForeignAudience},
		{"audience a prefix", claims(map[string]any{"aud": testAudience + "/mcp"}), ForeignAudience},
		{"audience in other case", i.token(t, "rsa", strings.Replace(string(good), `"aud"`, `"Aud"`, 1), nil), ForeignAudience},
		{"audience a number", claims(map[string]any{"aud": 7}), BadClaim},
		{"audience a list with a number", claims(map[string]any{"aud": []any{testAudience, 7}}), BadClaim},

		{"ID token by nonce", claims(map[string]any{"nonce": "n"}), IDToken},
		{"ID token by at_hash", claims(map[string]any{"at_hash": "h"}), IDToken},
		{"ID token by c_hash", claims(map[string]any{"c_hash": "h"}), IDToken},
		{"ID token of Keycloak", claims(map[string]any{"typ": "ID", "azp": "app"}), IDToken},
		{"refresh token of Keycloak", claims(map[string]any{"typ": "Refresh"}), IDToken},
		{"logout token", claims(map[string]any{"events": map[string]any{}}), IDToken},
		{"the resource's name as client ID", claims(map[string]any{"azp": testAudience}), IDToken},

		{"expired", claims(map[string]any{"exp": now - 30}), Expired},
		{"expired long ago", claims(map[string]any{"exp": 0}), Expired},
		{"exp missing", claims(map[string]any{"exp": nil}), BadClaim},
		{"exp a text", claims(map[string]any{"exp": "1900000000"}), BadClaim},
		{"exp negative", claims(map[string]any{"exp": -1}), BadClaim},
		{"exp endless", claims(map[string]any{"exp": 1e300}), BadClaim},
		{"not yet", claims(map[string]any{"nbf": now + 31}), NotYetValid},
		{"issued in the future", claims(map[string]any{"iat": now + 31}), NotYetValid},
		{"nbf a text", claims(map[string]any{"nbf": "soon"}), BadClaim},

		{"sub missing", claims(map[string]any{"sub": nil}), BadClaim},
		{"sub a number", claims(map[string]any{"sub": 1}), BadClaim},
		{"sub with a line break", claims(map[string]any{"sub": "u1\nadmin"}), BadClaim},
		{"sub with an invisible character", claims(map[string]any{"sub": "u1\u200b"}), BadClaim},
		{"groups an object", claims(map[string]any{"groups": map[string]any{"a": "b"}}), BadClaim},
		{"a group with a control character", claims(map[string]any{"groups": []string{"a\x00"}}), BadClaim},
		{"roles a number", claims(map[string]any{"roles": 1}), BadClaim},
		{"claims of another server", claims(map[string]any{"_claim_names": map[string]any{"groups": "src"}, "_claim_sources": map[string]any{}}), BadClaim},

		{"groups left out by the issuer", claims(map[string]any{"groups": nil, "_claim_names": map[string]any{"groups": "src"},
			"_claim_sources": map[string]any{"src": map[string]any{"endpoint": "https://graph.example.com"}}}), BadClaim},

		{"no role", claims(map[string]any{"roles": nil}), NoRole},
		{"an unknown role", claims(map[string]any{"roles": []string{"admin"}}), NoRole},
	}
}

// TestHostileTokens presents tokens that must be refused, each with its reason.
func TestHostileTokens(t *testing.T) {
	i := newTestIssuer(t)
	a := i.authenticator(t, i.issuer())
	tests := append(forgedTokens(t, i), misusedTokens(t, i)...)
	if len(tests) < 40 {
		t.Errorf("%d tokens, want 40 or more", len(tests))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := authenticate(t.Context(), a, test.token)
			r, ok := errors.AsType[*Refusal](err)
			if !ok || r.Reason != test.want {
				t.Fatalf("Authenticate = %+v, %v with the reason %q, want %q", g, err, ReasonOf(err), test.want)
			}
			if diff := cmp.Diff(Grant{}, g); diff != "" {
				t.Errorf("a grant beside the error: %s", diff)
			}
			checkSilent(t, r, test.token)
		})
	}
	t.Logf("%d tokens", len(tests))
	if g, err := authenticate(t.Context(), a, i.token(t, "rsa", i.claims(nil), nil)); err != nil || g.Tenant != "acme" {
		t.Errorf("the valid token afterwards: %+v, %v", g, err)
	}
}

// checkSilent checks that a refusal's text is that of its kind alone and that no field has the token.
func checkSilent(t *testing.T, r *Refusal, token string) {
	t.Helper()
	want := assay.ErrUnauthenticated
	if r.Reason == NoRole || r.Reason == NoTenant || r.Reason == NoScope {
		want = assay.ErrForbidden
	}
	if !errors.Is(r, want) || r.Error() != want.Error() {
		t.Errorf("the error is %q, want %q", r, want)
	}
	if (r.User != "") != (want == assay.ErrForbidden) {
		t.Errorf("the user of a refusal with the reason %s is %q", r.Reason, r.User)
	}
	for _, p := range strings.Split(token, ".") {
		if len(p) > 8 && strings.Contains(r.Detail, p) {
			t.Errorf("the detail has a part of the token: %s", r.Detail)
		}
	}
}

// TestTokens presents valid tokens.
func TestTokens(t *testing.T) {
	i := newTestIssuer(t)
	now := i.clock.Unix()
	reader := []Right{{Scope: ScopeAsk}, {Scope: ScopeSearch}}
	grant := func(user string, groups []string, roles []string, rights []Right) Grant {
		return Grant{Tenant: "acme", Principal: assay.Principal{User: user, Groups: groups, Roles: roles}, Rights: rights, Expires: time.Unix(now+300, 0).UTC()}
	}
	usual := grant("corp/u1", []string{"finance"}, []string{"reader"}, reader)
	tests := []struct {
		name   string
		issuer func(*Issuer)
		key    string
		claims map[string]any
		header map[jose.HeaderKey]any
		want   Grant
	}{
		{name: "RSA", want: usual},
		{name: "EC", key: "ec", want: usual},
		{name: "EdDSA", key: "ed", want: usual},
		{name: "without a key's name", key: "ec", header: map[jose.HeaderKey]any{"kid": nil}, want: usual},
		{name: "typ JWT", header: map[jose.HeaderKey]any{"typ": "JWT"}, want: usual},
		{name: "typ with its media type", header: map[jose.HeaderKey]any{"typ": "application/AT+JWT"}, want: usual},
		{name: "without typ", header: map[jose.HeaderKey]any{"typ": nil}, want: usual},
		{name: "keys and addresses in the header", header: map[jose.HeaderKey]any{"jku": "https://evil.example.com", "x5u": "https://evil.example.com"}, want: usual},
		{name: "Keycloak's typ", claims: map[string]any{"typ": "Bearer", "azp": "app"}, want: usual},
		{name: "several audiences", claims: map[string]any{"aud": []string{"account", testAudience}}, want: usual},
		{name: "a fraction of a second", claims: map[string]any{"exp": float64(now) + 300.5}, want: usual},
		{name: "expired within the skew", claims: map[string]any{"exp": now - 29}, want: func() Grant { g := usual; g.Expires = time.Unix(now-29, 0).UTC(); return g }()},
		{name: "valid soon, within the skew", claims: map[string]any{"nbf": now + 30, "iat": now + 30}, want: usual},
		{name: "a role in a collection", claims: map[string]any{"roles": []string{"editors", "readers", "x"}},
			want: grant("corp/u1", []string{"finance"}, []string{"editor", "reader"}, []Right{{Scope: ScopeAsk}, {Scope: ScopeSearch}, {Scope: ScopeIngest, Collections: []string{"handbook"}}})},
		{name: "roles within a claim", issuer: func(i *Issuer) { i.RolesClaim = "realm_access.roles" },
			claims: map[string]any{"roles": nil, "realm_access": map[string]any{"roles": []string{"readers"}}}, want: usual},
		{name: "a claim with dots in its name", issuer: func(i *Issuer) { i.RolesClaim = "https://assay.example.com/roles" },
			claims: map[string]any{"roles": nil, "https://assay.example.com/roles": "readers"}, want: usual},
		{name: "a name beside sub", issuer: func(i *Issuer) { i.UserClaim = "email" }, claims: map[string]any{"email": "ann@example.com"},
			want: grant("corp/ann@example.com/u1", []string{"finance"}, []string{"reader"}, reader)},
		{name: "slashes in a name", issuer: func(i *Issuer) { i.UserClaim = "email" }, claims: map[string]any{"email": "a/b%", "sub": "c/d"},
			want: grant("corp/a%2Fb%25/c%2Fd", []string{"finance"}, []string{"reader"}, reader)},
		{name: "a bare name", issuer: func(i *Issuer) { i.UserClaim, i.BareUser = "email", true }, claims: map[string]any{"email": "ann@example.com", "email_verified": true},
			want: grant("ann@example.com", []string{"finance"}, []string{"reader"}, reader)},
		{name: "a table and a prefix of groups", issuer: func(i *Issuer) { i.Groups, i.GroupPrefix = map[string]string{"g-17": "finance"}, "corp:" },
			claims: map[string]any{"groups": []string{"g-17", "g-18"}}, want: grant("corp/u1", []string{"corp:finance"}, []string{"reader"}, reader)},
		{name: "a tenant by its claim", issuer: func(i *Issuer) { i.Tenant, i.TenantClaim, i.Tenants = "", "org", map[string]string{"17": "acme"} },
			claims: map[string]any{"org": "17"}, want: usual},
		{name: "limited by scope", issuer: func(i *Issuer) { i.Scopes = map[string]Scope{"assay.search": ScopeSearch} },
			claims: map[string]any{"scope": "openid assay.search"}, want: grant("corp/u1", []string{"finance"}, []string{"reader"}, reader[1:])},
		{name: "limited by scp", issuer: func(i *Issuer) { i.Scopes = map[string]Scope{"assay.search": ScopeSearch} },
			claims: map[string]any{"scp": []string{"openid", "assay.search"}}, want: grant("corp/u1", []string{"finance"}, []string{"reader"}, reader[1:])},
		{name: "a role for all", issuer: func(i *Issuer) { i.RolesClaim, i.Roles, i.DefaultRoles = "", nil, []RoleIn{{Role: Auditor}} },
			want: grant("corp/u1", []string{"finance"}, []string{"auditor"}, []Right{{Scope: ScopeAudit}})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			issuer := i.issuer()
			if test.issuer != nil {
				test.issuer(&issuer)
			}
			key := "rsa"
			if test.key != "" {
				key = test.key
			}
			got, err := authenticate(t.Context(), i.authenticator(t, issuer), i.token(t, key, i.claims(test.claims), test.header))
			if err != nil {
				t.Fatalf("%v, %+v", err, err)
			}
			test.want.Issuer = issuer.URL
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestForbidden presents valid tokens of callers who have nothing to do here.
func TestForbidden(t *testing.T) {
	i := newTestIssuer(t)
	byClaim := func(i *Issuer) {
		i.Tenant, i.TenantClaim, i.Tenants = "", "org", map[string]string{"17": "acme", "18": "beta"}
	}
	tests := []struct {
		name   string
		issuer func(*Issuer)
		claims map[string]any
		want   Reason
	}{
		{"no tenant", byClaim, nil, NoTenant},
		{"an unknown tenant", byClaim, map[string]any{"org": "acme"}, NoTenant},
		{"two tenants", byClaim, map[string]any{"org": []string{"17", "18"}}, NoTenant},
		{"tenant an object", byClaim, map[string]any{"org": map[string]any{}}, BadClaim},
		{"no scope", func(i *Issuer) { i.Scopes = map[string]Scope{"s": ScopeSearch} }, nil, NoScope},
		{"a scope without a role", func(i *Issuer) { i.Scopes = map[string]Scope{"s": ScopeAdmin} }, map[string]any{"scope": "s"}, NoScope},
		{"the mail address is not verified", func(i *Issuer) { i.UserClaim, i.BareUser = "email", true }, map[string]any{"email": "ann@example.com"}, BadClaim},
		{"the user of the command line", func(i *Issuer) { i.UserClaim, i.BareUser = "name", true }, map[string]any{"name": "local"}, BadClaim},
		{"typ JWT where at+jwt is required", func(i *Issuer) { i.RequireJWT = true }, nil, BadType},
		{"an algorithm that this issuer does not use", func(i *Issuer) { i.Algorithms = []string{"ES256"} }, nil, BadAlgorithm},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			issuer := i.issuer()
			test.issuer(&issuer)
			_, err := authenticate(t.Context(), i.authenticator(t, issuer), i.token(t, "rsa", i.claims(test.claims), map[jose.HeaderKey]any{"typ": "JWT"}))
			if ReasonOf(err) != test.want {
				t.Errorf("%+v with the reason %q, want %q", err, ReasonOf(err), test.want)
			}
		})
	}
}

// TestTwoIssuers checks that a token counts only with the keys and the tenant of its own issuer, and
// that users with the same sub stay apart.
func TestTwoIssuers(t *testing.T) {
	one, two := newTestIssuer(t), newTestIssuer(t)
	two.publish("rsa2")
	second := two.issuer()
	second.Name, second.Tenant = "partner", "beta"
	a := one.authenticator(t, one.issuer(), second)
	for _, test := range []struct {
		name, token, tenant, user string
		want                      Reason
	}{
		{"of the first", one.token(t, "rsa", one.claims(nil), nil), "acme", "corp/u1", ""},
		{"of the second", two.token(t, "rsa2", two.claims(nil), nil), "beta", "partner/u1", ""},
		{"of the second, with a key of the first", two.token(t, "rsa", two.claims(nil), nil), "", "", BadSignature},
		{"of the first, with a key of the second", one.token(t, "rsa2", one.claims(nil), nil), "", "", BadSignature},
	} {
		g, err := authenticate(t.Context(), a, test.token)
		if ReasonOf(err) != test.want || g.Tenant != test.tenant || g.Principal.User != test.user {
			t.Errorf("%s: %+v, %v with the reason %q, want %q", test.name, g, err, ReasonOf(err), test.want)
		}
	}
}

// TestConfigErrors checks that a mistake names its key.
func TestConfigErrors(t *testing.T) {
	i := newTestIssuer(t)
	good := func() Tokens { return Tokens{Audience: testAudience, Issuers: []Issuer{i.issuer()}} }
	tests := []struct {
		change func(*Tokens)
		want   string
	}{
		{func(t *Tokens) { t.Audience = "" }, "identity.audience: want the absolute URI"},
		{func(t *Tokens) { t.Audience = "my-client" }, "identity.audience: want the absolute URI"},
		{func(t *Tokens) { t.Audience += "#x" }, "identity.audience"},
		{func(t *Tokens) { t.Skew = 61 * time.Second }, "identity.skew"},
		{func(t *Tokens) { t.Skew = -1 }, "identity.skew"},
		{func(t *Tokens) { t.Issuers = nil }, "identity.issuers: is missing"},
		{func(t *Tokens) { t.Issuers[0].Name = "A b" }, "the name of an issuer"},
		{func(t *Tokens) { t.Issuers[0].URL = "http://login.example.com" }, "identity.issuers.corp.issuer: want https"},
		{func(t *Tokens) { t.Issuers[0].URL = "login" }, "identity.issuers.corp.issuer"},
		{func(t *Tokens) { t.Issuers[0].JWKS = "file:///etc/passwd" }, "identity.issuers.corp.jwks"},
		{func(t *Tokens) { t.Issuers[0].Algorithms = []string{"HS256"} }, "identity.issuers.corp.algorithms"},
		{func(t *Tokens) { t.Issuers[0].Tenant = "" }, "neither tenant nor tenant_claim"},
		{func(t *Tokens) { t.Issuers[0].Tenant = "../etc" }, "tenant name"},
		{func(t *Tokens) { t.Issuers[0].TenantClaim = "org" }, "identity.issuers.corp.tenant_claim: conflicts"},
		{func(t *Tokens) { t.Issuers[0].Tenant, t.Issuers[0].TenantClaim = "", "org" }, "identity.issuers.corp.tenants: is missing"},
		{func(t *Tokens) { t.Issuers[0].Tenants = map[string]string{"a": "b"} }, "identity.issuers.corp.tenants: needs"},
		{func(t *Tokens) { t.Issuers[0].BareUser = true }, "identity.issuers.corp.bare_user: needs user_claim"},
		{func(t *Tokens) { t.Issuers[0].GroupsClaim, t.Issuers[0].GroupPrefix = "", "x" }, "identity.issuers.corp.group_prefix"},
		{func(t *Tokens) { t.Issuers[0].GroupsClaim, t.Issuers[0].Groups = "", map[string]string{"a": "b"} }, "identity.issuers.corp.groups"},
		{func(t *Tokens) { t.Issuers[0].Groups = map[string]string{"a": ""} }, "identity.issuers.corp.groups.a"},
		{func(t *Tokens) { t.Issuers[0].RolesClaim = "" }, "identity.issuers.corp.roles"},
		{func(t *Tokens) { t.Issuers[0].RolesClaim, t.Issuers[0].Roles = "", nil }, "no token would have a role"},
		{func(t *Tokens) { t.Issuers[0].Scopes = map[string]Scope{"a": "root"} }, "identity.issuers.corp.scopes.a"},
		{func(t *Tokens) { t.Issuers = append(t.Issuers, t.Issuers[0]) }, "is that of corp as well"},
		{func(t *Tokens) {
			other := t.Issuers[0]
			t.Issuers[0].UserClaim, t.Issuers[0].BareUser = "email", true
			other.Name, other.URL, other.UserClaim, other.BareUser = "b", "https://b.example.com", "email", true
			t.Issuers = append(t.Issuers, other)
		}, "identity.issuers.b.bare_user: in the tenant acme"},
	}
	for _, test := range tests {
		tokens := good()
		test.change(&tokens)
		_, err := New(Options{Tokens: tokens, Client: i.server.Client()})
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New: %v, want %q", err, test.want)
		}
	}
	if _, err := New(Options{Tokens: good()}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("New without a client: %v", err)
	}
}
