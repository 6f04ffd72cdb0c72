package storetest

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var aclTests = []contractTest{
	{"of the current version", testACLCurrent},
	{"of a deleted document", testACLDeleted},
	{"of a document that comes back", testACLReturns},
	{"of the last version, not of the last one kept", testACLPinned},
	{"of a document that never was", testACLUnknown},
}

// An ACL for the legal department, and one that denies access to everyone.
var (
	legalOnly = assay.ACL{Restricted: true, Allow: []string{"group:legal"}}
	forNobody = assay.ACL{Restricted: true}
)

// withACL returns an entry of the document /a.
func withACL(text string, acl assay.ACL) store.Entry {
	e := Entry("c", "/a", text)
	e.Document.ACL = acl
	return e
}

func wantACL(t *testing.T, c store.Content, id string, want assay.ACL) {
	t.Helper()
	got, err := c.ACL(t.Context(), id)
	if err != nil {
		t.Errorf("ACL: %v", err)
		return
	}
	wantSame(t, "ACL", got, want)
}

func testACLCurrent(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	for _, e := range []store.Entry{
		withACL("one", assay.ACL{}),
		withACL("one", legalOnly), // the same version
		withACL("two", forNobody), // a new version
		withACL("three", assay.ACL{}),
		withACL("one", forNobody), // a version that was kept
	} {
		mustPut(t, w, e, Entry("c", "/other", e.Document.Text))
		wantACL(t, tenant.Content(), e.Document.ID, e.Document.ACL)
		wantACL(t, w, e.Document.ID, e.Document.ACL)
	}
	h.Advance(day)
	wantPrune(t, w, 4)
	wantACL(t, w, assay.DocumentID("c", "/a"), forNobody)
	wantACL(t, w, assay.DocumentID("c", "/other"), assay.ACL{})
}

func testACLDeleted(t *testing.T, h Harness) {
	for _, acl := range []assay.ACL{{}, legalOnly, forNobody} {
		tenant := openTenant(t, h, "acme")
		w, err := tenant.Writer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e := withACL("one", assay.ACL{})
		mustPut(t, w, e)
		e.Document.ACL = acl
		mustPut(t, w, e)
		for range 2 { // it is already deleted the second time
			mustDelete(t, w, e.Document.ID)
			wantACL(t, tenant.Content(), e.Document.ID, acl)
		}
		h.Advance(day)
		wantPrune(t, w, 1)
		_, err = w.Version(t.Context(), e.Document.ID, e.Document.Version)
		wantErr(t, "the last version", err, assay.ErrNotFound)
		wantACL(t, tenant.Content(), e.Document.ID, acl)
		mustDelete(t, w, e.Document.ID)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wantACL(t, openTenant(t, h, "acme").Content(), e.Document.ID, acl)
	}
}

func testACLReturns(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	id := assay.DocumentID("c", "/a")
	mustPut(t, w, withACL("one", legalOnly))
	mustDelete(t, w, id)
	mustPut(t, w, withACL("one", assay.ACL{})) // the kept version
	wantACL(t, w, id, assay.ACL{})
	mustDelete(t, w, id)
	wantACL(t, w, id, assay.ACL{})
	h.Advance(day)
	wantPrune(t, w, 1)
	mustPut(t, w, withACL("one", forNobody))
	wantACL(t, w, id, forNobody)
	mustDelete(t, w, id)
	wantACL(t, w, id, forNobody)
}

// testACLPinned checks a document whose cited version was public and whose last version was
// restricted.
func testACLPinned(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	cited := withACL("one", assay.ACL{})
	d := &cited.Document
	mustPut(t, w, cited)
	mustPut(t, w, withACL("two", legalOnly))
	mustDelete(t, w, d.ID)
	l := mustCreate(t, tenant, "run")
	answer := &assay.Answer{Status: assay.Answered, Citations: []assay.Citation{
		{Number: 1, Document: d.ID, Version: d.Version, End: 3, Quote: "one"},
	}}
	if err := l.Finish(t.Context(), assay.RunDone, answer, ""); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	h.Advance(day)
	wantPrune(t, w, 1)
	if _, err := w.Version(t.Context(), d.ID, d.Version); err != nil {
		t.Errorf("the cited version: %v", err)
	}
	wantACL(t, w, d.ID, legalOnly)
}

func testACLUnknown(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	mustPut(t, w, withACL("one", assay.ACL{}))
	never := assay.DocumentID("c", "/never")
	mustDelete(t, w, never)
	for _, id := range []string{never, "", assay.DocumentID("other", "/a")} {
		_, err := w.ACL(t.Context(), id)
		wantErr(t, "ACL of a document that never was", err, assay.ErrNotFound)
	}
}
