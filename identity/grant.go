// Package identity turns credentials into grants: who is asking, for which tenant, and with which
// rights. A grant comes from a credential alone, never from a request's body.
package identity

import (
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// A Scope is a right to a group of operations.
type Scope string

// The scopes.
const (
	ScopeAsk    Scope = "ask"    // ask questions; see, resume, replay and delete one's own runs
	ScopeSearch Scope = "search" // search, and read documents that the principal may see
	ScopeIngest Scope = "ingest" // add, change and remove documents, collections and sources
	ScopeReview Scope = "review" // see and decide answers that wait for a person
	ScopeAudit  Scope = "audit"  // read the audit log, proofs, reports and runs of others without their documents
	ScopeAdmin  Scope = "admin"  // keys, policies, limits, canaries, stops, retention, backups
)

// A Role is a named set of scopes.
type Role string

// The roles.
const (
	Reader   Role = "reader"
	Editor   Role = "editor"
	Reviewer Role = "reviewer"
	Auditor  Role = "auditor"
	Admin    Role = "admin"
)

// Roles lists the roles with their scopes.
var Roles = []struct {
	Role   Role
	Scopes []Scope
}{
	{Reader, []Scope{ScopeAsk, ScopeSearch}},
	{Editor, []Scope{ScopeAsk, ScopeSearch, ScopeIngest}},
	{Reviewer, []Scope{ScopeAsk, ScopeSearch, ScopeReview}},
	{Auditor, []Scope{ScopeAudit}},
	{Admin, []Scope{ScopeAsk, ScopeSearch, ScopeIngest, ScopeReview, ScopeAudit, ScopeAdmin}},
}

// A Right is a scope, in all collections or in some.
type Right struct {
	Scope       Scope    `json:"scope"`
	Collections []string `json:"collections"` // nil: all; empty: none
}

// A Grant is what a credential allows. The zero Grant allows nothing.
type Grant struct {
	Tenant    string          // whose data it is for; empty: none
	Principal assay.Principal // with Groups, Roles and Key
	Rights    []Right
	Expires   time.Time // zero: never
	Issuer    string    // URL of the issuer of the access token; empty: it was none
}

// Allows reports whether g has the scope in every collection.
func (g Grant) Allows(scope Scope) bool {
	return slices.ContainsFunc(g.Rights, func(r Right) bool { return r.Scope == scope && r.Collections == nil })
}

// Collections returns the collections in which g has the scope. all is true, and the list nil, if it
// has it in every one.
func (g Grant) Collections(scope Scope) (names []string, all bool) {
	for _, r := range g.Rights {
		if r.Scope != scope {
			continue
		}
		if r.Collections == nil {
			return nil, true
		}
		names = append(names, r.Collections...)
	}
	slices.Sort(names)
	return slices.Compact(names), false
}

// Covers reports whether roles give no right that g lacks.
func (g Grant) Covers(roles ...RoleIn) bool {
	for _, r := range rightsOf(roles) {
		names, all := g.Collections(r.Scope)
		if all {
			continue
		}
		if r.Collections == nil || slices.ContainsFunc(r.Collections, func(c string) bool { return !slices.Contains(names, c) }) {
			return false
		}
	}
	return true
}
