package relational

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// An entryRow is an entry in its stored form.
type entryRow struct {
	doc      *assay.Document
	metadata string // JSON
	acl      string // JSON
	modified string
	pages    string // JSON; empty: no pages
	pieces   []piece
	shape    []byte // see encodeStructure; nil: empty
	chunks   []chunkRow
	original assay.Original
}

// A chunkRow is a chunk in its stored form.
type chunkRow struct {
	assay.Chunk
	id       []byte
	hash     []byte // of its passage; nil: not searched
	parent   []byte // nil: none
	headings string // JSON
	origin   any    // JSON, or nil
}

// A chunkOrigin is how the text of a chunk was obtained if the source does not contain it as text.
type chunkOrigin struct {
	Provenance assay.ProvenanceKind `json:"provenance"`
	Confidence float32              `json:"confidence,omitempty"`
	Model      string               `json:"model,omitempty"`
}

// encodeEntries checks and encodes the entries. The error for an invalid entry is assay.ErrInvalid.
func encodeEntries(entries []store.Entry) ([]entryRow, error) {
	rows := make([]entryRow, len(entries))
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		d := &entries[i].Document
		if seen[d.ID] {
			return nil, invalid("document %s is there twice", d.URI)
		}
		seen[d.ID] = true
		if err := encodeEntry(&entries[i], &rows[i]); err != nil {
			return nil, fmt.Errorf("document %s: %w", d.URI, err)
		}
	}
	return rows, nil
}

func encodeEntry(e *store.Entry, r *entryRow) error {
	d := &e.Document
	if err := cmp.Or(checkDocument(d), checkOriginal(e.Original)); err != nil {
		return err
	}
	metadata, err := json.Marshal(d.Metadata)
	if err != nil {
		return invalid("metadata: %v", err)
	}
	acl, err := json.Marshal(d.ACL)
	if err != nil {
		return invalid("ACL: %v", err)
	}
	*r = entryRow{
		doc: d, metadata: string(metadata), acl: string(acl), modified: encodeTime(d.Source.Modified),
		pieces: cutPieces(d.Text, d.Anchors), shape: encodeStructure(&d.Structure), chunks: make([]chunkRow, len(e.Chunks)),
		original: e.Original,
	}
	if n := d.Structure.CountPages(); n != (assay.PageCounts{}) {
		pages, err := json.Marshal(n)
		if err != nil {
			return invalid("page counts: %v", err)
		}
		r.pages = string(pages)
	}
	ids := make(map[string]bool, len(e.Chunks))
	for i, c := range e.Chunks {
		if err := encodeChunk(d, i, c, &r.chunks[i]); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
		ids[c.ID] = true
	}
	for i, c := range e.Chunks {
		if c.Parent != "" && !ids[c.Parent] {
			return invalid("chunk %d: its parent %s is no chunk of this version", i, c.Parent)
		}
	}
	return nil
}

// checkDocument checks the requirements on every document.
func checkDocument(d *assay.Document) error {
	if err := checkName("collection", d.Collection); err != nil {
		return err
	}
	switch {
	case d.URI == "":
		return invalid("the URI is empty")
	case d.ID != assay.DocumentID(d.Collection, d.URI):
		return invalid("the ID %q is not that of its collection and URI", d.ID)
	case d.Container != "" && !strings.HasPrefix(d.URI, d.Container+assay.PartSeparator):
		return invalid("the URI is not inside that of its container %q", d.Container)
	case d.Version == "":
		return invalid("the version is empty")
	case !assay.ValidTime(d.Source.Modified):
		return invalid("the source's time is in the year %d", d.Source.Modified.Year())
	case !utf8.ValidString(d.Text):
		return invalid("the text is not UTF-8")
	}
	last := 0
	for i, a := range d.Anchors {
		if a.Start < last || a.Start > len(d.Text) {
			return invalid("anchor %d starts at %d, out of order or past the text's end", i, a.Start)
		}
		last = a.Start
	}
	return checkStructure(d)
}

func encodeChunk(d *assay.Document, ordinal int, c assay.Chunk, r *chunkRow) error {
	switch {
	case c.Document != d.ID || c.Version != d.Version:
		return invalid("it is of another document or version")
	case c.Ordinal != ordinal:
		return invalid("its ordinal is %d", c.Ordinal)
	case c.ID != assay.ChunkID(d.ID, d.Version, ordinal):
		return invalid("its ID %q is not that of its document, version and ordinal", c.ID)
	case c.Start < 0 || c.Start > c.End || c.End > len(d.Text):
		return invalid("[%d, %d) is not a span of the text", c.Start, c.End)
	case !boundary(d.Text, c.Start) || !boundary(d.Text, c.End):
		return invalid("[%d, %d) cuts a character", c.Start, c.End)
	}
	headings, err := json.Marshal(c.Headings)
	if err != nil {
		return invalid("headings: %v", err)
	}
	*r = chunkRow{Chunk: c, id: chunkKey(c.ID), headings: string(headings)}
	if c.Parent != "" {
		r.parent = chunkKey(c.Parent)
	}
	if c.Provenance != "" {
		origin, err := json.Marshal(chunkOrigin{c.Provenance, c.Confidence, c.Model})
		if err != nil {
			return invalid("provenance: %v", err)
		}
		r.origin = string(origin)
	}
	if c.Kind != assay.ChunkSection {
		r.hash = passageHash(d.Title, c, d.Text[c.Start:c.End])
	}
	return nil
}

// boundary reports whether i is the start of a character of s or the end of s.
func boundary(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

// checkName checks the name of a collection.
func checkName(what, name string) error {
	if name == "" || !utf8.ValidString(name) {
		return invalid("%s name %q is empty or not UTF-8", what, name)
	}
	return nil
}
