package local

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/role"
)

// heldJSON holds what tells whether passages hold an answer, as `assay eval
// train-abstention` wrote it, with the sets that it was learned from.
//
//go:embed held.json
var heldJSON []byte

// defaultHeld is read when it is first asked: what learns it anew does without.
var defaultHeld = sync.OnceValue(func() *HeldModel {
	var m HeldModel
	if err := json.Unmarshal(heldJSON, &m); err != nil {
		panic("role/local: held.json: " + err.Error())
	}
	if err := m.check(); err != nil {
		panic("role/local: held.json: " + err.Error())
	}
	return &m
})

// DefaultHeld is how likely passages have to hold the answer for one to be given: what 5 of
// 100 questions reach whose answer was taken away. See docs/evaluation.md, Abstention.
const DefaultHeld = 0.7

// A HeldModel says how likely passages hold the answer to a question: of what was found
// for it, and of how the words of the two fit.
type HeldModel struct {
	Words    HeldWeights `json:"words"`   // without an encoder, or without similarities
	Vectors  HeldWeights `json:"vectors"` // with those of the encoder in the program
	Sets     []string    `json:"sets"`    // that it was learned from
	Learned  string      `json:"learned_by"`
	Licences string      `json:"licences"`
}

// HeldWeights is a sum of two models that see the same: what a line can say of the
// features, and what only trees can. The probability is that of the mean of their log odds,
// times Slope plus Offset, which make it one.
type HeldWeights struct {
	Features  []string      `json:"features"`
	Line      *learn.Linear `json:"line"`
	Trees     *learn.Trees  `json:"trees"`
	Slope     float64       `json:"slope"`
	Offset    float64       `json:"offset"`
	Questions int           `json:"questions"` // that it was learned from
}

func (m *HeldModel) check() error {
	for _, w := range []struct {
		weights HeldWeights
		vectors bool
	}{{m.Words, false}, {m.Vectors, true}} {
		names := HeldFeatureNames(w.vectors)
		if !slices.Equal(w.weights.Features, names) || w.weights.Line == nil || len(w.weights.Line.Weights) != len(names) || w.weights.Trees == nil {
			return fmt.Errorf("has features %v, want %v", w.weights.Features, names)
		}
	}
	return nil
}

// Probability returns how likely the answer is held, in [0, 1], to three decimals.
func (w HeldWeights) Probability(features []float64) float64 {
	p := learn.Sigmoid(w.Slope*w.LogOdds(features) + w.Offset)
	return math.Round(p*1000) / 1000
}

// LogOdds returns the mean of the two models' log odds, before they are calibrated.
func (w HeldWeights) LogOdds(features []float64) float64 {
	return (w.Line.LogOdds(features) + w.Trees.LogOdds(features)) / 2
}

// HeldSets lists the sets that the model in the program was learned from: what it reaches on
// them it may know by heart.
func HeldSets() []string { return slices.Clone(defaultHeld().Sets) }

// heldBy returns how likely the hits hold the answer. Without an encoder, or where the best
// hit has no vector yet, it goes by words alone.
func heldBy(ctx context.Context, encoder ground.Encoder, in role.GradeInput) (float64, error) {
	if encoder == nil || in.Hits[0].Scores.Vector == nil {
		encoder = nil
	}
	features, err := HeldFeatures(ctx, encoder, in)
	if err != nil {
		return 0, err
	}
	if encoder == nil {
		return defaultHeld().Words.Probability(features), nil
	}
	return defaultHeld().Vectors.Probability(features), nil
}
