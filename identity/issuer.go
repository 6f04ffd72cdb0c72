package identity

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// The skew of clocks that is forgiven.
const (
	DefaultSkew = 30 * time.Second
	MaxSkew     = 60 * time.Second
)

// Tokens configures the access tokens that are accepted.
type Tokens struct {
	// Audience is the URI of this resource (RFC 8707), which tokens must name as their audience.
	Audience string
	Skew     time.Duration // forgiven between clocks; 0: DefaultSkew
	Issuers  []Issuer
}

// An Issuer is an OpenID provider or OAuth authorization server, with the meaning of its claims. A
// claim's name is that of a member of the token, or several joined by dots for a member within a member.
type Issuer struct {
	Name       string   // a-z, 0-9 and '-'; the first part of its users' names
	URL        string   // exactly as in the tokens
	JWKS       string   // URL of its keys; empty: found by discovery
	Algorithms []string // empty: all of Algorithms
	RequireJWT bool     // accept only tokens with the type at+jwt (RFC 9068)

	// The tenant is Tenant for all tokens, or what Tenants says of the claim TenantClaim.
	Tenant      string
	TenantClaim string
	Tenants     map[string]string

	// UserClaim is a readable name of the user. It is the middle part of "NAME/CLAIM/SUB"; if it is
	// empty, users are "NAME/SUB". With BareUser, the user is the claim alone, which must be unique
	// and never be given to another person. An "email" must then be verified.
	UserClaim string
	BareUser  bool

	// GroupsClaim lists the user's groups. With Groups, those that it lacks are ignored; without it,
	// each group has the name in the token. GroupPrefix is put before the names.
	GroupsClaim string
	GroupPrefix string
	Groups      map[string]string

	// RolesClaim lists the user's roles or groups, of which Roles says what they are here. All users
	// have DefaultRoles.
	RolesClaim   string
	Roles        map[string][]RoleIn
	DefaultRoles []RoleIn

	// Scopes says what the scopes of a token are here. The rights are then limited to them. Without
	// it, the scopes of a token are ignored.
	Scopes map[string]Scope
}

// Algorithms are the algorithms of signatures that can be accepted.
var Algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// A ConfigError is a mistake in Tokens. It wraps assay.ErrInvalid.
type ConfigError struct {
	Path   []string // "issuers", the issuer's name, the key; as in the configuration file
	Detail string
	Hint   string // may be empty
}

func (e *ConfigError) Error() string {
	text := "identity"
	for _, p := range e.Path {
		text += "." + p
	}
	return text + ": " + e.Detail
}

// Unwrap returns assay.ErrInvalid.
func (e *ConfigError) Unwrap() error { return assay.ErrInvalid }

func wrong(hint string, path []string, format string, args ...any) error {
	return &ConfigError{Path: path, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// Check returns a *ConfigError if t has a mistake.
func (t Tokens) Check() error {
	if len(t.Issuers) == 0 && t.Audience == "" {
		return nil
	}
	if len(t.Issuers) == 0 {
		return wrong("as in issuers: {corp: {issuer: https://login.example.com, …}}", []string{"issuers"}, "is missing")
	}
	if u, err := url.Parse(t.Audience); err != nil || !u.IsAbs() || u.Fragment != "" || u.Host+u.Opaque == "" {
		return wrong("as in audience: https://assay.example.com", []string{"audience"}, "want the absolute URI of this resource, not a client's ID")
	}
	if t.Skew < 0 || t.Skew > MaxSkew {
		return wrong("as in skew: 30s", []string{"skew"}, "want a duration of at most %s", MaxSkew)
	}
	for i, issuer := range t.Issuers {
		if err := issuer.check(); err != nil {
			return err
		}
		for _, other := range t.Issuers[:i] {
			if err := issuer.checkBeside(other); err != nil {
				return err
			}
		}
	}
	return nil
}

var issuerName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// check checks an issuer by itself.
func (i Issuer) check() error {
	at := func(key ...string) []string { return append([]string{"issuers", i.Name}, key...) }
	if !issuerName.MatchString(i.Name) {
		return wrong("", at(), "the name of an issuer has up to 32 of a-z, 0-9 and '-'")
	}
	if err := checkIssuerURL(i.URL, false); err != nil {
		return wrong("as in issuer: https://login.example.com/realms/corp", at("issuer"), "%v", err)
	}
	if i.JWKS != "" {
		if err := checkIssuerURL(i.JWKS, true); err != nil {
			return wrong("", at("jwks"), "%v", err)
		}
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(Algorithms, a) {
			return wrong("", at("algorithms"), "%q is not one of %v", a, Algorithms)
		}
	}
	if err := i.checkTenants(at); err != nil {
		return err
	}
	return i.checkPeople(at)
}

func (i Issuer) checkTenants(at func(...string) []string) error {
	switch {
	case i.Tenant == "" && i.TenantClaim == "":
		return wrong("as in tenant: default", at(), "neither tenant nor tenant_claim is set")
	case i.Tenant != "" && i.TenantClaim != "":
		return wrong("keep one of them", at("tenant_claim"), "conflicts with tenant")
	case i.TenantClaim != "" && len(i.Tenants) == 0:
		return wrong("as in tenants: {org-17: acme}", at("tenants"), "is missing: it says which tenant each value of the claim is")
	case i.TenantClaim == "" && len(i.Tenants) > 0:
		return wrong("", at("tenants"), "needs tenant_claim")
	}
	for _, tenant := range i.allTenants() {
		if err := checkTenant(tenant); err != nil {
			return wrong("", at(), "%q: %v", tenant, err)
		}
	}
	return nil
}

// allTenants returns the tenants that tokens of i can be for.
func (i Issuer) allTenants() []string {
	if i.Tenant != "" {
		return []string{i.Tenant}
	}
	return slices.Sorted(maps.Values(i.Tenants))
}

// checkPeople checks what users, groups and roles come from.
func (i Issuer) checkPeople(at func(...string) []string) error {
	switch {
	case i.BareUser && i.UserClaim == "":
		return wrong("as in user_claim: email", at("bare_user"), "needs user_claim")
	case i.GroupsClaim == "" && len(i.Groups) > 0:
		return wrong("as in groups_claim: groups", at("groups"), "needs groups_claim")
	case i.GroupsClaim == "" && i.GroupPrefix != "":
		return wrong("as in groups_claim: groups", at("group_prefix"), "needs groups_claim")
	case (i.RolesClaim == "") != (len(i.Roles) == 0):
		return wrong("as in roles_claim: roles and roles: {assay-reader: reader}", at("roles"), "roles and roles_claim need each other")
	case len(i.Roles) == 0 && len(i.DefaultRoles) == 0:
		return wrong("as in default_roles: [reader]", at(), "no token would have a role: set roles_claim and roles, or default_roles")
	}
	for value, group := range i.Groups {
		if err := checkName("group", i.GroupPrefix+group); err != nil || group == "" {
			return wrong("", at("groups", value), "want the name of a group")
		}
	}
	scopes, _ := scopesOf(Admin)
	for value, scope := range i.Scopes {
		if !slices.Contains(scopes, scope) {
			return wrong("", at("scopes", value), "%q is not one of %v", scope, scopes)
		}
	}
	return nil
}

// checkBeside checks an issuer beside another one.
func (i Issuer) checkBeside(other Issuer) error {
	at := func(key string) []string { return []string{"issuers", i.Name, key} }
	if i.Name == other.Name || i.URL == other.URL {
		return wrong("", at("issuer"), "is that of %s as well", other.Name)
	}
	if !i.BareUser || !other.BareUser {
		return nil
	}
	for _, tenant := range i.allTenants() {
		if slices.Contains(other.allTenants(), tenant) {
			return wrong("", at("bare_user"), "in the tenant %s users of %s could have the same names", tenant, other.Name)
		}
	}
	return nil
}
