package assay

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strings"
	"time"
)

// A Document is the parsed text of one source.
//
// Text is normalised once, by the parser, and then immutable: valid UTF-8, NFC, lines ended by
// "\n", no invisible or bidirectional control characters. Every offset in this module is a byte
// offset into it, so that quote == Text[start:end] always holds.
type Document struct {
	ID         string // DocumentID(Collection, URI)
	Version    string // DocumentVersion(Text, Metadata, pipeline)
	Collection string
	URI        string // location: an absolute slash-separated path, or a URL
	Title      string
	Text       string
	Metadata   Metadata
	ACL        ACL
	Anchors    []Anchor // sorted by Start; empty if the format has neither lines nor pages
	Structure  Structure
	Pages      PageCounts // of Structure; a store counts them itself
	Source     SourceInfo

	// Container is the URI of the source that contains the document, such as an archive or a mail.
	// URI is then Container + "!/" + the path inside it. It is empty for a source itself.
	Container string

	// Aliases are the URIs of other sources with the same bytes, metadata and ACL, sorted. They are
	// not documents of their own. A store derives them from its sources.
	Aliases []string
}

// PartSeparator separates the URI of a container from the path inside it. It occurs in no other
// URI of a file.
const PartSeparator = "!/"

// SourceURI returns the URI of the source that the document was read from.
func (d *Document) SourceURI() string { return cmp.Or(d.Container, d.URI) }

// An Anchor gives the origin of Text[Start:], up to the next anchor: a line of the source and, if
// the format has pages, a page.
//
// A source line may give several lines of text and vice versa. If the text between two anchors has
// line breaks, each break is one source line.
type Anchor struct {
	Start int `json:"start"`
	Line  int `json:"line"`           // from 1; 0: the format has no lines
	Page  int `json:"page,omitempty"` // from 1; 0: the format has no pages
}

// SourceInfo lets ingest detect an unchanged source without parsing it.
type SourceInfo struct {
	SizeBytes int64     `json:"size_bytes"`
	Modified  time.Time `json:"modified"`
	Hash      string    `json:"hash"` // of the raw bytes, the sidecar's and the pipeline's version
}

// Position returns the source line and page of the byte at offset in d.Text. Unknown ones are zero.
func (d *Document) Position(offset int) (line, page int) {
	i := sort.Search(len(d.Anchors), func(i int) bool { return d.Anchors[i].Start > offset }) - 1
	if i < 0 {
		return 0, 0
	}
	a := d.Anchors[i]
	if a.Line == 0 {
		return 0, a.Page
	}
	end := min(max(offset, a.Start), len(d.Text))
	return a.Line + strings.Count(d.Text[a.Start:end], "\n"), a.Page
}

// AnchorsIn returns the anchors of Text[start:end], with offsets relative to start. The first is at
// 0 if start has a position.
func (d *Document) AnchorsIn(start, end int) []Anchor {
	anchors := []Anchor{}
	if line, page := d.Position(start); line != 0 || page != 0 {
		anchors = append(anchors, Anchor{Line: line, Page: page})
	}
	for _, a := range d.Anchors {
		if start < a.Start && a.Start < end {
			a.Start -= start
			anchors = append(anchors, a)
		}
	}
	return anchors
}

// DocumentID returns the identity of a document: a hash of its collection and URI, 32 hexadecimal
// digits.
func DocumentID(collection, uri string) string {
	return hashStrings("document", collection, uri)
}

// DocumentVersion returns the identity of a document's content: a hash of its text, its metadata
// and the version of the parsing and chunking pipeline, 32 hexadecimal digits. The ACL is not
// included, so a change of access is not a new version.
func DocumentVersion(text string, m Metadata, pipeline string) string {
	meta, err := json.Marshal(m) // map keys are sorted
	if err != nil {
		panic("assay: metadata with a value of no kind: " + err.Error())
	}
	return hashStrings("version", text, string(meta), pipeline)
}

// hashStrings hashes the parts, each with its length, so that different lists of parts do not
// collide by concatenation.
func hashStrings(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A ChunkKind is the kind of content of a chunk.
type ChunkKind string

// The kinds of chunk. Sections are parents: they are stored to widen a hit and are not searched
// themselves.
const (
	ChunkSection ChunkKind = "section"
	ChunkProse   ChunkKind = "prose"
	ChunkCode    ChunkKind = "code"
	ChunkTable   ChunkKind = "table"
)

// A Chunk is the span [Start, End) of one document version. Its text is
// Text[Start:End] of that version.
type Chunk struct {
	ID       string    `json:"id"` // ChunkID(Document, Version, Ordinal)
	Document string    `json:"document"`
	Version  string    `json:"version"`
	Ordinal  int       `json:"ordinal"` // position among the version's chunks, from 0
	Kind     ChunkKind `json:"kind"`
	Start    int       `json:"start"`
	End      int       `json:"end"`
	Headings []string  `json:"headings"` // outermost first; the document's title is not repeated here
	Parent   string    `json:"parent,omitempty"`
	Tokens   int       `json:"tokens"` // by the chunker's counter

	// Provenance is set if the source does not contain the chunk's text as text. No chunk contains
	// both text of the source and a description, and none has descriptions of two models.
	Provenance ProvenanceKind `json:"provenance,omitempty"`
	Confidence float32        `json:"confidence,omitempty"` // of recognition, in [0, 1]: the lowest of its blocks
	Model      string         `json:"model,omitempty"`      // of a description
}

// A Passage is a chunk with its text and its location.
type Passage struct {
	Chunk      Chunk
	Text       string // the document's Text[Chunk.Start:Chunk.End]
	Collection string
	URI        string
	Title      string
	Language   string // the document's, ISO 639-1; empty: unknown
	Line       int    // source line of Chunk.Start, from 1; 0: not known
	Page       int    // from 1; 0: not known
}

// Words returns the text of a passage that a model reads: its title, its headings except one that
// repeats the title, and its text, each on a line.
func (p Passage) Words() string {
	var b strings.Builder
	for _, line := range append([]string{p.Title}, p.Chunk.Headings...) {
		if line != "" && (b.Len() == 0 || line != p.Title) {
			b.WriteString(line + "\n")
		}
	}
	return b.String() + p.Text
}

// Hash returns the identity of the passage text that a model embeds: a hash of its title, headings
// and text, 32 hexadecimal digits. It does not depend on the model or on the passage's location.
// Passages with the same words have one hash, whatever their versions and documents, and so share
// one vector per model.
func (p Passage) Hash() string {
	parts := append([]string{"passage", p.Title}, p.Chunk.Headings...)
	return hashStrings(append(parts, p.Text)...)
}

// A ChunkVector is the vector of a chunk's passage.
type ChunkVector struct {
	Chunk  string    // chunk ID
	Values []float32 // 1 to MaxDimensions finite values
}

// Bounds of the vector of a passage: more dimensions than encoders have, and a Euclidean norm whose
// square fits a float32.
const (
	MaxDimensions = 4096
	MaxNorm       = 1e18
)

// ChunkID returns the identity of a chunk, 32 hexadecimal digits.
func ChunkID(document, version string, ordinal int) string {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(ordinal))
	return hashStrings("chunk", document, version, string(n[:]))
}

// A Change is the latest state of one document in a tenant's content: present with its chunks, or
// deleted. A store returns changes in the order of Sequence.
type Change struct {
	Sequence int64     // of the store's transaction; grows, gaps are allowed
	ID       string    // document ID
	Deleted  bool      // if set, Document and Chunks are nil
	Document *Document // the current version
	Chunks   []Chunk   // of that version, by Ordinal
}
