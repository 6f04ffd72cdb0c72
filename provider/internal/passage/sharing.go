package passage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A Sharing controls access to a service, which has no notion of assay's principals. The zero
// Sharing grants no access.
//
// Principals in OpenTo see all documents. Others see the documents whose metadata names them. This
// condition is part of each search's filter, and the results are checked against it again.
type Sharing struct {
	OpenTo []string // ACL entries: "*" (every principal), "user:NAME", "group:NAME"

	// UsersKey and GroupsKey are metadata keys with lists of the users and groups that may see the
	// document. Empty: no such key.
	UsersKey  string
	GroupsKey string

	// ACLKey is a metadata key with a list of ACL entries: "*", "user:NAME", "group:NAME". Empty: no
	// such key.
	ACLKey string

	// Tenant is the value of the metadata key TenantKey in the documents of this tenant. No other
	// document is seen by anyone. Both are empty if all documents are the tenant's.
	TenantKey string
	Tenant    string
}

// Check returns ErrInvalid if s is invalid.
func (s Sharing) Check() error {
	if (s.TenantKey == "") != (s.Tenant == "") {
		return fmt.Errorf("sharing has only one of the tenant and the metadata key that names it: %w", assay.ErrInvalid)
	}
	_, err := assay.RestrictTo(s.OpenTo...)
	return err
}

// Filter returns the filter that restricts a search to the documents visible to a; ok is false if
// none are.
func (s Sharing) Filter(a assay.Access) (f assay.Filter, ok bool) {
	if !a.Covers("") { // a is narrowed to collections of the store
		return assay.Filter{}, false
	}
	f, ok = s.principals(a)
	if !ok || s.TenantKey == "" {
		return f, ok
	}
	tenant := assay.Filter{Op: assay.OpEquals, Key: s.TenantKey, Value: assay.StringValue(s.Tenant)}
	return assay.And(tenant, f), true
}

// principals returns the part of the filter that depends on the access.
func (s Sharing) principals(a assay.Access) (f assay.Filter, ok bool) {
	if open, err := assay.RestrictTo(s.OpenTo...); err == nil && a.Allows("", open) {
		return assay.Filter{}, true
	}
	var parts []assay.Filter
	for _, entry := range a.Names() {
		if s.ACLKey != "" {
			parts = append(parts, assay.Filter{Op: assay.OpListContains, Key: s.ACLKey, Value: assay.StringValue(entry)})
		}
		kind, name, _ := strings.Cut(entry, ":")
		key := map[string]string{"user": s.UsersKey, "group": s.GroupsKey}[kind]
		if key != "" && name != "" {
			parts = append(parts, assay.Filter{Op: assay.OpListContains, Key: key, Value: assay.StringValue(name)})
		}
	}
	switch len(parts) {
	case 0:
		return assay.Filter{}, false
	case 1:
		return parts[0], true
	}
	return assay.Filter{Op: assay.OpOrAll, Filters: parts}, true
}

// ACL returns the ACL of a document with this metadata. No principal may see a document of another
// tenant.
func (s Sharing) ACL(m assay.Metadata) assay.ACL {
	none := assay.ACL{Restricted: true}
	if s.TenantKey != "" && !m[s.TenantKey].Equal(assay.StringValue(s.Tenant)) {
		return none
	}
	allow := slices.Clone(s.OpenTo)
	if s.ACLKey != "" {
		for _, entry := range m[s.ACLKey].List {
			if _, err := assay.RestrictTo(entry); err == nil {
				allow = append(allow, entry)
			}
		}
	}
	for kind, key := range map[string]string{"user:": s.UsersKey, "group:": s.GroupsKey} {
		if key == "" {
			continue
		}
		for _, name := range m[key].List {
			if name != "" {
				allow = append(allow, kind+name)
			}
		}
	}
	acl, err := assay.RestrictTo(allow...)
	if err != nil {
		return none
	}
	return acl
}

// Hidden returns the message for an access that may see nothing of what.
func Hidden(what string) string {
	return fmt.Sprintf("%s is not shared with the caller; it was not searched", what)
}
