package assay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Principal is the authenticated caller: a user with groups. It comes from authentication, never
// from a model or a request body. The zero Principal is unauthenticated and sees no document.
type Principal struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Local returns the principal of the command line: the user who runs the process on this machine.
func Local() Principal { return Principal{User: "local"} }

// Access compiles p into the filter that searches and reads apply. The zero Principal gets the zero
// Access, which sees nothing.
func (p Principal) Access() Access {
	if p.User == "" {
		return Access{}
	}
	names := []string{"*", "user:" + p.User}
	for _, g := range p.Groups {
		if g != "" {
			names = append(names, "group:"+g)
		}
	}
	slices.Sort(names)
	return Access{names: slices.Compact(names)}
}

// Access is a principal's compiled right to see documents. Only Principal.Access makes one that
// sees anything; the zero Access sees nothing.
type Access struct {
	names []string // sorted, distinct; empty: sees nothing
}

// IsZero reports whether a sees no document at all.
func (a Access) IsZero() bool { return len(a.names) == 0 }

// Allows reports whether a may see a document with this ACL.
func (a Access) Allows(acl ACL) bool {
	if a.IsZero() {
		return false
	}
	if !acl.Restricted {
		return true
	}
	for _, n := range acl.Allow {
		if _, ok := slices.BinarySearch(a.names, n); ok {
			return true
		}
	}
	return false
}

// Names returns the ACL entries that let a see a document, sorted.
func (a Access) Names() []string { return slices.Clone(a.names) }

// Key identifies the documents that a may see. Two accesses have equal keys if and only if they
// have the same names, whatever characters the names contain.
func (a Access) Key() string {
	var key strings.Builder
	for _, n := range a.names {
		fmt.Fprintf(&key, "%d:%s", len(n), n)
	}
	return key.String()
}

// MarshalJSON writes the names of a, for the journal. An Access is never read back from JSON.
func (a Access) MarshalJSON() ([]byte, error) {
	if a.names == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(a.names)
}

// An ACL lists who may see a document. The zero ACL is unrestricted: every principal of the tenant
// may see the document. No principal sees a document whose restricted ACL has an empty Allow.
type ACL struct {
	Restricted bool     `json:"restricted,omitempty"`
	Allow      []string `json:"allow,omitempty"` // "user:NAME", "group:NAME" or "*", sorted, distinct
}

// RestrictTo returns the ACL that allows exactly the given names, sorted and without duplicates. A
// name other than "*", "user:NAME" and "group:NAME" is ErrInvalid.
func RestrictTo(names ...string) (ACL, error) {
	for _, n := range names {
		kind, name, _ := strings.Cut(n, ":")
		if n != "*" && (kind != "user" && kind != "group" || name == "") {
			return ACL{}, fmt.Errorf("acl entry %q is neither \"user:NAME\", \"group:NAME\" nor \"*\": %w", n, ErrInvalid)
		}
	}
	allow := slices.Clone(names)
	slices.Sort(allow)
	return ACL{Restricted: true, Allow: slices.Compact(allow)}, nil
}
