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

// A VectorSource is a Source that also has vectors of its chunks, which may come
// long after the text.
type VectorSource interface {
	Source

	// Models lists the models that it has vectors of, by name.
	Models(ctx context.Context) ([]string, error)

	// Vectors yields the vector of each current chunk that got one from the model
	// after the given sequence: because the vector was stored then, or because the
	// chunk's document was. Vectors(ctx, model, 0) yields all. Storing a vector
	// moves the sequence as a change does. The values are valid until the next are
	// yielded; all of one model have the same number of dimensions. When vectors were
	// dropped after the given sequence, if that is not 0, the error is
	// assay.ErrNotFound, and all are to be read again.
	Vectors(ctx context.Context, model string, after int64) iter.Seq2[ChunkVector, error]
}

// A ChunkVector is a chunk's vector by some model.
type ChunkVector = assay.ChunkVector

// A Metric says how the similarity of two vectors is measured.
type Metric string

// The metrics.
const (
	Cosine Metric = "cosine" // of the angle between them, in [-1, 1]
	Dot    Metric = "dot"    // their dot product
	L2     Metric = "l2"     // minus their Euclidean distance
)

// A Vector is a query that a model has embedded.
type Vector struct {
	Model  string // the name its chunks' vectors have in the source
	Metric Metric // that the model is made for
	Values []float32
}

// An Index finds chunks by their text and by their vectors. It is derived from a Source: Search
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

	// Nearest returns the q.Limit chunks whose vectors are most similar to v, best
	// first, ties by chunk ID, of those that Search may score; q.Text is not used.
	// A chunk without a vector of the model is unknown and not among them. The
	// short list is made by approximation: of the ten truly nearest, on average at
	// least 99 in 100 are found. As long as the source has no vectors of the model
	// there are no hits and Coverage is 0. Values of another number of dimensions
	// than the model's, not finite, or all zero under Cosine, an unknown metric, and
	// what Search refuses are assay.ErrInvalid.
	Nearest(ctx context.Context, access assay.Access, q assay.Query, v Vector) (Result, error)

	// Similarities returns, for each of the chunks, how similar its vector is to v,
	// by the numbers that Nearest gives; nil where that is not known: the chunk has
	// no vector of the model, access may not see it, or it does not exist. What of v
	// Nearest refuses is assay.ErrInvalid.
	Similarities(ctx context.Context, access assay.Access, v Vector, chunks []string) ([]*float64, error)

	// Vectors returns the vectors that a model gave the chunks, as exactly as the
	// index keeps them (a cosine is within 0.001); nil where Similarities has nil.
	Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error)

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
	// Total is how many chunks were eligible: visible, kept by the query, and with
	// at least one of its terms (Search, which counts to MaxTotal) or with a vector
	// (Nearest).
	Total int
	Index assay.IndexVersion
}

// A Hit is one chunk found.
type Hit struct {
	Chunk    string // chunk ID
	Document string
	Version  string
	BM25     float64  // of Search
	Matched  []string // of Search: stems of the query's terms that the chunk holds, in the query's order

	Similarity float64 // of Nearest, see Metric
}

// MaxTotal is how far Search counts what it finds: a Total of MaxTotal means so
// many or more.
const MaxTotal = assay.MaxTotal
