package store

import (
	"time"

	"github.com/assay-rag/assay"
)

// A SyncSource is the state of a source of documents, such as a bucket or a wiki, that is synced into a
// collection. It holds no secrets.
type SyncSource struct {
	Name        string // 1 to 64 characters of a-z, 0-9, '-', '_' and '.'
	Kind        string
	Target      string
	Collection  string
	Options     map[string]string
	Credentials map[string]string // by name, where each is read from: "env:VARIABLE" or "file:PATH"

	Cursor     string // after the last change whose documents are stored; empty: from the beginning
	SweepDue   bool   // the next sync must sweep, because deletions may have been missed
	SinceSweep int    // complete syncs since the last complete sweep

	LastSync  time.Time // end of the last complete sync; zero: none
	LastTry   time.Time // end of the last sync, complete or not; zero: none
	LastError string    // of the last sync; empty if it was complete
	Report    []byte    // JSON of the last sync's report, for people; nil: none
}

// A SyncItem is the record of one item of a source after the last sync of it.
type SyncItem struct {
	URI     string
	Version string // by the source; empty: the source states none
	Hash    string // of all that its documents depend on, in the form of the package that writes it
	Reason  string // why it has no document or an old one; empty: its documents are stored
	Detail  string // human-readable reason
	Retry   []byte // JSON of the source's item, to fetch it again in the next sync; nil: not to be retried

	Failures []Failure // the documents of the item that could not be parsed
	ACL      assay.ACL // with Failures: of the item
}

// A SyncBatch is a change of documents with the progress of the source that they come from.
type SyncBatch struct {
	Put    []Entry
	Delete []string // document IDs, deleted before Put

	// Source is the name of the source; empty: the documents come from no source, and the fields
	// below are ignored.
	Source string
	Cursor string     // replaces SyncSource.Cursor; empty: it stays
	Items  []SyncItem // added or replaced, by URI
	Gone   []string   // URIs of items whose records are removed
}
