package ground

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
)

// A Model is what was learned of how to tell verdicts apart: scorers of features, networks
// that see the words themselves, and how much each of them counts. `assay eval
// train-verifier` makes it.
type Model struct {
	Features     []string `json:"features"` // their names, in the order in which Measure gives them
	Supported    Scorer   `json:"supported"`
	Contradicted Scorer   `json:"contradicted"` // against all else

	// Nets are those of Edits, trained further with labelled claims; none by words alone.
	Nets []*learn.Bag `json:"nets,omitempty"`

	// Mix weighs what they say, see Signals: for Supported and for Contradicted.
	Mix [2]*learn.Linear `json:"mix"`

	// Slope and Offset make of the log odds of Supported, which are learned with as many
	// supported claims as others, the probability among claims as in the sets.
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`

	// Against is the least log odds of Contradicted at which a claim is called so. It was
	// chosen for the greatest macro F1.
	Against float64 `json:"against"`

	Balanced float64 `json:"balanced"` // the floor under which each set's balanced accuracy is greatest
	Shown    float64 `json:"shown"`    // the floor for what people act on
}

// A Scorer is the mean of boosted trees and a linear model, or either.
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

// Signals are the log odds of Supported and Contradicted by the scorers and, where there
// are networks, those of Supported, of Contradicted against unsupported and of Supported
// against Contradicted by these: what Mix weighs.
func (m *Model) Signals(of Measured) []float64 {
	out := []float64{m.Supported.logOdds(of.Features), m.Contradicted.logOdds(of.Features)}
	if len(m.Nets) > 0 {
		o := netOdds(m.Nets, of.Items)
		out = append(out, o.supported, o.contradicted, o.either)
	}
	return out
}

// Odds returns the log odds of Supported and those of Contradicted, as they were learned:
// with as many of each as of all else.
func (m *Model) Odds(of Measured) (supported, contradicted float64) {
	x := m.Signals(of)
	return m.Mix[0].LogOdds(x), m.Mix[1].LogOdds(x)
}

// Probability is the calibrated one of Supported, in (0, 1).
func (m *Model) Probability(supported float64) float64 {
	return learn.Sigmoid(m.Slope*supported + m.Offset)
}

// opposition is by how much farther Contradicted has to go beyond its least log odds than
// Supported beyond its own, for a claim that reaches both to be called contradicted. With
// less, sets that are unlike those that were learned from lose what is supported.
const opposition = 1

// Verdict is Supported where its probability reaches floor, unless Contradicted goes much
// farther beyond its own; else Contradicted where that is likely, else Unsupported.
func (m *Model) Verdict(supported, contradicted, floor float64) assay.Verdict {
	beyond := supported - (learn.LogOdds(floor)-m.Offset)/m.Slope
	against := contradicted - m.Against
	switch {
	case beyond >= 0 && (against < 0 || beyond >= against-opposition):
		return assay.Supported
	case against >= 0:
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
	if err := m.check(vectors); err != nil {
		return nil, fmt.Errorf("verifier's weights %w: %w", err, assay.ErrDamaged)
	}
	return m, nil
}

// check returns what is wrong with a model; nil: nothing.
func (m *Model) check(vectors bool) error {
	for _, s := range []Scorer{m.Supported, m.Contradicted} {
		n := len(m.Features)
		if s.Trees == nil && s.Linear == nil || s.Trees != nil && !s.Trees.Fits(n) || s.Linear != nil && !s.Linear.Fits(n) {
			return errors.New("do not fit its features")
		}
	}
	signals := 2
	if vectors {
		signals = 5
	}
	shape := EditShape()
	for _, b := range m.Nets {
		if b == nil || !b.Alike(shape) || !b.Fits() {
			return errors.New("have a network of another size")
		}
	}
	if (len(m.Nets) > 0) != vectors {
		return fmt.Errorf("have %d networks", len(m.Nets))
	}
	for _, l := range m.Mix {
		if l == nil || !l.Fits(signals) {
			return errors.New("do not fit its signals")
		}
	}
	// Not "<= 0": nothing may be supported by a number that is none.
	if !(m.Slope > 0) || !(m.Balanced > 0) || !(m.Shown >= m.Balanced) || math.IsInf(m.Slope, 0) || math.IsNaN(m.Offset+m.Against) {
		return errors.New("have no floor")
	}
	return nil
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
