package ingest

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay/source"
)

// The reasons to skip a document that this package adds to those of source.
const (
	Binary       source.Reason = "binary"        // not text in a format that is read
	BadEncoding  source.Reason = "encoding"      // text that is not UTF-8 or another known encoding
	Minified     source.Reason = "minified"      // code on a few endless lines
	NoText       source.Reason = "empty"         // nothing in it to find
	ParserFailed source.Reason = "parser_failed" // the parser refused it, or crashed on it
	NoACL        source.Reason = "no_acl"        // the collection requires an ACL
	ACLInText    source.Reason = "acl_in_text"   // an ACL in front matter, which does not count
	BadRoot      source.Reason = "root"          // a root as a whole: not there, not readable, empty
)

// A Report says what a Run did. Documents that were put before an error or an
// interruption are counted: they stay.
type Report struct {
	Added     int `json:"added"`
	Updated   int `json:"updated"`   // new content, metadata or ACL
	Unchanged int `json:"unchanged"` // nothing but perhaps the source's time is new
	Removed   int `json:"removed"`   // gone from the source, or not to be shown any more

	Skipped []Skipped `json:"skipped"` // by URI, then reason

	Bytes       int64 `json:"bytes"` // of the sources added, updated and unchanged
	ElapsedMS   int64 `json:"elapsed_ms"`
	Sequence    int64 `json:"sequence"` // of the store, after the last change
	Interrupted bool  `json:"interrupted"`

	// Vectors is for who keeps an encoder to say; Run leaves it nil.
	Vectors *VectorReport `json:"vectors,omitempty"`
}

// A VectorReport says how far the vectors of a store's documents have come.
type VectorReport struct {
	Model    string `json:"model"`
	Chunks   int    `json:"chunks"`            // that can have one
	Embedded int    `json:"embedded"`          // that have one
	Problem  string `json:"problem,omitempty"` // why none can be made now

	// What was done about it; zero where nothing was.
	Stored    int           `json:"stored"` // vectors; chunks worded alike share one
	Failed    []EmbedFailed `json:"failed"`
	ElapsedMS int64         `json:"elapsed_ms"`
}

// Missing is how many chunks have no vector yet.
func (r VectorReport) Missing() int { return r.Chunks - r.Embedded }

// Skipped is a file, folder or root that was passed over.
type Skipped struct {
	URI    string        `json:"uri"`
	Reason source.Reason `json:"reason"`
	Detail string        `json:"detail"` // for people

	// Removed: an earlier version was stored and has been removed.
	Removed bool `json:"removed,omitempty"`
	// Kept counts stored documents at and below URI that were kept although the
	// source does not show them now.
	Kept int `json:"kept,omitempty"`
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.URI, b.URI), cmp.Compare(a.Reason, b.Reason))
	})
	// Overlapping roots meet the same entry twice.
	r.Skipped = slices.CompactFunc(r.Skipped, func(a, b Skipped) bool { return a.URI == b.URI && a.Reason == b.Reason })
	if r.Skipped == nil {
		r.Skipped = []Skipped{}
	}
}
