package ground

import (
	"errors"
	"math"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
)

// wholeModel is one by words alone whose parts fit.
func wholeModel() *Model {
	names := FeatureNames(false)
	plain := func(n int) *learn.Linear {
		return &learn.Linear{Mean: make([]float64, n), Scale: make([]float64, n), Weights: make([]float64, n)}
	}
	return &Model{
		Features: names, Supported: Scorer{Linear: plain(len(names))}, Contradicted: Scorer{Linear: plain(len(names))},
		Mix: [2]*learn.Linear{plain(2), plain(2)}, Slope: 1, Balanced: 0.3, Shown: 0.5,
	}
}

// A model that lacks something is damaged: nothing is supported by weights that are not
// there.
func TestDecodeModelChecks(t *testing.T) {
	for name, spoil := range map[string]func(m *Model){
		"whole":                 func(*Model) {},
		"no scorer":             func(m *Model) { m.Supported = Scorer{} },
		"a scorer too short":    func(m *Model) { m.Contradicted.Linear.Weights = nil },
		"no mix":                func(m *Model) { m.Mix[1] = nil },
		"a mix of more signals": func(m *Model) { m.Mix[0].Weights = append(m.Mix[0].Weights, 1) },
		"networks by words":     func(m *Model) { m.Nets = []*learn.Bag{nil} },
		"no slope":              func(m *Model) { m.Slope = 0 },
		"no floor":              func(m *Model) { m.Shown, m.Balanced = 0, 0 },
		"a shown floor below":   func(m *Model) { m.Shown = 0.1 },
	} {
		m := wholeModel()
		spoil(m)
		data, err := m.Encoded()
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeModel(data, false)
		if name == "whole" && err != nil || name != "whole" && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := wholeModel()
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		m.Slope = x
		if m.check(false) == nil {
			t.Errorf("a slope of %g is taken", x)
		}
	}
}

func TestVerdict(t *testing.T) {
	m := &Model{Slope: 2, Offset: -1, Against: 0.5}
	floor := m.Probability(1) // reached from log odds of 1 on
	for _, test := range []struct {
		supported, contradicted float64
		want                    assay.Verdict
	}{
		{1.1, 0, assay.Supported},
		{0.9, 0, assay.Unsupported},
		{0.9, 0.6, assay.Contradicted},
		{1.1, 1.5, assay.Supported},
		{1.1, 1.7, assay.Contradicted},
		{3, 3, assay.Supported},
	} {
		if got := m.Verdict(test.supported, test.contradicted, floor); got != test.want {
			t.Errorf("supported %g, contradicted %g: %s, want %s", test.supported, test.contradicted, got, test.want)
		}
	}
	if got := m.Verdict(50, 0, 1); got == assay.Supported {
		t.Error("a probability of 1 is reached")
	}
}
