package local

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
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
	if err := m.Check(); err != nil {
		panic("role/local: held.json: " + err.Error())
	}
	return &m
})

// DefaultHeld is how likely passages have to hold the answer for one to be given: what 5 of
// 100 questions reach whose answer was taken away. See docs/evaluation.md, Abstention.
const DefaultHeld = 0.65

// A HeldModel says how likely passages hold the answer to a question: of what was found
// for it, and of how the words of the two fit.
type HeldModel struct {
	Words    HeldWeights `json:"words"`   // without an encoder, or without similarities
	Vectors  HeldWeights `json:"vectors"` // with those of the encoder in the program
	Sets     []string    `json:"sets"`    // that it was learned from
	Learned  string      `json:"learned_by"`
	Licences string      `json:"licences"`
}

// HeldWeights is a weighted sum of features. The probability is that of its log odds, times
// Slope plus Offset, which make it one: they are fitted to sets that the line had not seen.
type HeldWeights struct {
	Features  []string      `json:"features"`
	Line      *learn.Linear `json:"line"`
	Slope     float64       `json:"slope"`
	Offset    float64       `json:"offset"`
	Questions int           `json:"questions"` // that it was learned from
}

// Check says why a model is none of the features that this program has, as
// assay.ErrInvalid: it was learned by another version of it, or is damaged.
func (m *HeldModel) Check() error {
	for _, w := range []struct {
		weights HeldWeights
		vectors bool
	}{{m.Words, false}, {m.Vectors, true}} {
		names := HeldFeatureNames(w.vectors)
		if !slices.Equal(w.weights.Features, names) {
			return fmt.Errorf("has features %v, want %v: %w", w.weights.Features, names, assay.ErrInvalid)
		}
		if line := w.weights.Line; line == nil || !line.Fits(len(names)) {
			return fmt.Errorf("has weights that are not of %d features: %w", len(names), assay.ErrInvalid)
		}
	}
	return nil
}

// Probability returns how likely the answer is held, in [0, 1], to three decimals.
func (w HeldWeights) Probability(features []float64) float64 {
	p := learn.Sigmoid(w.Slope*w.Line.LogOdds(features) + w.Offset)
	return math.Round(p*1000) / 1000
}

// HeldSets lists the sets that the model in the program was learned from: what it reaches on
// them it may know by heart.
func HeldSets() []string { return slices.Clone(defaultHeld().Sets) }

// heldBy returns how likely the hits hold the answer. Without an encoder, or where the best
// hit has no vector yet, it goes by words alone.
func (m *HeldModel) heldBy(ctx context.Context, encoder ground.Encoder, in role.GradeInput) (float64, error) {
	if encoder == nil || in.Hits[0].Scores.Vector == nil {
		encoder = nil
	}
	features, err := HeldFeatures(ctx, encoder, in)
	if err != nil {
		return 0, err
	}
	if encoder == nil {
		return m.Words.Probability(features), nil
	}
	return m.Vectors.Probability(features), nil
}
