package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var contentTests = []contractTest{
	{"an empty tenant", testEmpty},
	{"every field comes back", testRoundTrip},
	{"changes", testChanges},
	{"changes stop when asked to", testChangesStop},
	{"changes read one snapshot", testChangesSnapshot},
	{"documents are listed by collection and URI", testDocuments},
	{"passages come in the given order", testPassages},
	{"a long text", testLongText},
	{"documents in a container", testContainer},
	{"sources", testSources},
	{"one source", testOneSource},
	{"aliases", testAliases},
	{"a cancelled context", testContentCancelled},
}

func testEmpty(t *testing.T, h Harness) {
	c := openTenant(t, h, "acme").Content()
	if n := sequence(t, c); n != 0 {
		t.Errorf("Sequence = %d, want 0", n)
	}
	if all := changes(t, c, 0); len(all) != 0 {
		t.Errorf("Changes = %v, want none", all)
	}
	if all := uris(t, c); len(all) != 0 {
		t.Errorf("Documents = %v, want none", all)
	}
	if all, err := c.Collections(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("Collections = %v, %v, want none", all, err)
	}
	_, err := c.Document(t.Context(), assay.DocumentID("c", "/x"))
	wantErr(t, "Document", err, assay.ErrNotFound)
	_, err = c.Version(t.Context(), assay.DocumentID("c", "/x"), "v")
	wantErr(t, "Version", err, assay.ErrNotFound)
	_, err = c.ACL(t.Context(), assay.DocumentID("c", "/x"))
	wantErr(t, "ACL", err, assay.ErrNotFound)
	_, err = c.Passages(t.Context(), []string{assay.ChunkID("d", "v", 0)})
	wantErr(t, "Passages", err, assay.ErrNotFound)
	_, err = c.Passages(t.Context(), []string{"no ID"})
	wantErr(t, "Passages of what is no ID", err, assay.ErrNotFound)
	if got, err := c.Passages(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("Passages(none) = %v, %v, want none", got, err)
	}
}

// fullEntry returns an entry with a value in every field of its document and chunks.
func fullEntry(t *testing.T) store.Entry {
	t.Helper()
	acl, err := assay.RestrictTo("group:legal", "user:ann")
	if err != nil {
		t.Fatal(err)
	}
	text := "First line, with ünïcode.\n\x00 and a zero byte\nsecond page 中文\n"
	meta := assay.Metadata{
		assay.MetaLanguage: assay.StringValue("de"),
		"title":            assay.StringValue("A \"title\""), "pages": assay.NumberValue(2.5), "draft": assay.BooleanValue(true),
		"created": assay.TimeValue(time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)), "tags": assay.ListValue("a", "b"),
	}
	d := assay.Document{
		ID: assay.DocumentID("legal texts", "/a b/ü?#%.md"), Collection: "legal texts", URI: "/a b/ü?#%.md",
		Version: assay.DocumentVersion(text, meta, "storetest"), Title: "Ünïcode 'title'", Text: text, Metadata: meta, ACL: acl,
		Anchors: []assay.Anchor{{Start: 0, Line: 7, Page: 1}, {Start: 27, Line: 3, Page: 1}, {Start: 46, Line: 0, Page: 2}},
		Source:  assay.SourceInfo{SizeBytes: 1 << 40, Modified: time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC), Hash: "abc"},
		Structure: assay.Structure{
			Blocks: []assay.Block{
				{Kind: assay.BlockHeading, Start: 0, End: 10, Level: 2, Label: "First line"},
				{Kind: assay.BlockTableRow, Start: 28, End: 45}, {Kind: assay.BlockListItem, Start: 46, End: 58, Level: 1},
			},
			Tables: []assay.Table{
				{Start: 28, End: 45, Cells: []assay.Cell{{Start: 28, End: 30, Header: true}, {Start: 31, End: 45, Row: 1, Col: 2, RowSpan: 3, ColSpan: 4}}},
				{Start: 46, End: 58},
			},
			Boxes: []assay.Box{{Block: 0, Page: 1, X0: 0.1, Y0: 2, X1: 3.25, Y1: 1e6}, {Block: 0, Page: 2, X1: 1, Y1: 1}, {Block: 2, Page: 2, X0: 5, X1: 6, Y1: 7}},
			Pages: []assay.Page{
				{Number: 1, Outcome: assay.PageText, Width: 595.3, Height: 841.9}, {Number: 2, Outcome: assay.PageRecognized},
				{Number: 3, Outcome: assay.PageNoText, Detail: "an image"}, {Number: 4, Outcome: assay.PageFailed, Detail: "it is damaged"},
			},
			Provenance: []assay.Provenance{
				{Start: 28, End: 45, Kind: assay.ProvenanceRecognized, Confidence: 0.625}, {Start: 46, End: 58, Kind: assay.ProvenanceDescribed, Model: "m/1"},
			},
		},
		Pages: assay.PageCounts{Total: 4, Recognized: 1, NoText: 1, Failed: 1},
	}
	e := store.Entry{Document: d}
	section := addChunk(&e, assay.Chunk{Kind: assay.ChunkSection, End: len(text), Headings: []string{}})
	addChunk(&e, assay.Chunk{Kind: assay.ChunkCode, Start: 0, End: 27, Headings: []string{"Ü", "b\nc"}, Parent: section, Tokens: 9})
	addChunk(&e, assay.Chunk{Kind: assay.ChunkTable, Start: 20, End: 46, Parent: section, Tokens: 4, Provenance: assay.ProvenanceRecognized, Confidence: 0.1})
	addChunk(&e, assay.Chunk{Kind: assay.ChunkProse, Start: 46, End: 46})
	return e
}

func testRoundTrip(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	want := fullEntry(t)
	bare := Entry("plain", "/empty", "")
	bare.Chunks = nil
	n := mustPut(t, w, want, bare)
	if got := sequence(t, w); got != n || n < 1 {
		t.Errorf("Sequence = %d after Put returned %d", got, n)
	}
	for name, c := range map[string]store.Content{
		"the writer": w, "the tenant": tenant.Content(), "another handle": openTenant(t, h, "acme").Content(),
	} {
		for _, e := range []store.Entry{want, bare} {
			got, err := c.Document(t.Context(), e.Document.ID)
			if err != nil {
				t.Fatalf("%s: Document: %v", name, err)
			}
			wantSame(t, name+": Document", got, e.Document)
			got, err = c.Version(t.Context(), e.Document.ID, e.Document.Version)
			if err != nil {
				t.Fatalf("%s: Version: %v", name, err)
			}
			wantSame(t, name+": Version", got, e.Document)
			wantACL(t, c, e.Document.ID, e.Document.ACL)
		}
		all := changes(t, c, 0)
		if len(all) != 2 {
			t.Fatalf("%s: %d changes, want 2", name, len(all))
		}
		wantSame(t, name+": Changes", all, []assay.Change{change(n, want), change(n, bare)})
		chunks, err := c.Chunks(t.Context(), want.Document.ID, want.Document.Version)
		if err != nil {
			t.Fatalf("%s: Chunks: %v", name, err)
		}
		wantSame(t, name+": Chunks", chunks, want.Chunks)
		_, err = c.Chunks(t.Context(), want.Document.ID, "no such version")
		wantErr(t, name+": Chunks", err, assay.ErrNotFound)
		listed := want.Document
		listed.Text, listed.Anchors, listed.Structure = "", nil, assay.Structure{}
		for d, err := range c.Documents(t.Context(), "legal texts") {
			if err != nil {
				t.Fatalf("%s: Documents: %v", name, err)
			}
			wantSame(t, name+": Documents", d, listed)
		}
		var ids []string
		for _, chunk := range want.Chunks {
			ids = append(ids, chunk.ID)
		}
		passages, err := c.Passages(t.Context(), ids)
		if err != nil {
			t.Fatalf("%s: Passages: %v", name, err)
		}
		wantSame(t, name+": Passages", passages, passagesOf(want, want.Chunks...))
		collections, err := c.Collections(t.Context())
		if err != nil {
			t.Fatalf("%s: Collections: %v", name, err)
		}
		wantSame(t, name+": Collections", collections, []store.Collection{
			{Name: "legal texts", Documents: 1, Chunks: 4}, {Name: "plain", Documents: 1},
		})
	}
}

func testChanges(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	a, b, c := Entry("c", "/a", "a1"), Entry("c", "/b", "b1"), Entry("c", "/c", "c1")
	s1 := mustPut(t, w, a, b)
	s2 := mustPut(t, w, c)
	s3 := mustPut(t, w, Entry("c", "/a", "a2"))
	s4 := mustDelete(t, w, b.Document.ID)
	s5 := mustPut(t, w, Entry("c", "/a", "a3"))
	if !(0 < s1 && s1 < s2 && s2 < s3 && s3 < s4 && s4 < s5) {
		t.Fatalf("sequences %d %d %d %d %d do not grow", s1, s2, s3, s4, s5)
	}
	if n := sequence(t, w); n != s5 {
		t.Errorf("Sequence = %d, want %d", n, s5)
	}
	for _, test := range []struct {
		after int64
		want  []assay.Change
	}{
		{s1, []assay.Change{change(s2, c), gone(s4, b), change(s5, Entry("c", "/a", "a3"))}},
		{s2, []assay.Change{gone(s4, b), change(s5, Entry("c", "/a", "a3"))}},
		{s3, []assay.Change{gone(s4, b), change(s5, Entry("c", "/a", "a3"))}},
		{s4, []assay.Change{change(s5, Entry("c", "/a", "a3"))}},
		{s5, nil},
		{s5 + 7, nil},
	} {
		wantSame(t, "Changes", changes(t, w, test.after), test.want)
	}
	var current []assay.Change // Changes(0) may include deletions
	for _, change := range changes(t, w, 0) {
		if !change.Deleted {
			current = append(current, change)
		}
	}
	wantSame(t, "Changes(0)", current, []assay.Change{change(s2, c), change(s5, Entry("c", "/a", "a3"))})

	s6 := mustPut(t, w, b) // stored again after its deletion
	wantSame(t, "Changes after it came back", changes(t, w, s4), []assay.Change{change(s5, Entry("c", "/a", "a3")), change(s6, b)})
}

// change returns the change that stored the entry, whose document has no structure.
func change(sequence int64, e store.Entry) assay.Change {
	e.Document.Structure = assay.Structure{}
	return assay.Change{Sequence: sequence, ID: e.Document.ID, Document: &e.Document, Chunks: e.Chunks}
}

func gone(sequence int64, e store.Entry) assay.Change {
	return assay.Change{Sequence: sequence, ID: e.Document.ID, Deleted: true}
}

func testChangesStop(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	mustPut(t, w, Entry("c", "/a", "a"), Entry("c", "/b", "b"), Entry("c", "/c", "c"))
	for range w.Changes(t.Context(), 0) {
		break
	}
	for range w.Documents(t.Context()) {
		break
	}
	mustPut(t, w, Entry("c", "/a", "still writable"))
}

func testChangesSnapshot(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	w := openWriter(t, tenant)
	mustPut(t, w, Entry("c", "/a", "old"), Entry("c", "/b", "old"), Entry("c", "/c", "old"))
	seen := 0
	for c, err := range tenant.Content().Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; c.Deleted || c.Document.Text != "old" {
			t.Errorf("change %d is %s, made after the reading began", seen, summary([]assay.Change{c}))
		}
		if seen == 1 {
			mustPut(t, w, Entry("c", "/b", "new"), Entry("c", "/d", "new"))
			mustDelete(t, w, assay.DocumentID("c", "/c"))
		}
	}
	if seen != 3 {
		t.Errorf("saw %d changes, want 3", seen)
	}
}

func testDocuments(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	mustPut(t, w, Entry("b", "/2", "x"), Entry("a", "/9", "x"), Entry("b", "/1", "x"), Entry("a", "/10", "x"), Entry("c", "/1", "x"))
	mustDelete(t, w, assay.DocumentID("c", "/1"))
	wantSame(t, "Documents()", uris(t, w), []string{"a:/10", "a:/9", "b:/1", "b:/2"})
	wantSame(t, "Documents(b)", uris(t, w, "b"), []string{"b:/1", "b:/2"})
	wantSame(t, "Documents(b, a)", uris(t, w, "b", "a"), []string{"a:/10", "a:/9", "b:/1", "b:/2"})
	wantSame(t, "Documents(none such)", uris(t, w, "none such"), []string(nil))
	collections, err := w.Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Collections", collections, []store.Collection{
		{Name: "a", Documents: 2, Chunks: 4}, {Name: "b", Documents: 2, Chunks: 4}, {Name: "c"},
	})
}

// passagesOf returns the passages that a store must return for chunks of the entry.
func passagesOf(e store.Entry, chunks ...assay.Chunk) []assay.Passage {
	d := &e.Document
	var all []assay.Passage
	for _, c := range chunks {
		p := assay.Passage{Chunk: c, Text: d.Text[c.Start:c.End], Collection: d.Collection, URI: d.URI, Title: d.Title, Language: d.Metadata[assay.MetaLanguage].String}
		p.Line, p.Page = d.Position(c.Start)
		all = append(all, p)
	}
	return all
}

func testPassages(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	a, b := Entry("c", "/a", "1\n2\n3\n"), Entry("c", "/b", "x\n")
	mustPut(t, w, a, b)
	mustPut(t, w, Entry("c", "/a", "other"))
	ids := []string{a.Chunks[2].ID, b.Chunks[1].ID, a.Chunks[0].ID, a.Chunks[2].ID}
	want := slices.Concat(passagesOf(a, a.Chunks[2]), passagesOf(b, b.Chunks[1]), passagesOf(a, a.Chunks[0], a.Chunks[2]))
	got, err := w.Passages(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Passages of a kept and a current version", got, want)
	_, err = w.Passages(t.Context(), []string{ids[0], assay.ChunkID("no", "such", 1)})
	wantErr(t, "Passages with one that does not exist", err, assay.ErrNotFound)
}

// longEntry returns an entry with a text longer than a store keeps in one piece. It has the anchors
// that anchor returns for its lines, and chunks of all sizes throughout the text.
func longEntry(uri string, lines int, anchor func(line int) (assay.Anchor, bool)) store.Entry {
	e := Entry("c", uri, "")
	d := &e.Document
	var b strings.Builder
	for line := range lines + 1 {
		if a, ok := anchor(line); ok {
			a.Start = b.Len()
			d.Anchors = append(d.Anchors, a)
		}
		if line < lines {
			b.WriteString(strings.Repeat("words 中文 ", line%13) + "\n")
		}
	}
	d.Text = b.String()
	d.Version = assay.DocumentVersion(d.Text, nil, "storetest")
	boundary := func(i int) int {
		for i < len(d.Text) && !utf8.RuneStart(d.Text[i]) {
			i++
		}
		return min(i, len(d.Text))
	}
	e.Chunks = nil
	sizes := []int{0, 40, 1000, 9000, 30000, len(d.Text)}
	for i := 0; i <= len(d.Text); i += 1500 {
		addChunk(&e, assay.Chunk{Kind: assay.ChunkProse, Start: boundary(i), End: boundary(i + sizes[len(e.Chunks)%len(sizes)])})
	}
	addChunk(&e, assay.Chunk{Kind: assay.ChunkProse, Start: len(d.Text), End: len(d.Text)})
	return e
}

func testLongText(t *testing.T, h Harness) {
	const lines = 3000
	w := openWriter(t, openTenant(t, h, "acme"))
	for name, anchor := range map[string]func(line int) (assay.Anchor, bool){
		"none":       func(int) (assay.Anchor, bool) { return assay.Anchor{}, false },
		"one":        func(line int) (assay.Anchor, bool) { return assay.Anchor{Line: 7}, line == 0 },
		"each line":  func(line int) (assay.Anchor, bool) { return assay.Anchor{Line: 3*line + 1, Page: line / 50}, true },
		"pages":      func(line int) (assay.Anchor, bool) { return assay.Anchor{Page: 1 + line/700}, line%700 == 0 },
		"late":       func(line int) (assay.Anchor, bool) { return assay.Anchor{Line: 9}, line >= lines-1 },
		"ends again": func(line int) (assay.Anchor, bool) { return assay.Anchor{Line: line % 2000}, line%1000 == 0 },
	} {
		e := longEntry("/"+name, lines, anchor)
		n := mustPut(t, w, e)
		wantSame(t, name+": Changes", changes(t, w, n-1), []assay.Change{change(n, e)})
		var ids []string
		for _, c := range e.Chunks {
			ids = append(ids, c.ID)
		}
		got, err := w.Passages(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, name+": Passages", got, passagesOf(e, e.Chunks...))
	}
}

func testContentCancelled(t *testing.T, h Harness) {
	w := openWriter(t, openTenant(t, h, "acme"))
	mustPut(t, w, Entry("c", "/a", "a"), Entry("c", "/b", "b"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range w.Changes(ctx, 0) {
		if seen, last = seen+1, err; err == nil {
			cancel()
		}
	}
	wantErr(t, "Changes after its context ended", last, context.Canceled)
	if seen != 2 {
		t.Errorf("Changes yielded %d times, want one change and the error", seen)
	}
	_, err := w.Sequence(ctx)
	wantErr(t, "Sequence", err, context.Canceled)
	_, err = w.Document(ctx, "x")
	wantErr(t, "Document", err, context.Canceled)
	_, err = w.ACL(ctx, "x")
	wantErr(t, "ACL", err, context.Canceled)
	_, err = w.Passages(ctx, []string{"x"})
	wantErr(t, "Passages", err, context.Canceled)
	_, err = w.Put(ctx, Entry("c", "/z", "z"))
	wantErr(t, "Put", err, context.Canceled)
	wantSame(t, "Documents", uris(t, w), []string{"c:/a", "c:/b"})
}
