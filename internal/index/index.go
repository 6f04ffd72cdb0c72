package index

import (
	"context"
	"iter"

	"github.com/assay-rag/assay"
)

// A Source provides the documents of an index. The content of a store is a Source.
type Source interface {
	// Sequence returns the sequence number of the last committed change, or 0 if there is none.
	Sequence(ctx context.Context) (int64, error)

	// Changes yields the latest state of each document that changed after the given sequence
	// number, in the order of Change.Sequence. Changes(ctx, 0) yields every current document.
	Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error]
}

// A VectorSource is a Source that also has vectors of its chunks. They may be added long after the
// text.
type VectorSource interface {
	Source

	// Models returns the names of the models that the source has vectors of.
	Models(ctx context.Context) ([]string, error)

	// Vectors yields the vector of each current chunk that got one from the model after the given
	// sequence number, because the vector or the chunk's document was stored then. Vectors(ctx,
	// model, 0) yields all vectors. Storing a vector advances the sequence as a change does. The
	// values are valid until the next vector is yielded. All vectors of a model have the same
	// number of dimensions. If vectors were dropped after the given sequence number and that number
	// is not 0, the error is assay.ErrNotFound, and the caller must read all vectors again.
	Vectors(ctx context.Context, model string, after int64) iter.Seq2[ChunkVector, error]
}

// A ChunkVector is a chunk's vector of one model.
type ChunkVector = assay.ChunkVector

// A Metric is a measure of the similarity of two vectors.
type Metric string

// The supported metrics.
const (
	Cosine Metric = "cosine" // cosine of the angle, in [-1, 1]
	Dot    Metric = "dot"    // dot product
	L2     Metric = "l2"     // negated Euclidean distance
)

// A Vector is an embedded query.
type Vector struct {
	Model  string // as in the source
	Metric Metric // the model's metric
	Values []float32
}

// An Index finds chunks by their text and by their vectors. It is derived from a Source. Each
// search first catches up with the source and then reads one snapshot, so it sees every change
// committed before it started, including ACL changes. Section chunks are not searched.
//
// An Index is safe for concurrent use.
type Index interface {
	// Search returns the best q.Limit chunks by BM25 over title, headings and body, best first,
	// ties by chunk ID. It scores only chunks that access may see, that are in q.Collections and
	// that q.Filter keeps. A document that access may not see does not influence the result: counts
	// and weights are those of an index without it.
	//
	// The error wraps assay.ErrInvalid if q.Limit is less than 1, if no visible document has a key
	// of the filter, or if the filter compares a key with a value of a kind that the key never has.
	// These two errors name the key and the kind. It does so as well if q.BM25 is out of range.
	Search(ctx context.Context, access assay.Access, q assay.Query) (Result, error)

	// Nearest returns the q.Limit chunks whose vectors are most similar to v, best first, ties by
	// chunk ID, among the chunks that Search may score. It ignores q.Text and chunks without a
	// vector of the model. The search is approximate: on average it finds at least 99 in 100 of the
	// ten truly nearest chunks. While the source has no vectors of the model, there are no hits and
	// Coverage is 0.
	//
	// The error wraps assay.ErrInvalid in the same cases as that of Search. It also does so for an
	// unknown metric, and if the values of v are not finite, have another number of dimensions than
	// the model, or are all zero under Cosine.
	Nearest(ctx context.Context, access assay.Access, q assay.Query, v Vector) (Result, error)

	// Similarities returns the similarity of each chunk's vector to v on the scale of Nearest. An
	// element is nil if the chunk has no vector of the model, does not exist, or is not visible to
	// access. The error wraps assay.ErrInvalid if Nearest rejects v.
	Similarities(ctx context.Context, access assay.Access, v Vector, chunks []string) ([]*float64, error)

	// Vectors returns the vectors of the chunks by a model, at the precision that the index keeps
	// (a cosine is within 0.001). An element is nil if that of Similarities is nil.
	Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error)

	// Flush writes the state of the index to disk, so that the next process opens it without
	// reading the source again. Only the writer of the content may call it. Without Flush no data
	// is lost, only time.
	Flush(ctx context.Context) error

	// Sequence returns the sequence number of the source that the last search or Flush has seen.
	Sequence() int64

	Close() error
}

// A Follower is an Index that can be brought up to date with its Source without a search.
type Follower interface {
	Index

	// CatchUp brings the index up to date, as the next search would.
	CatchUp(ctx context.Context) error
}

// A Result holds the results of a search.
type Result struct {
	Hits   []Hit        // best first
	Terms  []assay.Term // the query's distinct terms, in its order
	Chunks int          // chunks in the index visible to access
	// Total is the number of eligible chunks: those that are visible, kept by the query, and have
	// at least one of its terms (Search, which counts up to MaxTotal) or a vector (Nearest).
	Total int
	Index assay.IndexVersion

	// Sequence is that of the source; all changes up to it are included. It counts changes of
	// invisible documents too, so callers of the engine never see it.
	Sequence int64
}

// A Hit is one chunk found by a search.
type Hit struct {
	Chunk    string // chunk ID
	Document string
	Version  string
	BM25     float64  // set by Search
	Matched  []string // set by Search: stems of the query's terms in the chunk, in the query's order

	Similarity float64 // set by Nearest, see Metric
}

// MaxTotal is the limit up to which Search counts its matches. A Total of MaxTotal means that many
// or more.
const MaxTotal = assay.MaxTotal
