package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// TestACLSummary checks the counts of the names in ACLs, also of documents that the caller may not see,
// and that they are those of one tenant.
func TestACLSummary(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme", "globex")
	s := mustSession(t, h, roleGrant("acme", staff, identity.Admin))
	var entries []store.Entry
	for i, acl := range []assay.ACL{
		{Restricted: true, Allow: []string{"group:staff"}}, {Restricted: true, Allow: []string{"group:board", "user:bob"}},
		{Restricted: true, Allow: []string{"group:board"}}, {Restricted: true, Allow: []string{"*"}}, {},
	} {
		d := assay.Document{Collection: "notes", URI: fmt.Sprintf("/note-%d.md", i), Text: fmt.Sprintf("Note %d.\n", i), ACL: acl}
		d.ID = assay.DocumentID(d.Collection, d.URI)
		d.Version = assay.DocumentVersion(d.Text, nil, "test")
		entries = append(entries, store.Entry{Document: d})
	}
	info, err := h.tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	e, done, err := h.acquire(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := e.Put(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	got, err := s.ACLSummary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := ACLSummary{Documents: 5, Collections: []CollectionACL{{
		Name: "notes", Documents: 5, Everyone: 2,
		Principals: []ACLPrincipal{{"group:board", 2}, {"group:staff", 1}, {"user:bob", 1}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	other, err := mustSession(t, h, roleGrant("globex", staff, identity.Admin)).ACLSummary(t.Context())
	if err != nil || len(other.Collections) != 0 {
		t.Errorf("another tenant: %+v, %v", other, err)
	}
}

// TestACLSummaryIsBounded checks that a collection with many names shows the most frequent ones.
func TestACLSummaryIsBounded(t *testing.T) {
	t.Parallel()
	c := &collectionCount{names: map[string]int{}}
	for i := range MaxACLPrincipals + 7 {
		c.add(assay.ACL{Restricted: true, Allow: []string{fmt.Sprintf("user:%04d", i), "group:all"}})
	}
	c.add(assay.ACL{Restricted: true})
	got := c.ranked()
	if len(got.Principals) != MaxACLPrincipals || got.MoreNames != 8 || got.Principals[0].Name != "group:all" || got.Nobody != 1 {
		t.Errorf("%d names, %d more, %d for nobody, first %v", len(got.Principals), got.MoreNames, got.Nobody, got.Principals[0])
	}
}
