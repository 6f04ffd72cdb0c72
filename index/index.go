package index

import (
	"context"
	"iter"

	"github.com/assay-rag/assay"
)

// A Source is where an index learns what it holds; a store's content is one.
type Source interface {
	// Sequence returns the sequence of the last committed change, 0 for none.
	Sequence(ctx context.Context) (int64, error)

	// Changes yields the latest state of each document that changed after the
	// given sequence, in the order of Change.Sequence. Changes(ctx, 0) yields
	// every current document.
	Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error]
}

// An Index finds chunks by their text. It is derived from a Source: Search
// first catches up with it, so that what was committed before a search started,
// a change of an ACL included, is seen by it; each search reads one snapshot.
// Section chunks are not searched.
//
// An Index is safe for concurrent use.
type Index interface {
	// Search returns the best q.Limit chunks by BM25 over title, headings and
	// body, best first, ties by chunk ID. Only chunks that access may see, that
	// are in q.Collections and that q.Filter keeps are scored. A document that
	// access may not see leaves no trace in the result: what is counted and
	// weighed is what a tenant without it would have. A filter key that no
	// document in sight has, or a comparison with a value of a kind that the key
	// never has, is assay.ErrInvalid and names both; q.Limit under 1 is
	// assay.ErrInvalid.
	Search(ctx context.Context, access assay.Access, q assay.Query) (Result, error)

	// Flush writes what the index has learned to disk, so that the next process
	// opens it without reading the source again. Only the content's writer may
	// call it. Without it nothing is lost but time.
	Flush(ctx context.Context) error

	// Version returns the state that the last search or Flush saw.
	Version() assay.IndexVersion

	Close() error
}

// A Result is what a search found.
type Result struct {
	Hits   []Hit        // best first
	Terms  []assay.Term // the query's distinct terms, in its order
	Chunks int          // chunks in the index that access may see
	Total  int          // chunks that were scored: visible, kept and with at least one term
	Index  assay.IndexVersion
}

// A Hit is one chunk found.
type Hit struct {
	Chunk    string // chunk ID
	Document string
	Version  string
	BM25     float64
	Matched  []string // stems of the query's terms that the chunk holds, in the query's order
}
