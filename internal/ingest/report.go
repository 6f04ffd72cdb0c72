package ingest

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay/source"
)

// Reasons to skip a document, in addition to those of package source.
const (
	Binary       source.Reason = "binary"        // not text in a supported format
	BadEncoding  source.Reason = "encoding"      // text that is not UTF-8 or another known encoding
	Minified     source.Reason = "minified"      // code in a few very long lines
	NoText       source.Reason = "empty"         // no searchable text
	ParserFailed source.Reason = "parser_failed" // the parser rejected it or panicked
	NoACL        source.Reason = "no_acl"        // the collection requires an ACL
	ACLInText    source.Reason = "acl_in_text"   // an ACL in front matter, which is ignored
	BadRoot      source.Reason = "root"          // a whole root: missing, unreadable or empty
)

// A Report is the result of a Run. Documents put before an error or an interruption are counted,
// because they stay.
type Report struct {
	Added     int `json:"added"`
	Updated   int `json:"updated"`   // new content, metadata or ACL
	Unchanged int `json:"unchanged"` // at most the source's time changed
	Removed   int `json:"removed"`   // gone from the source, or no longer allowed

	Skipped []Skipped `json:"skipped"` // by URI, then reason

	Bytes       int64 `json:"bytes"` // of the sources added, updated and unchanged
	ElapsedMS   int64 `json:"elapsed_ms"`
	Sequence    int64 `json:"sequence"` // of the store, after the last change
	Interrupted bool  `json:"interrupted"`

	// Vectors is set by callers of Run that have an encoder; Run leaves it nil.
	Vectors *VectorReport `json:"vectors,omitempty"`
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

// Skipped is a file, folder or root that was skipped.
type Skipped struct {
	URI    string        `json:"uri"`
	Reason source.Reason `json:"reason"`
	Detail string        `json:"detail"` // human-readable

	// Removed means that an earlier version was stored and has been removed.
	Removed bool `json:"removed,omitempty"`
	// Kept is the number of stored documents at and below URI that were kept although the source
	// does not show them now.
	Kept int `json:"kept,omitempty"`
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.URI, b.URI), cmp.Compare(a.Reason, b.Reason))
	})
	// Overlapping roots yield the same entry twice.
	r.Skipped = slices.CompactFunc(r.Skipped, func(a, b Skipped) bool { return a.URI == b.URI && a.Reason == b.Reason })
	if r.Skipped == nil {
		r.Skipped = []Skipped{}
	}
}
