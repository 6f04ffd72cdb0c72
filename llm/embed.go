package llm

import (
	"context"
	"fmt"
	"math"
)

// maxNormError is how far the length of a vector may be from 1: more than float32
// sums over 4,096 dimensions are off, less than any vector that was not normalised.
const maxNormError = 1e-3

// A BadOutputError says that an embedder did not keep to its contract.
type BadOutputError struct {
	Model  string
	Text   int    // index into the texts of the call; -1: what is wrong is not of one
	Detail string // what is wrong
}

func (e *BadOutputError) Error() string {
	if e.Text < 0 {
		return fmt.Sprintf("%s gave %s", e.Model, e.Detail)
	}
	return fmt.Sprintf("%s gave text %d %s", e.Model, e.Text, e.Detail)
}

// Embed is e.Embed held to its contract: one vector per text, all of them finite,
// of unit length and of one number of dimensions. What breaks it is a
// *BadOutputError, and nothing from there on is returned: with an error come the
// vectors of a prefix of texts that can be kept.
func Embed(ctx context.Context, e Embedder, p Purpose, texts []string) ([]Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, err := e.Embed(ctx, p, texts)
	if n := len(vectors); n > len(texts) || err == nil && n < len(texts) {
		// Nobody can tell which vector is whose.
		return nil, &BadOutputError{e.Model(), -1, fmt.Sprintf("%d vectors for %d texts", n, len(texts))}
	}
	for i, v := range vectors {
		if detail := badVector(v, len(vectors[0])); detail != "" {
			return vectors[:i], &BadOutputError{e.Model(), i, detail}
		}
	}
	return vectors, err
}

// badVector says what is wrong with a vector, if anything is.
func badVector(v Vector, dimensions int) string {
	if len(v) == 0 || len(v) != dimensions {
		return fmt.Sprintf("a vector of %d dimensions, the first %d", len(v), dimensions)
	}
	square := float64(0) // NaN and infinity stay what they are
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	switch norm := math.Sqrt(square); {
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return "a vector that is not finite"
	case math.Abs(norm-1) > maxNormError:
		return fmt.Sprintf("a vector of length %.4g, want 1", norm)
	}
	return ""
}

// EmbedQuery returns the vector of one query. A query over the model's limit is a
// *TooLongError.
func EmbedQuery(ctx context.Context, e Embedder, text string) (Vector, error) {
	vectors, err := Embed(ctx, e, Query, []string{text})
	if err != nil {
		return nil, fmt.Errorf("embed the query: %w", err)
	}
	return vectors[0], nil
}
