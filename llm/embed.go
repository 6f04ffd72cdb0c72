package llm

import (
	"context"
	"fmt"
	"math"
)

// maxNormError is the largest accepted deviation of a vector's length from 1. It is more than the
// rounding error of float32 sums over 4,096 dimensions, and less than the deviation of any vector
// that was not normalised.
const maxNormError = 1e-3

// A BadOutputError reports that an embedder violated its contract.
type BadOutputError struct {
	Model  string
	Text   int    // index into the texts of the call; -1 if the error concerns no single text
	Detail string // the violation
}

func (e *BadOutputError) Error() string {
	if e.Text < 0 {
		return fmt.Sprintf("%s gave %s", e.Model, e.Detail)
	}
	return fmt.Sprintf("%s gave text %d %s", e.Model, e.Text, e.Detail)
}

// Embed calls e.Embed and checks the result against the contract: one vector per text, all of them
// finite, of unit length and with the same number of dimensions. A violation is a *BadOutputError.
// On error, Embed returns the valid vectors of a prefix of texts, which the caller may keep.
func Embed(ctx context.Context, e Embedder, p Purpose, texts []string) ([]Vector, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, err := e.Embed(ctx, p, texts)
	if n := len(vectors); n > len(texts) || err == nil && n < len(texts) {
		// Vectors cannot be assigned to texts.
		return nil, &BadOutputError{e.Model(), -1, fmt.Sprintf("%d vectors for %d texts", n, len(texts))}
	}
	for i, v := range vectors {
		if detail := badVector(v, len(vectors[0])); detail != "" {
			return vectors[:i], &BadOutputError{e.Model(), i, detail}
		}
	}
	return vectors, err
}

// badVector returns what is wrong with a vector, or "" if it is valid.
func badVector(v Vector, dimensions int) string {
	if len(v) == 0 || len(v) != dimensions {
		return fmt.Sprintf("a vector of %d dimensions, the first %d", len(v), dimensions)
	}
	square := float64(0) // NaN and infinity propagate
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

// EmbedQuery returns the vector of one query. A query over the model's limit is a *TooLongError.
func EmbedQuery(ctx context.Context, e Embedder, text string) (Vector, error) {
	vectors, err := Embed(ctx, e, Query, []string{text})
	if err != nil {
		return nil, fmt.Errorf("embed the query: %w", err)
	}
	return vectors[0], nil
}
