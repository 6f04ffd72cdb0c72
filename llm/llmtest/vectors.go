package llmtest

import (
	"net/http"
	"testing"

	"github.com/assay-rag/assay/llm"
)

// An EmbedWire is an embedder over HTTP and the server side of its format, for
// [TestEmbedWire].
type EmbedWire struct {
	// Open opens an embedder with Canary as each of its credentials. It sends at most
	// Batch texts in a request and makes each request once.
	Open  func(t testing.TB, s Setup) llm.Embedder
	Batch int

	// Texts reads back which texts a request is about, in order.
	Texts func(t testing.TB, r *http.Request, body []byte) []string

	// Reply is what a server sends: the vectors, each with the index of its text within
	// the request. A format without indices has them in the order given.
	Reply   func(vectors []Indexed) Body
	Indexed bool // the format has indices

	// Fail is as that of a Wire.
	Fail func(f Failure) (Body, bool)

	Lacks []Feature // RetryAfter
}

// An Indexed is a vector in a server's reply. Its values stand as JSON in Values where
// that is set: "[1e999, null]".
type Indexed struct {
	Index  int
	Vector llm.Vector
	Values string
}

// A RerankWire is a reranker over HTTP and the server side of its format, for
// [TestRerankWire].
type RerankWire struct {
	// Open opens a reranker with Canary as each of its credentials. It makes each
	// request once.
	Open func(t testing.TB, s Setup) llm.Reranker

	// Texts reads back what a request is about.
	Texts func(t testing.TB, r *http.Request, body []byte) (query string, texts []string)

	// Reply is what a server sends, in the order given.
	Reply func(scores []Score) Body

	// Fail is as that of a Wire.
	Fail func(f Failure) (Body, bool)

	Lacks []Feature // RetryAfter
}

// A Score is what a server says of a text. Value is JSON: "0.25", "1e999".
type Score struct {
	Index int
	Value string
}

// TestEmbedWire holds an embedder and its reading of its server's format to the
// contract of llm.Embedder.
func TestEmbedWire(t *testing.T, w EmbedWire) {}

// TestRerankWire holds a reranker and its reading of its server's format to the
// contract of llm.Reranker.
func TestRerankWire(t *testing.T, w RerankWire) {}
