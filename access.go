package assay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Principal is who asks: a user with groups. It comes from authentication,
// never from a model or a request body. The zero Principal is nobody.
type Principal struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Local is the principal of the command line: whoever runs the process on this
// machine.
func Local() Principal { return Principal{User: "local"} }

// Access compiles p into what searches and reads are filtered by. Nobody's
// access sees nothing.
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

// Access is a principal's compiled right to see documents. It can only be made
// by Principal.Access; the zero Access sees nothing.
type Access struct {
	names []string // sorted, distinct; empty: sees nothing
}

// IsZero reports whether a sees nothing at all.
func (a Access) IsZero() bool { return len(a.names) == 0 }

// Allows reports whether a document with this ACL may be seen.
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

// Names returns the entries of an ACL that let a see a document, sorted.
func (a Access) Names() []string { return slices.Clone(a.names) }

// Key identifies what a sees: accesses have equal keys when they have the same
// names, whatever signs those are made of.
func (a Access) Key() string {
	var key strings.Builder
	for _, n := range a.names {
		fmt.Fprintf(&key, "%d:%s", len(n), n)
	}
	return key.String()
}

// MarshalJSON writes the names that a stands for, for the journal. An Access is
// never read back from JSON.
func (a Access) MarshalJSON() ([]byte, error) {
	if a.names == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(a.names)
}

// An ACL says who may see a document. The zero ACL does not restrict it: every
// principal of the tenant may. A restricted ACL with an empty Allow is seen by
// nobody.
type ACL struct {
	Restricted bool     `json:"restricted,omitempty"`
	Allow      []string `json:"allow,omitempty"` // "user:NAME", "group:NAME" or "*", sorted, distinct
}

// RestrictTo returns the ACL that allows exactly the given names, sorted and
// without duplicates. A name that is not "*", "user:NAME" or "group:NAME" is
// ErrInvalid.
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
