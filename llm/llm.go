// Package llm says what assay asks of models, as small interfaces: vectors of
// texts, vectors of tokens, and how well texts answer a query. Providers
// implement them; nothing else of assay knows who does.
package llm

import (
	"context"
	"fmt"
)

// A Vector is what an Embedder makes of a text.
type Vector = []float32

// A Purpose says what a text is embedded for. Models that tell queries from
// passages treat the two differently; the others ignore it.
type Purpose int

// The purposes.
const (
	Passage Purpose = iota
	Query
)

// An Embedder maps texts to vectors in one embedding space.
type Embedder interface {
	// Model names the space, for example "gte-small/384", for good: what makes
	// other vectors has another name. Vectors of different models are never
	// compared.
	Model() string

	// Embed returns one vector per text, in the order given, for texts used as p
	// says. Every vector is of unit length and has the same number of dimensions.
	// A text over the model's limit is a *TooLongError, never cut silently. Embed
	// splits large inputs into requests itself. On error it may also return the
	// vectors of a prefix of texts, for the caller to keep. Embed is safe for
	// concurrent use.
	Embed(ctx context.Context, p Purpose, texts []string) ([]Vector, error)
}

// A TokenCounter is an Embedder that knows how many tokens a text has.
type TokenCounter interface {
	// Tokens returns how many tokens Embed reads of text, those that the model
	// adds itself included.
	Tokens(text string) int

	// MaxTokens is the most tokens that Embed takes of one text.
	MaxTokens() int
}

// A TokenEmbedder is an Embedder that also gives a vector for each token.
type TokenEmbedder interface {
	// EmbedTokens returns, for each text in the order given, the vectors of its
	// tokens in the order of the text, each of unit length, without those that the
	// model adds itself. Otherwise it is as Embed.
	EmbedTokens(ctx context.Context, p Purpose, texts []string) ([][]Vector, error)
}

// A Linguist is an Embedder that was made for certain languages.
type Linguist interface {
	// Languages lists them by ISO 639-1 code; empty: it is not limited to any.
	Languages() []string
}

// A Reranker judges how well texts answer a query.
type Reranker interface {
	// Model names the reranker, for example "ms-marco-MiniLM-L-6-v2".
	Model() string

	// Rerank returns one finite score per text, in the order given; higher is
	// better. Scores are the reranker's own and comparable only within one call. A
	// text that does not fit beside the query is a *TooLongError, never cut
	// silently. Rerank is safe for concurrent use.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// A TooLongError says that a text has more tokens than a model takes.
type TooLongError struct {
	Model  string
	Text   int // index into the texts of the call
	Tokens int // that it has; by an estimate, where only the model knows
	Limit  int // 0: only the model knows
}

func (e *TooLongError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("text %d, of about %d tokens, is too long for %s", e.Text, e.Tokens, e.Model)
	}
	return fmt.Sprintf("text %d has %d tokens, %s takes %d", e.Text, e.Tokens, e.Model, e.Limit)
}
