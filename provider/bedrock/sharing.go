package bedrock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A Sharing controls access to a knowledge base, which has no notion of assay's principals. The
// zero Sharing grants no access.
//
// Principals in OpenTo see all documents. Others see the documents whose metadata names them. This
// condition is part of each search's filter, and the results are checked against it again.
type Sharing struct {
	OpenTo []string // ACL entries: "*" (every principal), "user:NAME", "group:NAME"

	// UsersKey and GroupsKey are metadata keys with lists of the users and groups that may see the
	// document. Empty: no such key.
	UsersKey  string
	GroupsKey string
}

// check returns ErrInvalid if s is invalid.
func (s Sharing) check() error {
	_, err := assay.RestrictTo(s.OpenTo...)
	return err
}

// filter returns the filter that restricts a search to the documents visible to a; ok is false if
// none are.
func (s Sharing) filter(a assay.Access) (f assay.Filter, ok bool) {
	if open, err := assay.RestrictTo(s.OpenTo...); err == nil && a.Allows("", open) {
		return assay.Filter{}, true
	}
	var parts []assay.Filter
	for _, name := range a.Names() {
		kind, name, _ := strings.Cut(name, ":")
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

// acl returns the ACL of a document with this metadata.
func (s Sharing) acl(m assay.Metadata) assay.ACL {
	allow := slices.Clone(s.OpenTo)
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
		return assay.ACL{Restricted: true} // no principal
	}
	return acl
}

// hidden returns the message for an access that may see nothing of what.
func hidden(what string) string {
	return fmt.Sprintf("%s is not shared with the caller; it was not searched", what)
}
