package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const testAudience = "https://assay.example.com"

// testKeys are the issuer's keys, made once for all tests.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	keys := map[string]crypto.Signer{}
	for _, name := range []string{"rsa", "rsa2"} {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[name] = k
	}
	for _, name := range []string{"ec", "ec2"} {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		keys[name] = k
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	keys["ed"] = ed
	return keys
})

// algorithmOf is the algorithm of each test key.
var algorithmOf = map[string]jose.SignatureAlgorithm{"rsa": jose.RS256, "rsa2": jose.RS256, "ec": jose.ES256, "ec2": jose.ES256, "ed": jose.EdDSA}

// A testIssuer is an OpenID provider in this process.
type testIssuer struct {
	server *httptest.Server
	clock  time.Time

	mu        sync.Mutex
	published []string     // names of keys
	answer    http.Handler // instead of the keys; nil: the keys
	fetches   int          // of the keys
}

func newTestIssuer(t testing.TB) *testIssuer {
	t.Helper()
	i := &testIssuer{clock: time.Unix(1_800_000_000, 0).UTC(), published: []string{"rsa", "ec", "ed"}}
	i.server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.server.Close)
	return i
}

func (i *testIssuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":"x","token_endpoint":"x"}`, i.server.URL, i.server.URL+"/keys")
	case "/keys":
		i.fetches++
		if i.answer != nil {
			i.answer.ServeHTTP(w, r)
			return
		}
		set := jose.JSONWebKeySet{}
		for _, name := range i.published {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: testKeys()[name].Public(), KeyID: name, Algorithm: string(algorithmOf[name]), Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

func (i *testIssuer) publish(names ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = names
}

func (i *testIssuer) answerWith(h http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = h
}

func (i *testIssuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// issuer returns the configuration that tests begin with.
func (i *testIssuer) issuer() Issuer {
	return Issuer{
		Name: "corp", URL: i.server.URL, Tenant: "acme", GroupsClaim: "groups", RolesClaim: "roles",
		Roles: map[string][]RoleIn{"readers": {{Role: Reader}}, "editors": {{Role: Editor, Collections: []string{"handbook"}}}},
	}
}

// authenticator returns an Authenticator for issuers, with the clock of i.
func (i *testIssuer) authenticator(t testing.TB, issuers ...Issuer) *Authenticator {
	t.Helper()
	a, err := New(Options{
		Tokens: Tokens{Audience: testAudience, Issuers: issuers},
		Client: i.server.Client(),
		Now:    func() time.Time { return i.clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// claims returns those of a good token, changed. A nil value removes a claim.
func (i *testIssuer) claims(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.server.URL, "aud": testAudience, "sub": "u1", "exp": i.clock.Unix() + 300, "iat": i.clock.Unix(), "client_id": "app",
		"groups": []string{"finance"}, "roles": []string{"readers"},
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// token signs claims with a key. Header members may be changed.
func (i *testIssuer) token(t testing.TB, key string, claims any, header map[jose.HeaderKey]any) string {
	t.Helper()
	payload, ok := claims.(string)
	if !ok {
		data, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		payload = string(data)
	}
	extra := map[jose.HeaderKey]any{"typ": "at+jwt", "kid": key}
	maps.Copy(extra, header)
	maps.DeleteFunc(extra, func(_ jose.HeaderKey, v any) bool { return v == nil })
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithmOf[key], Key: testKeys()[key]}, &jose.SignerOptions{ExtraHeaders: extra})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// authenticate is Authenticate for a text.
func authenticate(ctx context.Context, a *Authenticator, text string) (Grant, error) {
	c, err := FromString(text)
	if err != nil {
		return Grant{}, err
	}
	return a.Authenticate(ctx, c)
}
