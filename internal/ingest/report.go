package ingest

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// Reasons to skip a document, in addition to those of package source.
const (
	Binary       source.Reason = "binary"        // not text in a supported format
	BadEncoding  source.Reason = "encoding"      // text that is not UTF-8 or another known encoding
	Minified     source.Reason = "minified"      // code in a few very long lines
	NoText       source.Reason = "empty"         // no searchable text
	ParserFailed source.Reason = "parser_failed" // the parser rejected it or panicked

	Damaged       source.Reason = "damaged"       // in a supported format, and broken
	NeedsPassword source.Reason = "password"      // encrypted, and no given password opens it
	OverLimit     source.Reason = "limit"         // over a limit of size, nesting, time or memory
	NeedsProgram  source.Reason = "needs_program" // its format is parsed by a program that is not installed

	NoACL     source.Reason = "no_acl"      // the collection requires an ACL
	ACLInText source.Reason = "acl_in_text" // an ACL in front matter, which is ignored
	BadRoot   source.Reason = "root"        // a whole root: missing, unreadable or empty
)

// A Report is the result of a Run. It counts documents: a file may contain several, or none.
// Documents put before an error or an interruption are counted, because they stay.
type Report struct {
	Added     int `json:"added"`
	Updated   int `json:"updated"`   // new content, metadata or ACL
	Unchanged int `json:"unchanged"` // at most the source's time changed
	Removed   int `json:"removed"`   // gone from the source, or no longer allowed

	// Duplicates are the files found with the bytes, metadata and ACL of another, whose documents
	// stand for both. They are not in the other counts.
	Duplicates int `json:"duplicates"`

	Skipped []Skipped    `json:"skipped"`         // by URI, then reason
	Pages   []PageReport `json:"pages,omitempty"` // documents with pages that have no text, by URI

	Notes []Note `json:"notes,omitempty"` // on content that parsers left out, by URI

	// RecognizedDocuments and RecognizedPages count the added and updated documents with recognised
	// text, and their pages with no other text.
	RecognizedDocuments int `json:"recognized_documents,omitempty"`
	RecognizedPages     int `json:"recognized_pages,omitempty"`

	OCR string `json:"ocr,omitempty"` // program that recognised text in images; empty: none is installed

	Bytes       int64 `json:"bytes"` // of the sources added, updated and unchanged
	ElapsedMS   int64 `json:"elapsed_ms"`
	Sequence    int64 `json:"sequence"` // of the store, after the last change
	Interrupted bool  `json:"interrupted"`

	// Images is set by callers of Run that describe images; Run leaves it nil.
	Images *ImageReport `json:"images,omitempty"`

	// Vectors is set by callers of Run that have an encoder; Run leaves it nil.
	Vectors *VectorReport `json:"vectors,omitempty"`
}

// An ImageReport counts the images that were described.
type ImageReport struct {
	Model     string      `json:"model"`
	Run       string      `json:"run,omitempty"` // whose journal has the calls; empty: none were made
	Described int         `json:"described"`     // by a call in this ingest
	Reused    int         `json:"reused"`        // described in an earlier one
	Skipped   int         `json:"skipped"`       // decorative, or the model gave no usable reply
	Missing   int         `json:"missing"`       // left when the budget was spent or the model failed
	Problem   string      `json:"problem,omitempty"`
	Usage     assay.Usage `json:"usage"`
}

// A VectorReport describes how many of a store's chunks have a vector.
type VectorReport struct {
	Model    string `json:"model"`
	Chunks   int    `json:"chunks"`            // that can have one
	Embedded int    `json:"embedded"`          // that have one
	Problem  string `json:"problem,omitempty"` // why none can be made now

	// Result of embedding in this run; zero if nothing was embedded.
	Stored    int           `json:"stored"` // vectors; chunks with the same text share one
	Failed    []EmbedFailed `json:"failed"`
	ElapsedMS int64         `json:"elapsed_ms"`
}

// Missing returns the number of chunks without a vector.
func (r VectorReport) Missing() int { return r.Chunks - r.Embedded }

// A Note is a remark of a parser on a document.
type Note struct {
	URI  string `json:"uri"`
	Text string `json:"text"` // human-readable
}

// A PageReport counts the pages of a document of which some have no text.
type PageReport struct {
	URI string `json:"uri"`
	assay.PageCounts
}

// Skipped is a file, folder, root or document in a file that was skipped.
type Skipped struct {
	URI    string        `json:"uri"`
	Reason source.Reason `json:"reason"`
	Detail string        `json:"detail"` // human-readable

	// Removed means that an earlier version was stored and has been removed.
	Removed bool `json:"removed,omitempty"`
	// Earlier means that parsing failed in an earlier run and was not tried again, because the file
	// is unchanged.
	Earlier bool `json:"earlier,omitempty"`
	// Kept is the number of stored documents at and below URI that were kept although the source
	// does not show them now.
	Kept int `json:"kept,omitempty"`
}

// Retriable reports whether a document failed earlier for a reason that may be mended without a
// change of the file.
func (s Skipped) Retriable() bool { return s.Earlier && keepsStored(s.Reason) }

// Add adds the counts and lists of another report.
func (r *Report) Add(o Report) {
	r.Added += o.Added
	r.Updated += o.Updated
	r.Unchanged += o.Unchanged
	r.Removed += o.Removed
	r.Duplicates += o.Duplicates
	r.Skipped = append(r.Skipped, o.Skipped...)
	r.Pages = append(r.Pages, o.Pages...)
	r.Notes = append(r.Notes, o.Notes...)
	r.RecognizedDocuments += o.RecognizedDocuments
	r.RecognizedPages += o.RecognizedPages
	r.OCR = cmp.Or(r.OCR, o.OCR)
	r.Bytes += o.Bytes
	r.ElapsedMS += o.ElapsedMS
	r.Sequence = max(r.Sequence, o.Sequence)
	r.Interrupted = r.Interrupted || o.Interrupted
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.URI, b.URI), cmp.Compare(a.Reason, b.Reason))
	})
	// Overlapping roots yield the same entry twice.
	r.Skipped = slices.CompactFunc(r.Skipped, func(a, b Skipped) bool { return a.URI == b.URI && a.Reason == b.Reason })
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return cmp.Compare(a.URI, b.URI) })
	slices.SortFunc(r.Pages, func(a, b PageReport) int { return cmp.Compare(a.URI, b.URI) })
	if r.Skipped == nil {
		r.Skipped = []Skipped{}
	}
}
