package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	josejson "github.com/go-jose/go-jose/v4/json"

	"github.com/assay-rag/assay"
)

// claims are the members of a token.
type claims map[string]any

// decodeClaims decodes a JSON object. Duplicate members are an error, because two programs could
// read them differently.
func decodeClaims(data []byte) (claims, error) {
	var c claims
	if err := josejson.Unmarshal(data, &c); err != nil {
		return nil, errors.New("not a JSON object without duplicate members")
	}
	if c == nil {
		return nil, errors.New("null, want a JSON object")
	}
	return c, nil
}

// get returns the claim with a name: that member, or the one within members that dots separate.
func (c claims) get(name string) (any, bool) {
	if v, ok := c[name]; ok {
		return v, true
	}
	head, rest, dotted := strings.Cut(name, ".")
	for dotted {
		if inner, ok := c[head].(map[string]any); ok {
			if v, ok := claims(inner).get(rest); ok {
				return v, true
			}
		}
		var next string
		next, rest, dotted = strings.Cut(rest, ".")
		head += "." + next
	}
	return nil, false
}

// text returns a claim that must be a text. It is empty if the claim is missing.
func (c claims) text(name string) (string, *Refusal) {
	v, ok := c.get(name)
	if !ok {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", refuse(BadClaim, name+": want a text")
	}
	return s, nil
}

// list returns a claim that must be a text or a list of texts. A list that the issuer has left out
// because it is long, and would have fetched from elsewhere, is refused: a user with half of the
// groups would miss documents without a word.
func (c claims) list(name string) ([]string, *Refusal) {
	v, ok := c.get(name)
	if !ok {
		if elsewhere, _ := c["_claim_names"].(map[string]any); elsewhere[name] != nil {
			return nil, refuse(BadClaim, name+": the issuer has left it out of the token")
		}
		return nil, nil
	}
	if s, ok := v.(string); ok {
		return []string{s}, nil
	}
	values, ok := v.([]any)
	if !ok {
		return nil, refuse(BadClaim, name+": want a text or a list of texts")
	}
	var list []string
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, refuse(BadClaim, name+": want a text or a list of texts")
		}
		list = append(list, s)
	}
	return list, nil
}

// at returns a claim that must be a time, in seconds since 1970. ok is false if it is missing.
func (c claims) at(name string) (t time.Time, ok bool, refusal *Refusal) {
	v, ok := c[name]
	if !ok {
		return time.Time{}, false, nil
	}
	const most = 253402300799 // the end of the year 9999
	seconds, isNumber := v.(float64)
	if !isNumber || !(seconds >= 0 && seconds <= most) {
		return time.Time{}, false, refuse(BadClaim, name+": want a number of seconds since 1970")
	}
	return time.Unix(int64(seconds), 0).UTC(), true, nil
}

// checkTimes checks exp, nbf and iat, and returns exp.
func (c claims) checkTimes(now time.Time, skew time.Duration) (time.Time, *Refusal) {
	expires, ok, refusal := c.at("exp")
	switch {
	case refusal != nil:
		return time.Time{}, refusal
	case !ok:
		return time.Time{}, refuse(BadClaim, "exp is missing")
	case !now.Before(expires.Add(skew)):
		return time.Time{}, refuse(Expired, "")
	}
	for _, name := range []string{"nbf", "iat"} {
		from, ok, refusal := c.at(name)
		if refusal != nil {
			return time.Time{}, refusal
		}
		if ok && now.Add(skew).Before(from) {
			return time.Time{}, refuse(NotYetValid, name)
		}
	}
	return expires, nil
}

// idClaims are claims of ID tokens and logout tokens. Access tokens have none of them.
var idClaims = []string{"nonce", "at_hash", "c_hash", "s_hash", "events"}

// checkKind refuses tokens that are no access tokens for the audience.
func (c claims) checkKind(audience string) *Refusal {
	for _, name := range idClaims {
		if _, ok := c[name]; ok {
			return refuse(IDToken, "it has the claim "+name)
		}
	}
	if kind, _ := c["typ"].(string); kind != "" && !strings.EqualFold(kind, "Bearer") && !strings.EqualFold(kind, "DPoP") {
		return refuse(IDToken, "its claim typ is not Bearer") // Keycloak: ID, Refresh, Offline, Logout
	}
	if _, bound := c["cnf"]; bound {
		return refuse(BadType, "it is bound to a key of its sender, which is not checked here")
	}
	list, refusal := c.list("aud")
	if refusal != nil {
		return refusal
	}
	if !slices.Contains(list, audience) {
		return refuse(ForeignAudience, fmt.Sprintf("%.200q", list))
	}
	for _, client := range []string{"azp", "client_id"} {
		if id, _ := c[client].(string); id == audience {
			return refuse(IDToken, "its audience is its client")
		}
	}
	return nil
}

// grant returns what the claims allow.
func (i *Issuer) grant(c claims) (Grant, *Refusal) {
	user, refusal := i.user(c)
	if refusal != nil {
		return Grant{}, refusal
	}
	g, refusal := i.grantTo(c)
	if refusal != nil {
		if errors.Is(refusal, assay.ErrForbidden) {
			refusal.User = user
		}
		return Grant{}, refusal
	}
	g.Principal.User = user
	return g, nil
}

func (i *Issuer) grantTo(c claims) (Grant, *Refusal) {
	groups, refusal := i.groups(c)
	if refusal != nil {
		return Grant{}, refusal
	}
	tenant, refusal := i.tenant(c)
	if refusal != nil {
		return Grant{}, refusal
	}
	roles, refusal := i.roles(c)
	if refusal != nil {
		return Grant{}, refusal
	}
	rights, refusal := i.limit(c, rightsOf(roles))
	if refusal != nil {
		return Grant{}, refusal
	}
	return Grant{Tenant: tenant, Principal: assay.Principal{Groups: groups, Roles: namesOf(roles)}, Rights: rights}, nil
}

// user returns the name of the user, see UserClaim.
func (i *Issuer) user(c claims) (string, *Refusal) {
	sub, refusal := c.text("sub")
	if refusal == nil && checkName("user", sub) != nil {
		refusal = refuse(BadClaim, "sub is missing or no name")
	}
	if refusal != nil {
		return "", refusal
	}
	user := i.Name + "/" + part.Replace(sub)
	if i.UserClaim != "" {
		name, refusal := c.text(i.UserClaim)
		if refusal == nil && checkName("user", name) != nil {
			refusal = refuse(BadClaim, i.UserClaim+" is missing or no name")
		}
		if refusal != nil {
			return "", refusal
		}
		user = i.Name + "/" + part.Replace(name) + "/" + part.Replace(sub)
		if i.BareUser {
			user = name
		}
	}
	if verified, _ := c["email_verified"].(bool); i.BareUser && i.UserClaim == "email" && !verified {
		return "", refuse(BadClaim, "email_verified is not true")
	}
	if i.BareUser && checkUser(user) != nil {
		return "", refuse(BadClaim, i.UserClaim+" is a reserved name")
	}
	return user, nil
}

// part escapes the parts of a user's name, so that different parts never make the same name.
var part = strings.NewReplacer("%", "%25", "/", "%2F")

// groups returns the names of the user's groups for ACLs, sorted and distinct.
func (i *Issuer) groups(c claims) ([]string, *Refusal) {
	if i.GroupsClaim == "" {
		return nil, nil
	}
	list, refusal := c.list(i.GroupsClaim)
	if refusal != nil {
		return nil, refusal
	}
	var groups []string
	for _, g := range list {
		if i.Groups != nil {
			known := false
			if g, known = i.Groups[g]; !known {
				continue
			}
		}
		if err := checkName("group", i.GroupPrefix+g); err != nil || g == "" {
			return nil, refuse(BadClaim, i.GroupsClaim+": a group has no valid name")
		}
		groups = append(groups, i.GroupPrefix+g)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// tenant returns the tenant of the token.
func (i *Issuer) tenant(c claims) (string, *Refusal) {
	if i.Tenant != "" {
		return i.Tenant, nil
	}
	list, refusal := c.list(i.TenantClaim)
	if refusal != nil {
		return "", refusal
	}
	var tenants []string
	for _, value := range list {
		if t, ok := i.Tenants[value]; ok && !slices.Contains(tenants, t) {
			tenants = append(tenants, t)
		}
	}
	switch len(tenants) {
	case 0:
		return "", refuse(NoTenant, "")
	case 1:
		return tenants[0], nil
	}
	return "", refuse(NoTenant, "the token names several tenants")
}

// roles returns the user's roles.
func (i *Issuer) roles(c claims) ([]RoleIn, *Refusal) {
	roles := slices.Clone(i.DefaultRoles)
	if i.RolesClaim != "" {
		list, refusal := c.list(i.RolesClaim)
		if refusal != nil {
			return nil, refusal
		}
		for _, value := range list {
			roles = append(roles, i.Roles[value]...)
		}
	}
	if len(roles) == 0 {
		return nil, refuse(NoRole, "")
	}
	return roles, nil
}

// limit returns the rights that the scopes of the token leave.
func (i *Issuer) limit(c claims, rights []Right) ([]Right, *Refusal) {
	if i.Scopes == nil {
		return rights, nil
	}
	var scopes []Scope
	for _, name := range []string{"scope", "scp"} {
		list, refusal := c.list(name)
		if refusal != nil {
			return nil, refusal
		}
		for _, value := range list {
			for _, word := range strings.Fields(value) {
				if s, ok := i.Scopes[word]; ok {
					scopes = append(scopes, s)
				}
			}
		}
	}
	rights = slices.DeleteFunc(rights, func(r Right) bool { return !slices.Contains(scopes, r.Scope) })
	if len(rights) == 0 {
		return nil, refuse(NoScope, "")
	}
	return rights, nil
}
