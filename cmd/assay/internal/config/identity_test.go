package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/identity"
)

// TestIdentity reads a section with every key.
func TestIdentity(t *testing.T) {
	c := mustLoad(t, `
identity:
  audience: https://assay.example.com
  skew: 45s
  issuers:
    corp:
      issuer: https://login.example.com/realms/corp
      jwks: https://login.example.com/keys
      algorithms: [RS256, ES256]
      require_at_jwt: true
      tenant_claim: org
      tenants: {org-17: acme, org-18: beta}
      user_claim: email
      bare_user: true
      groups_claim: groups
      group_prefix: "corp:"
      groups: {g-1: finance}
      roles_claim: realm_access.roles
      roles: {assay-reader: reader, assay-editor: "editor:policies,handbook"}
      default_roles: [reader]
      scopes: {assay.ask: ask}
    partner:
      issuer: https://id.partner.example
      tenant: gamma
      default_roles: [auditor]
`, nil)
	want := identity.Tokens{Audience: "https://assay.example.com", Skew: 45 * time.Second, Issuers: []identity.Issuer{{
		Name: "corp", URL: "https://login.example.com/realms/corp", JWKS: "https://login.example.com/keys", Algorithms: []string{"RS256", "ES256"}, RequireJWT: true,
		TenantClaim: "org", Tenants: map[string]string{"org-17": "acme", "org-18": "beta"}, UserClaim: "email", BareUser: true,
		GroupsClaim: "groups", GroupPrefix: "corp:", Groups: map[string]string{"g-1": "finance"}, RolesClaim: "realm_access.roles",
		Roles: map[string][]identity.RoleIn{
			"assay-reader": {{Role: identity.Reader}}, "assay-editor": {{Role: identity.Editor, Collections: []string{"handbook", "policies"}}},
		},
		DefaultRoles: []identity.RoleIn{{Role: identity.Reader}}, Scopes: map[string]identity.Scope{"assay.ask": identity.ScopeAsk},
	}, {Name: "partner", URL: "https://id.partner.example", Tenant: "gamma", DefaultRoles: []identity.RoleIn{{Role: identity.Auditor}}}}}
	if diff := cmp.Diff(want, c.Identity); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := mustLoad(t, "large: local\n", nil); c.Identity.Audience != "" || c.Identity.Issuers != nil {
		t.Errorf("without the section: %+v", c.Identity)
	}
}

// TestIdentityErrors checks that each mistake names its key and its line.
func TestIdentityErrors(t *testing.T) {
	const head = "identity:\n  audience: https://a.example.com\n  issuers:\n    corp:\n      issuer: https://login.example.com\n"
	for text, want := range map[string]string{
		"identity: {}\n":                       ":1: identity: is empty",
		"identity:\n  audiense: x\n":           ":2: unknown key",
		"identity:\n  audience: my-client\n":   ":1: identity.issuers: is missing",
		head + "      tenant: Acme\n":          ":4: identity.issuers.corp: ",
		head + "      default_roles: [root]\n": ":6: identity.issuers.corp.default_roles: role \"root\"",
		head + "      default_roles: reader\n": ":6: ",
		head + "      tenant: acme\n":          ":4: identity.issuers.corp: no token would have a role",
		head + "      tenant: acme\n      roles_claim: roles\n      roles: {x: \"admin:handbook\"}\n":        ":8: identity.issuers.corp.roles.x: role \"admin\" holds in the whole tenant",
		head + "      tenant: acme\n      default_roles: [reader]\n      scopes:\n        s: everything\n":   ":9: identity.issuers.corp.scopes.s",
		head + "      tenant: acme\n      default_roles: [reader]\n      algorithms: [HS256]\n":              ":8: identity.issuers.corp.algorithms",
		strings.Replace(head, "https://login", "http://login", 1) + "      tenant: acme\n":                   ":5: identity.issuers.corp.issuer: want https",
		strings.Replace(head, "https://a.example.com", "client", 1) + "      default_roles: [reader]\n":      ":2: identity.audience: want the absolute URI",
		strings.Replace(head, "  issuers", "  skew: 5m\n  issuers", 1) + "      tenant: acme\n":              ":3: identity.skew: want a duration of at most 1m0s",
		strings.Replace(head, "  issuers", "  skew: soon\n  issuers", 1) + "      tenant: acme\n":            ":3: identity.skew: want a duration",
		strings.Replace(head, "corp:", "Corp X:", 1) + "      tenant: acme\n      default_roles: [reader]\n": ":4: identity.issuers.Corp X: the name of an issuer",
	} {
		_, err := load(t, text, nil)
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(e.Error(), want) {
			t.Errorf("%q:\n%v, want %q", text, err, want)
		}
	}
}

// TestIdentityExample checks that the example of docs/identity.md is complete and valid.
func TestIdentityExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "identity.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/identity.md has no example")
	}
	text := string(m[1])
	if c := mustLoad(t, text, nil); len(c.Identity.Issuers) != 1 {
		t.Errorf("%d issuers", len(c.Identity.Issuers))
	}
	for _, key := range keys(reflect.TypeFor[fileIdentity]()) {
		if !regexp.MustCompile(`(?m)(^|[\s{#])` + key + `:`).MatchString(text) {
			t.Errorf("the example does not have %s", key)
		}
	}
}
