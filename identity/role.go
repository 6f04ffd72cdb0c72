package identity

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A RoleIn is a role, in all collections or in some.
type RoleIn struct {
	Role        Role
	Collections []string // sorted, distinct; nil: all
}

// ParseRole parses "ROLE" or "ROLE:COLLECTION,COLLECTION". The error is assay.ErrInvalid for an
// unknown role, an empty collection, and a role that holds only in the whole tenant.
func ParseRole(text string) (RoleIn, error) {
	name, list, limited := strings.Cut(text, ":")
	in := RoleIn{Role: Role(name)}
	if _, ok := scopesOf(in.Role); !ok {
		return RoleIn{}, fmt.Errorf("role %q: want one of %s: %w", name, roleNames(), assay.ErrInvalid)
	}
	if !limited {
		return in, nil
	}
	if in.Role == Auditor || in.Role == Admin {
		return RoleIn{}, fmt.Errorf("role %q holds in the whole tenant, not in some collections: %w", name, assay.ErrInvalid)
	}
	in.Collections = strings.Split(list, ",")
	for _, c := range in.Collections {
		if err := checkName("collection", c); err != nil {
			return RoleIn{}, fmt.Errorf("role %q: %w", text, err)
		}
	}
	slices.Sort(in.Collections)
	in.Collections = slices.Compact(in.Collections)
	return in, nil
}

// ParseRoles parses each text with ParseRole.
func ParseRoles(texts ...string) ([]RoleIn, error) {
	var roles []RoleIn
	for _, t := range texts {
		in, err := ParseRole(t)
		if err != nil {
			return nil, err
		}
		roles = append(roles, in)
	}
	return roles, nil
}

// String is the inverse of ParseRole.
func (r RoleIn) String() string {
	if r.Collections == nil {
		return string(r.Role)
	}
	return string(r.Role) + ":" + strings.Join(r.Collections, ",")
}

// scopesOf returns the scopes of a role. ok is false for an unknown role.
func scopesOf(role Role) (scopes []Scope, ok bool) {
	for _, r := range Roles {
		if r.Role == role {
			return r.Scopes, true
		}
	}
	return nil, false
}

func roleNames() string {
	var names []string
	for _, r := range Roles {
		names = append(names, string(r.Role))
	}
	return strings.Join(names, ", ")
}

// rightsOf returns the rights that the roles give together, in the order of the admin's scopes.
func rightsOf(roles []RoleIn) []Right {
	var rights []Right
	all, _ := scopesOf(Admin)
	for _, scope := range all {
		if r, ok := rightOf(scope, roles); ok {
			rights = append(rights, r)
		}
	}
	return rights
}

// rightOf returns the right to one scope. ok is false if no role gives it.
func rightOf(scope Scope, roles []RoleIn) (r Right, ok bool) {
	r.Scope = scope
	for _, in := range roles {
		scopes, _ := scopesOf(in.Role)
		if !slices.Contains(scopes, scope) {
			continue
		}
		if in.Collections == nil {
			return Right{Scope: scope}, true
		}
		r.Collections, ok = append(r.Collections, in.Collections...), true
	}
	slices.Sort(r.Collections)
	r.Collections = slices.Compact(r.Collections)
	return r, ok
}

// namesOf returns the names of the roles, sorted and distinct.
func namesOf(roles []RoleIn) []string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r.Role))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Local returns the grant of the command line on this machine: every right in the tenant.
func Local(tenant string) Grant {
	return Grant{Tenant: tenant, Principal: assay.Local(), Rights: rightsOf([]RoleIn{{Role: Admin}})}
}

// mostName is the most bytes of the name of a user, a group or a collection.
const mostName = 256

// checkName checks the name of a user, a group or a collection.
func checkName(what, name string) error {
	isVisible := utf8.ValidString(name) && !strings.ContainsFunc(name, hidden) && strings.TrimSpace(name) == name
	if name == "" || len(name) > mostName || !isVisible {
		return fmt.Errorf("the name of a %s: want 1 to %d bytes of UTF-8 without control characters and outer spaces: %w", what, mostName, assay.ErrInvalid)
	}
	return nil
}

// hidden reports whether a character is invisible or changes how others are shown, so that two
// names that differ could look equal.
func hidden(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }

// checkUser checks a user's name. That of the command line is reserved.
func checkUser(name string) error {
	if name == assay.Local().User {
		return fmt.Errorf("the user %q is the command line of this machine: %w", name, assay.ErrInvalid)
	}
	return checkName("user", name)
}

// checkTenant checks the form of a tenant's name, which is that of store.Store.
func checkTenant(name string) error {
	const most = 64
	ok := name != "" && len(name) <= most && name[0] != '.' && name[len(name)-1] != '.'
	for _, c := range name {
		ok = ok && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.", c)
	}
	if !ok {
		return fmt.Errorf("tenant name: want up to %d of a-z, 0-9, '-', '_' and '.', the last neither first nor last: %w", most, assay.ErrInvalid)
	}
	return nil
}
