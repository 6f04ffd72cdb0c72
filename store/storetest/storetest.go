// Package storetest tests the contract of a store. Run checks an implementation against the
// comments of package store.
//
// It does not test crashes and full disks, because each implementation has its own ways to cause
// them.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A Harness is one empty store under test. The tests do not close it.
type Harness interface {
	store.Store

	// Advance moves the store's clock forward.
	Advance(d time.Duration)
}

// A Tamperer is a Harness that can alter stored data while bypassing the store. Without it the
// tests of damaged journals are skipped.
type Tamperer interface {
	// Tamper alters one record of a run's journal.
	Tamper(tenant, run string, ordinal int, with Tampering) error
}

// A Tampering is a way to alter a record.
type Tampering string

// The ways to alter a record. Each changes only the named part.
const (
	TamperHeader   Tampering = "header"
	TamperPayload  Tampering = "payload"
	TamperSalt     Tampering = "salt"
	TamperLeaf     Tampering = "leaf"
	TamperValue    Tampering = "value"         // a long string of the payload, which is stored separately
	TamperNoValue  Tampering = "value deleted" // that string is deleted
	TamperOrdinal  Tampering = "ordinal"       // the record claims the first free ordinal
	TamperPath     Tampering = "path"          // the copy of the path outside the header
	TamperSequence Tampering = "sequence"      // the copy of the sequence outside the header
	TamperDelete   Tampering = "deleted"
)

// Run tests the stores that open returns against the contract. open is called once per test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, group := range []struct {
		name  string
		tests []contractTest
	}{
		{"store", storeTests},
		{"lives of tenants", lifeTests},
		{"content", contentTests},
		{"originals", originalTests},
		{"writer", writerTests},
		{"prune", pruneTests},
		{"acl", aclTests},
		{"vectors", vectorTests},
		{"sources", syncTests},
		{"runs", runTests},
		{"leases", leaseTests},
		{"tampering", tamperTests},
		{"audit", auditTests},
		{"ledger", ledgerTests},
		{"reviews", reviewTests},
		{"feedback", feedbackTests},
		{"outbox", outboxTests},
		{"together", concurrencyTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
			}
		})
	}
}

type contractTest struct {
	name string
	run  func(t *testing.T, h Harness)
}

// openTenant opens a handle that is closed when the test ends. It creates the tenant if it does not
// exist.
func openTenant(t *testing.T, h Harness, name string) store.Tenant {
	t.Helper()
	tenant, err := h.Tenant(t.Context(), name)
	if errors.Is(err, assay.ErrNotFound) {
		mustCreateTenant(t, h, name)
		tenant, err = h.Tenant(t.Context(), name)
	}
	if err != nil {
		t.Fatalf("Tenant(%q): %v", name, err)
	}
	t.Cleanup(func() {
		if err := tenant.Close(); err != nil {
			t.Errorf("Tenant.Close: %v", err)
		}
	})
	return tenant
}

func mustCreateTenant(t *testing.T, h Harness, name string) {
	t.Helper()
	if err := h.CreateTenant(t.Context(), name, store.Act{Actor: assay.Local()}); err != nil {
		t.Fatalf("CreateTenant(%q): %v", name, err)
	}
}

// openWriter opens a writer that is closed when the test ends.
func openWriter(t *testing.T, tenant store.Tenant) store.Writer {
	t.Helper()
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatalf("Writer: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Writer.Close: %v", err)
		}
	})
	return w
}

// mustPut stores entries and returns the sequence.
func mustPut(t *testing.T, w store.Writer, entries ...store.Entry) int64 {
	t.Helper()
	n, err := w.Put(t.Context(), entries...)
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return n
}

// mustDelete deletes documents and returns the sequence.
func mustDelete(t *testing.T, w store.Writer, ids ...string) int64 {
	t.Helper()
	n, err := w.Delete(t.Context(), ids...)
	if err != nil {
		t.Fatalf("Delete: %v", err)
	}
	return n
}

// wantErr reports an error unless err is of the kind.
func wantErr(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s = %v, want an error of kind %q", what, err, kind)
	}
}

// wantSame reports an error unless got equals want.
func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// Entry returns a document with a section chunk and one chunk per line. The version depends on the
// text only.
func Entry(collection, uri, text string) store.Entry {
	d := assay.Document{
		ID: assay.DocumentID(collection, uri), Collection: collection, URI: uri,
		Version: assay.DocumentVersion(text, nil, "storetest"), Title: "Title of " + uri, Text: text,
	}
	if text != "" {
		d.Anchors = []assay.Anchor{{Start: 0, Line: 1}}
	}
	e := store.Entry{Document: d}
	section := addChunk(&e, assay.Chunk{Kind: assay.ChunkSection, End: len(text)})
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && text[end] != '\n' {
			end++
		}
		end = min(end+1, len(text))
		addChunk(&e, assay.Chunk{Kind: assay.ChunkProse, Start: start, End: end, Parent: section, Headings: []string{"One", "Two"}, Tokens: end - start})
		start = end
	}
	return e
}

// addChunk appends the chunk, with its identity filled in, and returns its ID.
func addChunk(e *store.Entry, c assay.Chunk) string {
	c.Document, c.Version, c.Ordinal = e.Document.ID, e.Document.Version, len(e.Chunks)
	c.ID = assay.ChunkID(c.Document, c.Version, c.Ordinal)
	e.Chunks = append(e.Chunks, c)
	return c.ID
}

// changes reads all changes after a sequence.
func changes(t *testing.T, c store.Content, after int64) []assay.Change {
	t.Helper()
	var all []assay.Change
	for change, err := range c.Changes(t.Context(), after) {
		if err != nil {
			t.Fatalf("Changes(%d): %v", after, err)
		}
		all = append(all, change)
	}
	return all
}

// summary formats changes briefly: sequence, URI or ID, and version.
func summary(all []assay.Change) []string {
	var s []string
	for _, c := range all {
		if c.Deleted {
			s = append(s, fmt.Sprintf("%d deleted %s", c.Sequence, c.ID))
		} else {
			s = append(s, fmt.Sprintf("%d %s %q", c.Sequence, c.Document.URI, c.Document.Text))
		}
	}
	return s
}

// sequence reads the content's sequence.
func sequence(t *testing.T, c store.Content) int64 {
	t.Helper()
	n, err := c.Sequence(t.Context())
	if err != nil {
		t.Fatalf("Sequence: %v", err)
	}
	return n
}

// uris returns the current documents.
func uris(t *testing.T, c store.Content, collections ...string) []string {
	t.Helper()
	var all []string
	for d, err := range c.Documents(t.Context(), collections...) {
		if err != nil {
			t.Fatalf("Documents: %v", err)
		}
		all = append(all, d.Collection+":"+d.URI)
	}
	return all
}
