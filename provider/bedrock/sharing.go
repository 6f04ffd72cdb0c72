package bedrock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A Sharing says who may see what of a knowledge base, which knows nothing of assay's
// principals. The zero Sharing lets nobody see anything.
//
// Whoever OpenTo names sees all of it. Everybody else sees the documents whose
// metadata names them: the condition is a part of each search's filter, and what
// comes back is held to it once more.
type Sharing struct {
	OpenTo []string // entries of an ACL: "*" (every principal), "user:NAME", "group:NAME"

	// Metadata keys, whose values are lists of strings: names of users, and of groups,
	// that may see the document. Empty: there is no such key.
	UsersKey  string
	GroupsKey string
}

// check reports, as ErrInvalid, what is wrong with s.
func (s Sharing) check() error {
	_, err := assay.RestrictTo(s.OpenTo...)
	return err
}

// filter returns what a search by a must be narrowed by; ok is false where a may see
// nothing at all.
func (s Sharing) filter(a assay.Access) (f assay.Filter, ok bool) {
	if open, err := assay.RestrictTo(s.OpenTo...); err == nil && a.Allows(open) {
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

// acl returns who may see a document with this metadata.
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
		return assay.ACL{Restricted: true} // nobody
	}
	return acl
}

// hidden says that a may see nothing of what.
func hidden(what string) string {
	return fmt.Sprintf("%s is not shared with whoever asks: nothing of it was searched", what)
}
