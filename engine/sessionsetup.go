package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// A RoleModel says who does a role.
type RoleModel struct {
	Role  string `json:"role"`
	Model string `json:"model,omitempty"` // empty: it is done locally
}

// RoleModels returns the roles with their models, in the order of RoleNames, and after them the small
// generator and the reranker if a model does their work.
func (s *Session) RoleModels(ctx context.Context) ([]RoleModel, error) {
	return call(ctx, s, "RoleModels", func(c *sessionCall) ([]RoleModel, error) { return c.engine.config.Models.byRole(), nil })
}

func (m Models) byRole() []RoleModel {
	named := m.withVerifier().named()
	var all []RoleModel
	for _, name := range role.Names() {
		all = append(all, RoleModel{name, named[name]})
		delete(named, name)
	}
	for name, model := range named { // the small generator at most
		all = append(all, RoleModel{name, model})
	}
	if m.Reranker != nil {
		all = append(all, RoleModel{"reranker", m.Reranker.Model()})
	}
	return all
}

// Bounds of an ACLSummary.
const (
	MaxACLDocuments  = 100_000 // that are read
	MaxACLPrincipals = 200     // of a collection
)

// An ACLSummary says whom the ACLs of a tenant's documents name.
type ACLSummary struct {
	Collections []CollectionACL `json:"collections"` // by name
	Documents   int             `json:"documents"`   // that were counted
	Partial     bool            `json:"partial"`     // there are more than MaxACLDocuments, and the rest was not read
}

// A CollectionACL says whom the ACLs of a collection's documents name.
type CollectionACL struct {
	Name       string         `json:"name"`
	RequireACL bool           `json:"require_acl"`
	Documents  int            `json:"documents"`
	Everyone   int            `json:"everyone"`             // documents that every user of the tenant may see
	Nobody     int            `json:"nobody"`               // documents whose ACL names no one
	Principals []ACLPrincipal `json:"principals"`           // by the number of documents, at most MaxACLPrincipals
	MoreNames  int            `json:"more_names,omitempty"` // principals that are left out
}

// An ACLPrincipal is a user or a group with the number of documents whose ACL names it.
type ACLPrincipal struct {
	Name      string `json:"name"` // user:NAME or group:NAME
	Documents int    `json:"documents"`
}

// ACLSummary counts the users and groups that the ACLs of the tenant's documents name. It counts all
// documents, also those that the caller may not see, and tells nothing else of them.
func (s *Session) ACLSummary(ctx context.Context) (ACLSummary, error) {
	return call(ctx, s, "ACLSummary", func(c *sessionCall) (ACLSummary, error) { return c.engine.aclSummary(ctx) })
}

// A collectionCount counts the documents of one collection.
type collectionCount struct {
	CollectionACL
	names map[string]int // documents by principal
}

func (e *Engine) aclSummary(ctx context.Context) (ACLSummary, error) {
	s := ACLSummary{Collections: []CollectionACL{}}
	all, err := e.content.Collections(ctx)
	if err != nil {
		return s, err
	}
	counts := map[string]*collectionCount{}
	for d, err := range e.content.Documents(ctx) {
		if err != nil {
			return s, err
		}
		if s.Documents == MaxACLDocuments {
			s.Partial = true
			break
		}
		s.Documents++
		c := counts[d.Collection]
		if c == nil {
			c = &collectionCount{names: map[string]int{}}
			counts[d.Collection] = c
		}
		c.add(d.ACL)
	}
	for _, collection := range all {
		c := counts[collection.Name]
		if c == nil {
			c = &collectionCount{}
		}
		c.Name, c.RequireACL = collection.Name, collection.RequireACL
		s.Collections = append(s.Collections, c.ranked())
	}
	return s, nil
}

// add counts a document.
func (c *collectionCount) add(acl assay.ACL) {
	c.Documents++
	switch {
	case !acl.Restricted || slices.Contains(acl.Allow, "*"):
		c.Everyone++
	case len(acl.Allow) == 0:
		c.Nobody++
	}
	for _, name := range acl.Allow {
		if name != "*" {
			c.names[name]++
		}
	}
}

// ranked returns the count with its principals, the most frequent first.
func (c *collectionCount) ranked() CollectionACL {
	c.Principals = []ACLPrincipal{}
	for name, n := range c.names {
		c.Principals = append(c.Principals, ACLPrincipal{name, n})
	}
	slices.SortFunc(c.Principals, func(a, b ACLPrincipal) int {
		return cmp.Or(b.Documents-a.Documents, strings.Compare(a.Name, b.Name))
	})
	if more := len(c.Principals) - MaxACLPrincipals; more > 0 {
		c.Principals, c.MoreNames = c.Principals[:MaxACLPrincipals], more
	}
	return c.CollectionACL
}
