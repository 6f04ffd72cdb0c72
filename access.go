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

	// Roles and Key say by what right the principal acts; they never let it see a document. Key is
	// the ID of the API key that authenticated it; empty: another credential.
	Roles []string `json:"roles,omitempty"`
	Key   string   `json:"key,omitempty"`

	// Collections narrows what the principal may see to the documents of these collections, as if
	// there were no others; nil: all. An empty list allows no document.
	Collections []string `json:"collections,omitzero"`
}

// Local returns the principal of the command line: the user who runs the process on this machine.
func Local() Principal { return Principal{User: "local"} }

// Access compiles p into the filter that searches and reads apply. The zero Principal gets the zero
// Access, which sees nothing.
func (p Principal) Access() Access {
	if p.User == "" || p.Collections != nil && len(p.Collections) == 0 {
		return Access{}
	}
	names := []string{"*", "user:" + p.User}
	for _, g := range p.Groups {
		if g != "" {
			names = append(names, "group:"+g)
		}
	}
	slices.Sort(names)
	a := Access{names: slices.Compact(names)}
	if p.Collections != nil {
		a.collections = slices.Compact(slices.Sorted(slices.Values(p.Collections)))
	}
	return a
}

// Access is a principal's compiled right to see documents. Only Principal.Access makes one that
// sees anything; the zero Access sees nothing.
type Access struct {
	names       []string // sorted, distinct; empty: sees nothing
	collections []string // sorted, distinct; nil: all
}

// IsZero reports whether a sees no document at all.
func (a Access) IsZero() bool { return len(a.names) == 0 }

// Allows reports whether a may see a document of a collection with this ACL. An empty name is that of
// no collection: a document of another service.
func (a Access) Allows(collection string, acl ACL) bool {
	if a.IsZero() || !a.Covers(collection) {
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

// Covers reports whether a is not narrowed to other collections than this one.
func (a Access) Covers(collection string) bool {
	if a.collections == nil {
		return true
	}
	_, ok := slices.BinarySearch(a.collections, collection)
	return ok
}

// Collections returns the collections that a is narrowed to, sorted; nil: all.
func (a Access) Collections() []string { return slices.Clone(a.collections) }

// Names returns the ACL entries that let a see a document, sorted.
func (a Access) Names() []string { return slices.Clone(a.names) }

// Key identifies the documents that a may see. Two accesses have equal keys if and only if they
// have the same names and collections, whatever characters the names contain.
func (a Access) Key() string {
	var key strings.Builder
	for _, n := range a.names {
		fmt.Fprintf(&key, "%d:%s", len(n), n)
	}
	for _, c := range a.collections {
		fmt.Fprintf(&key, "%d/%s", len(c), c)
	}
	return key.String()
}

// MarshalJSON writes the names of a and its collections, as "collection:NAME", for the journal. An
// Access is never read back from JSON.
func (a Access) MarshalJSON() ([]byte, error) {
	names := append([]string{}, a.names...)
	for _, c := range a.collections {
		names = append(names, "collection:"+c)
	}
	return json.Marshal(names)
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
