// Package rerank reorders the best hits of a search. Local uses a small learned model over their
// scores and over which of them name one another. Texts uses a model that reads the query with each
// text.
//
// Both implement retrieve's Ranker. Neither finds hits. A score orders the hits of one result, and
// is not a measure of relevance.
package rerank

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
)

// modelJSON holds the weights of Local, written by `go run ./train/fit rank`, with the sets that they were
// learned from.
//
//go:embed model.json
var modelJSON []byte

var defaultModel = func() Model {
	var m Model
	if err := json.Unmarshal(modelJSON, &m); err != nil {
		panic("rerank: model.json: " + err.Error())
	}
	if err := m.check(); err != nil {
		panic("rerank: model.json: " + err.Error())
	}
	return m
}()

// A Model is a linear model: a hit's score is the weighted sum of its features.
type Model struct {
	Features []string  `json:"features"` // FeatureNames of the program that trained it
	Vector   []float64 `json:"vector"`   // weights by feature, for hits with similarities to the query
	Words    []float64 `json:"words"`    // weights for hits without
	Sets     []string  `json:"sets"`     // training sets
	Queries  int       `json:"queries"`  // number of queries in the sets
	Trained  string    `json:"trained_by"`
	Licences string    `json:"licences"`
}

func (m Model) check() error {
	if !slices.Equal(m.Features, FeatureNames) || len(m.Vector) != len(FeatureNames) || len(m.Words) != len(FeatureNames) {
		return fmt.Errorf("has features %v, want %v, each with two weights", m.Features, FeatureNames)
	}
	for _, w := range slices.Concat(m.Vector, m.Words) {
		if w-w != 0 {
			return fmt.Errorf("has a weight of %v", w)
		}
	}
	return nil
}

// Default returns the embedded model.
func Default() Model { return defaultModel }

// Local ranks by a Model in a few milliseconds, without external calls.
type Local struct{ model Model }

// New returns a ranker for a model. The error is assay.ErrInvalid if the model's features are not
// FeatureNames.
func New(m Model) (*Local, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the reranker %w: %w", err, assay.ErrInvalid)
	}
	return &Local{m}, nil
}

// Rank returns one score per hit of found, in their order; higher is better. Hits must be in the
// order of fusion, and either all or none must have Scores.Vector. It returns an error only if ctx
// has ended.
func (l *Local) Rank(ctx context.Context, _ assay.Query, found assay.Results) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weights := l.weights(found)
	scores := make([]float64, len(found.Hits))
	for i, f := range Features(found) {
		for j, x := range f {
			scores[i] += weights[j] * x
		}
	}
	return scores, nil
}

// weights returns the weights for hits with or without similarities.
func (l *Local) weights(found assay.Results) []float64 {
	if len(found.Hits) > 0 && found.Hits[0].Scores.Vector != nil {
		return l.model.Vector
	}
	return l.model.Words
}
