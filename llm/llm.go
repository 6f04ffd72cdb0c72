// Package llm defines the interfaces between assay and models: language models, embedders,
// rerankers and readers. Providers implement them; the rest of assay does not depend on any
// provider.
package llm

import (
	"context"
	"fmt"
)

// A Vector is the embedding of a text.
type Vector = []float32

// A Purpose is the use for which a text is embedded. Models that distinguish queries from passages
// embed the two differently; others ignore it.
type Purpose int

// The purposes.
const (
	Passage Purpose = iota
	Query
)

// An Embedder maps texts to vectors in one embedding space.
type Embedder interface {
	// Model returns the name of the embedding space, for example "gte-small/384". A name is
	// permanent: an embedder that returns other vectors has another name. Vectors of different
	// models are never compared.
	Model() string

	// Embed returns one vector per text, in the order given, for texts used for purpose p. Every
	// vector has unit length and the same number of dimensions. A text over the model's limit is a
	// *TooLongError and is never truncated silently. Embed splits large inputs into requests
	// itself. On error it may also return the vectors of a prefix of texts, for the caller to keep.
	// Embed is safe for concurrent use.
	Embed(ctx context.Context, p Purpose, texts []string) ([]Vector, error)
}

// A TokenCounter is an Embedder that can count the tokens of a text.
type TokenCounter interface {
	// Tokens returns the number of tokens that Embed reads for text, including those that the model
	// adds itself.
	Tokens(text string) int

	// MaxTokens returns the largest number of tokens that Embed accepts for one text.
	MaxTokens() int
}

// A TokenEmbedder is an Embedder that also returns a vector for each token.
type TokenEmbedder interface {
	// EmbedTokens returns, for each text in the order given, the vectors of its tokens in text
	// order. Each has unit length. Tokens that the model adds itself have none. Otherwise it
	// behaves like Embed.
	EmbedTokens(ctx context.Context, p Purpose, texts []string) ([][]Vector, error)
}

// A Linguist is an Embedder that was trained for certain languages.
type Linguist interface {
	// Languages returns their ISO 639-1 codes. An empty list means no restriction.
	Languages() []string
}

// A Reranker scores how well texts answer a query.
type Reranker interface {
	// Model returns the name of the reranker, for example "ms-marco-MiniLM-L-6-v2".
	Model() string

	// Rerank returns one finite score per text, in the order given; higher is better. Scores have
	// no common scale and are comparable only within one call. A text that does not fit beside the
	// query is a *TooLongError and is never truncated silently. Rerank is safe for concurrent use.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// A TooLongError reports that a text has more tokens than a model accepts.
type TooLongError struct {
	Model  string
	Text   int // index into the texts of the call
	Tokens int // of the text; an estimate if only the model can count them
	Limit  int // 0 if only the model knows it
}

func (e *TooLongError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("text %d, of about %d tokens, is too long for %s", e.Text, e.Tokens, e.Model)
	}
	return fmt.Sprintf("text %d has %d tokens, %s takes %d", e.Text, e.Tokens, e.Model, e.Limit)
}
