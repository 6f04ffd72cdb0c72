package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// A spelling encoder gives words vectors that depend on their letters alone.
type spelling struct{}

func (spelling) Encode(_ context.Context, texts []string) ([][]ground.Token, error) {
	out := make([][]ground.Token, len(texts))
	for i, text := range texts {
		at := 0
		for _, w := range strings.Fields(text) {
			at += strings.Index(text[at:], w)
			random := rand.New(rand.NewPCG(hashed(strings.ToLower(strings.Trim(w, ".,"))), 1))
			v, square := make([]float32, 40), 0.0
			for k := range v {
				v[k] = float32(random.NormFloat64())
				square += float64(v[k] * v[k])
			}
			for k := range v {
				v[k] /= float32(math.Sqrt(square))
			}
			out[i] = append(out[i], ground.Token{Start: at, End: at + len(w), Vector: v})
			at += len(w)
		}
	}
	return out, nil
}

func TestTrainEditsTwice(t *testing.T) {
	cases, err := MadeGrounding(writeSeeds(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var stored [2][]byte
	for i := range stored {
		e, err := TrainEdits(context.Background(), cases, spelling{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if stored[i], err = e.Encoded(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(stored[0], stored[1]) {
		t.Error("trained twice on the same claims, the weights differ")
	}
	if _, err := ground.DecodeEdits(stored[0]); err != nil {
		t.Error(err)
	}
}

func TestTrainEditsOfNothing(t *testing.T) {
	if _, err := TrainEdits(context.Background(), nil, spelling{}, nil); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("TrainEdits of no claims gives %v, want assay.ErrInvalid", err)
	}
}

// The texts of networks and of the rest are not the same.
func TestForEdits(t *testing.T) {
	var cases []GroundingCase
	for _, w := range strings.Fields("one two three four five six seven eight nine ten eleven twelve") {
		for range 2 {
			cases = append(cases, GroundingCase{Claim: w, Evidence: []string{"It is said of " + w}})
		}
	}
	networks, rest := ForEdits(cases)
	if len(networks)+len(rest) != len(cases) || len(networks) == 0 || len(rest) == 0 {
		t.Fatalf("%d and %d of %d cases", len(networks), len(rest), len(cases))
	}
	for _, n := range networks {
		for _, r := range rest {
			if n.Evidence[0] == r.Evidence[0] {
				t.Errorf("%q is on both sides", n.Evidence[0])
			}
		}
	}
}
