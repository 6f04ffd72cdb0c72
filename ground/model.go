package ground

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
)

// A Model is the logistic regression that turns the reader's entailments and plain
// features of a claim into probabilities.
type Model struct {
	Made     string   `json:"made"`   // how and with which data the model was fitted
	Reader   string   `json:"reader"` // the reader that it was fitted with
	Features []string `json:"features"`

	Supported    *learn.Linear `json:"supported"`
	Contradicted *learn.Linear `json:"contradicted"` // contradicted rather than unsupported, given not supported

	// Shown and Balanced are two operating points, each the least probability of Supported: for
	// answers that are shown to people, and for the best balanced accuracy.
	Shown    float64 `json:"shown"`
	Balanced float64 `json:"balanced"`

	// Disputed is the least probability of a contradiction for the verdict Contradicted, given that
	// the claim is not supported.
	Disputed float64 `json:"disputed"`
}

//go:embed weights.json
var weightsFile []byte

// shipped returns the model in the binary.
var shipped = sync.OnceValues(func() (*Model, error) { return DecodeModel(weightsFile) })

// DecodeModel reads a model from JSON. A model for other features is assay.ErrDamaged.
func DecodeModel(data []byte) (*Model, error) {
	m := &Model{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("weights of the verifier: %w: %w", err, assay.ErrDamaged)
	}
	names := FeatureNames()
	fits := slices.Equal(m.Features, names) && m.Supported.Fits(len(names)) && m.Contradicted.Fits(len(names))
	outside := func(p float64) bool { return !(p > 0 && p < 1) }
	if !fits || slices.ContainsFunc([]float64{m.Shown, m.Balanced, m.Disputed}, outside) {
		return nil, fmt.Errorf("weights of the verifier are for other features: %w", assay.ErrDamaged)
	}
	return m, nil
}

// Floors returns the operating points of the model in the binary.
func Floors() (shown, balanced float64, err error) {
	m, err := shipped()
	if err != nil {
		return 0, 0, err
	}
	return m.Shown, m.Balanced, nil
}

// A ConflictModel is the logistic regression that decides whether two passages conflict.
type ConflictModel struct {
	Made     string   `json:"made"`   // how and with which data the model was fitted
	Reader   string   `json:"reader"` // the reader that it was fitted with
	Features []string `json:"features"`

	Conflict *learn.Linear `json:"conflict"`
	Least    float64       `json:"least"` // least probability of a reported conflict
}

//go:embed conflicts.json
var conflictsFile []byte

// shippedConflicts returns the model of conflicts in the binary.
var shippedConflicts = sync.OnceValues(func() (*ConflictModel, error) {
	m := &ConflictModel{}
	if err := json.Unmarshal(conflictsFile, m); err != nil {
		return nil, fmt.Errorf("weights of conflicts: %w: %w", err, assay.ErrDamaged)
	}
	fits := slices.Equal(m.Features, conflictFeatureNames) && m.Conflict.Fits(len(m.Features))
	if !fits || !(m.Least > 0 && m.Least < 1) {
		return nil, fmt.Errorf("weights of conflicts are for other features: %w", assay.ErrDamaged)
	}
	return m, nil
})

// ConflictFeatureNames returns the names of the features of [ConflictFeatures], in order.
func ConflictFeatureNames() []string { return slices.Clone(conflictFeatureNames) }
