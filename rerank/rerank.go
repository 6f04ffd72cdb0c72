// Package rerank orders the best hits of a search once more: by a small learned
// model over their scores and over which of them name one another (Local), or by
// a model that reads the query beside each text (Texts).
//
// Both are what retrieve calls a Ranker. Neither finds hits, and neither says how
// relevant one is by itself: a score orders one result and means nothing beyond.
package rerank

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
)

// modelJSON holds the weights of Local, as `assay eval train` wrote them, with
// the sets they were learned from.
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
	Vector   []float64 `json:"vector"`   // weights, one for each feature, where the similarities to the query are known
	Words    []float64 `json:"words"`    // weights where they are not
	Sets     []string  `json:"sets"`     // that it was trained on
	Queries  int       `json:"queries"`  // of these
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

// Default returns the model in the binary.
func Default() Model { return defaultModel }

// Local ranks by a Model, in a few milliseconds, and asks nobody.
type Local struct{ model Model }

// New returns a ranker by a model. A model whose features are not FeatureNames is
// assay.ErrInvalid.
func New(m Model) (*Local, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the reranker %w: %w", err, assay.ErrInvalid)
	}
	return &Local{m}, nil
}

// Rank returns one score per hit of found, in their order; higher is better. Hits
// must be in the order of fusion, and either each has Scores.Vector or none has. It
// returns an error only when ctx has ended.
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

// weights are those for hits whose similarities are known, or are not.
func (l *Local) weights(found assay.Results) []float64 {
	if len(found.Hits) > 0 && found.Hits[0].Scores.Vector != nil {
		return l.model.Vector
	}
	return l.model.Words
}
