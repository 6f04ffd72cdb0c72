package sqlite

import (
	"testing"

	"github.com/assay-rag/assay"
)

// TestACLDamaged checks that a corrupted ACL denies access to everyone.
func TestACLDamaged(t *testing.T) {
	tenant := openTestTenant(t)
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e := benchEntry(1)
	if _, err := w.Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	for _, alter := range []string{`UPDATE versions SET acl = '{"restricted"'`, `UPDATE versions SET acl = '[]'`} {
		alterContent(t, tenant, alter)
		_, err = w.ACL(t.Context(), e.Document.ID)
		wantKind(t, "ACL", err, assay.ErrDamaged, e.Document.ID)
	}
}
