package ground

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
)

// A Model is what was learned of how features tell verdicts apart. `assay eval
// train-verifier` makes it.
type Model struct {
	Features     []string `json:"features"` // their names, in the order in which Features gives them
	Supported    Scorer   `json:"supported"`
	Contradicted Scorer   `json:"contradicted"` // of what is not supported

	// Slope and Offset make of the log odds of Supported, which are learned with as many
	// supported claims as others, the probability among claims as in the sets.
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`

	// Against is the least log odds of Contradicted at which what is not supported is called
	// so. It was chosen for the greatest macro F1.
	Against float64 `json:"against"`

	Balanced float64 `json:"balanced"` // the floor under which each set's balanced accuracy is greatest
	Shown    float64 `json:"shown"`    // the floor for what people act on
}

// A Scorer is boosted trees, a linear model, or the mean of the two.
type Scorer struct {
	Trees  *learn.Trees  `json:"trees,omitempty"`
	Linear *learn.Linear `json:"linear,omitempty"`
}

func (s Scorer) logOdds(features []float64) float64 {
	switch {
	case s.Linear == nil:
		return s.Trees.LogOdds(features)
	case s.Trees == nil:
		return s.Linear.LogOdds(features)
	}
	return (s.Trees.LogOdds(features) + s.Linear.LogOdds(features)) / 2
}

// What the networks for changed words say is added to what was learned from labelled
// claims, which are few, with these weights: held out by whole sets the sum does better
// than either. What is likely contradicted is the less supported.
const (
	editsSupported    = 0.6
	editsContradicted = 0.5
)

// Odds returns the log odds of Supported and those of Contradicted among what is not
// supported, as they were learned: with as many of each.
func (m *Model) Odds(features []float64) (supported, contradicted float64) {
	supported, contradicted = m.Supported.logOdds(features), m.Contradicted.logOdds(features)
	for i, name := range m.Features {
		switch name {
		case "edit.supported":
			supported += editsSupported * features[i]
		case "edit.contradicted":
			contradicted += editsContradicted * features[i]
		}
	}
	return supported - learn.Sigmoid(contradicted), contradicted
}

// Probability is the calibrated one of Supported, in (0, 1).
func (m *Model) Probability(supported float64) float64 {
	return learn.Sigmoid(m.Slope*supported + m.Offset)
}

// Verdict is Supported where its probability reaches floor, else Contradicted where that
// is likely, else Unsupported.
func (m *Model) Verdict(supported, contradicted, floor float64) assay.Verdict {
	switch {
	case m.Probability(supported) >= floor:
		return assay.Supported
	case contradicted >= m.Against:
		return assay.Contradicted
	}
	return assay.Unsupported
}

// Encoded returns the model as it is stored: JSON under gzip, the same bytes for the same
// model.
func (m *Model) Encoded() ([]byte, error) { return packed(m) }

func packed(what any) ([]byte, error) {
	data, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// DecodeModel reads what Encoded wrote. What is not a model for this program's features
// is assay.ErrDamaged.
func DecodeModel(data []byte, vectors bool) (*Model, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("verifier's weights: %w: %w", err, assay.ErrDamaged)
	}
	m := &Model{}
	if err := json.NewDecoder(r).Decode(m); err != nil {
		return nil, fmt.Errorf("verifier's weights: %w: %w", err, assay.ErrDamaged)
	}
	names := FeatureNames(vectors)
	if !slices.Equal(m.Features, names) {
		return nil, fmt.Errorf("verifier's weights are for %d features, the program has %d: %w", len(m.Features), len(names), assay.ErrDamaged)
	}
	for _, s := range []Scorer{m.Supported, m.Contradicted} {
		if s.Trees == nil && s.Linear == nil || s.Trees != nil && !s.Trees.Fits(len(names)) || s.Linear != nil && !s.Linear.Fits(len(names)) {
			return nil, fmt.Errorf("verifier's weights do not fit its features: %w", assay.ErrDamaged)
		}
	}
	return m, nil
}

//go:embed weights_words.json.gz weights_vectors.json.gz
var modelFiles embed.FS

// wordsModel and vectorsModel are the models in the binary.
var (
	wordsModel   = sync.OnceValues(func() (*Model, error) { return openModel("weights_words.json.gz", false) })
	vectorsModel = sync.OnceValues(func() (*Model, error) { return openModel("weights_vectors.json.gz", true) })
)

func openModel(file string, vectors bool) (*Model, error) {
	data, err := modelFiles.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return DecodeModel(data, vectors)
}
