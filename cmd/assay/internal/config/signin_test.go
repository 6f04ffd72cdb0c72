package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const signInIdentity = `
identity:
  audience: https://assay.example.com
  issuers:
    corp: {issuer: https://login.example.com, tenant: default, default_roles: [reader]}
`

// TestSignIn reads a section with every key.
func TestSignIn(t *testing.T) {
	const text = signInIdentity + `
server:
  url: https://assay.example.com
  sign_in: {issuer: corp, name: Corp, client_id: assay, client_secret: !env SIGN_IN_SECRET, scopes: [offline_access], parameters: {resource: https://assay.example.com}}
`
	c := mustLoad(t, text, map[string]string{"SIGN_IN_SECRET": "a-long-client-secret"})
	got := *c.SignIn
	if got.Secret.Reveal() != "a-long-client-secret" || c.Secrets.Scrub("x a-long-client-secret") == "x a-long-client-secret" {
		t.Error("the secret is not read, or not hidden")
	}
	got.Secret = Key{}
	want := SignIn{Name: "Corp", Issuer: "https://login.example.com", ClientID: "assay", Scopes: []string{"offline_access"}, Parameters: map[string]string{"resource": "https://assay.example.com"}}
	if got.Name != want.Name || got.Issuer != want.Issuer || got.ClientID != want.ClientID || !cmp.Equal(got.Scopes, want.Scopes) || !cmp.Equal(got.Parameters, want.Parameters) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if c := mustLoad(t, signInIdentity, nil); c.SignIn != nil {
		t.Error("a sign-in without a section")
	}
}

func TestSignInMistakes(t *testing.T) {
	const url = "\n  url: https://assay.example.com"
	for text, want := range map[string]string{
		url + "\n  sign_in: {issuer: other, client_id: a}":                              "there is no issuer",
		url + "\n  sign_in: {issuer: corp}":                                             "client_id is missing",
		"\n  sign_in: {issuer: corp, client_id: a}":                                     "the URL of the server is not known",
		url + "\n  sign_in: {issuer: corp, client_id: a, client_secret: plain-secret}":  "a credential must not be in the file",
		url + "\n  sign_in: {issuer: corp, client_id: a, client_secret: !env NOT_SET_}": "the secret cannot be read",
	} {
		_, err := load(t, signInIdentity+"server:"+text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
