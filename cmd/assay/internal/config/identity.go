package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// fileIdentity is the section identity, which says whose access tokens are accepted. docs/identity.md
// describes each key.
type fileIdentity struct {
	Audience string                `yaml:"audience"`
	Skew     string                `yaml:"skew"`
	Issuers  map[string]fileIssuer `yaml:"issuers"`
}

type fileIssuer struct {
	Issuer       string            `yaml:"issuer"`
	JWKS         string            `yaml:"jwks"`
	Algorithms   []string          `yaml:"algorithms"`
	RequireATJWT bool              `yaml:"require_at_jwt"`
	Tenant       string            `yaml:"tenant"`
	TenantClaim  string            `yaml:"tenant_claim"`
	Tenants      map[string]string `yaml:"tenants"`
	UserClaim    string            `yaml:"user_claim"`
	BareUser     bool              `yaml:"bare_user"`
	GroupsClaim  string            `yaml:"groups_claim"`
	GroupPrefix  string            `yaml:"group_prefix"`
	Groups       map[string]string `yaml:"groups"`
	RolesClaim   string            `yaml:"roles_claim"`
	Roles        map[string]string `yaml:"roles"`
	DefaultRoles []string          `yaml:"default_roles"`
	Scopes       map[string]string `yaml:"scopes"`
}

// identity reads the section identity.
func (c *Config) identity() error {
	in := c.file.Identity
	if in == nil {
		return nil
	}
	t := identity.Tokens{Audience: in.Audience}
	var err error
	if t.Skew, err = c.file.duration(in.Skew, "identity", "skew"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(in.Issuers)) {
		issuer, err := c.issuer(name, in.Issuers[name])
		if err != nil {
			return err
		}
		t.Issuers = append(t.Issuers, issuer)
	}
	if t.Audience == "" && len(t.Issuers) == 0 {
		return c.file.wrong([]string{"identity"}, "see docs/identity.md", "is empty")
	}
	if err := t.Check(); err != nil {
		return c.identityError(err)
	}
	c.Identity = t
	return nil
}

// issuer reads one issuer.
func (c *Config) issuer(name string, in fileIssuer) (identity.Issuer, error) {
	i := identity.Issuer{
		Name: name, URL: in.Issuer, JWKS: in.JWKS, Algorithms: in.Algorithms, RequireJWT: in.RequireATJWT,
		Tenant: in.Tenant, TenantClaim: in.TenantClaim, Tenants: in.Tenants,
		UserClaim: in.UserClaim, BareUser: in.BareUser,
		GroupsClaim: in.GroupsClaim, GroupPrefix: in.GroupPrefix, Groups: in.Groups, RolesClaim: in.RolesClaim,
	}
	at := func(keys ...string) []string { return append([]string{"identity", "issuers", name}, keys...) }
	var err error
	if i.DefaultRoles, err = identity.ParseRoles(in.DefaultRoles...); err != nil {
		return i, c.file.wrong(at("default_roles"), "as in default_roles: [reader]", "%s", withoutKind(err))
	}
	for _, value := range slices.Sorted(maps.Keys(in.Roles)) {
		role, err := identity.ParseRole(in.Roles[value])
		if err != nil {
			return i, c.file.wrong(at("roles", value), "as in reader, or editor:handbook,policies", "%s", withoutKind(err))
		}
		if i.Roles == nil {
			i.Roles = map[string][]identity.RoleIn{}
		}
		i.Roles[value] = []identity.RoleIn{role}
	}
	if in.Scopes != nil {
		i.Scopes = map[string]identity.Scope{}
	}
	for value, scope := range in.Scopes {
		i.Scopes[value] = identity.Scope(scope)
	}
	return i, nil
}

// identityError returns the error for a mistake that package identity found.
func (c *Config) identityError(err error) error {
	mistake, ok := errors.AsType[*identity.ConfigError](err)
	if !ok {
		return &Error{Where: c.where(), Detail: withoutKind(err)}
	}
	return c.file.wrong(append([]string{"identity"}, mistake.Path...), mistake.Hint, "%s", strings.TrimSuffix(mistake.Detail, ": "+assay.ErrInvalid.Error()))
}
